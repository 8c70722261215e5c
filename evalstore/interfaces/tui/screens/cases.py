"""The cases of a run: a row for each, a column for each candidate."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from operator import is_
from typing import ClassVar, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Input

from evalstore.comparison.statistics import Rate
from evalstore.core.display import short
from evalstore.core.errors import EvalstoreError
from evalstore.core.values import Result
from evalstore.interfaces.tui.case_filter import (
    FIELDS,
    NO_MATCH,
    ORDERS,
    FilteredCases,
    LookedUp,
    Query,
    StoreLookup,
    help_lines,
    read_query,
)
from evalstore.interfaces.tui.case_listing import (
    GROUPINGS,
    CaseGroup,
    CaseListing,
    CaseNavigator,
    CasePlace,
    CellPlace,
    PromptPair,
    next_failure,
)
from evalstore.interfaces.tui.data_source import FilteredPlaces
from evalstore.interfaces.tui.grid import Column, Grid, StyledCell
from evalstore.interfaces.tui.page_lines import FooterHint
from evalstore.interfaces.tui.screens.actions import NO_EARLIER_RUN, DatedPage
from evalstore.interfaces.tui.screens.case_panels import (
    CaseReader,
    case_cells,
    case_columns,
    case_title,
)
from evalstore.interfaces.tui.screens.dialogs import Choice
from evalstore.results.flips.result_history import RecentVerdicts
from evalstore.results.flips.verdict_changes import BrokenResults
from evalstore.results.names import EditPlace
from evalstore.results.table.cases import (
    CaseRow,
    Cases,
    CaseWindow,
    RunLine,
    candidate_rates,
    find_broken_results,
)
from evalstore.store.revisions import WORK

_TABLE = """\
A line for each case, and a column for each candidate with the verdict on its answer. A case with
several system prompts has a line for each. The title counts the cases, and the verdicts of all
lines. The head of a column has the pass rate in the listed cases with its 95 % interval; ~ marks a
candidate with fewer verdicts than others. With a filter by verdict or words it has '10 of 50', and
the rate in all cases in brackets. 'last runs' has the last eight verdicts on the candidate of
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
    "list.open",
    FooterHint("Label", ("case.pass", "case.fail")),
    FooterHint("Edit", ("case.edit",)),
    FooterHint("Judge", ("case.judge",)),
    FooterHint("Failure", ("cases.next_failure", "cases.last_failure")),
    "cases.filter",
    FooterHint("Candidate", ("list.left", "list.right")),
    *("cases.versions", "cases.group", "cases.sort", "list.mark", "cases.compare_models"),
    "cases.stats",
    FooterHint("Run", ("page.run",)),
    "page.save",
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


_ONE_CANDIDATE = "there is only one candidate: list another one in 'candidates' of evalstore.yaml"
_ONE_IN_RUN = "run {} has only the candidate {}"
_ASK_ANOTHER = "list another one in 'candidates' of evalstore.yaml, and {page.run} asks it"
_SEE_NEWER = "{case.newest} opens the newest run"
_SEARCH = "search"
_SEARCH_SECONDS = 0.15
"""A search begins when nothing has been typed for so long."""
_LONG_SEARCH_SECONDS = 0.4
"""The same, where many cases are looked at."""
_LOOKING = "looking at all cases …"
_INDEXING = "searching … {}% of the index is made"
_SINCE = "\nA case broke if its last verdict before, also in a partial run, was a pass."
_ELSEWHERE = "\n{page.search} searches the texts of all runs."
_LARGE_FILE = 3_000
"""Cases of a file whose earlier verdicts are not read: that would take seconds."""
_PAUSE_SECONDS = 0.05
"""From what is listed to the reading of its rates: more may be typed."""
_RATES = "rates"
_HISTORY_SECONDS = 0.3
"""From what is seen to the reading of its earlier verdicts."""
_HISTORY = "history"


class ReadCases(NamedTuple):
    """Cases that were read, with what was found for a filter."""

    cases: Cases
    filtered: FilteredCases
    query: Query
    matches: LookedUp | None
    """What was looked up; None when that failed."""


class CasesPage(DatedPage):
    """The cases of a run, or of the workspace as it is now.

    What is typed as a filter is compared with names at once. Texts are searched in a thread after
    a pause in typing; until they are found `filter_progress` says so.
    """

    BINDINGS: ClassVar[list[BindingType]] = _BINDINGS
    FOOTER = _FOOTER
    TITLE = "Cases"
    PANELS: ClassVar[Mapping[str, str]] = {"cases": "Cases", "feedback": "Answer"}
    MARKS = True
    DETAILS = CaseReader
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
        self.filter_query = read_query("")
        self.filter_progress = ""
        """A text while texts are searched."""
        self._matches = LookedUp()
        """What was looked up for the filter."""
        self._came_with = typed
        """The filter that the page was opened with."""
        self._is_filter_new = False
        """Whether it was changed, and no candidate that matches it was selected since."""
        self._history: dict[tuple[str, str, str], Mapping[str | None, tuple[str, ...]]] = {}
        """The last verdicts of the cells of files that were seen, by system prompt."""
        self._known_files: set[str] = set()
        """The files whose last verdicts have been read."""
        self._rates: Sequence[Rate] = ()
        """The pass rates of the candidates in the listed cases, once they are known."""
        self._whole: Sequence[Rate] = ()
        """Those in all cases, if the listed ones are chosen by verdicts or words."""
        self._is_by_outcome = False
        self._rated: tuple[object, ...] = ()
        """The cases and the filter that they are about."""

    def compose(self) -> ComposeResult:
        """Lay out the line of the filter, too."""
        yield from super().compose()
        hint = f"words {' '.join(f'{name}:…' for name in FIELDS)} -not (f1 explains all)"
        yield Input(placeholder=hint, id="filter", select_on_focus=False, compact=True)

    def on_mount(self) -> None:
        """Read the cases."""
        self.show_title()
        self.reader.history = self.last_verdicts
        self.grid.focus()
        self.reload()
        if self._came_with:
            self.set_filter(self._came_with)

    def on_unmount(self) -> None:
        """Free the cases."""
        self.listing.clear()
        if self.app.is_running:
            self.browser.collect_later()
        self._rated = ()

    @property
    def reader(self) -> CaseReader:
        """Return the text about the highlighted case."""
        return self.query_one(CaseReader)

    def reload(self) -> None:
        """Read the cases again, and search the words of the filter in their texts."""
        query = self.filter_query
        self.fetch(lambda: self._read_cases(query), self.show_cases)

    def show_cases(self, read: ReadCases) -> None:
        """Show cases that were read, with what was found unless something else was typed."""
        self.listing.load(read.cases, read.filtered)
        is_same = read.query is self.filter_query
        if is_same and read.matches is not None:
            self._stop_search()
            self.filter_progress, self._matches = "", read.matches
        elif is_same or not self.listing.is_limited:
            self._search_soon()
        if typed := self.listing.filter_for_start():
            self.set_filter(typed)
        self._known_files = set()
        if len(self._rates) != len(read.cases.models):
            self._rates = ()
        self._pick(self._first_model)
        self._first_model = ""
        self.show_matches()
        self.look_for_newer(read.cases.run)

    def open_newer(self, newer: str) -> None:
        """Show the cases of a newer run; the cursor stays with its case."""
        self.revision = newer
        self.reload()

    # --- the table

    def show_matches(self, *, to_first: bool = False) -> None:
        """Filter, sort and group the cases; cursor and marks stay with their cases."""
        listing, query = self.listing, self.filter_query
        if listing.cases is None or listing.filtered is None:
            return
        grid = self.grid
        listing.save_marks(grid.marked)
        cursor = listing.arrange(query, self._matches, None if to_first else grid.cursor)
        grid.show(self._columns(), len(listing.lines), self._cells, cursor=cursor)
        self._pick_match()
        grid.marked = listing.marked
        self._request_rates(query)
        is_empty = not listing.case_count
        is_back = not is_empty and not self.query_one("#panels").display
        self.set_empty(self._why_empty(listing.filtered) if is_empty else "")
        if is_back and not self._filter_line.has_focus:  # hidden, it had lost it to another panel
            grid.focus()
        self.show_title()
        if is_empty:
            self.reader.clear()

    def _pick_match(self) -> None:
        """Select the candidate whose result matches a filter that was changed, if it is another."""
        filtered, case = self.listing.filtered, self.case
        if case is None or filtered is None or not self._is_filter_new:
            return
        self._is_filter_new = bool(self.filter_progress)
        matching = filtered.matching_candidates(case, self.filter_query, self._matches)
        if matching and self.grid.picked not in matching:
            self.grid.picked = matching[0]

    def show_title(self) -> None:
        """Show in the title which cases are in the table."""
        query, progress = self.filter_query, self.filter_progress
        self.set_title(*case_title(self.revision, self.listing, query, progress))

    def show_problem(self, problem: EvalstoreError) -> None:
        """Show what went wrong; nothing is read or searched any more."""
        self.filter_progress = ""
        self.show_title()
        super().show_problem(problem)

    @on(Grid.Marked, "#cases")
    def mark_everywhere(self, message: Grid.Marked) -> None:
        """Mark a case with several tags in all its groups, or in none."""
        message.grid.marked = self.listing.spread_mark(message.grid.marked, message.row)
        message.grid.refresh()

    # --- what it shows besides verdicts: pass rates of candidates, and earlier verdicts

    def _request_rates(self, query: Query) -> None:
        """Read the pass rates in the listed cases, unless they are about the same as before."""
        self._is_by_outcome = query.is_by_outcome
        listing, now = self.listing, (self.listing.cases, query, self._matches)
        is_same = bool(self._rated) and all(map(is_, now, self._rated))
        if listing.cases is None or is_same:
            return
        self._rated = now
        self.end_pause(_RATES)
        if listing.cases.is_cut:  # the rates of some would be taken for those of all
            self._show_rates(())
        else:
            self.pause(_RATES, _PAUSE_SECONDS, self._read_rates)

    def _read_rates(self) -> None:
        cases, rows = self.listing.cases, self.listing.matching
        if cases is not None:
            every = cases.rows if self._is_by_outcome else ()

            def read(cases: Cases = cases) -> tuple[tuple[Rate, ...], ...]:
                return tuple(candidate_rates(cases, some) for some in (rows, every))

            self.fetch(read, lambda found: self._show_rates(*found), group=_RATES)

    def _show_rates(self, rates: Sequence[Rate], whole: Sequence[Rate] = ()) -> None:
        self._rates, self._whole = rates, whole if self._is_by_outcome else ()
        self.grid.set_columns(self._columns())

    def _columns(self) -> list[Column]:
        has_history, picked = self._has_history, self.grid.picked
        return case_columns(self.listing, picked, self._rates, self._whole, has_history)

    def _cells(self, row: int) -> Sequence[StyledCell]:
        listing, grid = self.listing, self.grid
        assert listing.cases is not None
        line, width = listing.lines[row], grid.scrollable_content_region.width
        result = None if isinstance(line, CaseGroup) else line.results[grid.picked]
        words = self.last_verdicts(result) if result else ()
        return case_cells(listing.cases, line, width, words, by_file=listing.by_file)

    # --- the filter

    @property
    def _filter_line(self) -> Input:
        return self.query_one("#filter", Input)

    def action_filter(self) -> None:
        """Type a filter."""
        self._filter_line.display = True
        self.set_focus(self._filter_line)  # at once: what is typed next belongs to it

    def set_filter(self, typed: str) -> None:
        """Filter as if this had been typed."""
        self._filter_line.value = typed
        self._filter_line.display = bool(typed)

    @on(Input.Changed, "#filter")
    def filter_changed(self, message: Input.Changed) -> None:
        """Filter as it is typed."""
        self.change_filter(message.value)
        if len(message.value) < 2:  # what the key that leaves does may have changed
            self.refresh_bindings()

    def change_filter(self, typed: str) -> None:
        """Filter by this."""
        self.filter_query, self._is_filter_new = read_query(typed), True
        words = (f'"{word}"' if " " in word else word for word in self.filter_query.words)
        self.search_words = " ".join(words)
        if self.listing.is_limited:  # those that match are read
            self._stop_search()
            self.workers.cancel_group(self, "read")  # for what was typed before
            self.filter_progress = _LOOKING
            self.pause(_SEARCH, _LONG_SEARCH_SECONDS, self.reload)
        else:
            self._search_soon()
        self.show_matches()

    @on(Input.Submitted, "#filter")
    def filter_submitted(self) -> None:
        """Go back to the table, which stays filtered."""
        self.grid.focus()
        self._filter_line.display = bool(self.filter_query.conditions)

    @property
    def _filter_goes_first(self) -> bool:
        """Return whether the key that leaves the page removes the filter first.

        A filter that the page was opened with goes with the page, unless it is being typed.
        """
        line = self._filter_line
        is_there = line.display or bool(self.filter_query.conditions)
        return line.has_focus or (is_there and line.value != self._came_with)

    @property
    def footer_words(self) -> Mapping[str, str]:
        """Return what the key that leaves does instead, when there is a filter."""
        return {"page.back": "Clear filter"} if self._filter_goes_first else {}

    def remove_filter(self) -> None:
        """Remove the filter, and close its line."""
        self.set_filter("")
        self.grid.focus()

    def action_back(self) -> None:
        """Take the filter away, or leave."""
        if self._filter_goes_first:
            self.remove_filter()
        else:
            super().action_back()

    def _why_empty(self, filtered: FilteredCases) -> str:
        """Return why no case matches, and where else there may be texts with the words."""
        query, is_searching = self.filter_query, bool(self.filter_progress)
        reason = filtered.why_empty(query, is_searching=is_searching)
        if reason == NO_MATCH:
            reason += _SINCE if query.is_about_broken else ""
            does = "removes the filter" if self._filter_goes_first else "leads back"
            reason += f"\nEscape {does}."
        if query.words and not is_searching:
            reason += self.with_keys(_ELSEWHERE)
        return reason

    # --- the search

    def _read_cases(self, query: Query) -> ReadCases:
        """Read the cases, of many those that a query wants, in this thread."""
        store = self._store_lookup(self._search_reporter(query, _INDEXING))
        report = self._search_reporter(query, f"{_LOOKING} {{}}%")

        def wants(cases: Cases) -> Sequence[CaseRow]:
            filtered = FilteredCases(cases)
            return filtered.select(query, "file", filtered.look_up(query, store))

        window = CaseWindow(wants, report) if query.conditions else CaseWindow(report=report)
        cases = self.source.cases(self.revision, window)
        filtered = FilteredCases(cases)
        _ = filtered.sizes  # in this thread
        matches: LookedUp | None = None
        with suppress(EvalstoreError):  # it is searched again, and shown then
            matches = filtered.look_up(query, store)
        return ReadCases(cases, filtered, query, matches)

    def _search_reporter(self, query: Query, words: str) -> Callable[[int, int], bool]:
        """Return what shows the progress of this thread while the query is the filter."""

        def show(text: str) -> None:
            if self.filter_progress and query is self.filter_query:
                self.filter_progress = text
                self.show_title()

        return self.reporter(words, show)

    def _store_lookup(self, report: Callable[[int, int], bool]) -> StoreLookup:
        """Return what looks everything up once for the cases, while `report` returns True."""
        source, run = self.source, self.revision or WORK

        def broken() -> BrokenResults:
            return find_broken_results(source.location, run)

        return StoreLookup(
            cache(lambda words, alone: source.search(words, report, in_answers=alone)),
            cache(broken),
        )

    def _search_soon(self) -> None:
        """Search the words in answers, feedback and tests; the last request wins."""
        filtered, query = self.listing.filtered, self.filter_query
        if filtered is None:
            return
        self._stop_search()
        is_by_words = any(it.field in ("text", "answer") for it in query.conditions)
        self.filter_progress = "searching …" if is_by_words or query.is_about_broken else ""
        if self.filter_progress:
            self.pause(_SEARCH, _SEARCH_SECONDS, partial(self._search, filtered, query))

    def _stop_search(self) -> None:
        self.end_pause(_SEARCH)
        self.workers.cancel_group(self, _SEARCH)

    def _search(self, filtered: FilteredCases, query: Query) -> None:
        def read() -> LookedUp:
            store = self._store_lookup(self._search_reporter(query, _INDEXING))
            return filtered.look_up(query, store)

        def show(matches: LookedUp) -> None:
            if query is self.filter_query:
                self.filter_progress, self._matches = "", matches
                self.show_matches()

        self.fetch(read, show, group=_SEARCH)

    # --- the highlighted case

    @property
    def line(self) -> CaseRow | CaseGroup | None:
        """Return the highlighted line."""
        return self.grid.at_cursor(self.listing.lines)

    @property
    def case(self) -> CaseRow | None:
        """Return the highlighted case."""
        return None if isinstance(self.line, CaseGroup) else self.line

    @property
    def result(self) -> Result | None:
        """Return the result of the candidate under the cursor."""
        case, picked = self.case, self.grid.picked
        return case.results[picked] if case and picked < len(case.results) else None

    @property
    def marked_cases(self) -> list[CaseRow]:
        """Return the marked cases, or the one under the cursor."""
        lines = (self.listing.lines[number] for number in sorted(self.grid.marked))
        marked = list(dict.fromkeys(line for line in lines if not isinstance(line, CaseGroup)))
        return marked or ([self.case] if self.case else [])

    @property
    def selected(self) -> list[Result]:
        """Return the results of the candidate in the selected column in these cases."""
        picked = self.grid.picked
        results = (result for it in self.marked_cases for result in it.results[picked : picked + 1])
        return [result for result in results if result]

    @property
    def prompts(self) -> Collection[str | None]:
        """Return the ids of the system prompts of the cases that were read."""
        return self.listing.cases.prompts if self.listing.cases else ()

    def prompt_name(self, result: Result) -> str:
        """Return the name of the system prompt, when the case has several."""
        cases = (case for case in self.marked_cases if result in case.results)
        return next((case.prompt for case in cases), "")

    @property
    def edited_place(self) -> EditPlace | None:
        """Return the highlighted case as a place to edit."""
        result = next((it for it in self.case.results if it), None) if self.case else None
        return EditPlace(result.file, prompt=result.prompt) if result else None

    @property
    def copy_text(self) -> tuple[str, str]:
        """Return the sessions of the candidate under the cursor; without one, the case."""
        if self.result and self.result.sessions:
            sessions = self.result.sessions
            name = "the id of the answer" if len(sessions) == 1 else "the ids of the answers"
            return " ".join(sessions), name
        if self.case is None:
            return "", ""
        return f"{self.case.file}::{self.case.row}" if self.case.row else self.case.file, "the case"

    @on(Grid.Moved, "#cases")
    def follow_cursor(self) -> None:
        """Show the answer to the highlighted case, and read the last verdicts of what is seen."""
        self.reader.show_case(self.listing.cases, self.case, self.grid.picked)
        if self._has_history:
            self.grid.set_columns(self._columns())  # which name the candidate
        self.request_history()

    @on(Grid.Resized, "#cases")
    def request_history(self) -> None:
        """Read the last verdicts of what is seen: the list is laid out after the cursor moved."""
        seen, filtered = self.listing.lines[self.grid.seen_rows], self.listing.filtered
        files = dict.fromkeys(line.file for line in seen if not isinstance(line, CaseGroup))
        sizes = filtered.sizes.rows if filtered else {}
        unknown = [it for it in files if it not in self._known_files]
        unknown = [file for file in unknown if sizes.get(file, 0) <= _LARGE_FILE]
        self.end_pause(_HISTORY)
        if unknown:
            self.pause(_HISTORY, _HISTORY_SECONDS, partial(self._read_history, unknown))

    def _read_history(self, files: Sequence[str]) -> None:
        run = self.listing.cases.run if self.listing.cases else None

        def show(history: RecentVerdicts) -> None:
            if self.listing.cases and run == self.listing.cases.run:
                self._history |= history
                self._known_files.update(files)
                self.follow_cursor()

        self.fetch(lambda: self.source.history(files, run), show, group=_HISTORY)

    @property
    def _has_history(self) -> bool:
        """Return whether a case is known to have been judged in several runs."""
        return any(len(it) > 1 for words in self._history.values() for it in words.values())

    def last_verdicts(self, result: Result) -> Sequence[str]:
        """Return the last verdicts of a cell, the oldest first; empty when they are not known."""
        words = self._history.get((result.file, result.row, result.model), {})
        if result.prompt not in words and len(words) == 1 and not result.prompt_number:
            return next(iter(words.values()))  # the only system prompt was edited
        return words.get(result.prompt, ())

    @on(Grid.Chosen, "#cases")
    def open_line(self) -> None:
        """Open the answer under the cursor, or the first of the line; fold or unfold a group."""
        line, cases = self.line, self.listing.cases
        if isinstance(line, CaseGroup):
            self.listing.fold(line)
            self.show_matches()
        elif line and cases and (result := self.result or next(filter(None, line.results), None)):
            listing = self.listing
            number = sum(not isinstance(it, CaseGroup) for it in listing.lines[: self.grid.cursor])
            meant = [cases.models[n] for n in listing.candidates(self.filter_query)]
            navigator = CaseNavigator(cases, listing.rows, number, result.model, meant)
            self.browser.open("answer", navigator)

    def refresh_ages(self) -> None:
        """Read the shown answer again, which says how long ago it was judged."""
        self.reader.refresh_ages()

    def highlight(self, case: CaseRow, model: str) -> None:
        """Move the cursor to a case, and to the candidate if it has a column."""
        self._pick(model)
        if (line := self.listing.line_of(case, self.grid.cursor)) is not None:
            self.grid.move_to(line)
        self.grid.refresh()

    def _pick(self, model: str) -> None:
        """Move the cursor to the column of a candidate, if there is one."""
        models = self.listing.cases.models if self.listing.cases else ()
        if model in models:
            self.grid.picked = models.index(model)

    # --- keys

    def action_failure(self, by: int) -> None:
        """Go to the next result of the filter's candidates that did not pass, or the one before."""
        grid, listing = self.grid, self.listing
        start, meant = CellPlace(grid.cursor, grid.picked), listing.candidates(self.filter_query)
        failure = next_failure(listing.lines, start, by, meant)
        if failure is None:
            is_read = listing.cases is not None
            text = "no listed case failed" if is_read else "still reading the cases"
            self.notify(text, markup=False)
            return
        grid.picked = failure.candidate
        grid.move_to(failure.line)

    def action_compare_models(self) -> None:
        """Compare the candidate under the cursor, or the system prompt, with another one.

        A choice asks which other one, if there are more. With a filter, the listed cases are
        compared; all, where not all that match it have been read.
        """
        listing = self.listing
        typed = self._filter_line.value.strip() if self.filter_query.conditions else ""
        cases, prompts = listing.cases, listing.prompts_of(self.case)
        model, others = listing.other_candidates(self.grid.picked)
        if cases is None:
            return
        revision, (own, *rest) = cases.run, prompts or ("",)
        title, start = ("Compare", f"{model} with ") if rest else (f"Compare {model} with", "")
        choices = {f"{start}{other}": (model, other) for other in others}
        choices |= {
            f"system prompt {own} with {other}": PromptPair(prompts[own], prompts[other])
            for other in rest
        }
        if not choices:
            told = _ONE_CANDIDATE
            if cases.run is not None:
                hint = self.with_keys(_SEE_NEWER if self.newer else _ASK_ANOTHER)
                told = f"{_ONE_IN_RUN.format(short(cases.run), ', '.join(cases.models))}: {hint}"
            self.notify(told, markup=False)
            return

        among = None
        if typed and cases.is_cut:
            self.notify("all cases are compared, not only those that are listed", markup=False)
        elif typed:
            results = [result for row in listing.matching for result in row.results if result]
            among = FilteredPlaces(
                typed,
                frozenset((result.file, result.row, result.prompt_number) for result in results),
                frozenset((result.file, result.row) for result in results),
            )

        def compare(chosen: str | None) -> None:
            if chosen:
                self.browser.open("compare", revision, revision, choices[chosen], among)

        if len(choices) == 1:
            compare(*choices)
        else:
            self.app.push_screen(Choice(title, [*choices]), compare)

    def action_compare(self) -> None:
        """Compare the run with the previous one, or the workspace with the newest one."""
        if self.listing.cases is None:
            return
        run = self.listing.cases.run

        def compare(runs: Sequence[RunLine]) -> None:
            ids = [each.id for each in runs]
            before = ids[ids.index(run) + 1 :] if run in ids else ids
            if before:
                self.browser.open("compare", before[0], run)
            else:
                self.notify(NO_EARLIER_RUN, markup=False)

        self.fetch(self.source.runs, compare, group="compare")

    def action_stats(self) -> None:
        """Show the statistics of the run, or of the workspace."""
        if self.listing.cases is not None:
            self.browser.open("stats", self.listing.cases.run)

    def action_sort(self) -> None:
        """Sort by the next of file, verdict, row."""
        listing = self.listing
        listing.order = ORDERS[(ORDERS.index(listing.order) + 1) % len(ORDERS)]
        self.show_matches(to_first=listing.order == "verdict")

    def action_group(self) -> None:
        """Group by the next of nothing, file, tag."""
        number = GROUPINGS.index(self.listing.grouping) + 1
        self.listing.grouping = GROUPINGS[number % len(GROUPINGS)]
        self.show_matches()

    def action_versions(self) -> None:
        """Show the versions of the highlighted test."""
        if self.case and self.listing.cases:
            model = self.listing.cases.models[self.grid.picked]
            self.browser.open("versions", self.case.file, self.case.row, model)
