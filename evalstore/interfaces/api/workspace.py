"""The class `Workspace`: the commands as methods.

Each method calls the same operation as its command, and returns its value.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar, Unpack

from evalstore.core.display import as_text, safe
from evalstore.core.errors import EvalstoreError
from evalstore.core.runs import ProgressListener, Run
from evalstore.core.values import Json, Result
from evalstore.interfaces.api import result_reader
from evalstore.interfaces.api.result_reader import (
    ResultReader,
    RunSettings,
    SelectionKeywords,
    StrPath,
    any_revision,
    run_revision,
    system_errors,
)
from evalstore.results.names import shortened, show_answer
from evalstore.workspace.default_workspace import find_default_workspace

if TYPE_CHECKING:
    from evalstore.exchange.exports.formats import Format
    from evalstore.exchange.import_tests import ImportReport
    from evalstore.exchange.sync.fsck import FsckReport
    from evalstore.exchange.sync.pull import PullReport
    from evalstore.exchange.sync.push import PushReport
    from evalstore.exchange.sync.remotes import GarbageReport
    from evalstore.interfaces.html.report import WrittenReport
    from evalstore.planning.status_report import Status
    from evalstore.results.labels import LabelReport
    from evalstore.runs.judge_text import JudgedText
    from evalstore.runs.run_report import RunReport
    from evalstore.runs.workspace_checks.doctor import CheckReport


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a run."""

    asks: int = 0
    """Answers to get."""
    judgements: int = 0
    """Judgements to make, as planned."""
    asked: int = 0
    judged: int = 0
    failed: int = 0
    """Calls that failed."""
    usd: float = 0.0
    """The known cost of the calls so far."""
    note: str = ""
    """Something the user should read now; or empty."""


class CallbackListener(ProgressListener):
    """Calls a function with the progress of a run; never confirms a price.

    An exception of the function interrupts the run, and is kept in `error`.
    """

    def __init__(self, callback: Callable[[Progress], object]) -> None:
        self._callback = callback
        self._progress = Progress()
        self._interrupt: Callable[[], None] | None = None
        self.error: Exception | None = None

    def start(self, asks: int, judgements: int) -> None:
        """Report the numbers of the plan."""
        self._send(replace(self._progress, asks=asks, judgements=judgements))

    def advance(self, kind: str, count: int) -> None:
        """Report that `count` more calls are `asked`, `judged` or `failed`."""
        previous = getattr(self._progress, kind)
        self._send(replace(self._progress, **{kind: previous + count}))

    def note(self, message: str) -> None:
        """Report a message to the user."""
        self._send(self._progress, message)

    def interruptible(self, stop: Callable[[], None]) -> None:
        """Keep the function that stops the run."""
        self._interrupt = stop
        if self.error is not None:
            stop()

    def _send(self, progress: Progress, note: str = "") -> None:
        self._progress = replace(progress, usd=self.usd)
        if self.error is not None:
            return
        try:
            self._callback(replace(self._progress, note=note))
        except Exception as error:  # noqa: BLE001 - raised again when the run is recorded
            self.error = error
            if self._interrupt is not None:
                self._interrupt()


_T = TypeVar("_T")


class Workspace(ResultReader):
    """A folder with `evalstore.yaml`, and its store.

    It can be shared by threads: between calls it keeps only the location, and each call reads
    the files and opens the store, as a command does. Runs in several threads or processes share
    their work: a question that one of them asks is not asked by another.

    Every method raises `EvalstoreError`: `WorkspaceError` when files have errors, `StoreError`
    when the store cannot be used, `RevisionError` for a revision that names nothing and
    `NothingSelectedError` when no case is left.

    `remote` is the name of a remote of `evalstore.yaml`; None is `origin`, or the only one. For
    `push` and `pull` it can be the path of a bundle, and for `pull` another store. A path is
    relative to the folder that the workspace was opened with. Every row is checked before it is
    stored.
    """

    # --- reports and exports of the results of a run, or of the workspace as it is now

    def report(
        self, file: StrPath, run: Run | str | None = None, *, compare: Run | str | None = None
    ) -> WrittenReport:
        """Write the results of the workspace (None), or of a run, as one HTML file.

        The file needs no network. It is compared with `compare`, else with the previous run.
        A file that exists is replaced only if it is a report.
        """
        from evalstore.interfaces.html.report import write_report

        with self._use() as location:
            path, other = str(Path(file).absolute()), run_revision(compare)
            return write_report(location, any_revision(run), path, compare=other)

    def report_markdown(self, run: Run | str = "@", *, compare: Run | str | None = None) -> str:
        """Return what a run broke and why, whether that may be chance, and its cost, as Markdown.

        It is compared with `compare`, else with the previous run. Texts of models are code in it.
        """
        from evalstore.exchange.markdown_report import markdown_report

        with self._use() as location:
            return markdown_report(location, any_revision(run), run_revision(compare))

    def export(
        self, file: StrPath, run: Run | str | None = "@", *, format: Format | None = None
    ) -> None:
        """Write the results of a run, or of the workspace (None), for other programs.

        They are the rows of `to_rows`. A file that exists is replaced. The format follows from the
        suffix, such as `.csv`, unless it is named. A format of several files, such as `inspect`,
        writes a new folder. Raises `EvalstoreError` for Parquet without pyarrow.
        """
        from evalstore.exchange.export import write_exports

        with self._use() as location:
            write_exports(location, any_revision(run), [Path(file).absolute()], format)

    # --- remotes, bundles and other stores

    def push(
        self,
        remote: str | None = None,
        *,
        since: str | None = None,
        exclude_tags: Iterable[str] = (),
        with_failures: bool = False,
        allow_keys: bool = False,
        dry_run: bool = False,
    ) -> PushReport:
        """Copy to a remote what it does not have.

        With `since`, a revision, only the runs after it. Raises `EvalstoreError` when there are
        keys in what would be pushed, unless `allow_keys`.
        """
        from evalstore.exchange.sync.push import push

        with self._use() as location:
            return push(
                location,
                remote,
                since=since,
                exclude_tags=result_reader.texts("exclude_tags", exclude_tags),
                with_failures=with_failures,
                allow_keys=allow_keys,
                dry_run=dry_run,
            )

    def pull(self, remote: str | None = None, *, dry_run: bool = False) -> PullReport:
        """Copy from a remote what the store does not have."""
        from evalstore.exchange.sync.pull import pull

        with self._use() as location:
            return pull(location, remote, dry_run=dry_run)

    def pull_for_plan(
        self, remote: str | None = None, **selection: Unpack[SelectionKeywords]
    ) -> PullReport:
        """Copy only the answers and judgements that a run with this selection would ask for.

        Without a selection, also the newest run, which tells what broke.
        """
        from evalstore.exchange.sync.pull import pull_for_plan

        result_reader.require_known("pull_for_plan", selection, SelectionKeywords.__optional_keys__)
        with self._use() as location:
            return pull_for_plan(location, remote, result_reader.selection_of(selection))

    def collect_garbage(
        self, remote: str | None = None, *, grace: str | None = None, dry_run: bool = False
    ) -> GarbageReport:
        """Compact the small pushes of a remote, and delete its files that are no longer needed.

        Files stay as long as `grace` says (default: `14d`) after they were replaced. All rows stay.
        """
        from evalstore.exchange.sync.remotes import collect_remote_garbage

        with self._use() as location:
            return collect_remote_garbage(location, remote, grace=grace, dry_run=dry_run)

    # --- running

    def status(self, **selection: Unpack[SelectionKeywords]) -> Status:
        """Return what changed since the last run, what a run would do, why, and its price in USD.

        Calls no model. The options are those of `SelectionKeywords`, named as on the command line.
        """
        from evalstore.runs.status.status import status

        result_reader.require_known("status", selection, SelectionKeywords.__optional_keys__)
        with self._use() as location:
            return status(location, result_reader.selection_of(selection))

    def run(
        self,
        *,
        max_cost: float | None = None,
        yes: bool = False,
        on_progress: Callable[[Progress], object] | None = None,
        **settings: Unpack[RunSettings],
    ) -> RunReport:
        """Ask what is new, judge what is new, record the run.

        Nobody is asked on a terminal: a run that is likely to cost more than the setting
        `confirmAbove` needs `max_cost` (USD, where it stops) or `yes=True`, and else raises
        `EvalstoreError` before anything is asked. Failed calls and the bound on the cost do not
        raise: see `status`, `failures`, `gate` and `exit_code` of the report.

        `on_progress` is called with a `Progress` in the thread that runs; when it raises, calls in
        flight may finish, the run is recorded as interrupted, and the error is raised. The
        other options are those of `RunSettings`, named as on the command line.
        """
        return self._carry_out("run", settings, max_cost, yes, on_progress)

    def judge(
        self,
        *,
        max_cost: float | None = None,
        yes: bool = False,
        on_progress: Callable[[Progress], object] | None = None,
        **settings: Unpack[RunSettings],
    ) -> RunReport:
        """Judge stored answers that have no verdict, as `run` does, and ask for no answer."""
        return self._carry_out("judge", settings, max_cost, yes, on_progress)

    def judge_text(
        self,
        answer: Json,
        instructions: str = "",
        *,
        question: str = "",
        checks: Iterable[Json] = (),
        evaluators: Iterable[str] = (),
        max_cost: float | None = None,
        yes: bool = False,
        offline: bool = False,
        refresh: bool = False,
    ) -> JudgedText:
        """Judge a text by checks and by the evaluators of the workspace, as `evalstore.check`.

        No verdict raises; `EvalstoreError` is raised when there is none. The text and its verdict
        are stored, and neither is in a run.
        """
        from evalstore.runs.judge_text import TextToJudge, judge_text

        text = TextToJudge(answer, instructions, question, tuple(checks))
        named = {"evaluators": evaluators, "offline": offline, "refresh": refresh}
        selection = result_reader.selection_of(named)
        run_options = result_reader.run_options_of(
            {"max_cost": max_cost, "yes": yes}, judge_only=True
        )
        listener = ProgressListener()
        with self._use() as location:
            return outside_of_a_loop(
                lambda: judge_text(location, text, selection, run_options, listener)
            )

    def _carry_out(
        self,
        method: str,
        settings: RunSettings,
        max_cost: float | None,
        yes: bool,
        on_progress: Callable[[Progress], object] | None,
    ) -> RunReport:
        from evalstore.runs.run import run

        result_reader.require_known(method, settings, RunSettings.__optional_keys__)
        selection = result_reader.selection_of(settings)
        named = {**settings, "max_cost": max_cost, "yes": yes}
        run_options = result_reader.run_options_of(named, judge_only=method == "judge")
        listener = CallbackListener(on_progress) if on_progress else ProgressListener()
        with self._use() as location:
            report = outside_of_a_loop(lambda: run(location, selection, run_options, listener))
        if isinstance(listener, CallbackListener) and listener.error is not None:
            raise listener.error
        return report

    # --- labelling

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
        """Append a person's verdict, which overrules checks and judges; `none` withdraws it.

        `case` is `PATH::row`, the id of a session, or results. Of several candidates `models`
        names one, of several system prompts `prompt` (by its name), and `every` labels all that
        is named; for results, `session` names one attempt. `by` is the person, else git's
        `user.name`. Raises `EvalstoreError` when there is no answer, or several are meant.
        """
        from evalstore.results import labels

        if verdict not in ("pass", "fail", "none"):
            raise EvalstoreError(f"a label cannot be '{verdict}'", hint="it is pass, fail or none")
        with self._use() as location:
            if isinstance(case, str):
                return labels.label(
                    location,
                    case,
                    verdict,
                    note=note,
                    person=by,
                    models=result_reader.texts("models", models),
                    prompt=prompt,
                    every=every,
                )
            results = [case] if isinstance(case, Result) else case
            return labels.label_results(
                location, results, verdict, note=note, person=by, session=session
            )

    # --- the workspace and the store

    def check(self, paths: Iterable[StrPath] = ()) -> CheckReport:
        """Check all files and return their errors and warnings, which are not raised."""
        from evalstore.runs.workspace_checks.doctor import check

        with self._use() as location:
            return check(location, result_reader.texts("paths", paths))

    def fsck(self) -> FsckReport:
        """Verify every id in the store; problems are listed, not raised."""
        from evalstore.exchange.sync.fsck import fsck

        with self._use() as location:
            return fsck(location)

    def stamp(self) -> object:
        """Return a value that changes whenever the store is written to.

        Once a call has found the store, its loss raises `StoreError`; no new one is created.
        """
        from evalstore.results.table.cases import store_stamp

        with self._use() as location:
            current = store_stamp(location)
        if current.is_there and not location.was_seen:
            self._location = replace(location, was_seen=True)
        return current


# --- creates a workspace, and imports the tests of another system


def init(
    path: StrPath = ".",
    *,
    example: bool = False,
    store: StrPath | None = None,
    allow_outside: bool = False,
) -> Workspace:
    """Create a workspace and its store, and open it; existing files are not changed.

    With `example` it has tests, models and prompts that run offline.
    """
    from evalstore.exchange.init import init as operation

    text = None if store is None else os.fspath(store)
    with system_errors():
        operation(Path(path).absolute(), example=example, store=text, allow_outside=allow_outside)
    return Workspace(path, store=store, allow_outside=allow_outside)


def import_tests(
    format: str,
    paths: Iterable[StrPath],
    *,
    into: Workspace | StrPath = ".",
    folder: str | None = None,
    sessions: bool = False,
    force: bool = False,
    dry_run: bool = False,
) -> ImportReport:
    """Write test files for the tests of another system, without running its code.

    `folder` is a folder below that of the tests, by default named after the source; `sessions`
    imports recorded answers and verdicts too; `force` overwrites files that were edited;
    `dry_run` writes nothing. Raises `EvalstoreError` for an unknown format or missing files.
    """
    from evalstore.exchange.import_tests import import_files

    workspace = into if isinstance(into, Workspace) else Workspace(into)
    sources = [Path(path).absolute() for path in result_reader.texts("paths", paths)]
    location = workspace.location
    with system_errors():
        return import_files(
            location, format, sources, into=folder, sessions=sessions, force=force, dry_run=dry_run
        )


# --- converts what methods return to the JSON that their commands print


def to_json(value: object) -> Json:
    """Return the JSON that the command of a method prints with `--json`.

    Its lists are in memory, also those that a command prints while they are read.
    """
    from evalstore.files import json_output

    return json_output.read_whole(json_output.to_json(value))


def outside_of_a_loop(call: Callable[[], _T]) -> _T:
    """Make a call that runs an event loop, from inside another one too; return its result.

    A notebook has one in its thread: there the call is made in a thread of its own.
    """
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

    is_inside = False
    with suppress(RuntimeError):
        is_inside = bool(asyncio.get_running_loop())
    if not is_inside:
        return call()
    with ThreadPoolExecutor(1, "evalstore") as executor:
        return executor.submit(call).result()


@dataclass
class CheckCounts:
    """The calls of `check` in this process."""

    checks: int = 0
    judged: int = 0
    """Judgements that were made."""
    usd: float = 0.0
    """The known cost of these judgements."""


COUNTS = CheckCounts()


def check(
    answer: Json,
    instructions: str = "",
    *,
    question: str = "",
    checks: Iterable[Json] = (),
    workspace: Workspace | StrPath | None = None,
    evaluators: Iterable[str] = (),
    max_cost: float | None = None,
    offline: bool = False,
    refresh: bool = False,
) -> JudgedText:
    """Assert that a text passes checks and the judges of a workspace; returns the judgements.

    `instructions` are for the evaluators of the workspace, or for those that `evaluators` names.
    `checks` are those of a test file, such as `{"contains": "Paris"}`; they come first, and models
    judge only what passes them. `question` is what the text answers, for judges that are shown it.
    Without `workspace` it is the one that the current folder is in.

    The verdict is stored, and the same text with the same criteria is not judged again, except
    with `refresh`. Raises `AssertionError` when the text does not pass, and `EvalstoreError` when
    it cannot be judged.
    """
    __tracebackhide__ = True
    if not isinstance(workspace, Workspace):
        workspace = Workspace(workspace or find_default_workspace())
    judged = workspace.judge_text(
        answer,
        instructions,
        question=question,
        checks=checks,
        evaluators=evaluators,
        max_cost=max_cost,
        offline=offline,
        refresh=refresh,
    )
    COUNTS.checks += 1
    COUNTS.judged += judged.judged
    COUNTS.usd += judged.cost or 0.0
    if judged.verdict != "pass":
        raise AssertionError(_explain(answer, instructions, judged, workspace.root))
    return judged


def _explain(answer: Json, instructions: str, judged: JudgedText, folder: Path) -> str:
    """Return why a text does not pass: the text, the instructions and the feedback, as lines.

    `folder` is that of the workspace.
    """
    lines = [f"the verdict is '{judged.verdict}'", f"answer: {shortened(as_text(answer))}"]
    if instructions.strip():
        lines.append(f"instructions: {shortened(instructions.strip())}")
    for judgement in judged.judgements:
        failed = [check for check in judgement.checks if check.verdict != "pass"]
        texts = [f"{check.name}: {check.feedback}" for check in failed]
        for text in texts or ([judgement.feedback] if judgement.feedback else []):
            lines.append(f"{safe(judgement.by)}: {shortened(text)}")
        if not (texts or judgement.feedback) and judgement.verdict != "pass":
            lines.append(f"{safe(judgement.by)}: {judgement.verdict}, without feedback")
    return "\n".join([*lines, f"({show_answer(judged.session, folder, Path.cwd())})"])
