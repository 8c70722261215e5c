"""The data of the browser, and its run: the library's `Workspace`, and reads that screens need.

Everything may be called from any thread, and raises `EvalstoreError`. Operations are imported
when they are used, so that the first screen is drawn before they are loaded.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from evalstore.core.errors import EvalstoreError, WorkspaceError
from evalstore.core.runs import ProgressListener
from evalstore.core.values import Decision, Result
from evalstore.interfaces.api import Workspace
from evalstore.interfaces.tui.case_filter import read_query
from evalstore.interfaces.tui.case_listing import PromptPair
from evalstore.planning.cell_results import find_feedback
from evalstore.planning.open_project import open_store, open_workspace
from evalstore.planning.options import Location
from evalstore.planning.status_report import Status
from evalstore.results.answer.answer import AnswerView
from evalstore.results.compare.diff_result import Diff
from evalstore.results.flips.result_history import RecentVerdicts
from evalstore.results.grep import FoundTexts, MarkedText, Searcher, SearchHit
from evalstore.results.labels import LabelIndex
from evalstore.results.table import cases
from evalstore.results.table.cases import Cases, CaseWindow, RunLine
from evalstore.store.driver import Extent
from evalstore.store.revisions import WORK
from evalstore.store.shared_runs import RunInProgress, find_runs_of_others

if TYPE_CHECKING:
    from evalstore.results.stats.stats import Stats
    from evalstore.runs.run import PlanPreview, RunEnd, RunRequest
    from evalstore.runs.status.dashboard import Dashboard
    from evalstore.runs.watch import ChangeNotifier


_LOOK_SECONDS = 5.0
"""How often runs in progress of others are looked at while nothing is written."""


class WorkspaceSource:
    """Reads tables and texts for screens, and plans and carries out their runs."""

    def __init__(
        self, location: Location, *, offline: bool = False, max_cost: float | None = None
    ) -> None:
        """Start runs `offline` if it is set, at a cost of at most `max_cost`, if there is one."""
        self.workspace = Workspace.at(location)
        self.offline = offline
        self.max_cost = max_cost
        self.other_runs: tuple[RunInProgress, ...] = ()
        """The runs in progress of other programs, as they were when the store was looked at."""
        self._stamp: object = None
        self._newest: tuple[tuple[str, int, int] | None, Extent] | None = None
        """How far the store reached: its path, device and inode, unless on a server; its extent."""
        self._looked = 0.0
        """When runs in progress were looked at last, on the monotonic clock."""
        self.is_running = False
        """Whether this program carries out a run, which is none of another one."""
        self._notifier: ChangeNotifier | None = None
        self._looked_for: Mapping[str, tuple[str, int, int, int, int]] = {}
        """The files that tests mention, when the tests could not be read."""
        self._searcher: Searcher | None = None

    @property
    def location(self) -> Location:
        """Return the location of the workspace; once its store was seen, no other is made."""
        return self.workspace.location

    def have_files_changed(self) -> bool:
        """Return whether files of the workspace have changed since this was last True.

        False also when the last look at them is too recent.
        """
        from evalstore.runs.watch import ChangeNotifier

        self._notifier = self._notifier or ChangeNotifier(lambda: self.location)
        self._notifier.follow_mentioned(self._looked_for)
        return self._notifier.has_changed()

    def has_store_changed(self) -> bool:
        """Return whether answers, judgements, failures or runs were recorded since the last call.

        Reading the files stores versions, too. False the first time. Raises `StoreError` when the
        store is gone or cannot be read.
        """
        stamp, before = self.workspace.stamp(), self._stamp
        # A program that was killed writes nothing.
        is_late = bool(self.other_runs) and time.monotonic() - self._looked > _LOOK_SECONDS
        if stamp == before and not is_late:
            return False
        known = self._newest
        if isinstance(stamp, cases.StoreStamp) and not stamp.is_there:  # to open it would make one
            self._newest, self.other_runs = None, ()
        else:
            with open_store(self.location) as store:
                self._newest = store.file, store.find_newest(known[1] if known else None)
                self.other_runs = find_runs_of_others(store, is_running=self.is_running)
        self._stamp, self._looked = stamp, time.monotonic()
        return before is not None and self._newest != known

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
        return cases.list_runs(self.location)

    def cases(self, revision: str | None, window: CaseWindow | None = None) -> Cases:
        """Return the cases of a run, or of the workspace now; of many, those of a window."""
        if revision is not None:
            return cases.cases(self.location, revision, window)
        with self._reading_tests():
            return cases.cases(self.location, None, window)

    def cases_at(self, revision: str | None, places: Collection[tuple[str, str]]) -> Cases:
        """Return the same; of many, only those at these places: files with their rows."""
        wanted = cases.CaseWindow(
            lambda found: [row for row in found.rows if (row.file, row.row) in places]
        )
        return self.cases(revision, wanted)

    def dashboard(self) -> Dashboard:
        """Return the state of the workspace."""
        from evalstore.runs.status.dashboard import read_dashboard

        dashboard = read_dashboard(self.location)
        if dashboard.problem or dashboard.rate:
            self._follow_mentioned(dashboard.problem)
        return dashboard

    def compare(
        self,
        sides: tuple[str | None, str | None],
        models: Models = None,
        among: Among = None,
        is_swapped: bool = False,
    ) -> Diff:
        """Compare two sides; or candidates or prompts of one run, `among` some of its cases."""
        if models is None:
            was, now = sides[::-1] if is_swapped else sides
            return self.workspace.diff(was or WORK, now)
        from evalstore.results.compare.diff import diff_models, diff_prompts

        run, both = sides[1], models[::-1] if is_swapped else models
        if isinstance(models, PromptPair):
            found = diff_prompts(self.location, run, both, only=among and among.has_case)
        else:
            found = diff_models(self.location, run, both, only=among and among.has)
        if among and read_query(among.typed).is_by_outcome:
            found.comparison.by_verdict = True
        return found

    def history(self, files: Collection[str], run: str | None) -> RecentVerdicts:
        """Return the last verdicts of the cases of these files, up to a run."""
        from evalstore.results.flips.result_history import read_recent_verdicts

        return read_recent_verdicts(self.location, files, run)

    def files(self) -> list[str]:
        """Return the test files of the workspace."""
        return list(open_workspace(self.location).find_files("tests"))

    def feedback(self, decisions: Iterable[Decision]) -> dict[Decision, str]:
        """Return the reasons for verdicts; those without are left out."""
        with open_store(self.location) as store:
            return find_feedback(store, decisions)

    def answers(self, sessions: Sequence[str]) -> dict[str, str]:
        """Return the last answers of these sessions by id."""
        from evalstore.results.compare import diff

        return diff.read_texts(self.location, sessions)

    def stats(self, run: str, groupings: Sequence[str]) -> list[Stats]:
        """Return the statistics of a run for each of these groupings."""
        from evalstore.results.stats.stats import read_stats

        return read_stats(self.location, run, [(name,) for name in groupings])

    def answer(
        self, result: Result, session: str | None, run: str | None, *, is_chosen: bool = False
    ) -> AnswerView:
        """Return the page of an answer; without a session that of the question in a run.

        Of answers that are judged together it is the first that fails, unless this one `is_chosen`.
        """
        from evalstore.results.answer import answer, verdict_explanation

        if session is None:
            return answer.question_of(self.location, result, run)
        if not is_chosen and len(result.sessions) > 1:
            with open_store(self.location) as store:
                session = verdict_explanation.find_failing_answer(store, result, session)
        return self.session(session, result)

    def session(self, id: str, result: Result) -> AnswerView:
        """Return an answer of a case with all that belongs to it."""
        from evalstore.results.answer import answer

        return answer.session_of(self.location, id, result)

    def files_of_test(self, ids: Sequence[str]) -> dict[str, bytes]:
        """Return the bytes of the images and text files of a test by id."""
        with open_store(self.location) as store:
            return {id: file.data for id, file in store.load_files(ids).items()}

    def labels(self) -> LabelIndex:
        """Return all labels of people."""
        return cases.stored_labels(self.location)

    # --- stored texts, which are searched while the user types

    def search(
        self, words: Sequence[str], report: Callable[[int, int], bool], *, in_answers: bool = False
    ) -> Set[str] | None:
        """Return the sessions with all words in answer, feedback or test, the last as a beginning.

        With `in_answers` in the answer alone. `report` is called with the number of indexed texts
        and of all texts, and returns whether to go on. None when it returned False.
        """
        return self._open_searcher().search(words, report, in_answers=in_answers)

    def find_texts(
        self, pattern: str, limit: int, report: Callable[[int, int], bool]
    ) -> FoundTexts | None:
        """Return stored texts with all words of a pattern, at most `limit`.

        `report` is called as by `search`; None when it returned False.
        """
        return self._open_searcher().find(pattern, limit, report)

    def _open_searcher(self) -> Searcher:
        from evalstore.results.grep import Searcher

        self._searcher = self._searcher or Searcher(self.location)
        return self._searcher

    def read_text(self, hit: SearchHit, pattern: str) -> MarkedText:
        """Return a text that was found, with the places of the words in it."""
        from evalstore.results.grep import read_text

        return read_text(self.location, hit, pattern)

    # --- runs

    def missing(self, file: str | None = None) -> RunRequest:
        """Return the request to run the pending work of a test file or of all."""
        from evalstore.runs import run

        return run.of_file(self.location, file) if file else run.ALL

    def again(self, results: Sequence[Result], prompts: Collection[str | None]) -> RunRequest:
        """Return the request to judge these results again, `prompts` being all of their side."""
        from evalstore.runs import run

        return run.again(self.location, results, prompts)

    def plan(self, request: RunRequest) -> PlanPreview:
        """Return the plan of a run, with the reasons and the price."""
        from evalstore.runs import run

        with self._reading_tests():
            return run.plan(self.location, request, offline=self.offline, max_cost=self.max_cost)

    def carry_out(
        self, request: RunRequest, listener: ProgressListener, planned: PlanPreview
    ) -> RunEnd:
        """Run it, unless it is more than was planned by now; the listener can stop it."""
        from evalstore.runs import run

        self.is_running = True
        try:
            return run.carry_out_request(
                self.location, request, listener, planned, offline=self.offline
            )
        finally:
            self.is_running = False


# --- what is compared within a run: two candidates or two system prompts, in all cases or in some


class FilteredPlaces(NamedTuple):
    """The cases that a filter lists, to which a comparison is limited."""

    typed: str
    """The filter."""
    places: frozenset[tuple[str, str, int]]
    """The file, the row and the number of the system prompt of each line."""
    cases: frozenset[tuple[str, str]]
    """The file and the row of each line."""

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


class BackgroundRun(ProgressListener):
    """Counts the answers and judgements of a run in another thread, and can stop it."""

    def __init__(self, request: RunRequest, preview: PlanPreview) -> None:
        self.request = request
        self.preview = preview
        self.totals = {"asked": 0, "judged": 0}
        self.done = {"asked": 0, "judged": 0, "failed": 0}
        self.notes: list[str] = []
        self.is_planned = False
        self.stops = 0
        """How often the user has asked to stop it."""
        self.end: RunEnd | None = None
        self.problem: EvalstoreError | None = None
        self.is_over = False
        self._started = time.monotonic()
        self._stop: Callable[[], None] | None = None
        self._lock = threading.Lock()
        self.shown = self.copy()
        """How far it was when screens were last drawn: all of them show the same moment."""

    @property
    def seconds(self) -> float:
        """Return the seconds since it started."""
        return time.monotonic() - self._started

    @property
    def counts(self) -> tuple[int, int]:
        """Return how many answers and judgements are done or have failed, and of how many."""
        return sum(self.done.values()), sum(self.totals.values())

    def copy(self) -> BackgroundRun:
        """Return how far it is: a copy that the run does not change."""
        copied = copy(self)
        vars(copied).pop("shown", None)  # else each copy would keep the one before
        copied.done, copied.notes = dict(self.done), list(self.notes)
        return copied

    def start(self, asks: int, judgements: int) -> None:
        """Take the totals of the plan."""
        self.totals = {"asked": asks, "judged": judgements}
        self.is_planned = True

    def advance(self, kind: str, count: int) -> None:
        """Count finished calls."""
        self.done[kind] += count

    def note(self, message: str) -> None:
        """Keep a message for the user."""
        self.notes.append(message)

    def interruptible(self, stop: Callable[[], None]) -> None:
        """Take the function that stops the run; call it if the user has asked for that already."""
        with self._lock:
            self._stop = stop
            for _ in range(self.stops):
                stop()

    def interrupt(self) -> None:
        """Stop the run: calls in flight may finish; a second time, at once."""
        with self._lock:
            self.stops += 1
            if self._stop:
                self._stop()
