"""Chooses what starts the runners of `run --executor`, and refuses options that cannot be met."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from evalstore.core.errors import EvalstoreError
from evalstore.planning.open_project import locate_store

if TYPE_CHECKING:
    from evalstore.core.progress import ProgressListener
    from evalstore.planning.options import Location, RunOptions
    from evalstore.planning.project import Project
    from evalstore.runs.execution.sharing.shared_work import RunnerLauncher

_NEEDS_SCHEDULER = (
    "name one, as in '--scheduler tcp://HOST:8786'; '--scheduler local' starts one on this machine"
)


def require_launchable(options: RunOptions) -> None:
    """Raise `EvalstoreError` for options that cannot be combined, or a missing package."""
    if options.executor is None:
        for name, value in (("--workers", options.workers), ("--scheduler", options.scheduler)):
            if value is not None:
                raise EvalstoreError(
                    f"'{name}' needs '--executor'",
                    hint="add '--executor processes' (on this machine) or '--executor dask'",
                )
    elif options.executor == "processes" and options.scheduler is not None:
        raise EvalstoreError("'--scheduler' needs '--executor dask'")
    elif options.executor == "dask":
        if options.scheduler is None:
            raise EvalstoreError("'--executor dask' needs a scheduler", hint=_NEEDS_SCHEDULER)
        if find_spec("distributed") is None:
            raise EvalstoreError(
                "'--executor dask' needs the package 'distributed'",
                hint="install it with: pip install 'evalstore[dask]'",
            )


def make_launcher(
    project: Project, location: Location, options: RunOptions, listener: ProgressListener
) -> RunnerLauncher | None:
    """Return what starts the runners of a run; None when its options ask for none.

    Raises `EvalstoreError` for a store that they could not reach.
    """
    if options.executor is None:
        return None
    root, store = project.workspace.root, locate_store(project.workspace, location)
    if options.executor == "processes":
        from evalstore.runs.runners.runner_processes import RunnerProcesses

        return RunnerProcesses(root, location, store, options.workers, listener.note)
    from evalstore.runs.runners.dask_runners import DaskRunners
    from evalstore.store.location import DatabaseAddress

    if not isinstance(store, DatabaseAddress):
        raise EvalstoreError(
            f"the store '{store}' is a file, which the workers of dask cannot share",
            hint="use a PostgreSQL database, or '--executor processes' on this machine",
        )
    assert options.scheduler is not None
    return DaskRunners(root, store, options.scheduler, options.workers, listener.note)
