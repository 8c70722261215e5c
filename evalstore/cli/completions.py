"""The values that a shell completes: test files and rows, models, tags and runs.

A folder without a workspace, or one with errors, has none: a shell shows no message.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from evalstore.errors import EvalstoreError

_MOST_RUN_IDS = 50
"""The newest runs that are offered."""


def places(incomplete: str) -> list[str]:
    """Test files; after `::`, the rows of the file."""
    path, separator, _ = incomplete.partition("::")
    rows = _rows("cases")
    names = (
        [f"{path}::{row['row']}" for row in rows if row["file"] == path and row["row"]]
        if separator
        else list(dict.fromkeys(row["file"] for row in rows))
    )
    return _starting(names, incomplete)


def models(incomplete: str) -> list[str]:
    """The ids of models."""
    return _starting([row["model"] for row in _rows("models")], incomplete)


def tags(incomplete: str) -> list[str]:
    """The tags of cases."""
    return _starting([row["tag"] for row in _rows("tags")], incomplete)


def runs(incomplete: str) -> list[str]:
    """`@`, `@~1`, `@work`, and the ids of the newest runs."""
    ids = [row["run"][:8] for row in _rows("runs")[:_MOST_RUN_IDS]]
    return _starting(["@", "@~1", "@work", *ids], incomplete)


def revisions_and_places(incomplete: str) -> list[str]:
    """Runs, test files, and after `::` the rows of a file."""
    return [*runs(incomplete), *places(incomplete)]


def _rows(kind: str) -> list[dict[str, Any]]:
    from evalstore.operations.list import list_things
    from evalstore.planning.options import Location, SelectionOptions

    with suppress(EvalstoreError, OSError):
        return list_things(Location(Path.cwd(), None, None), kind, SelectionOptions()).rows
    return []


def _starting(names: list[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
