"""The cases of a run: a row for each, a column for each candidate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding, BindingType

from evalstore.display import plural
from evalstore.tui.render.judgements import said_of
from evalstore.tui.render.verdicts import verdict
from evalstore.tui.screens.base import READING
from evalstore.tui.screens.choice import Choice
from evalstore.tui.screens.filterable import FilterablePage
from evalstore.tui.state.case_filter import ORDERS, FilteredCases, label_of
from evalstore.tui.state.case_groups import CaseGroup, find, grouped, next_failure, place_of
from evalstore.tui.state.verdict_order import PERSON, SIGNS, counted
from evalstore.tui.widgets.footer import KeyFooter
from evalstore.tui.widgets.grid import Grid, StyledCell
from evalstore.tui.widgets.grid_columns import NEVER, Column
from evalstore.tui.widgets.text_view import StyledLine, TextView

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from evalstore.operations.views.cases import CaseRow, Cases
    from evalstore.tui.state.case_filter import Found, Search
    from evalstore.tui.state.case_query import Query
    from evalstore.values import Result

_GROUPS = ("", "file", "tag")


class CasesPage(FilterablePage):
    """The cases of a run, or of the workspace as it is now."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Filter", id="cases.filter"),
        Binding("n", "failure(1)", "Next failure", id="cases.next_failure"),
        Binding("N", "failure(-1)", "Previous failure", show=False, id="cases.last_failure"),
        Binding("s", "sort", "Sort", show=False, id="cases.sort"),
        Binding("t", "group", "Group", show=False, id="cases.group"),
        Binding("v", "versions", "Versions", show=False, id="cases.versions"),
        Binding("x", "compare_models", "Compare candidates", show=False, id="cases.compare_models"),
        Binding("S", "stats", "Statistics", show=False, id="cases.stats"),
    ]
    TITLE = "Cases"
    WAY = "{list.open} on a line of the runs"
    HELP = """\
A row for each case of a test file, a column for each candidate with the verdict on its answer.
Below is what was said of the case under the cursor, first of the candidate in the selected column.
{list.mark} marks cases: {case.pass}, {case.fail}, {case.unlabel} and {case.judge} are then about
all of them, each with the answers of the candidate in the selected column.

{cases.filter} filters as you type; all parts must hold, and a value matches as a part of the text:
    words            in the file, the row, the answers and the feedback
    "two words"      as they stand
    verdict:fail     some candidate's verdict: pass, fail, undecided, error, pending, answered;
                     verdict:no for 'no reply'
    tag:manners      a tag of the case
    model:mini       a candidate; with verdict: this candidate's verdict
    file:weather     the test file
    prompt:brief     the system prompt: its id, or its name where a file has several
    tag:a,b          a comma is an 'or'
    -tag:a  -word    a minus is a 'not'

{cases.sort} sorts by verdict, then by row. {cases.group} groups by file, then by tag;
{list.open} on the line of a group folds it, or unfolds it."""
    DEFAULT_CSS = """
    CasesPage > TextView { height: 7; border-top: solid $panel; }
    """

    saved_as = "cases"

    def __init__(
        self, revision: str | None, typed: str = "", place: tuple[str, str] | None = None
    ) -> None:
        """With a file and its row the cursor begins there."""
        super().__init__(typed)
        self._begin = place
        self.revision = revision
        self._cases: Cases | None = None
        self._listing: FilteredCases | None = None
        self._shown = 0
        self._marked: set[tuple[str, ...]] = set()
        """The places of marked cases, also of those that the filter hides."""
        self._counts: Mapping[str, int] = {}
        self._read_again = False
        self._listed: list[CaseRow | CaseGroup] = []
        self._sort, self._group = "file", ""
        self._folded: set[str] = set()

    def compose(self) -> ComposeResult:
        """The table above what is said of the highlighted case."""
        yield self.title_line()
        yield self.problem_line()
        yield self.empty_state()
        yield Grid(id="cases", marks=True)
        yield TextView(id="said").add_class("detail")
        yield self.filter_line()
        yield KeyFooter()

    def on_mount(self) -> None:
        """Read the cases."""
        self.tell()
        self.query_one(Grid).focus()
        self.reload(stay=False)

    @property
    def has_read(self) -> bool:
        """Whether the cases are there."""
        return self._cases is not None

    @property
    def name_of_run(self) -> str:
        """What the cases are of."""
        return "workspace" if self.revision is None else f"run {self.revision[:8]}"

    def reload(self, *, stay: bool = True) -> None:
        """Read the cases again."""

        def read() -> tuple[Cases, FilteredCases]:
            cases = self.source.cases(self.revision)
            return cases, FilteredCases(cases)

        self.fetch(read, lambda found: self.show_cases(*found))

    def show_cases(self, cases: Cases, listing: FilteredCases) -> None:
        """Show them."""
        self._cases, self._listing, self._read_again = cases, listing, True
        if self.query_typed.words or self.query_typed.without:
            self.search()
        self.show_filtered()

    # --- what is listed

    def look_up(self, query: Query, search: Search) -> Found:
        """Search the words that are not in the names of all cases."""
        return self._listing.look_up(query, search) if self._listing else {}

    def show_filtered(self, *, to_first: bool = False) -> None:
        """Filter, sort and group what was read; cursor and marks stay with their cases."""
        if self._cases is None or self._listing is None:
            return
        grid = self.query_one("#cases", Grid)
        before = None if to_first else self._line
        if self._marked or grid.marked:  # what the filter hides stays marked
            self._marked -= set(map(place_of, self._listed))
            self._marked |= {place_of(self._listed[number]) for number in grid.marked}
        numbers = self._listing.select(self.query_typed, self._sort, self.found)
        rows = self._listing.rows(numbers)
        self._listed = [*rows]
        if self._group:
            by_name = self._sort != "verdict"
            found = grouped(self._listing, numbers, self._group, self._folded, by_name=by_name)
            self._listed = list(found)
        cursor = find(self._listed, before, read_again=self._read_again)
        self._read_again = False
        if self._begin:
            begin, self._begin = self._begin, None
            cursor = next((n for n, one in enumerate(rows) if (one.file, one.row) == begin), None)
        if cursor is None:
            cursor = 1 if self._group and len(self._listed) > 1 else 0
        grid.show(self._columns(), len(self._listed), self._cells, cursor=cursor)
        if self._marked:
            grid.marked = {n for n, one in enumerate(self._listed) if place_of(one) in self._marked}
        self._shown, self._counts = len(rows), self._listing.count(numbers, self.query_typed)
        why = self._listing.why_empty(self.query_typed, is_searching=bool(self.searching))
        self.set_empty("" if rows else why)
        grid.display = bool(rows)
        self.tell()
        if not rows:
            self.query_one("#said", TextView).show(())

    def tell(self) -> None:
        """Say above the table what is in it."""
        if self._cases is None or self._listing is None:
            self.set_title(self.name_of_run, READING)
            return
        shown = f"{self._shown:,} of " if self._shown < len(self._cases.rows) else ""
        self.set_title(
            self.name_of_run,
            f"{shown}{plural(len(self._cases.rows), 'case')}",
            self.searching,
            *(what for what, _ in self._listing.complaints(self.query_typed)),
            counted(self._counts),
            "" if self._sort == "file" else f"by {self._sort}",
        )

    def _columns(self) -> list[Column]:
        assert self._cases is not None
        assert self._listing is not None
        wide = dict.fromkeys(self._cases.labelled, 14)  # the sign of a person stands there
        models = [
            Column(model, max(wide.get(model, 11), min(18, len(model))), picks=True, least=11)
            for model in self._cases.models
        ]
        by_file = self._group == "file"  # its name is above
        return [
            Column(
                "file", 9, grows=True, most=self._listing.file_width, since=NEVER if by_file else 24
            ),
            Column("row", 8, grows=True, most=self._listing.row_width, since=0 if by_file else 35),
            *models,
        ]

    def _cells(self, row: int) -> Sequence[StyledCell]:
        one = self._listed[row]
        if isinstance(one, CaseGroup):
            width = self.query_one("#cases", Grid).scrollable_content_region.width
            return (StyledCell(one.text(width), "group"),)
        return (
            StyledCell(one.file),
            StyledCell(label_of(one)),
            *(StyledCell("") if found is None else self._verdict(found) for found in one.results),
        )

    def _verdict(self, result: Result) -> StyledCell:
        """The verdict with the sign of a person who has decided it, or has spoken since the run."""
        assert self._cases is not None
        cell, said = verdict(result.word), self._cases.said
        if word := said.word(result):
            plain = f"{cell.plain}, labelled {word}"
            return StyledCell(f"{cell.text} {PERSON}{SIGNS[word]}", cell.colour, plain)
        if said.decides(result):
            return StyledCell(f"{cell.text} {PERSON}", cell.colour, f"{cell.plain}, labelled")
        return cell

    # --- the highlighted case

    @property
    def _line(self) -> CaseRow | CaseGroup | None:
        """The highlighted line."""
        number = self.query_one("#cases", Grid).cursor
        return self._listed[number] if number < len(self._listed) else None

    @property
    def case(self) -> CaseRow | None:
        """The highlighted case."""
        return None if isinstance(self._line, CaseGroup) else self._line

    @property
    def listed(self) -> list[CaseRow]:
        """The cases that are listed."""
        return [one for one in self._listed if not isinstance(one, CaseGroup)]

    @property
    def result(self) -> Result | None:
        """What the candidate under the cursor came to."""
        picked = self.query_one("#cases", Grid).picked
        case = self.case
        return case.results[picked] if case and picked < len(case.results) else None

    @property
    def _chosen_cases(self) -> list[CaseRow]:
        """The marked cases, or the one under the cursor."""
        listed = (self._listed[number] for number in sorted(self.query_one(Grid).marked))
        marked = list(dict.fromkeys(one for one in listed if not isinstance(one, CaseGroup)))
        return marked or ([self.case] if self.case else [])

    @property
    def chosen(self) -> list[Result]:
        """What the candidate in the selected column came to in these."""
        picked = self.query_one("#cases", Grid).picked
        found = (chosen_case.results[picked : picked + 1] for chosen_case in self._chosen_cases)
        return [result for some in found for result in some if result]

    def prompt_of(self, result: Result) -> str:
        """The name of the system prompt, when the case has several."""
        found = (
            chosen_case
            for chosen_case in self._chosen_cases
            if any(it is result for it in chosen_case.results)
        )
        return next((row.prompt for row in found), "")

    @property
    def place(self) -> tuple[str, int | None] | None:
        """The file of the highlighted case."""
        return (self.case.file, None) if self.case else None

    @property
    def copied(self) -> tuple[str, str]:
        """The sessions of the candidate under the cursor; without one, the case."""
        if self.result and self.result.sessions:
            sessions = self.result.sessions
            what = "the id of the session" if len(sessions) == 1 else "the ids of the sessions"
            return " ".join(sessions), what
        case = self.case
        return (
            (f"{case.file}::{case.row}" if case.row else case.file, "the case")
            if case
            else ("", "")
        )

    @on(Grid.Marked, "#cases")
    def mark_everywhere(self, message: Grid.Marked) -> None:
        """A case with several tags is marked in all its groups, or in none."""
        if self._group == "tag":
            place = place_of(self._listed[message.row])
            lines = {n for n, one in enumerate(self._listed) if place_of(one) == place}
            is_marked = message.row in message.grid.marked
            marked = message.grid.marked
            message.grid.marked = marked | lines if is_marked else marked - lines
            message.grid.refresh()

    @on(Grid.Moved, "#cases")
    def follow_cursor(self) -> None:
        """Say what was said of the highlighted case."""
        case = self.case
        if case is None:
            self.query_one("#said", TextView).show(())
            return
        ids = [id for result in case.results if result for id in result.evaluations]
        self.query_one("#said", TextView).show(self._said(case, {}))
        if ids:
            self.fetch(
                lambda: self.source.feedback(ids),
                lambda feedback: self._show_said(case, feedback),
                group="said",
            )

    def _show_said(self, case: CaseRow, feedback: dict[str, str]) -> None:
        if case is self.case:
            self.query_one("#said", TextView).show(self._said(case, feedback))

    def _said(self, case: CaseRow, feedback: dict[str, str]) -> Iterator[StyledLine]:
        assert self._cases is not None
        return said_of(self._cases, case, self.query_one("#cases", Grid).picked, feedback)

    @on(Grid.Chosen, "#cases")
    def open_case(self) -> None:
        """Show the session of the candidate under the cursor; fold or unfold a group."""
        if isinstance(self._line, CaseGroup):
            self._folded ^= {self._line.name}
            self.show_filtered()
            return
        case, result = self.case, self.result
        if case and self._cases:
            shown = result or next((one for one in case.results if one), None)
            if shown:
                self.browser.show_session(
                    self._cases, self.listed, self.listed.index(case), shown.model
                )

    def select(self, case: CaseRow, model: str) -> None:
        """Highlight a case, and the candidate if it has a column."""
        grid = self.query_one("#cases", Grid)
        if self._cases and model in self._cases.models:
            grid.picked = self._cases.models.index(model)
        for number, one in enumerate(self._listed):
            if not isinstance(one, CaseGroup) and (one.file, one.row, one.prompt) == (
                case.file,
                case.row,
                case.prompt,
            ):
                grid.move_to(number)
                break
        grid.refresh()

    # --- keys

    def action_failure(self, by: int) -> None:
        """Go to the next case that did not pass, or to the one before."""
        grid = self.query_one("#cases", Grid)
        found = next_failure(self._listed, grid.cursor, by)
        if found is None:
            self.notify("no case failed", markup=False)
            return
        number, failing = found
        if failing and grid.picked not in failing:
            grid.picked = failing[0]
        grid.move_to(number)

    def action_compare_models(self) -> None:
        """Compare the candidate under the cursor with another one."""
        models = self._cases.models if self._cases else ()
        picked = self.query_one("#cases", Grid).picked
        if len(models) < 2:
            self.notify("there is only one candidate", markup=False)
            return
        chosen, others = models[picked], [*models[picked + 1 :], *models[:picked]]
        shared = self._listing.shared(chosen) if self._listing else {}
        others.sort(key=lambda one: not shared.get(one))  # the others have nothing to compare

        def compare(other: str | None) -> None:
            if other:
                self.browser.show_comparison(self.revision, self.revision, (chosen, other))

        if len(others) == 1:
            compare(others[0])
        else:
            self.browser.push_screen(Choice(f"{chosen} beside", others), compare)

    def action_stats(self) -> None:
        """Show the statistics of the run."""
        if self._cases is None:
            return
        if self._cases.run is None:
            self.notify(
                self.with_keys("statistics are about runs: {page.run} makes one"), markup=False
            )
        else:
            self.browser.show_stats(self._cases.run)

    def action_sort(self) -> None:
        """Sort by the next of file, verdict, row."""
        self._sort = ORDERS[(ORDERS.index(self._sort) + 1) % len(ORDERS)]
        self.show_filtered(to_first=self._sort == "verdict")

    def action_group(self) -> None:
        """Group by the next of nothing, file, tag."""
        self._group = _GROUPS[(_GROUPS.index(self._group) + 1) % len(_GROUPS)]
        self.show_filtered()

    def action_versions(self) -> None:
        """Show the versions of the highlighted test."""
        if self.case:
            self.browser.show_versions(self.case.file, self.case.row)
