"""The cases of a run: a row for each, a column for each candidate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.widgets import Footer, Input

from evalstore.tui.grid import Cell, Column, Grid
from evalstore.tui.looks import FAILING, counted, verdict
from evalstore.tui.page import Page
from evalstore.tui.query import read_query
from evalstore.tui.reader import Line, Reader, Span, heading, text_lines
from evalstore.wording import plural

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from evalstore.errors import EvalstoreError
    from evalstore.operations.browsing import CaseRow, Cases
    from evalstore.report.compare import Result

_URGENCY = {"error": 0, "fail": 1, "undecided": 2, "pending": 3, "answered": 4, "pass": 5}
_SORTS = ("file", "verdict", "row")
_GROUPS = ("", "file", "tag")


@dataclass(frozen=True, slots=True)
class _Group:
    """A line above the cases that have something in common."""

    name: str
    count: int


class CasesPage(Page):
    """The cases of a run, or of the workspace as it is now."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Filter", id="cases.filter"),
        Binding("n", "failure(1)", "Next failure", id="cases.next_failure"),
        Binding("N", "failure(-1)", "Failure before", show=False, id="cases.last_failure"),
        Binding("s", "sort", "Sort", show=False, id="cases.sort"),
        Binding("t", "group", "Group", show=False, id="cases.group"),
        Binding("v", "versions", "Versions", show=False, id="cases.versions"),
        Binding("x", "compare_models", "Compare models", show=False, id="cases.compare_models"),
    ]
    TITLE = "Cases"
    WAY = "{list.open} on a line of the runs"
    HELP = """\
A row for each case of a test file, a column for each candidate with the verdict on its answer.
Below is what was said of the case under the cursor, first of the candidate in the picked column.

{cases.filter} filters as you type; all parts must hold, and a value matches as a part of the text:
    words            in the file, the row, the answers and the feedback
    "two words"      as they stand
    verdict:fail     some candidate's verdict: pass, fail, error, undecided, pending, answered
    tag:manners      a tag of the case
    model:mini       a candidate; with verdict: this candidate's verdict
    file:weather     the test file"""
    DEFAULT_CSS = """
    CasesPage > Reader { height: 7; border-top: solid $panel; }
    CasesPage > Input { padding: 0 1; display: none; }
    """

    def __init__(self, revision: str | None, typed: str = "") -> None:
        super().__init__()
        self.revision = revision
        self._cases: Cases | None = None
        self._listed: list[CaseRow | _Group] = []
        self._sort, self._group = "file", ""
        self._typed = typed
        self._query = read_query(typed)
        self._found: frozenset[str] = frozenset()

    def compose(self) -> ComposeResult:
        """The table above what is said of the highlighted case."""
        yield self.title_line()
        yield self.problem_line()
        yield self.empty_state()
        yield Grid(id="cases", marks=True)
        yield Reader(id="said").add_class("detail")
        hint = "words  verdict:fail  tag:…  model:…  file:…"
        yield Input(placeholder=hint, id="filter", compact=True)
        yield Footer()

    def on_mount(self) -> None:
        """Read the cases."""
        self.set_title(self.name_of_run, "reading …")
        self.query_one(Grid).focus()
        if self._typed:
            self.filter_by(self._typed)
        self.reload(stay=False)

    @property
    def name_of_run(self) -> str:
        """What the cases are of."""
        return "workspace" if self.revision is None else f"run {self.revision[:8]}"

    def reload(self, *, stay: bool = True) -> None:
        """Read the cases again."""
        self.fetch(lambda: self.source.cases(self.revision), self.show_cases)

    def show_problem(self, problem: EvalstoreError) -> None:
        """Nothing is being read any more."""
        if self._cases is None:
            self.set_title(self.name_of_run)
        super().show_problem(problem)

    def show_cases(self, cases: Cases) -> None:
        """Show them."""
        self._cases = cases
        self.list_cases()

    # --- what is listed

    def list_cases(self) -> None:
        """Filter, sort and group what was read; the cursor stays with its case."""
        if self._cases is None:
            return
        before = self.case
        rows = [
            one
            for one in self._cases.rows
            if self._query.is_empty or self._query.matches(one, self._cases.models, self._found)
        ]
        rows.sort(key=_ORDERS[self._sort])
        self._listed = list(_grouped(rows, self._group))
        place = (before.file, before.row, before.prompt) if before else None
        cursor = next(
            (
                number
                for number, one in enumerate(self._listed)
                if not isinstance(one, _Group) and (one.file, one.row, one.prompt) == place
            ),
            1 if self._group and len(self._listed) > 1 else 0,
        )
        grid = self.query_one("#cases", Grid)
        grid.show(self._columns(), len(self._listed), self._cells, cursor=cursor)
        self.set_empty(self._why_empty(rows))
        grid.display = bool(rows)
        shown = f"{len(rows):,} of " if len(rows) < len(self._cases.rows) else ""
        self.set_title(
            self.name_of_run,
            f"{shown}{plural(len(self._cases.rows), 'case')}",
            counted(self._cases.counts),
            "" if self._sort == "file" else f"by {self._sort}",
        )
        if not rows:
            self.query_one("#said", Reader).show(())

    def _why_empty(self, rows: Sequence[CaseRow]) -> str:
        if rows:
            return ""
        if self._query.is_empty:
            return "There are no cases here.\n'evalstore check' reads the test files."
        return "No case matches the filter.\nEscape takes it away."

    def _columns(self) -> list[Column]:
        assert self._cases is not None
        models = [
            Column(model, max(11, min(18, len(model))), picks=True) for model in self._cases.models
        ]
        return [Column("file", 10, grows=True), Column("row", 12, grows=True), *models]

    def _cells(self, row: int) -> Sequence[Cell]:
        one = self._listed[row]
        if isinstance(one, _Group):
            return (Cell(one.name, "group"), Cell(plural(one.count, "case"), "faint"))
        label = " ".join(
            part for part in (one.row, f"({one.prompt})" if one.prompt else "") if part
        )
        return (
            Cell(one.file, "faint" if self._group == "file" else ""),
            Cell(label),
            *(Cell("") if found is None else verdict(found.word) for found in one.results),
        )

    # --- the highlighted case

    @property
    def case(self) -> CaseRow | None:
        """The highlighted case."""
        number = self.query_one("#cases", Grid).cursor
        one = self._listed[number] if number < len(self._listed) else None
        return None if isinstance(one, _Group) else one

    @property
    def listed(self) -> list[CaseRow]:
        """The cases that are listed."""
        return [one for one in self._listed if not isinstance(one, _Group)]

    @property
    def result(self) -> Result | None:
        """What the candidate under the cursor came to."""
        picked = self.query_one("#cases", Grid).picked
        case = self.case
        return case.results[picked] if case and picked < len(case.results) else None

    @property
    def chosen(self) -> list[Result]:
        """The results of the marked cases, or the one under the cursor."""
        marked = [self._listed[number] for number in sorted(self.query_one(Grid).marked)]
        found = [
            one for case in marked if not isinstance(case, _Group) for one in case.results if one
        ]
        return found or ([self.result] if self.result else [])

    @on(Grid.Moved, "#cases")
    def follow_cursor(self) -> None:
        """Say what was said of the highlighted case."""
        case = self.case
        if case is None:
            self.query_one("#said", Reader).show(())
            return
        ids = [id for one in case.results if one for id in one.evaluations]
        self.query_one("#said", Reader).show(self._said(case, {}))
        if ids:
            self.fetch(
                lambda: self.source.feedback(ids),
                lambda feedback: self._show_said(case, feedback),
                group="said",
            )

    def _show_said(self, case: CaseRow, feedback: dict[str, str]) -> None:
        if case is self.case:
            self.query_one("#said", Reader).show(self._said(case, feedback))

    def _said(self, case: CaseRow, feedback: dict[str, str]) -> Iterator[Line]:
        assert self._cases is not None
        tags = f"  {' '.join(case.tags)}" if case.tags else ""
        yield heading(f"{case.file} {case.row}{tags}")
        picked = self.query_one("#cases", Grid).picked
        numbers = sorted(range(len(case.results)), key=lambda number: number != picked)
        for number in numbers:
            one = case.results[number]
            if one is None:
                continue
            cell = verdict(one.word)
            yield Line((Span(f"{cell.text}  ", cell.colour), Span(self._cases.models[number])))
            for text in dict.fromkeys(feedback[id] for id in one.evaluations if feedback.get(id)):
                yield from text_lines(text, indent=2)

    @on(Grid.Chosen, "#cases")
    def open_case(self) -> None:
        """Show the session of the candidate under the cursor."""
        case, result = self.case, self.result
        if case and self._cases:
            shown = result or next((one for one in case.results if one), None)
            if shown:
                self.browser.show_session(
                    self._cases, self.listed, self.listed.index(case), shown.model
                )

    # --- keys

    def filter_by(self, typed: str) -> None:
        """Filter as if this had been typed."""
        found = self.query_one("#filter", Input)
        found.value = typed
        found.display = bool(typed)

    def action_filter(self) -> None:
        """Type a filter."""
        found = self.query_one("#filter", Input)
        found.display = True
        self.set_focus(found)  # at once: what is typed next belongs to it

    @on(Input.Changed, "#filter")
    def filter_changed(self, message: Input.Changed) -> None:
        """Filter as it is typed."""
        self._query = read_query(message.value)
        self._found = frozenset()
        self.list_cases()
        self.search()

    def search(self) -> None:
        """Search the words in answers and feedback, too."""

    @on(Input.Submitted, "#filter")
    def filter_done(self) -> None:
        """Go back to the table, which stays filtered."""
        self.query_one("#cases", Grid).focus()
        self.query_one("#filter", Input).display = not self._query.is_empty

    def action_back(self) -> None:
        """Take the filter away, or leave."""
        found = self.query_one("#filter", Input)
        if found.display or not self._query.is_empty:
            found.value = ""
            found.display = False
            self.query_one("#cases", Grid).focus()
        else:
            super().action_back()

    def action_failure(self, by: int) -> None:
        """Go to the next case that did not pass, or to the one before."""
        grid = self.query_one("#cases", Grid)
        count = len(self._listed)
        for step in range(1, count + 1):
            number = (grid.cursor + by * step) % count
            one = self._listed[number]
            if isinstance(one, _Group):
                continue
            failing = [n for n, found in enumerate(one.results) if found and found.word in FAILING]
            if failing:
                grid.picked = grid.picked if grid.picked in failing else failing[0]
                grid.move_to(number)
                return
        self.notify("no case failed", markup=False)

    def action_sort(self) -> None:
        """Sort by the next of file, verdict, row."""
        self._sort = _SORTS[(_SORTS.index(self._sort) + 1) % len(_SORTS)]
        self.list_cases()

    def action_group(self) -> None:
        """Group by the next of nothing, file, tag."""
        self._group = _GROUPS[(_GROUPS.index(self._group) + 1) % len(_GROUPS)]
        self.list_cases()


def _worst(case: CaseRow) -> int:
    return min((_URGENCY[one.word or "answered"] for one in case.results if one), default=9)


_ORDERS: dict[str, Callable[[CaseRow], Any]] = {
    "file": lambda case: 0,
    "verdict": _worst,
    "row": lambda case: case.row.casefold(),
}


def _grouped(rows: Sequence[CaseRow], by: str) -> Iterator[CaseRow | _Group]:
    """The rows with a line above each group; a case with several tags is in several."""
    if not by:
        yield from rows
        return
    groups: dict[str, list[CaseRow]] = {}
    for one in rows:
        for name in (one.file,) if by == "file" else one.tags or ("no tag",):
            groups.setdefault(name, []).append(one)
    for name, members in sorted(groups.items()):
        yield _Group(name, len(members))
        yield from members
