"""What the browser is fed with: the library's `Workspace`, and what only the browser reads.

That is tables and texts in the shape of its screens, read in bulk (`views`), a search that goes
on as somebody types, and runs that are planned, shown and agreed to first. All of it may be
called from any thread, and raises `EvalstoreError`. A test of a screen overrides a method.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from evalstore.api import Workspace

if TYPE_CHECKING:
    from pathlib import Path

    from evalstore.operations.diff import Diff
    from evalstore.operations.grep import Searcher
    from evalstore.operations.label import LabelReport
    from evalstore.operations.progress import ProgressListener
    from evalstore.operations.stats import Stats
    from evalstore.operations.status_report import Status
    from evalstore.operations.views.answer import AnswerView
    from evalstore.operations.views.cases import Cases, RunLine
    from evalstore.operations.views.interactive_run import (
        PlanPreview,
        RunEnd,
        RunRequest,
        VerdictChanges,
    )
    from evalstore.operations.views.test_history import Version
    from evalstore.planning.options import Location
    from evalstore.results import Result
    from evalstore.values import Word


class WorkspaceSource:
    """Where screens get what they show."""

    def __init__(
        self, location: Location, *, offline: bool = False, max_cost: float | None = None
    ) -> None:
        """Runs started from here are `offline` and cost at most `max_cost`, if it is given."""
        self.workspace = Workspace.at(location)
        self.offline = offline
        self.max_cost = max_cost
        self._searcher: Searcher | None = None

    @property
    def where(self) -> Location:
        """The workspace; once its store has been seen no other is made in its place."""
        return self.workspace.location

    def runs(self) -> list[RunLine]:
        """All runs, newest first."""
        from evalstore.operations.views import cases

        return cases.runs(self.where)

    def cases(self, revision: str | None) -> Cases:
        """The cases of a run, or of the workspace as it is now."""
        from evalstore.operations.views import cases

        return cases.cases(self.where, revision)

    def files(self) -> list[str]:
        """The test files of the workspace."""
        from evalstore.operations.views import cases

        return cases.test_files(self.where)

    def feedback(self, evaluations: Sequence[str]) -> dict[str, str]:
        """The feedback of these judgements by id."""
        from evalstore.operations.views import cases

        return cases.feedback(self.where, evaluations)

    def compare(self, was: str | None, now: str | None, models: tuple[str, str] | None) -> Diff:
        """A run with a run or the workspace, or with models two candidates of `now`."""
        if models:
            return self.workspace.diff_models(*models, run=now)
        return self.workspace.diff(was, now)

    def answers(self, sessions: Sequence[str]) -> dict[str, str]:
        """The last answers of these sessions by id."""
        from evalstore.operations import diff

        return diff.read_answers(self.where, sessions)

    def last_asked(self, tests: Sequence[str]) -> dict[str, str]:
        """The last thing that a user says in each of these test versions."""
        from evalstore.operations.views import answer

        return answer.last_asked(self.where, tests)

    def stats(self, run: str, groupings: Sequence[str]) -> list[Stats]:
        """The results of a run, added up in each of these ways."""
        from evalstore.operations.stats import read_stats

        return read_stats(self.where, run, [(name,) for name in groupings])

    def session(self, id: str, result: Result) -> AnswerView:
        """An answer of a case with all that belongs to it."""
        from evalstore.operations.views import answer

        return answer.session_of(self.where, id, result)

    def question(self, result: Result, run: str | None) -> AnswerView:
        """What is asked of a candidate that has not answered."""
        from evalstore.operations.views import answer

        return answer.question_of(self.where, result, run)

    def versions(self, file: str, row: str) -> list[Version]:
        """The versions of a test, newest first."""
        from evalstore.operations.views import test_history

        return test_history.versions_of(self.where, file, row)

    def search(
        self, words: Sequence[str], report: Callable[[int, int], bool]
    ) -> frozenset[str] | None:
        """The sessions in whose answer, feedback or test all words are, the last as a beginning.

        `report` is told how many texts are in the index, and of how many, and says whether to
        go on; None when it did not.
        """
        from evalstore.operations.grep import Searcher

        self._searcher = self._searcher or Searcher(self.where)
        return self._searcher.search(words, report)

    def stamp(self) -> object:
        """What differs when anybody has written to the store."""
        return self.workspace.stamp()

    # --- what a person does

    def label(
        self, results: Sequence[Result], verdict: Word, note: str, session: str | None
    ) -> list[LabelReport]:
        """Append a person's verdict on what these came to; with a session, on that alone.

        `none` takes back what this person has said.
        """
        from evalstore.operations import label

        return label.label_results(self.where, results, verdict, note=note, session=session)

    def note(self, result: Result, session: str | None) -> str:
        """The note of the label that this person has given to it; or empty."""
        from evalstore.operations import label

        return label.read_note(self.where, result, session)

    def status(self) -> Status:
        """What changed since the last run, what a run would do, why, and its price."""
        return self.workspace.status(offline=self.offline)

    def all_that_lacks(self) -> RunRequest:
        """To run what is missing."""
        from evalstore.operations.views import interactive_run

        return interactive_run.ALL

    def of_file(self, file: str) -> RunRequest:
        """To run what is missing of a test file."""
        from evalstore.operations.views import interactive_run

        return interactive_run.of_file(self.where, file)

    def again(self, results: Sequence[Result]) -> RunRequest:
        """To judge these again."""
        from evalstore.operations.views import interactive_run

        return interactive_run.again(self.where, results)

    def plan(self, intent: RunRequest) -> PlanPreview:
        """What would be done, why, and its price."""
        from evalstore.operations.views import interactive_run

        return interactive_run.plan(
            self.where, intent, offline=self.offline, max_cost=self.max_cost
        )

    def carry_out(
        self, intent: RunRequest, listener: ProgressListener, planned: PlanPreview
    ) -> RunEnd:
        """Do it, unless it is more than was planned by now; the watcher can stop it."""
        from evalstore.operations.views import interactive_run

        return interactive_run.carry_out(
            self.where, intent, listener, planned, offline=self.offline
        )

    def flips(self, run: str) -> VerdictChanges | None:
        """What broke and what was fixed since the run before, if there is one."""
        from evalstore.operations.views import interactive_run

        return interactive_run.flips(self.where, run)

    def path_of(self, file: str) -> Path:
        """Where a file of the workspace is."""
        from evalstore.operations.views import interactive_run

        return interactive_run.path_of(self.where, file)
