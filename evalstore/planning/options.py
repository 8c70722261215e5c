"""The options of commands: location, selection and run options. Imports nothing slow."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Container, Hashable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from evalstore.core.values import Json

if TYPE_CHECKING:
    from evalstore.core.runs import Run

FailOn = Literal["failure", "regression", "undecided", "error", "none"]
LaunchedBy = Literal["processes", "dask"]
"""What starts further runners of a run."""
Kind = Literal[
    "tests",
    "cases",
    "models",
    "evaluators",
    "prompts",
    "tools",
    "schemas",
    "tags",
    "labels",
    "results",
    "runs",
    "checks",
]
"""What can be listed."""


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
"""The minimum and the maximum of each number of the options of a selection and of a run."""


@dataclass(frozen=True, slots=True)
class Location:
    """The workspace and the store of a command."""

    directory: Path
    config: Path | None = None
    store: str | None = None
    """The path of the store in place of that of the settings."""
    was_seen: bool = False
    """Whether the store was open before; if it is gone, no other one is created."""
    allow_outside: bool = False
    """Whether the workspace, or an import, may use files outside itself."""
    overrides: tuple[str, ...] = ()
    """Settings for this command, of the form `KEY=VALUE`."""
    keys_folder: Path | None = None
    """The folder whose `.env` files hold the keys; None for that of the workspace."""
    warn: Callable[[str], None] = lambda _message: None
    """Called with warnings about a store that can still be used."""


@dataclass(frozen=True, slots=True)
class SelectionOptions:
    """The options by which a command line selects and overrides."""

    paths: tuple[str, ...] = ()
    """`PATH` or `PATH::row`, relative to the current directory."""
    tags: tuple[str, ...] = ()
    exclude_tags: tuple[str, ...] = ()
    name: str | None = None
    models: tuple[str, ...] = ()
    evaluators: tuple[str, ...] = ()
    attempts: int | None = None
    changed: bool = False
    """Only cases that have changed since the newest run."""
    last_failed: bool = False
    """Only cells that did not pass in the newest run that has them."""
    sample: int | None = None
    seed: int | None = None
    shard: str | None = None
    """`i/n`"""
    limit: int | None = None
    refresh: bool = False
    """Stored answers do not count; with `--judge-only`, stored judgements."""
    max_age: str | None = None
    """Older answers do not count; with `--judge-only`, older judgements."""
    retry_errors: bool = False
    """Only failed calls and undecided judgements."""
    offline: bool = False
    """Nothing that needs the network."""
    keep_going: bool = False
    """Leave out test files that have errors."""

    @property
    def narrows(self) -> bool:
        """Return whether some cases may be left out."""
        return replace(self, models=(), evaluators=(), attempts=None) != replace(
            SelectionOptions(),
            refresh=self.refresh,
            max_age=self.max_age,
            keep_going=self.keep_going,
        )


GO_ON = "'--keep-going' leaves out the files with errors"
"""The hint when only some test files have errors."""
_ALL_THE_SAME = ("refresh", "maxAge")
"""Stored options that leave a run complete."""
_ALL_CASES = (*_ALL_THE_SAME, "evaluators", "attempts", "offline")
"""Stored options that leave out no case."""
_OF_CASES = (
    *("paths", "tags", "excludeTags", "name", "changed"),
    *("sample", "seed", "shard", "limit"),
)
"""Stored options that select whole cases, and may select all of them."""


_OPTIONS = {
    "tags": "-t",
    "excludeTags": "--exclude-tag",
    "name": "-k",
    "models": "-m",
    "evaluators": "-J",
    "attempts": "-r",
    "changed": "--changed",
    "lastFailed": "--lf",
    "sample": "--sample",
    "seed": "--seed",
    "shard": "--shard",
    "limit": "--limit",
    "refresh": "--refresh",
    "maxAge": "--max-age",
    "retryErrors": "--retry-errors",
    "offline": "--offline",
    "keepGoing": "--keep-going",
}
"""From the name under which a run stores an option to the option."""


def is_partial(run: Run) -> bool:
    """Return whether a run left out some cases or candidates."""
    complete = (*_ALL_CASES, *_OF_CASES) if _has_all_cases(run) else _ALL_CASES
    return any(name not in complete for name in run.selection)


def is_chosen_by_verdict(selection: Mapping[str, Json]) -> bool:
    """Return whether a run has chosen its cases by their verdicts: undecided ones, too."""
    return bool(selection.get("lastFailed") or selection.get("retryErrors"))


def leaves_out_cases(run: Run) -> bool:
    """Return whether a run left out some cases; False for one of all cases by some candidates."""
    complete = (*_ALL_CASES, *_OF_CASES, "models")
    return not _has_all_cases(run) or any(name not in complete for name in run.selection)


def _has_all_cases(run: Run) -> bool:
    return run.cases is not None and run.cases.selected == run.cases.total


def describe_selection(selection: Mapping[str, Json]) -> str:
    """Return the options of a run as on its command line, if they are not the default ones."""
    return "" if all(name in _ALL_THE_SAME for name in selection) else selection_text(selection)


def selection_text(selection: Mapping[str, Json]) -> str:
    """Return the options of a run as on its command line; empty without any."""
    words = [shlex.quote(path) for path in selection.get("paths", ())]
    for name, value in selection.items():
        if name != "paths":
            values = value if isinstance(value, list) else [value]
            option = _OPTIONS.get(name, name)
            words += [
                option if item is True else f"{option} {shlex.quote(str(item))}" for item in values
            ]
    return " ".join(words)


@dataclass(frozen=True, slots=True)
class ApprovedPlan:
    """The plan of a run that a user has been shown."""

    asks: int
    judgements: int
    price: float | None
    """USD; None if a price is not known."""
    todo: Container[Hashable] = frozenset()
    """The items of the plan, as `Plan.todo` names them."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of a run."""

    concurrency: int | None = None
    """The most calls in flight at once, for each account."""
    timeout: float | None = None
    """Seconds for one call with all its tries."""
    retries: int | None = None
    threshold: float | None = None
    fail_on: FailOn = "failure"
    baseline: str | None = None
    """The revision of the run with which `fail_on="regression"` compares."""
    message: str | None = None
    judge_only: bool = False
    max_cost: float | None = None
    """USD"""
    max_time: float | None = None
    """Seconds"""
    yes: bool = False
    """Do not ask for confirmation of any cost."""
    agreed: ApprovedPlan | None = None
    """The plan that the user has approved; a run that would do more does nothing."""
    exit_first: bool = False
    """Stop at the first failing verdict of this run."""
    executor: LaunchedBy | None = None
    """What starts further runners, which take part in the run."""
    workers: int | None = None
    """How many are started."""
    scheduler: str | None = None
    """The address of the scheduler of dask; `local` starts one on this machine."""
