"""The screen that compares two runs, or two candidates, case by case."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from evalstore.comparison.comparison import Pair
from evalstore.core.display import (
    StyledLine,
    StyledSpan,
    safe,
    short_names,
    side_name,
    widest,
)
from evalstore.core.values import Result
from evalstore.interfaces.tui.case_listing import CaseNavigator
from evalstore.interfaces.tui.data_source import Among, Models
from evalstore.interfaces.tui.grid import Column, Grid, StyledCell, only_file
from evalstore.interfaces.tui.page_lines import READING, FooterHint
from evalstore.interfaces.tui.render.verdicts import pair_lines, result_cell
from evalstore.interfaces.tui.screens.actions import DatedPage
from evalstore.interfaces.tui.text_view import TextView
from evalstore.results.compare.diff_result import (
    CHANGES,
    FLIPS,
    SAME_ANSWER,
    Diff,
    change_name,
    has_candidates,
    listed_pairs,
    side_names,
    summary_lines,
)
from evalstore.results.labels import LabelIndex
from evalstore.results.table.cases import Cases
from evalstore.runs.status.status_text import ROW_ID_HINT

_HELP = """\
The differences between two runs, between a run and the workspace, or between two candidates or two
system prompts. Cases that broke come first, then those that were fixed, then the rest; of two
candidates or prompts, those that are worse or better with the second. Both answers to the case
under the cursor are below, or at the right in a wide terminal. {compare.unchanged} also lists
unchanged cases, and those with the same answer. If there is a newer run, {case.newest} compares
with it."""

_FOOTER = (
    "list.open",
    FooterHint("Label", ("case.pass", "case.fail")),
    FooterHint("Edit", ("case.edit",)),
    FooterHint("Judge", ("case.judge",)),
    FooterHint("Change", ("compare.next_flip", "compare.last_flip")),
    *("compare.swap", "compare.unchanged", "page.save"),
)


class ComparePage(DatedPage):
    """Compares two runs, a run and the workspace, or two candidates of one run."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n", "flip(1)", "Next change", id="compare.next_flip"),
        Binding("N", "flip(-1)", "Previous change", show=False, id="compare.last_flip"),
        Binding("i", "swap", "Swap sides", id="compare.swap"),
        Binding("equals_sign", "unchanged", "Unchanged", show=False, id="compare.unchanged"),
    ]
    FOOTER = _FOOTER
    TITLE = "Comparison"
    PANELS: ClassVar[Mapping[str, str]] = {"pairs": "Cases", "pair": "Answers"}
    WAY = "{history.compare} on the runs, {cases.compare_models} on the cases"
    HELP = _HELP
    NEWER = "{case.newest} compares with it"
    DEFAULT_CSS = """
    ComparePage {
        & > #rates { height: auto; min-height: 3; max-height: 6; background: $panel; }
        &.-short > #rates { height: 2; min-height: 2; }
    }
    """

    export_name = "comparison"

    def __init__(
        self, was: str | None, now: str | None, models: Models = None, among: Among = None
    ) -> None:
        """Take two runs, None for the workspace; or one and `models` or prompts, `among` cases."""
        super().__init__()
        self._among = among
        self._sides = was, now
        self._models = models
        self._diff: Diff | None = None
        self._is_swapped = False
        self._with_unchanged = False
        self._labels = LabelIndex()
        self._pairs: list[ListedPair] = []
        self._cases: dict[str | None, Cases] = {}
        """The cases of the sides whose answers were opened."""

    def compose_above(self) -> ComposeResult:
        """Lay out the rates, too."""
        yield from super().compose_above()
        yield TextView(id="rates", is_fixed=True)

    def on_mount(self) -> None:
        """Compare."""
        self.set_title("compare", READING)
        self.grid.focus()
        self._read(None)

    def reload(self) -> None:
        """Compare again, and read the labels again; a run does not change."""
        self._cases.clear()
        self._read(None if None in self._sides else self._diff)

    def _read(self, known: Diff | None) -> None:
        compared = self._sides, self._models, self._among, self._is_swapped

        def read() -> tuple[Diff, LabelIndex]:
            return known or self.source.compare(*compared), self.source.labels()

        def show(found: tuple[Diff, LabelIndex]) -> None:
            self._diff, self._labels = found
            self.show_pairs()
            self.look_for_newer(self._sides[1])

        self.fetch(read, show)

    def open_newer(self, newer: str) -> None:
        """Compare with a newer run; of candidates, compare those in it."""
        was, _ = self._sides
        self._sides = (newer if self._models else was), newer
        self._diff = None
        self.reload()

    # --- what is listed

    def show_pairs(self) -> None:
        """List flips first; the cursor stays with its pair."""
        diff = self._diff
        assert diff
        before = self.highlighted.place if self.highlighted else None
        self._pairs = list_pairs(diff, with_unchanged=self._with_unchanged)
        cursor = next((n for n, listed in enumerate(self._pairs) if listed.place == before), 0)
        within = side_name(diff.was).removeprefix("the ") if diff.models else ""
        sides = " -> ".join(short_names(diff.names) if diff.models else diff.names)
        filtered = f"filtered by {self._among.typed}" if self._among else ""
        changes = (*CHANGES, *_NOT_LISTED)
        every = (pair.either.file for change in changes for pair in listed_pairs(diff, change))
        file = only_file(listed.place[0] for listed in self._pairs)
        is_all = not file or all(other == file for other in every)
        self.set_title("compare", within, sides, filtered, file if is_all else f"listed: {file}")
        rates = self.query_one("#rates", TextView)
        files = {listed.place[0] for listed in self._pairs}
        seen = {name for file in diff.edits.keys() & files for name in diff.sources.get(file, ())}
        unlisted = (file for file in diff.edits if file not in files)
        names = (name for file in unlisted for name in diff.sources.get(file, (file,)))
        edited = dict.fromkeys(name for name in names if name not in seen)
        has_unlisted = any(listed_pairs(diff, change) for change in _NOT_LISTED)
        has_hint = has_unlisted and not self._with_unchanged
        hint = self.with_keys(_UNCHANGED_HINT) if has_hint else ""
        rates.show(comparison_lines(diff, hint, edited, is_swapped=self._is_swapped))
        grid = self.grid
        columns = pair_columns(diff, self._pairs, self._labels)
        grid.show(columns, len(self._pairs), self._cells, cursor=cursor)
        has_pairs = bool(self._pairs)
        is_with_workspace = self._models is None and None in self._sides  # two runs may be meant
        text = f"{_EMPTY}\n{_LAST_RUNS}" if is_with_workspace else _EMPTY
        self.set_empty("" if has_pairs else self.with_keys(text))
        if not has_pairs:
            self.call_after_refresh(self.set_focus, None)  # also when it comes only now
        elif self.focused is None:
            grid.focus()
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether the action is available; without a pair, few are."""
        if self._diff and not self._pairs and action in _NEED_PAIR:
            return False
        return super().check_action(action, parameters)

    def _cells(self, row: int) -> Sequence[StyledCell]:
        assert self._diff
        listed = self._pairs[row]
        return pair_cells(self._diff, listed, self._labels)

    # --- the highlighted pair

    @property
    def highlighted(self) -> ListedPair | None:
        """Return the highlighted pair."""
        return self.grid.at_cursor(self._pairs)

    @property
    def selected(self) -> list[Result]:
        """Return the newer side of the highlighted pair, when there is one."""
        pair = self.highlighted.pair if self.highlighted else None
        return [pair.either] if pair else []

    @property
    def copy_text(self) -> tuple[str, str]:
        """Return the highlighted case, as a command line names it."""
        if self.highlighted is None:
            return "", ""
        result = self.highlighted.pair.either
        return f"{result.file}::{result.row}" if result.row else result.file, "the case"

    @property
    def prompts(self) -> Collection[str | None]:
        """Return the ids of the system prompts of cases that have several, on both sides."""
        return {id for names in self._diff.prompts.values() for id in names} if self._diff else ()

    def prompt_name(self, result: Result) -> str:
        """Return the name of the system prompt, when the file has several."""
        prompts = self._diff.prompts if self._diff else {}
        return prompts.get(result.file, {}).get(result.prompt, "")

    @on(Grid.Moved, "#pairs")
    def follow_cursor(self) -> None:
        """Show the highlighted pair in detail."""
        listed, diff = self.highlighted, self._diff
        if listed is None or diff is None:
            return
        pair = listed.pair
        view = self.query_one("#pair", TextView)
        view.show(pair_lines(diff, pair, diff.feedback))

        def show(lines: list[StyledLine]) -> None:
            if self.highlighted and self.highlighted.pair is pair:
                view.show(lines, stay=True)

        source, tests = self.source, [side.test for side in (pair.now, pair.was) if side]

        def read() -> list[StyledLine]:
            from evalstore.results.answer.answer import last_user_messages
            from evalstore.results.compare.diff import find_pair_edits

            feedback = source.feedback(diff.shown_decisions(pair))
            answers = source.answers([id for id in diff.shown_sessions(pair) if id])
            messages = last_user_messages(source.location, tests)
            question = next((messages[id] for id in tests if id in messages), "")
            edits = [] if diff.models else find_pair_edits(source.location, pair)
            return [*pair_lines(diff, pair, feedback, answers, question, edits)]

        self.fetch(read, show, group="pair")

    @on(Grid.Chosen, "#pairs")
    def open_answer(self) -> None:
        """Show the session of the newer side; of what is gone, that of the older one."""
        if self.highlighted is None:
            return
        was, now = reversed(self._sides) if self._is_swapped else self._sides
        revision = was if self.highlighted.pair.now is None else now
        if revision in self._cases:
            self._show_answer(self._cases[revision])
        else:
            places = {listed.place[:2] for listed in self._pairs}  # of many cases, those compared
            read = self.source.cases_at
            self.fetch(lambda: read(revision, places), self._show_answer, group="cases")

    def _show_answer(self, cases: Cases) -> None:
        self._cases |= {cases.run: cases} if cases.total is None else {}
        if self.highlighted is None:
            return
        rows = {
            (row.file, row.row, result.prompt_number): row
            for row in cases.rows
            for result in row.results
            if result
        }
        places = dict.fromkeys(listed.place[:3] for listed in self._pairs)
        among = [rows[place] for place in places if place in rows]
        case = rows.get(self.highlighted.place[:3])
        if case is None:
            self.notify(self.with_keys(_CHANGED), markup=False)
            return
        place = CaseNavigator(cases, among, among.index(case), self.highlighted.place[3])
        pair, diff = self.highlighted.pair, self._diff
        was, now = diff.shown_sessions(pair) if diff else (None, None)
        shown = now if pair.now else was
        place.to_answer([shown] if shown else [])
        self.browser.open("answer", place)

    # --- keys

    def action_flip(self, by: int) -> None:
        """Go to the next case that broke, was fixed or is a new failure, or to the previous one."""
        grid = self.grid
        flips = [n for n, listed in enumerate(self._pairs) if listed.is_wrong]
        if not flips:
            is_single_run = self._diff is not None and self._diff.models is not None
            text = "no verdict differs" if is_single_run else "no verdict has changed"
            self.notify(text, markup=False)
            return
        ahead = [n for n in flips if (n > grid.cursor if by > 0 else n < grid.cursor)]
        around = flips[0] if by > 0 else flips[-1]
        grid.move_to((ahead[0] if by > 0 else ahead[-1]) if ahead else around)

    def action_swap(self) -> None:
        """Swap the sides."""
        if self._diff:
            self._is_swapped = not self._is_swapped
            self._read(None)

    def action_unchanged(self) -> None:
        """Show or hide the unchanged cases."""
        if self._diff:
            self._with_unchanged = not self._with_unchanged
            self.show_pairs()


_NEED_PAIR = ("label", "unlabel", "judge_again", "edit", "copy_answer", "flip")
_CHANGED = "the workspace has changed: {page.reload} reads it again"
_UNCHANGED_HINT = " ({compare.unchanged} shows them)"
_EMPTY = """\
No verdict differs.

{compare.unchanged} lists the unchanged cases, edited test files first."""
_LAST_RUNS = (
    "To compare the last two runs, {history.compare} on the newest run in the list of runs."
)


_VERDICT = 11
"""The most columns of the name of a side in a narrow table."""
_NAME = 24
"""The most columns of the name of a side."""
_CHANGE = 20
"""The most columns of the name of a change."""
_NOT_LISTED = (SAME_ANSWER, "unchanged")
"""The kinds of pairs that are listed only on request."""


class ListedPair(NamedTuple):
    """A pair and its change: broke, fixed, changed, new, gone, the same answer or unchanged."""

    change: str
    pair: Pair

    @property
    def is_wrong(self) -> bool:
        """Return whether the pair broke or was fixed, or is a new failure."""
        return self.change in FLIPS or (
            self.change == "new" and self.pair.either.verdict not in (None, "pass")
        )

    @property
    def place(self) -> tuple[str, str, int, str]:
        """Return the file, the row, the number of the prompt and the candidate."""
        return self.pair.either.cell


def list_pairs(diff: Diff, *, with_unchanged: bool) -> list[ListedPair]:
    """Return the pairs that differ: flips, then new failures, then the others.

    `with_unchanged` adds those with the same answer to another question, and those that do not
    differ, of edited test files first.
    """
    listed = [ListedPair(change, pair) for change in CHANGES for pair in listed_pairs(diff, change)]
    listed.sort(key=lambda it: (it.change not in FLIPS, not it.is_wrong))
    for change in _NOT_LISTED if with_unchanged else ():
        pairs = (ListedPair(change, pair) for pair in listed_pairs(diff, change))
        listed += sorted(pairs, key=lambda it: it.place[0] not in diff.edits)
    return listed


def pair_columns(diff: Diff, pairs: Sequence[ListedPair], labels: LabelIndex) -> list[Column]:
    """Return the columns: the change, the case, the candidate unless two are compared, verdicts."""
    was, now = short_names(side_names(diff))
    changes = {change_name(diff, listed.change) for listed in pairs}
    sides = (side for _, pair in pairs for side in (pair.was, pair.now) if side)
    verdicts = {result_cell(side, labels).text for side in sides}
    least = max(widest(verdicts), min(_VERDICT, widest((was, now))))
    files = widest({listed.place[0] for listed in pairs})
    rows = widest({_row_label(diff, listed) for listed in pairs})
    has_one_file = len({listed.place[0] for listed in pairs}) == 1
    models = widest({listed.place[3] for listed in pairs})
    return [
        Column("change", max(9, min(_CHANGE, widest(changes))), rank=1),
        Column("file", 0 if has_one_file and rows else files, least=8, is_name=True),
        Column("row", rows, least=4, is_name=True),
        *((Column("candidate", models, least=6, is_name=True),) if has_candidates(diff) else ()),
        *(Column(name, max(least, min(_NAME, widest([name]))), least=least) for name in (was, now)),
    ]


def pair_cells(diff: Diff, listed: ListedPair, labels: LabelIndex) -> Sequence[StyledCell]:
    """Return a cell for each of these columns."""
    change, pair = listed
    return (
        StyledCell(change_name(diff, change), CHANGES.get(change, "faint")),
        StyledCell(pair.either.file),
        StyledCell(_row_label(diff, listed)),
        *((StyledCell(pair.either.model),) if has_candidates(diff) else ()),
        *(
            StyledCell("-", "faint") if side is None else result_cell(side, labels)
            for side in (pair.was, pair.now)
        ),
    )


def _row_label(diff: Diff, listed: ListedPair) -> str:
    """Return the row, with the system prompt where the file has several."""
    result = listed.pair.either
    prompt = diff.prompts.get(result.file, {}).get(result.prompt)
    return f"{result.row} ({prompt})".lstrip() if prompt else result.row


def comparison_lines(
    diff: Diff,
    hint: str,
    edited: Iterable[str] = (),
    *,
    is_swapped: bool = False,
) -> Iterator[StyledLine]:
    """Yield the numbers of the comparison and its notes; `hint` follows the unchanged pairs.

    `edited` is what was edited in test files of which no pair is listed. The difference of the
    rates names candidates, and runs if they are swapped.
    """
    is_of_runs = is_swapped and not diff.models
    names = (side_name(diff.was), side_name(diff.now)) if is_of_runs else ()
    yield from summary_lines(diff, hint, names)
    files = ", ".join(map(safe, [*edited, *map(str, diff.participants)]))
    notes = [*diff.notes, *([f"also edited: {files}"] if files else [])]
    if notes:
        yield StyledLine((StyledSpan("; ".join(notes), "pending"),))
    if diff.has_edited_rows:
        yield StyledLine((StyledSpan(f"({ROW_ID_HINT})", "faint"),))
