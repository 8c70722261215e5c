"""Explains names of candidates that stand in the place of runs."""

from __future__ import annotations

import shlex
from contextlib import suppress
from typing import TYPE_CHECKING

from evalstore.core.errors import EvalstoreError, RevisionError
from evalstore.planning.open_project import open_store, open_workspace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalstore.planning.options import Location


def explain_candidates(
    location: Location, revisions: Sequence[str], models: Sequence[str] = ()
) -> RevisionError | None:
    """Return the error for revisions that are names of candidates; None if none of them is one.

    `models` are the candidates that are named as such. The hint is the command that compares them.
    """
    known = _read_candidates(location)
    wrong = [name for name in revisions if name in known]
    if not wrong:
        return None
    named = list(dict.fromkeys([*models, *wrong]))
    verb = "is a candidate, not a run" if len(wrong) == 1 else "are candidates, not runs"
    quoted = " and ".join(f"'{name}'" for name in wrong)
    runs = [name for name in revisions if name not in known][:1]
    two = named if len(named) == 2 else [named[0], "ID"] if len(named) == 1 else ["X", "Y"]
    first, second = map(shlex.quote, two)
    command = " ".join(["evalstore", "diff", *runs, "--model", first, "--vs", second])
    return RevisionError(f"{quoted} {verb}", hint=f"'{command}' compares two candidates of one run")


def _read_candidates(location: Location) -> set[str]:
    """Return the names of the candidates of the settings and of the latest run."""
    names: set[str] = set()
    with suppress(EvalstoreError):
        settings = open_workspace(location).settings
        names.update(candidate.name or candidate.id for candidate in settings.candidates)
        with open_store(location) as store:
            for run in store.find_runs(limit=1):
                names.update(candidate.id for candidate in run.candidates)
    return names
