"""The data of the browser: the library's `Workspace`, and reads in bulk that only screens need.

Everything may be called from any thread, and raises `EvalstoreError`. Operations are imported
when they are used, so that the first screen is drawn before they are loaded.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from evalstore.core.errors import EvalstoreError, WorkspaceError
from evalstore.interfaces.api import Workspace
from evalstore.interfaces.tui.state.case_listing import PromptPair
from evalstore.interfaces.tui.state.case_query import read_query

if TYPE_CHECKING:
    from evalstore.comparison.comparison import Pair
    from evalstore.comparison.statistics import Rate
    from evalstore.comparison.version_diff import Difference
    from evalstore.core.progress import ProgressListener
    from evalstore.core.results import Decision, Result
    from evalstore.planning.options import Location
    from evalstore.planning.status.status_report import Status
    from evalstore.results.answer.answer import AnswerView
    from evalstore.results.answer.verdict_explanation import VerdictExplanation
    from evalstore.results.compare.diff_result import Diff
    from evalstore.results.flips.result_history import RecentVerdicts
    from evalstore.results.flips.verdict_changes import VerdictChanges
    from evalstore.results.labels.labels import LabelIndex
    from evalstore.results.log.newer_results import NewerRun
    from evalstore.results.log.test_history import Version
    from evalstore.results.result_version import BrokenResults
    from evalstore.results.search.grep import FoundTexts, MarkedText, Searcher, SearchHit
    from evalstore.results.stats.stats import Stats
    from evalstore.results.stats.trend import Trend
    from evalstore.results.table.case_rows import CaseRow
    from evalstore.results.table.cases import Cases, CaseWindow, RunLine
    from evalstore.results.table.editable_files import EditableFile, EditPlace
    from evalstore.runs.file_watcher import ChangeNotifier
    from evalstore.runs.interactive_run import PlanPreview, RunEnd, RunRequest
    from evalstore.runs.status.dashboard import Dashboard
    from evalstore.store.driver import Extent
    from evalstore.store.work.runs_in_progress import RunInProgress


class StoredTextSource:
    """Searches stored texts while the user types."""

    def __init__(self, locate: Callable[[], Location]) -> None:
        """`locate` returns the location of the workspace."""
        self._locate = locate
        self._searcher: Searcher | None = None

    def search(
        self, words: Sequence[str], report: Callable[[int, int], bool], *, in_answers: bool = False
    ) -> Set[str] | None:
        """Return the sessions with all words in answer, feedback or test, the last as a beginning.

        With `in_answers` in the answer alone. `report` is called with the number of indexed texts
        and of all texts, and returns whether to go on. None when it returned False.
        """
        return self._open_searcher().search(words, report, in_answers=in_answers)

    def _open_searcher(self) -> Searcher:
        from evalstore.results.search.grep import Searcher

        self._searcher = self._searcher or Searcher(self._locate())
        return self._searcher

    def find_texts(
        self, pattern: str, limit: int, report: Callable[[int, int], bool]
    ) -> FoundTexts | None:
        """Return stored texts with all words of a pattern, at most `limit`.

        `report` is called as by `search`; None when it returned False.
        """
        return self._open_searcher().find(pattern, limit, report)

    def read_text(self, hit: SearchHit, pattern: str) -> MarkedText:
        """Return a text that was found, with the places of the words in it."""
        from evalstore.results.search.grep import read_text

        return read_text(self._locate(), hit, pattern)


class WorkspaceSource(StoredTextSource):
    """Reads tables and texts for screens, and plans and carries out their runs."""

    def __init__(
        self, location: Location, *, offline: bool = False, max_cost: float | None = None
    ) -> None:
        """Start runs `offline` if it is set, at a cost of at most `max_cost`, if there is one."""
        self.workspace = Workspace.at(location)
        super().__init__(lambda: self.location)
        self.store = StoreWatch(self.workspace)
        self.offline = offline
        self.max_cost = max_cost
        self._notifier: ChangeNotifier | None = None
        self._looked_for: Mapping[str, tuple[str, int, int, int, int]] = {}
        """The files that tests mention, when the tests could not be read."""

    @property
    def location(self) -> Location:
        """Return the location of the workspace; once its store was seen, no other is made."""
        return self.workspace.location

    def have_files_changed(self) -> bool:
        """Return whether files of the workspace have changed since this was last True.

        False also when the last look at them is too recent.
        """
        from evalstore.runs.file_watcher import ChangeNotifier

        self._notifier = self._notifier or ChangeNotifier(lambda: self.location)
        self._notifier.follow_mentioned(self._looked_for)
        return self._notifier.has_changed()

    @contextmanager
    def _reading_tests(self) -> Iterator[None]:
        """Follow the files that tests mention, also missing ones, when they cannot be read."""
        try:
            yield
        except EvalstoreError as problem:
            self._follow_mentioned(problem)
            raise
        self._follow_mentioned(None)

    def _follow_mentioned(self, problem: EvalstoreError | None) -> None:
        self._looked_for = problem.looked_for if isinstance(problem, WorkspaceError) else {}

    def status(self) -> Status:
        """Return the pending work; raises `WorkspaceError` with all problems of the files."""
        with self._reading_tests():
            return self.workspace.status(offline=self.offline)

    def runs(self) -> list[RunLine]:
        """Return all runs, newest first."""
        from evalstore.results.table import cases

        return cases.list_runs(self.location)

    def cases(self, revision: str | None, window: CaseWindow | None = None) -> Cases:
        """Return the cases of a run, or of the workspace now; of many, those of a window."""
        from evalstore.results.table import cases

        if revision is not None:
            return cases.cases(self.location, revision, window)
        with self._reading_tests():
            return cases.cases(self.location, None, window)

    def cases_at(self, revision: str | None, places: Collection[tuple[str, str]]) -> Cases:
        """Return the same; of many, only those at these places: files with their rows."""
        from evalstore.results.table.cases import place_window

        return self.cases(revision, place_window(places))

    def dashboard(self, go_on: Callable[[], bool]) -> Dashboard:
        """Return the state of the workspace; reading ends early once `go_on` returns False."""
        from evalstore.runs.status.dashboard import read_dashboard

        dashboard = read_dashboard(self.location, go_on)
        if dashboard.problem or dashboard.rate:
            self._follow_mentioned(dashboard.problem)
        return dashboard

    def compare(
        self, sides: tuple[str | None, str | None], models: Models = None, among: Among = None
    ) -> Diff:
        """Compare two sides; or candidates or prompts of one run, `among` some of its cases."""
        if models is None:
            return self.workspace.diff(*sides)
        return compare_within(self.location, sides[1], models, among)

    def history(self, files: Collection[str], run: str | None) -> RecentVerdicts:
        """Return the last verdicts of the cases of these files, up to a run."""
        from evalstore.results.flips.result_history import read_recent_verdicts

        return read_recent_verdicts(self.location, files, run)

    def candidate_rates(self, cases: Cases, rows: Sequence[CaseRow]) -> tuple[Rate, ...]:
        """Return the pass rate of each candidate in these cases, in the order of `Cases.models`."""
        from evalstore.results.table.cases import candidate_rates

        return candidate_rates(cases, rows)

    def newer(self, run: str, result: Result | None) -> NewerRun | None:
        """Return the newest run if it is newer; with a result, a newer run that has another one."""
        from evalstore.results.log import newer_results

        if result is None:
            return newer_results.find_newer_run(self.location, run)
        return newer_results.find_newer_result(self.location, run, result)

    def files(self) -> list[str]:
        """Return the test files of the workspace."""
        from evalstore.results.table import cases

        return cases.test_files(self.location)

    def feedback(self, decisions: Iterable[Decision]) -> dict[Decision, str]:
        """Return the reasons for verdicts; those without are left out."""
        from evalstore.results.table import cases

        return cases.feedback(self.location, decisions)

    def answers(self, sessions: Sequence[str]) -> dict[str, str]:
        """Return the last answers of these sessions by id."""
        from evalstore.results.compare import pair_sorter

        return pair_sorter.read_texts(self.location, sessions)

    def pair_edits(self, pair: Pair) -> list[Difference]:
        """Return the edits of a case between the two sides of a comparison."""
        from evalstore.results.compare import pair_sorter

        return pair_sorter.find_pair_edits(self.location, pair)

    def last_user_messages(self, tests: Sequence[str]) -> dict[str, str]:
        """Return the last user message of each of these test versions."""
        from evalstore.results.answer import answer

        return answer.last_user_messages(self.location, tests)

    def stats(self, run: str, groupings: Sequence[str]) -> list[Stats]:
        """Return the statistics of a run for each of these groupings."""
        from evalstore.results.stats.stats import read_stats

        return read_stats(self.location, run, [(name,) for name in groupings])

    def trend(self, stats: Stats) -> Trend:
        """Return the trend up to what these statistics by candidate are about."""
        from evalstore.planning.open_project import open_store
        from evalstore.results.stats.trend import trend_until

        with open_store(self.location) as store:
            return trend_until(self.location, store, stats)

    def session(self, id: str, result: Result) -> AnswerView:
        """Return an answer of a case with all that belongs to it."""
        from evalstore.results.answer import answer

        return answer.session_of(self.location, id, result)

    def question(self, result: Result, run: str | None) -> AnswerView:
        """Return the question to a candidate that has not answered."""
        from evalstore.results.answer import answer

        return answer.question_of(self.location, result, run)

    def explanation(
        self, result: Result, run: str | None, view: AnswerView, cells: Sequence[Result]
    ) -> VerdictExplanation | None:
        """Return why a result has its verdict; None when what that takes cannot be read.

        `cells` are all results of its case, as they are shown.
        """
        from evalstore.results.answer import verdict_explanation

        with suppress(EvalstoreError):  # the page of the answer is shown without it
            return verdict_explanation.explain_result(
                self.location, result, run, view=view, cells=cells
            )
        return None

    def files_of_test(self, ids: Sequence[str]) -> dict[str, bytes]:
        """Return the bytes of the images and text files of a test by id."""
        from evalstore.results.answer import answer

        return answer.read_files(self.location, ids)

    def versions(self, file: str, row: str) -> list[Version]:
        """Return the versions of a test, newest first."""
        from evalstore.results.log import test_history

        return test_history.versions_of(self.location, file, row)

    def broken(self, run: str | None, go_on: Callable[[], bool]) -> BrokenResults | None:
        """Return what broke in a run; of the workspace, in the last runs or since.

        None once `go_on` returns False.
        """
        from evalstore.results.flips.broken_results import find_broken_results
        from evalstore.store.revisions import WORK

        return find_broken_results(self.location, run or WORK, go_on)

    def editable_files(self, place: EditPlace) -> list[EditableFile]:
        """Return the files that decide a case, the one that explains it first."""
        from evalstore.results.table.editable_files import find_editable_files

        return find_editable_files(self.location, place)

    def labels(self) -> LabelIndex:
        """Return all labels of people."""
        from evalstore.results.table import cases

        return cases.stored_labels(self.location)

    def note(self, result: Result, session: str | None) -> str:
        """Return the note of this person's label; or empty."""
        from evalstore.workspace.user_name import name_of_user

        name = name_of_user(self.location.directory)
        own = [each for each in self.labels().current(result, session) if each.person == name]
        return max(own, key=lambda label: label.at).note if own else ""

    # --- runs

    def missing(self, file: str | None = None) -> RunRequest:
        """Return the request to run the pending work of a test file or of all."""
        from evalstore.runs import interactive_run

        return interactive_run.of_file(self.location, file) if file else interactive_run.ALL

    def again(self, results: Sequence[Result]) -> RunRequest:
        """Return the request to judge these results again."""
        from evalstore.runs import interactive_run

        return interactive_run.again(self.location, results)

    def plan(self, request: RunRequest) -> PlanPreview:
        """Return the plan of a run, with the reasons and the price."""
        from evalstore.runs import interactive_run

        with self._reading_tests():
            return interactive_run.plan(
                self.location, request, offline=self.offline, max_cost=self.max_cost
            )

    def carry_out(
        self, request: RunRequest, listener: ProgressListener, planned: PlanPreview
    ) -> RunEnd:
        """Run it, unless it is more than was planned by now; the listener can stop it."""
        from evalstore.runs import interactive_run

        with self.store.running():
            return interactive_run.carry_out_request(
                self.location, request, listener, planned, offline=self.offline
            )

    def flips(self, run: str) -> VerdictChanges | None:
        """Return how many verdicts broke or were fixed since the previous run, if there is one."""
        from evalstore.runs import interactive_run

        return interactive_run.flips(self.location, run)


# --- notices what was recorded in the store: reading the files stores versions there, too


_LOOK_SECONDS = 5.0
"""How often runs in progress of others are looked at while nothing is written."""


class StoreWatch:
    """Tells whether answers, judgements, failures or runs were recorded since it was last asked.

    It also keeps the runs that other programs carry out.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._stamp: object = None
        self._newest: _Newest | None = None
        self.other_runs: tuple[RunInProgress, ...] = ()
        """The runs in progress of other programs."""
        self._is_running = False
        self._looked = 0.0
        """When these were looked at last, on the monotonic clock."""

    def has_changed(self) -> bool:
        """Return whether anything was recorded; False the first time.

        Raises `StoreError` when the store is gone or cannot be read.
        """
        from evalstore.planning.open_project import open_store
        from evalstore.results.table.cases import StoreStamp
        from evalstore.store.work.runs_in_progress import find_runs_of_others

        stamp, before = self._workspace.stamp(), self._stamp
        # A program that was killed writes nothing.
        is_late = bool(self.other_runs) and time.monotonic() - self._looked > _LOOK_SECONDS
        if stamp == before and not is_late:
            return False
        known = self._newest
        if isinstance(stamp, StoreStamp) and not stamp.is_there:  # to open it would make one
            self._newest, self.other_runs = None, ()
        else:
            with open_store(self._workspace.location) as store:
                newest = store.find_newest(known.extent if known else None)
                self._newest = _Newest(store.file, newest)
                self.other_runs = find_runs_of_others(store, is_running=self._is_running)
        self._stamp, self._looked = stamp, time.monotonic()
        return before is not None and self._newest != known

    @contextmanager
    def running(self) -> Iterator[None]:
        """Note that this program carries out a run in the block, which is none of another one."""
        self._is_running = True
        try:
            yield
        finally:
            self._is_running = False


class _Newest(NamedTuple):
    """How far the store reaches."""

    file: tuple[str, int, int] | None
    """Its path, device and inode; None in a database of a server."""
    extent: Extent


# --- what is compared within a run: two candidates or two system prompts, in all cases or in some


class FilteredPlaces(NamedTuple):
    """The cases that a filter lists, to which a comparison is limited."""

    typed: str
    """The filter."""
    places: frozenset[tuple[str, str, int]]
    """The file, the row and the number of the system prompt of each line."""
    cases: frozenset[tuple[str, str]]
    """The file and the row of each line."""

    @property
    def title(self) -> tuple[str, str]:
        """Return the part of a title that names the filter, and a brief one."""
        return f"of the cases filtered by {self.typed}", f"filtered by {self.typed}"

    def has(self, result: Result) -> bool:
        """Return whether a result is on one of the lines."""
        return (result.file, result.row, result.prompt_number) in self.places

    def has_case(self, result: Result) -> bool:
        """Return whether a result is of one of the cases, with any system prompt."""
        return (result.file, result.row) in self.cases


Models: TypeAlias = tuple[str, str] | None
"""Two candidates, or as a `PromptPair` two system prompts; None: two sides are compared."""
Among: TypeAlias = FilteredPlaces | None
"""The cases in which these are compared; None: all."""


def compare_within(
    location: Location, run: str | None, models: tuple[str, str], among: Among
) -> Diff:
    """Compare two candidates or system prompts of a run, or of the workspace without one."""
    from evalstore.results.compare.diff_within import diff_models, diff_prompts

    if isinstance(models, PromptPair):
        found = diff_prompts(location, run, models, only=among.has_case if among else None)
    else:
        found = diff_models(location, run, models, only=among.has if among else None)
    if among and read_query(among.typed).is_by_outcome:
        found.comparison.by_verdict = True
    return found


# --- reads the answer that stands for a result, or one that the reader has chosen


def read_shown_answer(
    source: WorkspaceSource,
    result: Result,
    session: str | None,
    run: str | None,
    *,
    is_chosen: bool = False,
) -> AnswerView:
    """Return the page of an answer; without a session that of the question in a run.

    Of answers that are judged together it is the first that fails, unless this one `is_chosen`.
    """
    from evalstore.results.answer import verdict_explanation

    if session is None:
        return source.question(result, run)
    if not is_chosen:
        session = verdict_explanation.failing_answer_of(source.location, result, session)
    return source.session(session, result)
