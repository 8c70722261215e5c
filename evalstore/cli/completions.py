"""The values that a shell completes: test files and rows, models, tags, runs, checks and more.

A folder without a workspace, or one with errors, has none: a shell shows no message.
"""

from __future__ import annotations

import itertools
import os
import shlex
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalstore.errors import EvalstoreError

if TYPE_CHECKING:
    from evalstore.planning.options import Location

_MOST_RUN_IDS = 50
"""The newest runs that are offered."""


def places(ctx: Any, incomplete: str) -> list[str]:
    """Complete test files; after `::`, the rows of the file."""
    from evalstore.planning.path_targets import split_case

    path, typed = split_case(incomplete)
    rows = _rows(ctx, "cases")
    names = (
        [f"{path}::{row['row']}" for row in rows if row["file"] == path and row["row"]]
        if typed is not None
        else list(dict.fromkeys(row["file"] for row in rows))
    )
    return _starting(names, incomplete)


def models(ctx: Any, incomplete: str) -> list[str]:
    """Complete ids of models."""
    return _starting([row["model"] for row in _rows(ctx, "models")], incomplete)


def tags(ctx: Any, incomplete: str) -> list[str]:
    """Complete tags of cases."""
    return _starting([row["tag"] for row in _rows(ctx, "tags")], incomplete)


def runs(ctx: Any, incomplete: str) -> list[str]:
    """Complete runs: `@`, `@~1`, `@work`, the ids of the newest, and the runs of remotes."""
    if "/" in incomplete:
        return _starting(_runs_of_remote(ctx, incomplete.partition("/")[0]), incomplete)
    ids = [row["run"][:8] for row in _rows(ctx, "runs")[:_MOST_RUN_IDS]]
    newest = [f"{name}/@" for name in remotes(ctx, "")]
    return _starting(["@", "@~1", "@work", *ids, *newest], incomplete)


def _runs_of_remote(ctx: Any, remote: str) -> list[str]:
    from evalstore.planning.open_project import open_workspace
    from evalstore.sharing.known_runs import find_known_runs

    with suppress(EvalstoreError, OSError):
        ids = find_known_runs(open_workspace(_location(ctx)), remote)[:_MOST_RUN_IDS]
        return [f"{remote}/{name}" for name in ("@", "@~1", *(id[:8] for id in ids))]
    return []


def revisions_and_places(ctx: Any, incomplete: str) -> list[str]:
    """Complete runs, test files, and after `::` the rows of a file."""
    return [*runs(ctx, incomplete), *places(ctx, incomplete)]


def checks(incomplete: str) -> list[str]:
    """Complete types of checks."""
    from evalstore.checks.registry import known_kinds

    return _starting(sorted(known_kinds()), incomplete)


def schemas(incomplete: str) -> list[str]:
    """Complete the kinds of files that have a JSON Schema."""
    from evalstore.operations.schemas import schema_titles

    return _starting(list(schema_titles()), incomplete)


def remotes(ctx: Any, incomplete: str) -> list[str]:
    """Complete names of remotes."""
    from evalstore.operations.remotes import list_remotes

    with suppress(EvalstoreError, OSError):
        return _starting([remote.name for remote in list_remotes(_location(ctx))], incomplete)
    return []


def groups(incomplete: str) -> list[str]:
    """Complete the dimensions of statistics; after a comma, the remaining ones."""
    from evalstore.operations.stats import DIMENSIONS

    before, comma, _ = incomplete.rpartition(",")
    names = [name for name in DIMENSIONS if name not in before.split(",")]
    return _starting([f"{before}{comma}{name}" for name in names], incomplete)


def _rows(ctx: Any, kind: str) -> list[dict[str, Any]]:
    from evalstore.operations.list import list_things
    from evalstore.planning.options import SelectionOptions

    with suppress(EvalstoreError, OSError):
        return [*list_things(_location(ctx), kind, SelectionOptions()).rows]
    return []


def _location(ctx: Any) -> Location:
    """Locate the workspace and the store that the command line or the environment names."""
    from evalstore.planning.options import Location

    named = {**ctx.find_root().params, **_shared_options()}
    paths = {
        name: os.path.expanduser(named[name])  # noqa: PTH111 - a shell does not expand these words
        for name in ("directory", "config", "store")
        if named.get(name)
    }
    directory = Path(paths.get("directory", "")).absolute()
    config = paths.get("config")
    return Location(directory, directory / config if config else None, paths.get("store"))


_SHARED = {"-C": "directory", "-c": "config", "--config": "config", "--store": "store"}
"""The options that name a workspace or a store, and their parameters."""


def _shared_options() -> dict[str, str]:
    """Read the shared options after the command, of which a shell knows only the words."""
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
    with suppress(ValueError):
        words = shlex.split(line)
        pairs = [word.split("=", 1) for word in words if word.startswith("--") and "=" in word]
        pairs += [[option, value] for option, value in itertools.pairwise(words)]
        return {_SHARED[option]: value for option, value in pairs if option in _SHARED}
    return {}


def _starting(names: list[str], incomplete: str) -> list[str]:
    """Return the names that begin with a text, without those that a shell could run or alter.

    The scripts for zsh evaluate what they are given, and do not escape backslashes in it.
    """
    safe_names = (name for name in names if name.isprintable() and "\\" not in name)
    return [name for name in safe_names if name.startswith(incomplete)]
