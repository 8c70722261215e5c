"""The comparison of two sides: its pairs in order, their table, and the rates."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from evalstore.core.display import (
    BLANK,
    StyledLine,
    StyledSpan,
    heading,
    safe,
    side_name,
    text_lines,
    widest,
)
from evalstore.interfaces.tui.render.case_table import spark_cell
from evalstore.interfaces.tui.render.verdicts import result_cell, short_names
from evalstore.interfaces.tui.widgets.column_names import case_names, only_file
from evalstore.interfaces.tui.widgets.grid_columns import NEVER, Column
from evalstore.interfaces.tui.widgets.grid_lines import StyledCell
from evalstore.results.compare.diff_text import (
    CHANGES,
    FLIPS,
    ROW_ID_HINT,
    SAME_ANSWER,
    change_name,
    has_candidates,
    is_new_failure,
    listed_pairs,
    side_names,
    summary_lines,
)
from evalstore.results.edits.change_text import edit_lines

if TYPE_CHECKING:
    from textual.geometry import Size

    from evalstore.comparison.comparison import Pair
    from evalstore.comparison.version_diff import Difference
    from evalstore.core.results import Result
    from evalstore.results.compare.diff_result import Diff
    from evalstore.results.labels.labels import LabelIndex

_VERDICT = 11
"""The most columns of the name of a side in a narrow table."""
_NAME = 24
"""The most columns of the name of a side."""
_CHANGE = 20
"""The most columns of the name of a change."""
_NOT_LISTED = (SAME_ANSWER, "unchanged")
"""The kinds of pairs that are listed only on request."""
_TEST = " (p = "
"""What the test of a difference begins with."""
_MANY_LINES, _WIDE = 30, 100
"""Lines and columns of a terminal whose comparison says how a difference was tested."""
_EDIT_WIDTH = 160
"""Characters of a text of an edit."""


class ListedPair(NamedTuple):
    """A pair and its change: broke, fixed, changed, new, gone, the same answer or unchanged."""

    change: str
    pair: Pair

    @property
    def is_wrong(self) -> bool:
        """Return whether the pair broke or was fixed, or is a new failure."""
        return self.change in FLIPS or (self.change == "new" and is_new_failure(self.pair))

    @property
    def place(self) -> tuple[str, str, int, str]:
        """Return the file, the row, the number of the prompt and the candidate."""
        result = self.pair.either
        return result.file, result.row, result.prompt_number, result.model


def list_pairs(diff: Diff, *, with_unchanged: bool) -> list[ListedPair]:
    """Return the pairs that differ: flips, then new failures, then the others.

    `with_unchanged` adds those with the same answer to another question, and those that do not
    differ.
    """
    changes = (*CHANGES, *(_NOT_LISTED if with_unchanged else ()))
    listed = [ListedPair(change, pair) for change in changes for pair in listed_pairs(diff, change)]
    return sorted(listed, key=lambda it: (it.change not in FLIPS, not it.is_wrong))


def has_unlisted(diff: Diff) -> bool:
    """Return whether there are pairs that are listed only on request."""
    return any(listed_pairs(diff, change) for change in _NOT_LISTED)


def file_of_pairs(pairs: Sequence[ListedPair]) -> str:
    """Return the file that all pairs are of, which the title names; empty with several."""
    return only_file(listed.place[0] for listed in pairs)


def title_of_files(diff: Diff, pairs: Sequence[ListedPair]) -> str:
    """Return the file of all listed pairs for the title; `listed: ` where others are compared."""
    file = file_of_pairs(pairs)
    others = (pair for change in (*CHANGES, *_NOT_LISTED) for pair in listed_pairs(diff, change))
    is_all = not file or all(pair.either.file == file for pair in others)
    return file if is_all else f"listed: {file}"


def title_of_sides(diff: Diff) -> str:
    """Return the names of the sides, of candidates as short as in the table."""
    return " -> ".join(short_names(diff.names) if diff.models else diff.names)


def pair_columns(
    diff: Diff, pairs: Sequence[ListedPair], labels: LabelIndex, *, with_history: bool = False
) -> list[Column]:
    """Return the columns: the change, the case, the candidate unless two are compared, verdicts."""
    was, now = short_names(side_names(diff))
    changes = {change_name(diff, listed.change) for listed in pairs}
    sides = (side for _, pair in pairs for side in (pair.was, pair.now) if side)
    verdicts = {result_cell(side, labels).text for side in sides}
    width = max(widest(verdicts), min(_VERDICT, widest((was, now))))
    files = widest({listed.place[0] for listed in pairs})
    rows = widest({_row_label(diff, listed) for listed in pairs})
    names = case_names(
        (listed.place[0], _row_label(diff, listed), listed.place[3]) for listed in pairs
    )
    since = NEVER if file_of_pairs(pairs) and rows else 0
    models = widest({listed.place[3] for listed in pairs})
    candidate = Column("candidate", 16, grows=True, most=models, least=6, names=names["candidate"])
    return [
        Column("change", max(9, min(_CHANGE, widest(changes))), since=56),
        Column("file", 10, grows=True, most=files, least=8, since=since, names=names["file"]),
        Column(
            "row", 8, grows=True, most=rows, least=4, since=0 if rows else NEVER, names=names["row"]
        ),
        *((candidate,) if has_candidates(diff) else ()),
        *(
            Column(
                name, width, grows=True, most=max(width, min(_NAME, widest([name]))), least=width
            )
            for name in (was, now)
        ),
        *_history_columns(diff, with_history=with_history),
    ]


def _history_columns(diff: Diff, *, with_history: bool) -> Iterator[Column]:
    """Yield the column of the last verdicts; of two candidates one for each, with its name."""
    if not diff.models:
        yield Column("last runs", 9, since=96 if with_history else NEVER, is_saved=False)
        return
    names = short_names(diff.models)
    widths = [max(9, min(_NAME, widest([f"runs: {name}"]))) for name in names]
    since = 70 + sum(widths) if with_history else NEVER
    for name, width in zip(names, widths, strict=True):
        heads = f"last runs: {name}", f"runs: {name}"
        yield Column(heads[1], width, since=since, is_saved=False, heads=heads)


def pair_cells(
    diff: Diff,
    listed: ListedPair,
    labels: LabelIndex,
    history: Callable[[Result], Sequence[str]],
) -> Sequence[StyledCell]:
    """Return a cell for each of these columns; `history` returns the last verdicts of a result."""
    change, pair = listed
    judged = (pair.was, pair.now) if diff.models else (pair.either,)
    return (
        StyledCell(change_name(diff, change), CHANGES.get(change, "faint")),
        StyledCell(pair.either.file),
        StyledCell(_row_label(diff, listed), group=pair.either.file),
        *((StyledCell(pair.either.model),) if has_candidates(diff) else ()),
        *(
            StyledCell("-", "faint") if side is None else result_cell(side, labels)
            for side in (pair.was, pair.now)
        ),
        *(spark_cell(history(side) if side else ()) for side in judged),
    )


def _row_label(diff: Diff, listed: ListedPair) -> str:
    """Return the row, with the system prompt where the file has several."""
    result = listed.pair.either
    prompt = diff.prompts.get(result.file, {}).get(result.prompt)
    return f"{result.row} ({prompt})".lstrip() if prompt else result.row


def other_edits(diff: Diff, pairs: Sequence[ListedPair]) -> dict[str, Sequence[Difference]]:
    """Return the edits of the test files that no listed pair is of."""
    listed = {pair.place[0] for pair in pairs}
    return {file: edits for file, edits in diff.edits.items() if file not in listed}


def edited_names(diff: Diff, edits: Collection[str]) -> list[str]:
    """Return what was edited where these test files differ: they, or what they use, each once.

    What other test files use as well is left out: their pairs show it.
    """
    others = {
        name for file in diff.edits.keys() - set(edits) for name in diff.sources.get(file, ())
    }
    names = (name for file in edits for name in diff.sources.get(file, (file,)))
    return [name for name in dict.fromkeys(names) if name not in others]


def comparison_lines(
    diff: Diff,
    hint: str,
    edited: Iterable[str] = (),
    size: Size | None = None,
    *,
    is_swapped: bool = False,
) -> Iterator[StyledLine]:
    """Yield the numbers of the comparison and its notes; `hint` follows the unchanged pairs.

    `edited` is what was edited in test files of which no pair is listed. The difference of the
    rates names candidates, and runs if they are swapped. In a terminal of a small `size` it has
    its interval, and not how it was tested.
    """
    is_of_runs = is_swapped and not diff.models
    names = (side_name(diff.was), side_name(diff.now)) if is_of_runs else ()
    is_brief = size is not None and size.height < _MANY_LINES and size.width < _WIDE
    for line in summary_lines(diff, hint, names):
        yield _without_test(line) if is_brief else line
    files = ", ".join(map(safe, [*edited, *map(str, diff.participants[0])]))
    notes = [*diff.notes, *([f"also edited: {files}"] if files else [])]
    if notes:
        yield StyledLine((StyledSpan("; ".join(notes), "pending"),))
    if diff.has_edited_rows:
        yield StyledLine((StyledSpan(f"({ROW_ID_HINT})", "faint"),))


def _without_test(line: StyledLine) -> StyledLine:
    """Return a line without the p-value and the name of the test at its end."""
    number = next((n for n, span in enumerate(line.spans) if _TEST in span.text), None)
    if number is None:
        return line
    span = line.spans[number]
    cut = span._replace(text=span.text.partition(_TEST)[0])
    return line._replace(spans=(*line.spans[:number], cut))


def edited_lines(
    diff: Diff, edits: Mapping[str, Sequence[Difference]], hint: str
) -> Iterator[StyledLine]:
    """Yield the edits of test files where no pair differs, then the hint."""
    from evalstore.results.edits.file_edits import by_subject

    yield heading("No verdict and no answer differs. Edited:")
    for subject, differences in by_subject(edits, diff.sources).items():
        yield from text_lines(subject, indent=2)
        for edit in differences:
            yield from edit_lines(edit, width=_EDIT_WIDTH, indent=4)
    yield BLANK
    yield from text_lines(hint, "faint")
