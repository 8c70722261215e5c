"""The cases of a run: a row for each, a column for each candidate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.widgets import Input

from evalstore.interfaces.tui.render.case_table import case_title
from evalstore.interfaces.tui.screens.case_figures import CaseFigures
from evalstore.interfaces.tui.screens.case_matches import pick_match, report_lost
from evalstore.interfaces.tui.screens.case_reader import CaseReader
from evalstore.interfaces.tui.screens.dialogs.choice import compare_in_run, compare_with_previous
from evalstore.interfaces.tui.screens.dialogs.text_filter import FoundWords, TextFilter
from evalstore.interfaces.tui.screens.newer import DatedPage
from evalstore.interfaces.tui.screens.panels import fit_list
from evalstore.interfaces.tui.state.case_groups import CaseGroup, next_failure
from evalstore.interfaces.tui.state.case_listing import CaseListing, CasePlace
from evalstore.interfaces.tui.state.case_query import help_lines
from evalstore.interfaces.tui.state.case_selection import CaseSelection
from evalstore.interfaces.tui.state.failing_cells import CellPlace
from evalstore.interfaces.tui.state.navigation import CaseNavigator
from evalstore.interfaces.tui.widgets.footer import FooterHint, KeyFooter
from evalstore.interfaces.tui.widgets.grid import Grid

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from evalstore.core.errors import EvalstoreError
    from evalstore.core.results import Result
    from evalstore.interfaces.tui.state.case_filter import FilteredCases
    from evalstore.results.log.newer_results import NewerRun
    from evalstore.results.table.case_rows import CaseRow
    from evalstore.results.table.cases import Cases
    from evalstore.results.table.edit_place import EditPlace


_TABLE = """\
A line for each case of a test file, or for each of its system prompts if it has several; a column
for each candidate with the verdict on its answer. The title counts cases, lines where there are
more of them, and the verdicts of all lines; those 'of' a candidate that the filter names are its
verdicts alone. At the top is the pass rate of each candidate in the listed cases, in percent with
its 95 % interval; 'of 8' or ~ marks one with fewer verdicts than another. 'last runs' has the last
eight verdicts on the candidate that its title names, of the selected column, the oldest first
(✓ pass, ✗ fail), of files with up to 3,000 cases. A narrow table leaves it out first, when names
would be shorter than 15 characters. Below the table, or at its right in a wide terminal, is the
case under the cursor: the last message of the user, the answer of the candidate in the selected
column, the verdicts on it with their feedback, then those on the other candidates.
{panel.next} moves the focus between both.
{list.mark} marks cases: {case.pass}, {case.fail}, {case.unlabel} and {case.judge} are then about
all of them, each with the answers of the candidate in the selected column.

{cases.filter} filters as you type; all parts must hold, and a value matches as a part of the text:
"""
_REST = """

A filter for verdicts selects the column of a candidate that has them. {cases.next_failure} goes
from result to result that did not pass, also between two of one case, of the filter's candidates.
{case.judge} judges the answers to these system prompts alone.

Of a run that is not the newest, a line below the title says so; {case.newest} opens the newest.
{cases.compare} compares the run with the previous one, or the workspace with the newest run, and
{cases.compare_models} the selected candidate, or the system prompt of the case, with another one;
with a filter, in the cases that it lists.
{cases.sort} sorts by verdict, then by row. {cases.group} groups by file, then by tag;
{list.open} on the line of a group folds it, or unfolds it."""
_HELP = f"{_TABLE}{help_lines()}{_REST}"
_FOOTER = (
    FooterHint("", "list.open"),
    FooterHint("Label", "case.pass", "case.fail"),
    FooterHint("Edit", "case.edit"),
    FooterHint("Judge", "case.judge"),
    FooterHint("Failure", "cases.next_failure", "cases.last_failure"),
    FooterHint("", "cases.filter"),
    FooterHint("Candidate", "list.left", "list.right"),
    FooterHint("", "cases.versions"),
    FooterHint("", "cases.group"),
    FooterHint("", "cases.sort"),
    FooterHint("", "list.mark"),
    FooterHint("", "cases.compare_models"),
    FooterHint("", "cases.stats"),
    FooterHint("Run", "page.run"),
    FooterHint("", "page.save"),
)
_BINDINGS: list[BindingType] = [
    Binding("slash", "filter", "Find", id="cases.filter"),
    Binding("n", "failure(1)", "Next failure", id="cases.next_failure"),
    Binding("N", "failure(-1)", "Previous failure", show=False, id="cases.last_failure"),
    Binding("s", "sort", "Sort", show=False, id="cases.sort"),
    Binding("t", "group", "Group", show=False, id="cases.group"),
    Binding("v", "versions", "Versions", show=False, id="cases.versions"),
    Binding("x", "compare_models", "Compare candidates", show=False, id="cases.compare_models"),
    Binding("d", "compare", "Compare", show=False, id="cases.compare"),
    Binding("S", "stats", "Statistics", show=False, id="cases.stats"),
]


class CasesPage(DatedPage):
    """The cases of a run, or of the workspace as it is now."""

    BINDINGS: ClassVar[list[BindingType]] = _BINDINGS
    FOOTER = _FOOTER
    TITLE = "Cases"
    PANELS: ClassVar[Mapping[str, str]] = {"cases": "Cases", "feedback": "Answer"}
    WAY = "{list.open} on a line of the runs"
    HELP = _HELP
    DEFAULT_CSS = """
    CasesPage > #filter { padding: 0 1; display: none; }
    """

    export_name = "cases"

    def __init__(
        self, revision: str | None, typed: str = "", place: CasePlace | None = None
    ) -> None:
        """Place the cursor on a row of a file and on a candidate, if they are there."""
        super().__init__()
        self.revision = revision
        self._first_model = place.model if place else ""
        self.listing = CaseListing(place)
        self.filter = TextFilter(
            self, show_matches=self.show_matches, show_progress=self.show_title
        )
        self.figures = CaseFigures(self, self.listing, self.follow_cursor)
        self.reader = CaseReader(self, self.figures.history.of)
        self.filter.run, self.filter.came_with = revision, typed

    def compose(self) -> ComposeResult:
        """Lay out the table, and below it or at its right the answer to the highlighted case."""
        yield self.title_line()
        yield self.newer_line()
        yield self.problem_line()
        yield self.empty_state()
        with Container(id="panels"):
            yield Grid(id="cases", marks=True)
            yield self.reader.view().add_class("detail")
        yield self.filter.input_line()
        yield KeyFooter()

    def on_mount(self) -> None:
        """Read the cases."""
        self.show_title()
        self.grid.focus()
        self.reload(stay=False)
        if self.filter.came_with:
            self.filter.set(self.filter.came_with)

    def on_unmount(self) -> None:
        """Free the cases."""
        self.filter.look_up = None
        self.figures.forget()
        self.reader.forget()

    @property
    def grid(self) -> Grid:
        """Return the table."""
        return self.query_one("#cases", Grid)

    def reload(self, *, stay: bool = True) -> None:
        """Read the cases again, and search the words of the filter in their texts."""
        query = self.filter.query
        self.fetch(lambda: self.filter.read(query), lambda read: self.show_cases(*read))

    def show_cases(self, cases: Cases, filtered: FilteredCases, words: FoundWords) -> None:
        """Show cases that were read; say how many of those listed no longer match the filter."""
        self.listing.load(cases, filtered)
        self.filter.load(self.listing, filtered, words, self.reload)
        self.figures.renew(cases)
        _pick(self, self._first_model)
        self._first_model = ""
        self.show_matches()
        report_lost(self, self.listing, self.filter)
        self.look_for_newer(cases.run)

    def open_newer(self, newer: NewerRun) -> None:
        """Show the cases of a newer run; the cursor stays with its case."""
        self.revision = self.filter.run = newer.run
        self.reload()

    # --- the table

    def show_matches(self, *, to_first: bool = False) -> None:
        """Filter, sort and group the cases; cursor and marks stay with their cases."""
        listing, query = self.listing, self.filter.query
        if listing.cases is None or listing.filtered is None:
            return
        grid = self.grid
        listing.save_marks(grid.marked)
        cursor = listing.arrange(query, self.filter.matches, None if to_first else grid.cursor)
        fit_list(grid, len(listing.lines))
        grid.show(self.figures.columns(), len(listing.lines), self.figures.cells, cursor=cursor)
        pick_match(grid, self.case, listing, self.filter)
        grid.marked = listing.marked
        self.figures.request_rates(query, self.filter.matches)
        is_empty = not listing.case_count
        self.set_empty(self.filter.why_empty(listing.filtered) if is_empty else "")
        self.filter.show_table(is_shown=not is_empty)
        self.show_title()
        if is_empty:
            self.reader.clear()

    def show_title(self) -> None:
        """Show in the title which cases are in the table."""
        query, progress = self.filter.query, self.filter.progress
        self.set_title(*case_title(self.revision, self.listing, query, progress))

    def show_problem(self, problem: EvalstoreError) -> None:
        """Show what went wrong; nothing is read or searched any more."""
        self.filter.stop()
        super().show_problem(problem)

    @on(Grid.Marked, "#cases")
    def mark_everywhere(self, message: Grid.Marked) -> None:
        """Mark a case with several tags in all its groups, or in none."""
        message.grid.marked = self.listing.spread_mark(message.grid.marked, message.row)
        message.grid.refresh()

    # --- the filter

    @on(Input.Changed, "#filter")
    def filter_changed(self, message: Input.Changed) -> None:
        """Filter as it is typed."""
        self.filter.change(message.value)
        if len(message.value) < 2:  # what the key that leaves does may have changed
            self.refresh_bindings()

    @on(Input.Submitted, "#filter")
    def filter_submitted(self) -> None:
        """Go back to the table, which stays filtered."""
        self.filter.leave_line()

    def action_filter(self) -> None:
        """Type a filter."""
        self.filter.open()

    @property
    def footer_words(self) -> Mapping[str, str]:
        """Return what the key that leaves does instead, when there is a filter."""
        return {"page.back": "Clear filter"} if self.filter.goes_first else {}

    def action_back(self) -> None:
        """Take the filter away, or leave."""
        if self.filter.goes_first:
            self.filter.remove()
        else:
            super().action_back()

    # --- the highlighted case

    @property
    def selection(self) -> CaseSelection:
        """Return the cases and results under the cursor, or marked."""
        grid = self.grid
        return CaseSelection(self.listing.lines, grid.cursor, grid.picked, grid.marked)

    @property
    def case(self) -> CaseRow | None:
        """Return the highlighted case."""
        return self.selection.case

    @property
    def selected(self) -> list[Result]:
        """Return the results of the candidate in the selected column."""
        return self.selection.results

    def prompt_name(self, result: Result) -> str:
        """Return the name of the system prompt, when the case has several."""
        return self.selection.prompt_name(result)

    @property
    def edited_place(self) -> EditPlace | None:
        """Return the highlighted case."""
        return self.selection.edited_place

    @property
    def copy_text(self) -> tuple[str, str]:
        """Return the sessions of the candidate under the cursor; without one, the case."""
        return self.selection.copy_text

    @on(Grid.Moved, "#cases")
    def follow_cursor(self) -> None:
        """Show the answer to the highlighted case, and read the last verdicts of what is seen."""
        self.reader.show(self.listing.cases, self.case, self.grid.picked)
        self.figures.request_seen()

    @on(Grid.Resized, "#cases")
    def read_seen(self) -> None:
        """Read the last verdicts of what is seen: the list was laid out after the cursor moved."""
        self.figures.request_history()

    @on(Grid.Chosen, "#cases")
    def open_line(self) -> None:
        """Open the answer of the candidate under the cursor; fold or unfold a group."""
        line, cases = self.selection.line, self.listing.cases
        if isinstance(line, CaseGroup):
            self.listing.fold(line)
            self.show_matches()
        elif line and cases:
            _open_answer(self, line, cases)

    def refresh_ages(self) -> None:
        """Read the shown answer again, which says how long ago it was judged."""
        self.reader.refresh_ages()

    def highlight(self, case: CaseRow, model: str) -> None:
        """Move the cursor to a case, and to the candidate if it has a column."""
        _pick(self, model)
        if (line := self.listing.line_of(case, self.grid.cursor)) is not None:
            self.grid.move_to(line)
        self.grid.refresh()

    # --- keys

    def action_failure(self, by: int) -> None:
        """Go to the next result that did not pass, or to the previous one."""
        _go_to_failure(self, by)

    def action_compare_models(self) -> None:
        """Compare the candidate under the cursor, or the system prompt, with another one."""
        typed, newer = self.filter.typed, bool(self.newer)
        compare_in_run(self, self.listing, self.selection, typed=typed, has_newer=newer)

    def action_compare(self) -> None:
        """Compare the run with the previous one."""
        if self.listing.cases:
            compare_with_previous(self, self.listing.cases)

    def action_stats(self) -> None:
        """Show the statistics of the run, or of the workspace."""
        if self.listing.cases is not None:
            self.browser.show_stats(self.listing.cases.run)

    def action_sort(self) -> None:
        """Sort by the next of file, verdict, row."""
        self.show_matches(to_first=self.listing.next_order() == "verdict")

    def action_group(self) -> None:
        """Group by the next of nothing, file, tag."""
        self.listing.next_grouping()
        self.show_matches()

    def action_versions(self) -> None:
        """Show the versions of the highlighted test."""
        if self.case and self.listing.cases:
            model = self.listing.cases.models[self.grid.picked]
            self.browser.show_test_history(self.case.file, self.case.row, model)


def _open_answer(page: CasesPage, line: CaseRow, cases: Cases) -> None:
    """Open the answer of the candidate under the cursor, or else the first there is."""
    result = page.selection.result or next((other for other in line.results if other), None)
    if result:
        rows, number = page.listing.rows, page.listing.row_number(page.grid.cursor)
        meant = [cases.models[n] for n in page.listing.candidates(page.filter.query)]
        page.browser.show_answer(CaseNavigator(cases, rows, number, result.model, meant))


def _pick(page: CasesPage, model: str) -> None:
    """Move the cursor to the column of a candidate, if there is one."""
    models = page.listing.cases.models if page.listing.cases else ()
    if model in models:
        page.grid.picked = models.index(model)


def _go_to_failure(page: CasesPage, by: int) -> None:
    """Go to the next result that did not pass, of the filter's candidates, or to the one before."""
    grid, listing = page.grid, page.listing
    start, candidates = CellPlace(grid.cursor, grid.picked), listing.candidates(page.filter.query)
    failure = next_failure(listing.lines, start, by, candidates)
    if failure is None:
        is_read = listing.cases is not None
        page.notify("no case failed" if is_read else "still reading the cases", markup=False)
        return
    grid.picked = failure.candidate
    grid.move_to(failure.line)
