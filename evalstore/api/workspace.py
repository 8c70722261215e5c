"""The facade: one class with the commands as methods.

Each method calls the operation that the command of the same name calls, and returns its value.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Unpack

from evalstore.api import options
from evalstore.api.answers import Answer, answer_from
from evalstore.api.calls import outside_of_a_loop, system_errors
from evalstore.api.names import run_revision, session_id
from evalstore.api.options import RunSettings, SelectionKeywords, StrPath
from evalstore.api.progress import CallbackListener, Progress
from evalstore.errors import EvalstoreError
from evalstore.operations.progress import ProgressListener
from evalstore.planning.options import Location, SelectionOptions
from evalstore.results import Result
from evalstore.values import Json

if TYPE_CHECKING:
    from types import TracebackType

    from evalstore.operations.check import CheckReport
    from evalstore.operations.diff import Diff
    from evalstore.operations.fsck import FsckReport
    from evalstore.operations.grep import In, SearchHit
    from evalstore.operations.label import LabelReport
    from evalstore.operations.run_report import RunReport
    from evalstore.operations.stats import Stats
    from evalstore.operations.status_report import Status
    from evalstore.runs import Run


class Workspace:
    """A folder with `evalstore.yaml`, and its store.

    May be used by any number of threads at once: nothing is kept between two calls but where
    the workspace is, and each call reads the files and opens the store for itself, as a command
    does. Runs in several threads, or processes, share their work: what one of them asks the
    others do not.

    Every method raises `EvalstoreError`: `WorkspaceError` when files have errors, `StoreError`
    when the store cannot be used, `RevisionError` for a revision that names nothing and
    `NothingSelectedError` when no case is left.
    """

    def __init__(
        self,
        path: StrPath = ".",
        *,
        store: StrPath | None = None,
        config: StrPath | None = None,
        settings: Mapping[str, Json] | None = None,
        allow_outside: bool = False,
        on_warning: Callable[[str], object] | None = None,
    ) -> None:
        """Open the workspace that `path`, or a folder above it, is in.

        `store` takes the place of the settings' store, `config` that of `evalstore.yaml`, and
        `settings` that of single settings, by name with dots for what lies deeper
        (`{"concurrency": 4}`). `allow_outside` lets the workspace use files outside of it, and
        is remembered. `on_warning` is told what should be known of a store that can be used all
        the same. Raises `EvalstoreError` when there is no workspace, or its settings are wrong.
        """

        def warn(message: str) -> None:
            if on_warning is not None:
                on_warning(message)

        self._begin(
            Location(
                Path(path).absolute(),
                None if config is None else Path(config),
                None if store is None else os.fspath(store),
                allow_outside=allow_outside,
                overrides=options.overrides_of(settings),
                warn=warn,
            )
        )
        from evalstore.planning.open_project import open_workspace

        with self._use() as where:
            open_workspace(where)

    @classmethod
    def at(cls, location: Location) -> Workspace:
        """The workspace that a command is about; it is looked for when a method is called."""
        made = cls.__new__(cls)
        made._begin(location)
        return made

    def _begin(self, location: Location) -> None:
        self._location = location
        self._closed = False

    def __enter__(self) -> Workspace:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Refuse further calls; those of other threads that have begun go on to their end."""
        self._closed = True

    @property
    def root(self) -> Path:
        """The folder with `evalstore.yaml`."""
        from evalstore.workspace.settings import find_root

        return find_root(self.location.directory)

    @property
    def location(self) -> Location:
        """What operations take to find the workspace; raises `EvalstoreError` once it is closed."""
        if self._closed:
            raise EvalstoreError("the workspace is closed", hint="open another 'Workspace'")
        return self._location

    @contextmanager
    def _use(self) -> Iterator[Location]:
        """Where the workspace is, for one call; what the system refuses is an `EvalstoreError`."""
        where = self.location
        with system_errors():
            yield where

    # --- what is to do, and doing it

    def status(self, **selection: Unpack[SelectionKeywords]) -> Status:
        """What changed since the last run, what a run would do, why, and its price in USD.

        Calls no model. The options are those of `SelectionKeywords`, named as on the command line.
        """
        from evalstore.operations.status import status

        options.require_known("status", selection, SelectionKeywords.__optional_keys__)
        with self._use() as where:
            return status(where, options.selection_of(selection))

    def run(
        self,
        *,
        max_cost: float | None = None,
        yes: bool = False,
        on_progress: Callable[[Progress], object] | None = None,
        **settings: Unpack[RunSettings],
    ) -> RunReport:
        """Ask what has no answer, judge what has no verdict, record the run.

        Nobody is asked on a terminal: a run that is likely to cost more than the setting
        `confirmAbove` needs `max_cost` (USD, where it stops) or `yes=True`, and else raises
        `EvalstoreError` before anything is asked. Failed calls and the bound on the cost do not
        raise: `status`, `failures`, `gate` and `exit_code` of the report tell.

        `on_progress` is called with a `Progress` in the thread that runs; when it raises, calls in
        flight may finish, the run is recorded as interrupted, and the error is raised. The
        other options are those of `RunSettings`, named as on the command line.
        """
        options.require_known("run", settings, RunSettings.__optional_keys__)
        return self._carry_out(
            {**settings, "max_cost": max_cost, "yes": yes}, on_progress, judge_only=False
        )

    def judge(
        self,
        *,
        max_cost: float | None = None,
        yes: bool = False,
        on_progress: Callable[[Progress], object] | None = None,
        **settings: Unpack[RunSettings],
    ) -> RunReport:
        """Judge stored answers that have no verdict, as `run` does, and ask for no answer."""
        options.require_known("judge", settings, RunSettings.__optional_keys__)
        return self._carry_out(
            {**settings, "max_cost": max_cost, "yes": yes}, on_progress, judge_only=True
        )

    def _carry_out(
        self,
        given: Mapping[str, Json],
        on_progress: Callable[[Progress], object] | None,
        *,
        judge_only: bool,
    ) -> RunReport:
        from evalstore.operations.run import run

        wanted = options.selection_of(given)
        orders = options.run_options_of(given, judge_only=judge_only)
        listener = CallbackListener(on_progress) if on_progress else ProgressListener()
        with self._use() as where:
            report = outside_of_a_loop(lambda: run(where, wanted, orders, listener))
        if isinstance(listener, CallbackListener) and listener.error is not None:
            raise listener.error
        return report

    # --- what was found

    def runs(self, *, limit: int | None = None) -> list[Run]:
        """The runs, newest first; the newest `limit` of them."""
        from evalstore.operations.log import log

        with self._use() as where:
            return [entry.run for entry in log(where, limit=limit).entries]

    def results(self, run: Run | str = "@") -> list[Result]:
        """What each case came to in a run, by file and row: one `Result` for each candidate.

        `run` may be a revision: `@` for the newest, `@~1` for the one before, the start of an id.
        """
        from evalstore.planning.open_project import open_store
        from evalstore.store.results import read_results
        from evalstore.store.revisions import resolve_run

        with self._use() as where, open_store(where) as store:
            return read_results(store, resolve_run(store, run_revision(run)))

    def answer(self, result: Result | str, *, session: str | None = None) -> Answer:
        """The conversation that a result is about, what was said of it, and what it took.

        Of several attempts that of `session`, else the first. In place of a result the id of a
        session will do, or its start. Without an answer: what is asked, as the files are now.
        """
        from evalstore.operations.views.answer import question_of, session_of

        with self._use() as where:
            if isinstance(result, str):
                return answer_from(session_of(where, session_id(where, result)))
            if session is None and not result.sessions:
                return answer_from(question_of(where, result, None))
            return answer_from(session_of(where, session or result.sessions[0], result))

    def diff(
        self,
        was: Run | str | None = None,
        now: Run | str | None = None,
        *,
        paths: Iterable[StrPath] = (),
        models: Iterable[str] = (),
        answers: bool = False,
    ) -> Diff:
        """What broke, what was fixed and what was edited: two runs, or a run and the workspace.

        Without `now` the second side is the workspace as it is, without `was` the first is the
        newest run. `answers` reads the answers too, for `Diff.answer_diff`.
        """
        from evalstore.operations.diff import diff

        wanted = SelectionOptions(
            paths=options.texts("paths", paths), models=options.texts("models", models)
        )
        with self._use() as where:
            sides = (None if one is None else run_revision(one) for one in (was, now))
            return diff(where, *sides, wanted=wanted, answers=answers)

    def diff_models(
        self,
        was: str,
        now: str,
        *,
        run: Run | str | None = "@",
        paths: Iterable[StrPath] = (),
        answers: bool = False,
    ) -> Diff:
        """What the candidate `now` does worse and better than the candidate `was` in one run.

        `run=None` compares them in the workspace as it is.
        """
        from evalstore.operations.diff import diff_models

        wanted = SelectionOptions(paths=options.texts("paths", paths))
        revision = None if run is None else run_revision(run)
        with self._use() as where:
            return diff_models(where, revision, (was, now), wanted=wanted, answers=answers)

    def stats(
        self,
        run: Run | str = "@",
        *,
        by: Sequence[str] = ("model",),
        query: str | None = None,
        currency: str | None = None,
    ) -> Stats:
        """Pass rates with their 95 % intervals, costs and times of a run, by group.

        `by` are one or more of `model`, `prompt`, `tag` and `file`; `query` is the description
        of one of the settings' `analysisQueries`, and `currency` the code of a currency file, in
        place of USD.
        """
        from evalstore.operations.stats import stats

        names = options.texts("by", by)
        with self._use() as where:
            return stats(where, run_revision(run), names, query=query, currency=currency)

    def search(
        self, pattern: str, *, within: Literal["answers", "feedback", "tests"] | None = None
    ) -> list[SearchHit]:
        """The stored texts in which all words of a pattern are, by file and row.

        The last word may be the beginning of one; a phrase stands in quotation marks.
        """
        from evalstore.operations.grep import grep

        kinds: tuple[In, ...] = () if within is None else (within,)
        with self._use() as where:
            return grep(where, pattern, kinds)

    # --- what people say

    def label(
        self,
        case: str | Result | Sequence[Result],
        verdict: Literal["pass", "fail", "none"],
        *,
        note: str = "",
        by: str | None = None,
        models: Iterable[str] = (),
        prompt: str | None = None,
        every: bool = False,
        session: str | None = None,
    ) -> list[LabelReport]:
        """Append a person's verdict, which decides; `none` takes back what this person said.

        `case` is `PATH::row`, the id of a session, or results. Of several candidates `models`
        names one, of several system prompts `prompt` (by its name), and `every` labels all that
        is named; for results, `session` names one attempt. `by` is the person, else git's
        `user.name`. Raises `EvalstoreError` when there is no answer, or several are meant.
        """
        from evalstore.operations import label as labels

        if verdict not in ("pass", "fail", "none"):
            raise EvalstoreError(f"a label cannot be '{verdict}'", hint="it is pass, fail or none")
        with self._use() as where:
            if isinstance(case, str):
                chosen = options.texts("models", models)
                return labels.label(
                    where,
                    case,
                    verdict,
                    note=note,
                    person=by,
                    models=chosen,
                    prompt=prompt,
                    every=every,
                )
            results = [case] if isinstance(case, Result) else case
            return labels.label_results(
                where, results, verdict, note=note, person=by, session=session
            )

    # --- the workspace and the store

    def check(self, paths: Iterable[StrPath] = ()) -> CheckReport:
        """All problems of the files, errors and warnings; does not raise for them."""
        from evalstore.operations.check import check

        with self._use() as where:
            return check(where, options.texts("paths", paths))

    def fsck(self) -> FsckReport:
        """Compute every id of the store again; what is wrong is listed and not raised."""
        from evalstore.operations.fsck import fsck

        with self._use() as where:
            return fsck(where)

    def stamp(self) -> object:
        """A value that differs from the one before when anybody has written to the store.

        From the first call that has found the store on, its loss raises `StoreError`, and no
        other is made in its place.
        """
        from evalstore.operations.views.cases import stamp

        with self._use() as where:
            found = stamp(where)
        if found.is_there and not where.was_seen:
            self._location = replace(where, was_seen=True)
        return found
