"""The methods of a workspace that read what runs have stored, and the options of all methods.

Names, bounds and meaning of these are those of the command line.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypedDict, Unpack, get_args

from evalstore.comparison.pair_groups import unpack_result
from evalstore.core.display import kind_word, money, short
from evalstore.core.errors import EvalstoreError, RevisionError
from evalstore.core.runs import Run
from evalstore.core.values import Json, Result
from evalstore.files.temporary_list import keep_values
from evalstore.planning.open_project import open_store, open_workspace
from evalstore.planning.options import (
    BOUNDS,
    FailOn,
    LaunchedBy,
    Location,
    RunOptions,
    SelectionOptions,
)
from evalstore.results.names import CaseReference, read_reference
from evalstore.workspace.settings.settings import find_root

if TYPE_CHECKING:
    from types import TracebackType

    import pyarrow

    from evalstore.results.answer.answer import SessionFacts, TurnView
    from evalstore.results.answer.judgements import Judgement
    from evalstore.results.answer.verdict_explanation import VerdictExplanation
    from evalstore.results.compare.diff_result import Diff
    from evalstore.results.grep import In, SearchHit
    from evalstore.results.stats.stats import JudgeTable, Stats

StrPath = str | os.PathLike[str]


class SelectionKeywords(TypedDict, total=False):
    """Which cases, models and answers a call is about, as `evalstore run --help` says."""

    paths: Iterable[StrPath]
    """`PATH` or `PATH::row`, relative to the folder the workspace was opened with."""
    tags: Iterable[str]
    exclude_tags: Iterable[str]
    name: str | None
    models: Iterable[str]
    evaluators: Iterable[str]
    attempts: int | None
    changed: bool
    last_failed: bool
    sample: int | None
    seed: int | None
    shard: str | None
    """`i/n`"""
    limit: int | None
    refresh: bool
    max_age: str | None
    retry_errors: bool
    offline: bool
    keep_going: bool


class ResultKeywords(TypedDict, total=False):
    """Which results a call is about, as `evalstore ls results --help` says."""

    paths: Iterable[StrPath]
    models: Iterable[str]
    tags: Iterable[str]
    exclude_tags: Iterable[str]
    name: str | None
    verdicts: Iterable[str]
    grep: str
    broke: bool
    since: str | None


class RunSettings(SelectionKeywords, total=False):
    """The options of a selection and of a run."""

    concurrency: int | None
    timeout: float | None
    """Seconds for one call with all its tries."""
    retries: int | None
    threshold: float | None
    """0..1"""
    fail_on: FailOn
    baseline: str | None
    """The run with which `fail_on="regression"` compares."""
    max_time: float | None
    """Seconds"""
    exit_first: bool
    message: str | None
    executor: LaunchedBy | None
    workers: int | None
    scheduler: str | None
    """The address of the scheduler of dask, or `local`."""


_SELECTION_DEFAULTS = {field.name: field.default for field in fields(SelectionOptions)}


def selection_of(keywords: Mapping[str, Any]) -> SelectionOptions:
    """Read the selection from keyword arguments; other arguments are ignored."""
    named = {name: value for name, value in keywords.items() if name in _SELECTION_DEFAULTS}
    _require_bounds(named)
    several = [name for name, default in _SELECTION_DEFAULTS.items() if isinstance(default, tuple)]
    named |= {name: texts(name, named[name]) for name in several if name in named}
    return SelectionOptions(**named)


def run_options_of(keywords: Mapping[str, Any], *, judge_only: bool) -> RunOptions:
    """Read the run options from keyword arguments; `max_cost` confirms spending up to it."""
    named = {name: value for name, value in keywords.items() if name not in _SELECTION_DEFAULTS}
    _require_bounds(named)
    if (fail_on := named.get("fail_on", "failure")) not in get_args(FailOn):
        hint = f"it can be {', '.join(get_args(FailOn))}"
        raise EvalstoreError(f"'fail_on' cannot be '{fail_on}'", hint=hint)
    if (executor := named.get("executor")) not in (None, *get_args(LaunchedBy)):
        hint = f"it can be {', '.join(get_args(LaunchedBy))}"
        raise EvalstoreError(f"'executor' cannot be '{executor}'", hint=hint)
    if message := named.get("message"):
        named["message"] = message.encode(errors="backslashreplace").decode()
    named["yes"] = bool(named.get("yes")) or named.get("max_cost") is not None
    return RunOptions(**named, judge_only=judge_only)


def require_known(method: str, keywords: Mapping[str, Any], known: frozenset[str]) -> None:
    """Raise `TypeError` for an unknown keyword argument, as Python does."""
    for name in sorted(keywords.keys() - known):
        raise TypeError(f"{method}() got an unexpected keyword argument '{name}'")


def texts(name: str, values: Iterable[StrPath]) -> tuple[str, ...]:
    """Convert texts or paths to texts; raises `EvalstoreError` for one text in place of a list."""
    if isinstance(values, str | os.PathLike):
        raise EvalstoreError(
            f"'{name}' is one text, and several are expected",
            hint=f"write {name}=[{os.fspath(values)!r}]",
        )
    return tuple(os.fspath(value) for value in values)


def _require_bounds(keywords: Mapping[str, Any]) -> None:
    for name, (least, most) in BOUNDS.items():
        value = keywords.get(name)
        if value is None or (value >= least and (most is None or value <= most)):
            continue
        words = f"at least {least:g}" if most is None else f"from {least:g} to {most:g}"
        raise EvalstoreError(f"'{name}' must be {words}, not {value!r}")


def run_revision(run: Run | str | None) -> str | None:
    """Return the revision of a run; None and a text are returned unchanged."""
    return run if run is None or isinstance(run, str) else run.id


def any_revision(run: Run | str | None) -> str:
    """Return the revision of a run; None stands for the workspace."""
    return "@work" if run is None else run if isinstance(run, str) else run.id


def run_id(location: Location, run: Run | str | None) -> str | None:
    """Return the full id of a run; None stands for the workspace. Raises `RevisionError`."""
    from evalstore.store.revisions import resolve_run

    if run is None:
        return None
    if not isinstance(run, str):
        return run.id
    with open_store(location) as store:
        return resolve_run(store, run).id


def session_id(location: Location, text: str) -> str:
    """Return the full id of a session; raises `RevisionError` when the text names none."""
    from evalstore.store.revisions import resolve

    with open_store(location) as store:
        kind, id = resolve(store, text)
    if kind != "session":
        raise RevisionError(
            f"'{text}' is not an answer ({kind_word(kind)})", hint="a result lists its answers"
        )
    return id


@contextmanager
def system_errors() -> Iterator[None]:
    """Raise an `OSError` as an `EvalstoreError`."""
    try:
        yield
    except OSError as error:
        name = "" if error.filename is None else f"'{error.filename}': "
        raise EvalstoreError(f"{name}{error.strerror or error}") from error


class OpenedWorkspace:
    """A workspace that has been opened, until it is closed."""

    _location: Location
    _closed = False

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

        `store` replaces the store of the settings, `config` replaces `evalstore.yaml`, and
        `settings` replaces single settings, by name with dots for nested ones
        (`{"concurrency": 4}`). `allow_outside` allows the workspace to use files outside it,
        and is remembered. `on_warning` is called with warnings about a store that can still be
        used. Raises `EvalstoreError` when there is no workspace, or its settings are wrong.
        """

        def warn(message: str) -> None:
            if on_warning is not None:
                on_warning(message)

        self._location = Location(
            Path(path).absolute(),
            None if config is None else Path(config),
            None if store is None else os.fspath(store),
            allow_outside=allow_outside,
            overrides=tuple(
                f"{name}={json.dumps(value, ensure_ascii=False)}"
                for name, value in (settings or {}).items()
            ),
            warn=warn,
        )
        with self._use() as location:
            open_workspace(location)

    @classmethod
    def at(cls, location: Location) -> Self:
        """Return a workspace at a location, which is opened when a method is called."""
        workspace = cls.__new__(cls)
        workspace._location = location
        return workspace

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Refuse further calls; calls that other threads have begun are finished."""
        self._closed = True

    @property
    def root(self) -> Path:
        """Return the folder with `evalstore.yaml`."""
        return find_root(self.location.directory)

    @property
    def location(self) -> Location:
        """Return the location of the workspace; raises `EvalstoreError` when it is closed."""
        if self._closed:
            raise EvalstoreError("the workspace is closed", hint="open another 'Workspace'")
        return self._location

    @contextmanager
    def _use(self) -> Iterator[Location]:
        """Lend the location to one call; an `OSError` is raised as an `EvalstoreError`."""
        location = self.location
        with system_errors():
            yield location


class ResultReader(OpenedWorkspace):
    """Runs, results and answers, and what is computed from them; writes nothing."""

    def runs(self, *, limit: int | None = None) -> list[Run]:
        """List the runs, newest first; at most `limit` of them."""
        from evalstore.results.log.log import log

        with self._use() as location:
            return [entry.run for entry in log(location, limit=limit).entries]

    def results(
        self, run: Run | str | None = "@", **wanted: Unpack[ResultKeywords]
    ) -> Sequence[Result]:
        """Return the results of a run, by file and row: one `Result` for each case and candidate.

        `run` may be a revision: `@` for the newest, `@~1` for the previous one, the start of an id;
        None is the workspace. Only those that are `wanted`, as `evalstore ls results` names them:
        `results(models=["gpt"], tags=["refunds"], verdicts=["fail"])`.
        More than 10,000 are in a temporary file and are read when they are needed.
        """
        from evalstore.results.table.cases import ResultFilter, find_filtered

        require_known("results", wanted, ResultKeywords.__optional_keys__)
        lists = {"paths", "models", "tags", "exclude_tags", "verdicts"}
        named: dict[str, Any] = {**wanted}
        named |= {name: texts(name, named[name]) for name in lists & named.keys()}
        with (
            self._use() as location,
            find_filtered(location, any_revision(run), ResultFilter(**named)) as (_, found),
        ):
            return keep_values(found.results(), tuple, unpack_result)

    def to_rows(self, run: Run | str | None = "@") -> Sequence[dict[str, Json]]:
        """Return the results of a run, or of the workspace (None), as plain dictionaries.

        Their keys are the columns of `evalstore export`, in the same order: `pandas.DataFrame`
        and `polars.DataFrame` take them as they are. More than 10,000 are in a temporary file:
        each time that one is read it is another dictionary.
        """
        from evalstore.exchange.export import open_export

        with self._use() as location, open_export(location, any_revision(run)) as export:
            return keep_values(export.rows, lambda row: row, lambda row: row)

    def to_arrow(self, run: Run | str | None = "@") -> pyarrow.Table:
        """Return the rows of `to_rows` as a `pyarrow.Table`, with the types of the columns.

        Raises `EvalstoreError` when pyarrow is not installed (`evalstore[parquet]`).
        """
        from evalstore.exchange.export import open_export
        from evalstore.exchange.exports.parquet import read_table

        with self._use() as location, open_export(location, any_revision(run)) as export:
            return read_table(export)

    def answer(self, result: Result | str, *, session: str | None = None) -> Answer:
        """Return the conversation of a result, with its judgements, tokens, cost and latency.

        Of several attempts, that of `session`, else the first. The id of a session, or its start,
        can be passed in place of a result. Without an answer: what the files would ask now.
        """
        from evalstore.results.answer.answer import question_of, session_of

        with self._use() as location:
            if isinstance(result, str):
                view = session_of(location, session_id(location, result))
            elif session is None and not result.sessions:
                view = question_of(location, result, None)
            else:
                view = session_of(location, session or result.sessions[0], result)
        return Answer(
            *(view.id, view.file, view.row, view.answer),
            *(view.conversation, view.judgements, view.failures, view.facts),
        )

    def explain(
        self,
        case: Result | str,
        run: Run | str | None = "@",
        *,
        session: str | None = None,
        model: str | None = None,
        prompt: str | None = None,
    ) -> VerdictExplanation:
        """Explain the verdict on a case: where the answer differs, since when, what changed then.

        `case` is a result of `run` (None: of the workspace), of which `session` names an attempt.
        Or it is `FILE::ROW`, as for `show`: then `model` names a candidate and `prompt` a system
        prompt, else the result that failed is explained; without a revision before it, that of
        the newest run that has one.
        """
        from evalstore.results.answer.verdict_explanation import explain_result
        from evalstore.results.show.shown_item import explain_case

        with self._use() as location:
            if isinstance(case, str):
                reference = read_reference(case) or CaseReference(case)
                return explain_case(location, reference, model, prompt)
            return explain_result(location, case, run_id(location, run), session=session)

    def diff(
        self,
        was: Run | str | None = None,
        now: Run | str | None = None,
        *,
        paths: Iterable[StrPath] = (),
        models: Iterable[str] = (),
        answers: bool = False,
    ) -> Diff:
        """Compare two runs, or a run with the workspace: what broke, was fixed or was edited.

        Without `now` the second side is the workspace as it is, without `was` the first is the
        newest run. `answers` reads the answers too, for `Diff.answer_diff`.
        """
        from evalstore.results.compare.diff import diff

        selection = SelectionOptions(paths=texts("paths", paths), models=texts("models", models))
        with self._use() as location:
            sides = map(run_revision, (was, now))
            return diff(
                location, *sides, selection=selection, answers=answers, lists_unchanged=True
            )

    def diff_models(
        self,
        was: str,
        now: str,
        *,
        run: Run | str | None = None,
        paths: Iterable[StrPath] = (),
        answers: bool = False,
    ) -> Diff:
        """Compare two candidates in the workspace as it is, or in a run.

        The result is what `now` does worse and better than `was`.
        """
        from evalstore.results.compare.diff import diff_models

        selection = SelectionOptions(paths=texts("paths", paths))
        revision = run_revision(run)
        with self._use() as location:
            return diff_models(location, revision, (was, now), selection=selection, answers=answers)

    def diff_prompts(
        self,
        was: str,
        now: str,
        *,
        run: Run | str | None = None,
        models: Iterable[str] = (),
        paths: Iterable[StrPath] = (),
        answers: bool = False,
    ) -> Diff:
        """Compare two system prompts in the workspace as it is, or in a run.

        The result is what `now` does worse and better than `was`. The answers of each candidate are
        compared, or those of some `models`.
        """
        from evalstore.results.compare.diff import diff_prompts

        selection = SelectionOptions(paths=texts("paths", paths), models=texts("models", models))
        revision = run_revision(run)
        with self._use() as location:
            return diff_prompts(
                location, revision, (was, now), selection=selection, answers=answers
            )

    def stats(
        self,
        run: Run | str | None = None,
        *,
        by: Sequence[str] = ("model",),
        query: str | None = None,
        currency: str | None = None,
    ) -> Stats:
        """Return pass rates with their 95 % intervals, costs and times by group.

        They are those of the workspace as it is, or of a run.

        `by` are one or more of `model`, `prompt`, `tag` and `file`; `query` is the description
        of one of the settings' `analysisQueries`, and `currency` the code of a currency file, in
        place of USD.
        """
        from evalstore.results.stats.stats import stats

        names = texts("by", by)
        with self._use() as location:
            return stats(location, any_revision(run), names, query=query, currency=currency)

    def judges(self, run: Run | str | None = None) -> JudgeTable:
        """Return how each judge agrees with people, and with the other judges.

        It is about the workspace as it is, or a run, as `evalstore stats --by judge`.
        """
        from evalstore.results.stats.stats import judge_stats

        with self._use() as location:
            return judge_stats(location, any_revision(run))

    def search(
        self, pattern: str, *, within: Literal["answers", "feedback", "tests"] | None = None
    ) -> Sequence[SearchHit]:
        """Search the store for texts that contain all words of a pattern; by file and row.

        The last word may be the beginning of one; put a phrase in quotation marks. More than
        10,000 texts are in a temporary file and are read when they are needed.
        """
        from evalstore.results.grep import iterate_hits

        kinds: tuple[In, ...] = () if within is None else (within,)
        with self._use() as location:
            hits = (found.hit for found in iterate_hits(location, pattern, kinds))
            return keep_values(hits, _PACK_HIT, _unpack_hit)


# --- keeps what methods return that may be long: a list, or a sequence in a temporary file


_PACK_HIT = attrgetter("kind", "id", "file", "row", "models", "sessions", "context", "matches")


def _unpack_hit(values: Sequence[Any]) -> SearchHit:
    from evalstore.results.grep import SearchHit

    kind, id, file, row, models, sessions, context, matches = values
    spans = tuple((start, end) for start, end in matches)
    return SearchHit(kind, id, file, row, tuple(models), tuple(sessions), context, spans)


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with its conversation and judgements; without an answer, what would be asked."""

    session: str | None
    """Id; None without an answer."""
    file: str
    row: str
    text: str
    """The last answer, JSON indented; empty when there is none."""
    conversation: tuple[TurnView, ...]
    """`role`, `text` and `name` of each turn after the system prompt, with `answer` where the
    candidate speaks."""
    judgements: tuple[Judgement, ...]
    """Those that count first, then the newest."""
    failures: tuple[str, ...]
    """Why an answer or a judgement is missing, newest first."""
    facts: SessionFacts | None
    """Tokens, cost (USD), latency (seconds), temperature and more; None without an answer."""

    def _repr_html_(self) -> str:
        """Return the answer as notebooks show it: the conversation, and its judgements."""
        from evalstore.core.notebook_tables import block, line, long_text, strong, table, word

        facts = self.facts
        measured = f"{money(facts.cost)} · {facts.latency:.2f} s" if facts else "no answer"
        return block(
            line(
                strong(f"{self.file} [{self.row}]" if self.row else self.file),
                f"· answer {short(self.session)}" if self.session else "",
                f"· {measured}",
            ),
            table(
                ["turn", "text"],
                [(f"{turn.role} {turn.name}".strip(), turn.text) for turn in self.conversation],
            ),
            table(
                ["judged by", "verdict", "feedback"],
                [
                    (
                        judgement.by,
                        word(judgement.verdict),
                        judgement.why_not or judgement.feedback,
                    )
                    for judgement in self.judgements
                ],
            ),
            *(long_text(failure) for failure in self.failures),
        )
