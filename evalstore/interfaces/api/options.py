"""The keyword options of `Workspace`: names, bounds and meaning are those of the command line."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, TypedDict, get_args

from evalstore.core.errors import EvalstoreError
from evalstore.core.runs import Run
from evalstore.planning.options import FailOn, LaunchedBy, Location, RunOptions, SelectionOptions

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


BOUNDS: Mapping[str, tuple[float, float | None]] = {
    "attempts": (1, 10_000),
    "sample": (1, None),
    "limit": (1, None),
    "concurrency": (1, 1024),
    "timeout": (0.001, None),
    "retries": (0, 100),
    "threshold": (0, 1),
    "max_cost": (0, None),
    "max_time": (0, None),
    "workers": (1, 10_000),
}
"""The minimum and the maximum of each number, as on the command line."""

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
    from evalstore.planning.open_project import open_store
    from evalstore.store.revisions import resolve_run

    if run is None:
        return None
    if not isinstance(run, str):
        return run.id
    with open_store(location) as store:
        return resolve_run(store, run).id


def session_id(location: Location, text: str) -> str:
    """Return the full id of a session; raises `RevisionError` when the text names none."""
    from evalstore.core.display import kind_word
    from evalstore.core.errors import RevisionError
    from evalstore.planning.open_project import open_store
    from evalstore.store.revisions import resolve

    with open_store(location) as store:
        kind, id = resolve(store, text)
    if kind != "session":
        raise RevisionError(
            f"'{text}' is not an answer ({kind_word(kind)})", hint="a result lists its answers"
        )
    return id
