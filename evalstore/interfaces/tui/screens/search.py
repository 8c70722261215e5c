"""The search in all stored texts: those of `grep`, while it is typed."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input

from evalstore.core.display import (
    BLANK,
    StyledLine,
    StyledSpan,
    case_name,
    heading,
    marked_words,
    plural,
    safe,
    widest,
)
from evalstore.core.errors import EvalstoreError
from evalstore.interfaces.tui.case_filter import FIELDS, read_query
from evalstore.interfaces.tui.case_listing import CaseNavigator
from evalstore.interfaces.tui.grid import Column, Grid, StyledCell
from evalstore.interfaces.tui.page_lines import FooterHint
from evalstore.interfaces.tui.screens.actions import ActionsPage
from evalstore.interfaces.tui.text_view import TextView
from evalstore.results.grep import FoundText, FoundTexts, MarkedText
from evalstore.results.table.cases import Cases

_PAUSE_SECONDS = 0.2
"""A search begins when nothing has been typed for so long."""
_LIMIT = 200
"""Texts that are listed."""
_SEARCHING = "searching …"
_INDEXING = f"{_SEARCHING} {{}}% of the index is made"
_HINT = """\
Type words of an answer, feedback, a test or instructions; all must be in the same text.
The last word may be the beginning of one, and "quoted words" match as written."""
_FILTERS = "\nFilters such as verdict:fail work on a list of cases, after {cases.filter}."


class SearchPage(ActionsPage):
    """The stored texts that contain all words; it opens the answer in its newest run."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("slash", "type", "Find", id="search.type")]
    FOOTER = (
        "list.open",
        FooterHint("To the texts", ("submit",)),
        *("search.type", "page.copy", "page.save"),
    )
    TITLE = "Search"
    awaits_list = False
    PANELS: ClassVar[Mapping[str, str]] = {"hits": "Texts", "hit": "Text"}
    WAY = "{page.search} on the runs, the cases, an answer and other screens"
    HELP = """\
Lists answers, feedback, tests and instructions that contain all words, as 'evalstore grep' does:
at most 200, answers first, also of old runs and removed cases. {list.open} shows the answer in the
newest run that has it. {search.type} leads back to the words."""
    DEFAULT_CSS = """
    SearchPage > #words { padding: 0 1; }
    """
    export_name = "search"

    def __init__(self, typed: str = "") -> None:
        """Search for the words at once, if there are any."""
        super().__init__()
        self._typed = typed
        self._lines: list[str | FoundText] = []
        """The texts that were found; above those of a file its name."""
        self._pattern = ""
        """The words of the texts that are listed."""
        self._read: tuple[FoundText | None, str] = None, ""
        """The text that is shown in full, or is being read, and the words marked in it."""
        self._goes_to_list = False
        """Whether the list gets the focus as soon as the words have been found."""

    def compose_above(self) -> ComposeResult:
        """Lay out the words, too."""
        yield from super().compose_above()
        yield Input(self._typed, placeholder="words", id="words", compact=True)

    def on_mount(self) -> None:
        """Wait for words."""
        self.grid.opens = lambda row: not isinstance(self._lines[row], str)
        self._show(self._typed, None)
        self.action_type()
        if self._typed:
            self._search(self._typed)

    @property
    def _line(self) -> Input:
        return self.query_one("#words", Input)

    # --- searching

    @on(Input.Changed, "#words")
    def change_words(self, message: Input.Changed) -> None:
        """Search after a pause; the search for earlier words ends."""
        self._goes_to_list = False
        self._stop()
        if message.value.strip():
            self.set_title("search", _SEARCHING)
            self.pause("read", _PAUSE_SECONDS, partial(self._search, message.value))
        else:
            self._show("", None)

    def reload(self) -> None:
        """Search again."""
        if self._line.value.strip():
            self._search(self._line.value)

    def _stop(self) -> None:
        self.end_pause("read")
        self.workers.cancel_group(self, "read")

    def _search(self, pattern: str) -> None:
        self.end_pause("read")
        if pattern != self._pattern:
            self.set_title("search", _SEARCHING)

        def show_progress(text: str) -> None:
            if pattern == self._line.value and self.reads():
                self.set_title("search", text)

        def read() -> FoundTexts | None:
            return self.source.find_texts(pattern, _LIMIT, self.reporter(_INDEXING, show_progress))

        self.fetch(read, partial(self._show, pattern))

    def _show(self, pattern: str, found: FoundTexts | None) -> None:
        if pattern != self._line.value:  # something else was typed by now
            return
        before = self.highlighted
        texts = found.texts if found else ()
        self._pattern, self._lines = pattern, []
        for file, members in groupby(texts, key=lambda text: text.hit.file):
            of_file = list(members)
            self._lines += [f"{file or _NOWHERE}: {plural(len(of_file), 'text')}", *of_file]
        has_words = bool(pattern.strip())
        total, shown = found.total if found else 0, f"{len(texts):,} of "
        counted = f"{shown if len(texts) < total else ''}{plural(total, 'text')}"
        self.set_title("search", counted if found and has_words else "")
        empty = f"No stored text contains {pattern.strip()}." if found else _HINT
        if any(each.field in FIELDS for each in read_query(pattern).conditions):
            empty += self.with_keys(_FILTERS)
        if found and found.problem:
            empty = f"{found.problem}:\n{found.problem.hint}."
        self.set_empty("" if texts else empty)
        ids = ["" if isinstance(line, str) else line.hit.id for line in self._lines]
        cursor = ids.index(before.hit.id) if before and before.hit.id in ids else 1
        columns, count = hit_columns(texts), len(self._lines)
        self.grid.show(columns, count, self._cells, cursor=cursor, fits=False)
        if self._goes_to_list:
            self.show_list()

    def _cells(self, row: int) -> Sequence[StyledCell]:
        line = self._lines[row]
        return (StyledCell(line, "group"),) if isinstance(line, str) else hit_cells(line)

    def show_problem(self, problem: EvalstoreError) -> None:
        """Show what went wrong; nothing is searched any more."""
        self._read = None, ""
        self.set_title("search")
        super().show_problem(problem)

    # --- the highlighted text

    @property
    def highlighted(self) -> FoundText | None:
        """Return the highlighted text."""
        line = self.grid.at_cursor(self._lines)
        return None if isinstance(line, str) else line

    @on(Grid.Moved, "#hits")
    def follow_cursor(self) -> None:
        """Show the whole text, with the words marked."""
        found, pattern = self.highlighted, self._pattern
        if (found, pattern) == self._read:
            return
        shown, words = self._read
        is_same_text = (found and found.hit.id, pattern) == (shown and shown.hit.id, words)
        self._read = found, pattern
        view = self.query_one("#hit", TextView)
        if found is None:
            view.show(())
            return
        if not is_same_text:
            view.show(hit_lines(found, None))

        def show(text: MarkedText) -> None:
            if (found, pattern) == self._read:
                view.show(hit_lines(found, text), stay=is_same_text)
                if not is_same_text:
                    self.call_after_refresh(view.reveal, MATCH)

        self.fetch(lambda: self.source.read_text(found.hit, pattern), show, group="text")

    @property
    def copy_text(self) -> tuple[str, str]:
        """Return the id of the highlighted text."""
        found = self.highlighted
        return (found.hit.id, "the id") if found else ("", "")

    @on(Grid.Chosen, "#hits")
    def open_answer(self) -> None:
        """Show the answer that the text is, or is about."""
        found = self.highlighted
        if found is None:
            return
        if found.run is None:
            self.notify("no recent run has this text", markup=False)
            return
        self.fetch(
            lambda: self.source.cases_at(found.run, {(found.hit.file or "", found.hit.row)}),
            partial(self._show_answer, found),
            group="cases",
        )

    def _show_answer(self, found: FoundText, cases: Cases) -> None:
        sessions, place = {*found.hit.sessions}, (found.hit.file, found.hit.row)
        rows = [case for case in cases.rows if (case.file, case.row) == place]
        case = min(rows, key=lambda row: sessions.isdisjoint(row.sessions), default=None)
        if case is None:
            self.notify("the run no longer has this case", markup=False)
            return
        models = [it for it, result in zip(cases.models, case.results, strict=True) if result]
        model = next((model for model in found.hit.models if model in models), models[0])
        navigator = CaseNavigator(cases, [case], 0, model)
        navigator.to_answer(found.hit.sessions)
        self.browser.open("answer", navigator)

    # --- keys

    def action_search(self) -> None:
        """Go to the words: this is the search."""
        self.action_type()

    def on_key(self, event: events.Key) -> None:
        """Go from the words to the list with the key that moves down in it."""
        if event.key == "down" and self._line.has_focus:
            event.stop()
            self.show_list()

    @on(Input.Submitted, "#words")
    def show_list(self) -> None:
        """Go from the words to the list, at once or when they have been found."""
        self._goes_to_list = self._pattern != self._line.value
        if self._lines and not self._goes_to_list:
            self.grid.focus()

    def action_type(self) -> None:
        """Go to the words."""
        self.set_focus(self._line)

    def action_back(self) -> None:
        """Leave; a search that is under way ends."""
        self._stop()
        super().action_back()


MATCH = "match"
"""The colour of the words that were searched."""
_LEAST_ROW, _LEAST_MODEL = 12, 8
"""The fewest of them: the text, in which answers of one row differ, has as much of the others."""
_BEFORE = 12
"""Characters before the first match in a line, and what is left of a word there."""
_MOST = 20_000
"""Characters of a text that are shown."""
_LEAD = 1_000
"""Characters that are shown before a first match that is further down than that."""
_NOWHERE = "in no recent run"


def hit_columns(texts: Sequence[FoundText]) -> list[Column]:
    """Return the columns: the kind of text, its row, its candidates, and the words in it.

    The file is saved with them.
    """
    places = [_place(text) for text in texts]
    rows, models = (widest({place[number] for place in places}) for number in (1, 2))
    return [
        Column("what", max(6, widest({text.hit.noun for text in texts})), rank=1),
        Column("file", 0),
        Column("row", rows, least=_LEAST_ROW, rank=2, is_name=True),
        Column("candidate", models and max(9, models), least=_LEAST_MODEL, rank=3, is_name=True),
        Column("text", widest(text.hit.context for text in texts), least=18, grows=True),
    ]


def hit_cells(found: FoundText) -> Sequence[StyledCell]:
    """Return a cell for each of these columns."""
    hit, (file, row, models) = found.hit, _place(found)
    return (
        StyledCell(hit.noun, "faint"),
        StyledCell(file),
        StyledCell(row),
        StyledCell(models, "faint"),
        _context_cell(found),
    )


def _context_cell(found: FoundText) -> StyledCell:
    """Return the text from a few words before the first match on."""
    context, matches = found.hit.context, found.hit.matches
    begin = 0
    if matches and matches[0][0] > _BEFORE:
        first = matches[0][0] - _BEFORE
        begin = max(first - _BEFORE, context.rfind(" ", 0, first) + 1)
    places = [(first - begin, last - begin) for first, last in matches]
    spans = (StyledSpan("…" if begin else ""), *marked_words(context[begin:], places))
    return StyledCell(context, parts=spans)


def hit_lines(found: FoundText, text: MarkedText | None) -> Iterator[StyledLine]:
    """Yield a text in full with the words marked; until it has been read, what is around them."""
    hit = found.hit
    yield heading(case_name(hit.file, hit.row, found.prompt) if hit.file else _NOWHERE)
    text_name = f"{hit.noun} {hit.id[:8]}"
    if hit.kind != "answers" and len(hit.sessions) > 1:
        text_name = f"{text_name}, {plural(len(hit.sessions), 'answer')}"
    about = [text_name, ", ".join(hit.models), f"run {found.run[:8]}" if found.run else ""]
    yield StyledLine((StyledSpan(safe("  ".join(filter(None, about))), "faint"),))
    yield BLANK
    if text is None:
        yield StyledLine(tuple(marked_words(hit.context, hit.matches)))
        return
    begin = 0
    if text.places and text.places[0][1] > _MOST:  # the first match is seen
        first = text.places[0][0]
        begin = max(0, first - _LEAD)
        begin = text.text.find("\n", begin, first) + 1 or begin
    end = min(begin + _MOST, len(text.text))
    if begin:
        yield StyledLine((StyledSpan(f"… {begin:,} characters before", "faint"),))
    yield from _marked_lines(text, begin, end)
    if end < len(text.text):
        yield StyledLine((StyledSpan(f"… {len(text.text) - end:,} more characters", "faint"),))


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
        yield StyledLine(tuple(marked_words(line, here)))
        start = stop + 1


def _place(found: FoundText) -> tuple[str, str, str]:
    """Return the file, the row with its system prompt if the case has several, the candidates."""
    hit = found.hit
    row = f"{hit.row} ({found.prompt})".lstrip() if found.prompt else hit.row
    return hit.file or _NOWHERE, row, ", ".join(hit.models)
