"""Resolves the names of runs and answers that a caller passes."""

from __future__ import annotations

from evalstore.core.runs import Run
from evalstore.planning.options import Location


def run_revision(run: Run | str) -> str:
    """Return the revision of a run; a text is returned unchanged."""
    return run if isinstance(run, str) else run.id


def any_revision(run: Run | str | None) -> str:
    """Return the revision of a run; None stands for the workspace."""
    return "@work" if run is None else run_revision(run)


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
