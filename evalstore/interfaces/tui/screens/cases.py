"""The cases of a run: a row for each, a column for each candidate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import is_
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.widgets import Input

from evalstore.core.display import plural
from evalstore.interfaces.tui.render.case_table import case_cells, case_columns, case_title
from evalstore.interfaces.tui.render.documents.image import IMAGE_WIDTH, render_images
from evalstore.interfaces.tui.render.documents.reader import ReaderTexts, reader_texts
from evalstore.interfaces.tui.render.judgements import case_judgement_lines
from evalstore.interfaces.tui.screens.dialogs.choice import compare_in_run, compare_with_previous
from evalstore.interfaces.tui.screens.dialogs.text_filter import ReadCases, TextFilter
from evalstore.interfaces.tui.screens.history_reader import HistoryReader
from evalstore.interfaces.tui.screens.newer import DatedPage
from evalstore.interfaces.tui.state.case_groups import CaseGroup, CellPlace, next_failure
from evalstore.interfaces.tui.state.case_listing import CaseListing, CasePlace
from evalstore.interfaces.tui.state.case_query import help_lines
from evalstore.interfaces.tui.state.case_selection import CaseSelection
from evalstore.interfaces.tui.state.data_source import read_shown_answer
from evalstore.interfaces.tui.state.navigation import CaseNavigator
from evalstore.interfaces.tui.widgets.footer import FooterHint, KeyFooter
from evalstore.interfaces.tui.widgets.grid import Grid
from evalstore.interfaces.tui.widgets.text_view import TextView

if TYPE_CHECKING:
    from textual import events
    from textual.app import ComposeResult
    from textual.timer import Timer

    from evalstore.comparison.statistics import Rate
    from evalstore.core.errors import EvalstoreError
    from evalstore.core.results import Result
    from evalstore.interfaces.tui.screens.base import Page
    from evalstore.interfaces.tui.state.case_query import Query
    from evalstore.interfaces.tui.widgets.grid_columns import Column
    from evalstore.interfaces.tui.widgets.grid_lines import StyledCell
    from evalstore.results.answer.answer import AnswerView
    from evalstore.results.log.newer_results import NewerRun
    from evalstore.results.table.case_rows import CaseRow
    from evalstore.results.table.cases import Cases
    from evalstore.results.table.editable_files import EditPlace


_TABLE = """\
A line for each case, and a column for each candidate with the verdict on its answer. A case with
several system prompts has a line for each. The title counts the cases, and the verdicts of all
lines. The head of a column has the pass rate in the listed cases with its 95 % interval; 'of 8' or
~ marks a candidate with fewer verdicts than others. With a filter by verdict or words it has '10 of
50', and the rate in all cases in grey. 'last runs' has the last eight verdicts on the candidate of
the selected column, the oldest first (✓ pass, ✗ fail), for files with up to 3,000 cases. The case
under the cursor, with its question, answer and verdicts, is below the table, or at its right in a
wide terminal; {panel.next} moves the focus there.
{list.mark} marks cases: {case.pass}, {case.fail}, {case.unlabel} and {case.judge} are then about
all of them, each with the answer of the candidate in the selected column.

{cases.filter} filters as you type; all parts must match, a value as part of the text:
"""
_REST = """

A filter by verdict selects the column of a candidate that has it. {cases.next_failure} goes to the
next result that did not pass, of the candidates in the filter. {case.judge} judges the answers to
the listed system prompts alone.

{cases.compare} compares the run with the previous one, or the workspace with the newest run.
{cases.compare_models} compares the selected candidate, or the system prompt, with another one, in
the listed cases. {cases.sort} sorts by verdict, then by row. {cases.group} groups by file, then by
tag; {list.open} on the line of a group folds it, or unfolds it. If there is a newer run,
{case.newest} opens it."""
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
        self.fetch(lambda: self.filter.read(query), self.show_cases)

    def show_cases(self, read: ReadCases) -> None:
        """Show cases that were read; say how many of those listed no longer match the filter."""
        self.listing.load(read.cases, read.filtered)
        self.filter.load(read, self.listing, self.reload)
        self.figures.renew(read.cases)
        _pick(self, self._first_model)
        self._first_model = ""
        self.show_matches()
        report_lost(self, self.listing, self.filter)
        self.look_for_newer(read.cases.run)

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
        grid.fit_height(len(listing.lines))
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
        page.notify("no listed case failed" if is_read else "still reading the cases", markup=False)
        return
    grid.picked = failure.candidate
    grid.move_to(failure.line)


# --- what the table of cases shows besides verdicts: pass rates of candidates and earlier verdict


_MANY = 5_000
"""Listed cases whose rates are read only after a pause in typing."""
_PAUSE_SECONDS = 0.15


class CaseFigures:
    """Reads these figures when the cases are shown, and makes columns and cells of them."""

    def __init__(self, page: Page, listing: CaseListing, show: Callable[[], None]) -> None:
        """`show` is called when the last verdicts of cases have been read."""
        self._page = page
        self._listing = listing
        self._show = show
        self.history = HistoryReader(page, self._show_history)
        self._rates: Sequence[Rate] = ()
        """The pass rates of the candidates in the listed cases, once they are known."""
        self._whole: Sequence[Rate] = ()
        """Those in all cases, if the listed ones are chosen by verdicts or words."""
        self._is_by_outcome = False
        self._rated: tuple[object, ...] = ()
        """The cases and the filter that they are about."""
        self._pause: Timer | None = None

    @property
    def _grid(self) -> Grid:
        return self._page.query_one("#cases", Grid)

    def renew(self, cases: Cases) -> None:
        """Read the figures of cases that were read again."""
        self.history.renew(cases.run)
        if len(self._rates) != len(cases.models):
            self._rates = ()

    def forget(self) -> None:
        """Free the cases of a page that was left."""
        self._listing.clear()
        if self._page.app.is_running:
            self._page.browser.collect_later()
        self._rated = ()
        if self._pause:
            self._pause.stop()
            self._pause = None

    def request_rates(self, query: Query, *about: object) -> None:
        """Read the pass rates in the listed cases, unless they are `about` the same as before."""
        self._is_by_outcome = query.is_by_outcome
        about = (query, *about)
        listing, now = self._listing, (self._listing.cases, *about)
        is_same = len(now) == len(self._rated) and all(map(is_, now, self._rated))
        if listing.cases is None or is_same:
            return
        self._rated = now
        if self._pause:
            self._pause.stop()
        if listing.cases.is_cut:  # the rates of some would be taken for those of all
            self._show_rates(())
            return
        if len(listing.matching) > _MANY:
            self._pause = self._page.set_timer(_PAUSE_SECONDS, self._read_rates)
        else:
            self._page.call_after_refresh(self._read_rates)

    def _read_rates(self) -> None:
        source, cases, rows = self._page.source, self._listing.cases, self._listing.matching
        if cases is not None:
            every = cases.rows if self._is_by_outcome else ()

            def read(cases: Cases = cases) -> tuple[tuple[Rate, ...], ...]:
                return tuple(source.candidate_rates(cases, some) for some in (rows, every))

            self._page.fetch(read, lambda found: self._show_rates(*found), group="rates")

    def _show_rates(self, rates: Sequence[Rate], whole: Sequence[Rate] = ()) -> None:
        self._rates, self._whole = rates, whole if self._is_by_outcome else ()
        self._grid.set_columns(self.columns())

    def _show_history(self) -> None:
        self._grid.set_columns(self.columns())
        self._show()

    def request_seen(self) -> None:
        """Read the last verdicts of the cases that can be seen, and name their candidate."""
        cases = self._listing.cases
        if cases and len(cases.models) > 1 and self.history.has_several:
            self._grid.set_columns(self.columns())
        self.request_history()

    def request_history(self) -> None:
        """Read the last verdicts of the cases that can be seen."""
        seen = self._listing.lines[self._grid.seen_rows]
        self.history.request(self._listing.small_files(seen))

    # --- the table

    def columns(self) -> list[Column]:
        """Return the columns of the table."""
        listing = self._listing
        if listing.cases is None or listing.filtered is None:
            return []
        return case_columns(
            listing.cases,
            listing.filtered,
            self._rates,
            self._whole,
            by_file=self._by_file,
            only_file=listing.only_file,
            with_history=self.history.has_several,
            picked=self._grid.picked,
            answered=listing.answered,
        )

    def cells(self, row: int) -> Sequence[StyledCell]:
        """Return the cells of a line."""
        listing, grid = self._listing, self._grid
        assert listing.cases is not None
        line, width = listing.lines[row], grid.scrollable_content_region.width
        result = None if isinstance(line, CaseGroup) else line.results[grid.picked]
        words = self.history.of(result) if result else ()
        return case_cells(listing.cases, line, width, words, by_file=self._by_file)

    @property
    def _by_file(self) -> bool:
        """Return whether the name of the file stands above the cases, or in the title."""
        return self._listing.grouping == "file" or bool(self._listing.only_file)


# --- what a page of cases does when other cases match its filter


def pick_match(grid: Grid, case: CaseRow | None, listing: CaseListing, filter: TextFilter) -> None:
    """Select the candidate whose result matches a filter that was changed, if another one is."""
    filtered = listing.filtered
    if case is None or filtered is None or not filter.is_changed:
        return
    filter.is_changed = bool(filter.progress)
    matching = filtered.matching_candidates(case, filter.query, filter.matches)
    if matching and grid.picked not in matching:
        grid.picked = matching[0]


def report_lost(page: Page, listing: CaseListing, filter: TextFilter) -> None:
    """Say how many cases no longer match the filter since they were read before."""
    if not filter.progress:
        lost = listing.count_lost()
        if lost:
            verb = "matches" if lost == 1 else "match"
            page.notify(f"{plural(lost, 'case')} no longer {verb} the filter.", markup=False)


# --- the reader of the page of cases: the answer to the case under the cursor


_READING_PAUSE = 0.06
"""An answer is read when the cursor has stayed on its case for so long."""
_FEW_LINES = 20
"""Fewer lines of a reader are few: the reasons for a verdict stand above the answer."""
_MISSING = "{page.run} gets it, and shows the price first."
_CUT = ": {list.open} shows all of it"


class CaseReader:
    """Reads an answer in a thread when the cursor stays; one that was left is not shown."""

    def __init__(self, page: Page, history: Callable[[Result], Sequence[str]]) -> None:
        """`history` returns the last verdicts of a result."""
        self._page = page
        self._history = history
        self._shown: tuple[str, str, str, int] | None = None
        """The case and the candidate that are shown."""
        self._pause: Timer | None = None
        self._show_again: Callable[[], None] = self.clear
        self._fit: tuple[bool, bool] | None = None
        """For which measures of the pane the answer was prepared."""

    def view(self) -> TextView:
        """Return the widget that shows the text."""
        return ReaderPane(self.fit)

    @property
    def is_waiting(self) -> bool:
        """Return whether a reading begins when the cursor stays."""
        return self._pause is not None

    @property
    def _view(self) -> TextView:
        return self._page.query_one("#feedback", TextView)

    def clear(self) -> None:
        """Show nothing."""
        self._stop()
        self._fit = None
        self._shown = None
        self._view.show(())

    def forget(self) -> None:
        """Forget the case of a page that was left."""
        self._stop()
        self._show_again = self.clear

    def show(self, cases: Cases | None, case: CaseRow | None, picked: int) -> None:
        """Show the answer of the picked candidate; until it is read, the verdicts on all."""
        if cases is None or case is None:
            self.clear()
            return
        place = case.file, case.row, case.prompt, picked
        stays = place == self._shown  # the same case was read again
        self._shown = place
        if not stays:
            self._view.show(case_judgement_lines(cases, case, picked, {}, self._history))
        self._stop()
        self._show_again = partial(self.show, cases, case, picked)
        self._pause = self._page.set_timer(
            _READING_PAUSE, lambda: self._read(cases, case, picked, stays=stays)
        )

    def refresh_ages(self) -> None:
        """Show the answer again, where the reader is in it."""
        if self._fit is not None and not self.is_waiting:
            self._show_again()

    def fit(self) -> None:
        """Show the answer again if the new size of the pane has room for more, or for less."""
        if self._fit is not None and self._fit != self._measure():
            self._show_again()

    def _measure(self) -> tuple[bool, bool]:
        """Return whether the pane has few lines, and whether images have room in it."""
        height = self._view.scrollable_content_region.height
        return height < _FEW_LINES, self._view.text_width > IMAGE_WIDTH

    def _stop(self) -> None:
        if self._pause:
            self._pause.stop()
            self._pause = None

    def _read(self, cases: Cases, case: CaseRow, picked: int, *, stays: bool) -> None:
        self._pause = None
        page, place = self._page, self._shown
        result = case.results[picked] if picked < len(case.results) else None
        others = [other for number, other in enumerate(case.results) if other and number != picked]
        decisions = [other.decision for other in others]
        self._fit = is_brief, has_room = self._measure()
        shows_images = not page.app.no_color and has_room
        history = self._history
        hint, cut_note = page.with_keys(_MISSING), page.with_keys(_CUT)

        def read() -> ReaderTexts:
            source = page.source
            feedback = source.feedback(decisions) if decisions else {}
            if result is None:
                lines = list(case_judgement_lines(cases, case, picked, feedback, history))
                return ReaderTexts(lines, lines)
            view = _read_answer(page, cases, result)
            images = (
                render_images(view, source.files_of_test) if shows_images and not is_brief else {}
            )
            return reader_texts(
                cases,
                case,
                picked,
                view,
                feedback,
                history,
                images,
                hint,
                cut_note,
                is_brief=is_brief,
            )

        def show(texts: ReaderTexts) -> None:
            if place == self._shown:
                self._view.show(texts.lines, stay=stays, written=texts.written)

        page.fetch(read, show, group="feedback")


class ReaderPane(TextView):
    """The text of a reader, which depends on the size of the pane."""

    def __init__(self, fit: Callable[[], None]) -> None:
        """`fit` is called when the size has changed."""
        super().__init__(id="feedback")
        self._fit = fit

    def on_resize(self, _event: events.Resize) -> None:
        """Fit the text to the size."""
        self._fit()


def _read_answer(page: Page, cases: Cases, result: Result) -> AnswerView:
    shown = result.sessions[cases.shown_attempt(result)] if result.sessions else None
    return read_shown_answer(page.source, result, shown, cases.run)
