"""The values that a shell completes: test files and rows, models, tags, runs, checks and more.

A folder without a workspace, or one with errors, has none: a shell shows no message.
"""

from __future__ import annotations

import itertools
import os
import shlex
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from evalstore.core.errors import EvalstoreError
from evalstore.planning.options import Location

_MOST_RUN_IDS = 50
"""The newest runs that are offered."""
Complete = Callable[[Any, str], list[str]]
"""Returns what can be typed for a value."""


def completes(find: Callable[[Any, str], Iterable[str]]) -> Complete:
    """Return what a shell calls: the names that a function finds and that begin with a text.

    After an error there are none. Names that a shell could run or alter are left out: the scripts
    for zsh evaluate what they are given, and do not escape backslashes in it.
    """

    def complete(ctx: Any, incomplete: str) -> list[str]:
        with suppress(EvalstoreError, OSError):
            safe_names = (name for name in find(ctx, incomplete) if name.isprintable())
            return [name for name in safe_names if name.startswith(incomplete) and "\\" not in name]
        return []

    return complete


@completes
def places(ctx: Any, incomplete: str) -> Iterable[str]:
    """Complete test files; after `::`, the rows of the file.

    After `ls checks`, types of checks; with `check --schema`, the kinds of files that have one.
    """
    from evalstore.planning.selection import split_case

    if ctx.params.get("kind") == "checks":
        from evalstore.checks.registry import known_kinds

        return sorted(known_kinds())
    if ctx.params.get("schema"):
        from evalstore.workspace.schemas import TITLES

        return TITLES
    path, typed = split_case(incomplete)
    rows = _rows(ctx, "cases")
    if typed is None:
        return dict.fromkeys(row["file"] for row in rows)
    return [f"{path}::{row['row']}" for row in rows if row["file"] == path and row["row"]]


@completes
def answers(ctx: Any, incomplete: str) -> Iterable[str]:
    """Complete test files; after `::`, rows, each also with its system prompt if it has several."""
    from evalstore.planning.selection import split_case
    from evalstore.results.table.list import names_of_rows

    path, typed = split_case(incomplete)
    if typed is None:
        return places(ctx, incomplete)
    listed = names_of_rows(_location(ctx), path)
    rows = [f"{path}::{row}" for row, _ in listed if row]
    prompts = [
        f"{path}::{row}::({name})" if row else f"{path}::({name})"
        for row, names in listed
        if typed.startswith(row)
        for name in names
    ]
    return [*rows, *prompts]


@completes
def prompts(ctx: Any, _incomplete: str) -> Iterable[str]:
    """Complete names of system prompts."""
    from evalstore.results.table.list import prompt_names

    return prompt_names(_location(ctx))


@completes
def compared(ctx: Any, incomplete: str) -> Iterable[str]:
    """Complete what `--vs` compares: system prompts after `--prompt`, else models."""
    return prompts(ctx, incomplete) if ctx.params.get("prompt") else models(ctx, incomplete)


@completes
def models(ctx: Any, _incomplete: str) -> Iterable[str]:
    """Complete ids of models."""
    return [row["model"] for row in _rows(ctx, "models")]


@completes
def tags(ctx: Any, _incomplete: str) -> Iterable[str]:
    """Complete tags of cases."""
    return [row["tag"] for row in _rows(ctx, "tags")]


@completes
def runs(ctx: Any, incomplete: str) -> Iterable[str]:
    """Complete runs: `@`, `@~1`, `@work`, the ids of the newest, and the runs of remotes."""
    remote, slash, _ = incomplete.partition("/")
    if slash:
        from evalstore.planning.open_project import open_workspace
        from evalstore.remotes.index_cache import find_known_runs

        ids = find_known_runs(open_workspace(_location(ctx)), remote)[:_MOST_RUN_IDS]
        return [f"{remote}/{name}" for name in ("@", "@~1", *(id[:8] for id in ids))]
    newest = [f"{name}/@" for name in remotes(ctx, "")]
    return ["@", "@~1", "@work", *_newest_runs(ctx, ""), *newest]


@completes
def _newest_runs(ctx: Any, _incomplete: str) -> Iterable[str]:
    return [row["run"][:8] for row in _rows(ctx, "runs")[:_MOST_RUN_IDS]]


@completes
def stored_runs(ctx: Any, incomplete: str) -> Iterable[str]:
    """Complete runs without `@work`."""
    return [name for name in runs(ctx, incomplete) if name != "@work"]


@completes
def revisions_and_answers(ctx: Any, incomplete: str) -> Iterable[str]:
    """Complete runs, test files, and after `::` the rows of a file."""
    return [*runs(ctx, incomplete), *answers(ctx, incomplete)]


@completes
def joinable_runs(ctx: Any, _incomplete: str) -> Iterable[str]:
    """Complete runs in progress: `@`, and their ids."""
    from evalstore.results.table.list import runs_in_progress

    ids = [id[:8] for id in runs_in_progress(_location(ctx))]
    return ["@", *ids] if ids else []


@completes
def trusted_files(ctx: Any, _incomplete: str) -> Iterable[str]:
    """Complete the files that wait for trust, or with `--revoke` those that are trusted."""
    from evalstore.results.table.list import files_to_trust
    from evalstore.runs.workspace_checks import trust

    if ctx.params.get("revoke"):
        return [file.path for file in trust.trusted_files()]
    return files_to_trust(_location(ctx))


@completes
def themes(_ctx: Any, _incomplete: str) -> Iterable[str]:
    """Complete colour themes of the browser."""
    from evalstore.interfaces.tui.appearance import theme_names

    return theme_names()


@completes
def import_formats(_ctx: Any, _incomplete: str) -> Iterable[str]:
    """Complete the formats of `import`, with those of plug-ins."""
    from evalstore.exchange.importers.registry import format_names

    return format_names()


@completes
def remotes(ctx: Any, _incomplete: str) -> Iterable[str]:
    """Complete names of remotes."""
    from evalstore.exchange.sync.remotes import list_remotes

    return [remote.name for remote in list_remotes(_location(ctx))]


@completes
def groups(_ctx: Any, incomplete: str) -> Iterable[str]:
    """Complete the dimensions of statistics; after a comma, the remaining ones."""
    from evalstore.results.stats.stats import DIMENSIONS

    before, comma, _ = incomplete.rpartition(",")
    names = [name for name in DIMENSIONS if name not in before.split(",")]
    names += [] if comma else ["judge"]
    return [f"{before}{comma}{name}" for name in names]


def _rows(ctx: Any, kind: str) -> Sequence[dict[str, Any]]:
    from evalstore.planning.options import SelectionOptions
    from evalstore.results.table.list import list_things

    return [*list_things(_location(ctx), kind, SelectionOptions()).rows]


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
