"""The texts that a search has found: their table, and one of them in full."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from evalstore.core.display import (
    BLANK,
    StyledLine,
    StyledSpan,
    case_name,
    heading,
    plural,
    safe,
    widest,
)
from evalstore.interfaces.tui.widgets.column_names import case_names
from evalstore.interfaces.tui.widgets.grid_columns import NEVER, Column
from evalstore.interfaces.tui.widgets.grid_lines import StyledCell

if TYPE_CHECKING:
    from evalstore.results.search.grep import FoundText, MarkedText

_NOUNS = {
    "answers": "answer",
    "feedback": "feedback",
    "tests": "test",
    "instructions": "instructions",
}
MATCH = "heading"
"""The colour of the words that were searched."""
HEAD_LINES = 3
"""Lines above a text: where it is, what it is, and a blank one."""
_MOST_ROW, _MOST_MODEL = 24, 24
"""The most columns of a row and of a candidate."""
_MOST = 20_000
"""Characters of a text that are shown."""
_LEAD = 1_000
"""Characters that are shown before a first match that is further down than that."""
_NOWHERE = "in no recent run"


def list_by_file(texts: Sequence[FoundText]) -> Iterator[str | FoundText]:
    """Yield the texts, above those of a file its name."""
    for file, members in groupby(texts, key=lambda text: text.hit.file):
        listed = list(members)
        yield f"{file or _NOWHERE}: {plural(len(listed), 'text')}"
        yield from listed


def hit_columns(texts: Sequence[FoundText]) -> list[Column]:
    """Return the columns: the kind of text, its row, its candidates, and the words in it.

    The file is saved with them.
    """
    places = [_place(text) for text in texts]
    rows, models = ({place[number] for place in places} for number in (1, 2))
    names = case_names(places)
    return [
        Column("what", max(6, widest({_NOUNS[text.hit.kind] for text in texts})), since=50),
        Column("file", 8, since=NEVER),
        Column(
            "row",
            min(_MOST_ROW, widest(rows)),
            since=70 if any(rows) else NEVER,
            most=widest(rows),
            names=names["row"],
        ),
        Column(
            "candidate",
            min(_MOST_MODEL, max(9, widest(models))),
            since=72 if any(models) else NEVER,
            most=widest(models),
            names=names["candidate"],
        ),
        Column("text", 18, grows=True),
    ]


def hit_cells(found: FoundText) -> Sequence[StyledCell]:
    """Return a cell for each of these columns."""
    hit, (file, row, models) = found.hit, _place(found)
    return (
        StyledCell(_NOUNS[hit.kind], "faint"),
        StyledCell(file),
        StyledCell(row, group=file),
        StyledCell(models, "faint"),
        _context_cell(found),
    )


def _context_cell(found: FoundText) -> StyledCell:
    """Return the text around the first match, which stays visible."""
    context, matches = found.hit.context, found.hit.matches
    spans = tuple(
        span._replace(colour=span.colour and "group") for span in _marked(context, matches)
    )
    text = "".join(span.text for span in spans)
    number = next((number for number, span in enumerate(spans) if span.colour), None)
    if number is None:
        return StyledCell(text, parts=spans)
    start = sum(len(span.text) for span in spans[:number])
    return StyledCell(text, parts=spans, seen=(start, start + len(spans[number].text)))


def hit_lines(found: FoundText, text: MarkedText | None) -> Iterator[StyledLine]:
    """Yield a text in full with the words marked; until it has been read, what is around them."""
    hit = found.hit
    yield heading(case_name(hit.file, hit.row, found.prompt) if hit.file else _NOWHERE)
    text_name = f"{_NOUNS[hit.kind]} {hit.id[:8]}"
    if hit.kind != "answers" and len(hit.sessions) > 1:
        text_name = f"{text_name}, {plural(len(hit.sessions), 'answer')}"
    about = [text_name, ", ".join(hit.models), f"run {found.run[:8]}" if found.run else ""]
    yield StyledLine((StyledSpan(safe("  ".join(filter(None, about))), "faint"),))
    yield BLANK
    if text is None:
        yield StyledLine(tuple(_marked(hit.context, hit.matches)))
        return
    begin, end = _shown_part(text)
    if begin:
        yield StyledLine((StyledSpan(f"… {begin:,} characters before", "faint"),))
    yield from _marked_lines(text, begin, end)
    if end < len(text.text):
        yield StyledLine((StyledSpan(f"… {len(text.text) - end:,} more characters", "faint"),))


def _shown_part(text: MarkedText) -> tuple[int, int]:
    """Return where the part of a text that is shown begins and ends; the first match is in it."""
    begin = 0
    if text.places and text.places[0][1] > _MOST:
        first = text.places[0][0]
        begin = max(0, first - _LEAD)
        begin = text.text.find("\n", begin, first) + 1 or begin
    return begin, min(begin + _MOST, len(text.text))


def _marked_lines(text: MarkedText, begin: int, end: int) -> Iterator[StyledLine]:
    """Yield the lines of a part of a text; what is marked may go over the end of a line."""
    number, start = bisect_right(text.places, begin, key=itemgetter(1)), begin
    for line in text.text[begin:end].split("\n"):
        stop = start + len(line)
        here: list[tuple[int, int]] = []
        while number < len(text.places) and text.places[number][0] < stop:
            first, last = text.places[number]
            if max(first, start) < min(last, stop):
                here.append((max(first, start) - start, min(last, stop) - start))
            if last > stop:
                break
            number += 1
        yield StyledLine(tuple(_marked(line, here)))
        start = stop + 1


def _place(found: FoundText) -> tuple[str, str, str]:
    """Return the file, the row with its system prompt if the case has several, the candidates."""
    hit = found.hit
    row = f"{hit.row} ({found.prompt})".lstrip() if found.prompt else hit.row
    return hit.file or _NOWHERE, row, ", ".join(hit.models)


def _marked(text: str, places: Sequence[tuple[int, int]]) -> Iterator[StyledSpan]:
    """Yield a text with its words in a colour; control characters are shown as escapes."""
    at = 0
    for first, last in places:
        if first > at:
            yield StyledSpan(safe(text[at:first]))
        yield StyledSpan(safe(text[first:last]), MATCH)
        at = last
    if at < len(text) or not places:
        yield StyledSpan(safe(text[at:]))
