"""Where rows came from: the remote that has them, and who pushed them there first.

What this workspace notes of its own pushes is in a file beside the store that is never shared: the
names under which it has pushed, which change with git's `user.name` and the name of the machine,
and the tags that the last push to each remote excluded.

The baseline of a gate, a run to compare with, may be counted from the newest run of a remote.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from evalstore.core.clock import iso
from evalstore.core.display import plural, safe, short
from evalstore.core.errors import EvalstoreError, RevisionError, UnsuitedError
from evalstore.core.runs import Run, RunCommit
from evalstore.files.atomic_write import locked_folder, write_whole
from evalstore.planning.earlier_results import RunFilter, every_run
from evalstore.planning.open_project import open_workspace
from evalstore.planning.options import Location, RunOptions, is_partial
from evalstore.planning.project import Project
from evalstore.store import Store
from evalstore.store.revisions import resolve_run
from evalstore.store.schema.table_definitions import EVENTS
from evalstore.workspace.folder import WorkspaceFolder
from evalstore.workspace.git import Ancestors, State
from evalstore.workspace.git.status import read_state
from evalstore.workspace.index import read_cache

_FILE = "pushed-as.json"


class _Notes(NamedTuple):
    names: frozenset[str] = frozenset()
    excluded: Mapping[str, Collection[str]] = {}
    """Remote -> tags; only of remotes whose last push has excluded some."""


def read_own_names(workspace: WorkspaceFolder) -> frozenset[str]:
    """Return the noted names; none if they cannot be read."""
    return _read(workspace).names


def read_excluded_tags(workspace: WorkspaceFolder, remote: str) -> list[str]:
    """Return the tags that the last push to a remote excluded, sorted."""
    return sorted(_read(workspace).excluded.get(remote, ()))


def note_own_name(workspace: WorkspaceFolder, name: str) -> None:
    """Note a name, as remotes show it, under which something is about to be pushed."""
    if name not in read_own_names(workspace):
        _change(workspace, lambda notes: notes._replace(names=notes.names | {name}))


def note_excluded_tags(workspace: WorkspaceFolder, remote: str, tags: Collection[str]) -> None:
    """Note the tags that a push to a remote has excluded, in place of those of the one before."""
    if sorted(set(tags)) != read_excluded_tags(workspace, remote):
        _change(workspace, lambda notes: notes._replace(excluded={**notes.excluded, remote: tags}))


def _change(workspace: WorkspaceFolder, change: Callable[[_Notes], _Notes]) -> None:
    """Change the notes; two pushes at the same time lose nothing."""
    with suppress(OSError), locked_folder(workspace.private):  # a push does not depend on it
        names, tags = change(_read(workspace))
        listed = {key: sorted(set(tags[key])) for key in sorted(tags) if tags[key]}
        content = {"names": sorted(names), **({"excludedTags": listed} if listed else {})}
        write_whole(workspace.private / _FILE, json.dumps(content).encode(), durable=False)


def _read(workspace: WorkspaceFolder) -> _Notes:
    """Return the notes; what cannot be read is as if it were not there."""
    try:
        content = read_cache(workspace.private / _FILE, workspace.boundary)
        names = frozenset(name for name in content.get("names", ()) if type(name) is str)
        excluded = {
            remote: [tag for tag in tags if type(tag) is str]
            for remote, tags in content.get("excludedTags", {}).items()
        }
        return _Notes(names, excluded)
    except (ValueError, KeyError, TypeError, AttributeError):
        return _Notes()


@dataclass(frozen=True, slots=True)
class FirstPush:
    """The first push of a row by somebody else."""

    remote: str
    """The name of the remote."""
    writer: str
    """The signer of the push, else the name that it gives itself."""
    time: str
    """ISO 8601, by the clock of the writer."""


def find_first_pushes(
    location: Location, table: str, ids: Iterable[str]
) -> Mapping[str, FirstPush]:
    """Return who pushed these rows of a table, by id, as far as remotes were last read.

    Rows that no remote has are left out, and those that were pushed from here.
    """
    workspace = open_workspace(location)
    wanted = [bytes.fromhex(id) for id in ids] if workspace.settings.remotes else []
    if not wanted:
        return {}
    from evalstore.remotes.index_cache import open_known

    pushes: dict[str, FirstPush] = {}
    for remote in workspace.settings.remotes:
        with suppress(EvalstoreError), open_known(workspace, remote) as cache:
            for id, push in cache.find_pushes(table, wanted) if cache else ():
                pushes.setdefault(id.hex(), FirstPush(remote, push.writer, iso(push.created)))
    if not pushes:
        return {}
    names = {_own_name(location.directory), *read_own_names(workspace)}
    return {id: push for id, push in pushes.items() if push.writer not in names}


def first_push_of(location: Location, kind: str, id: str) -> FirstPush | None:
    """Return who pushed a stored object; None for one of this machine, or of another kind."""
    columns = EVENTS.get(kind)
    return find_first_pushes(location, columns.name, [id]).get(id) if columns else None


def push_text(push: FirstPush) -> str:
    """Return where a row came from: `from origin, pushed by ci@runner`."""
    return f"from {safe(push.remote)}, pushed by {safe(push.writer)}"


@lru_cache(maxsize=4)
def _own_name(directory: Path) -> str:
    """Return the name under which this machine pushes; asking git for it takes a while."""
    from evalstore.workspace.git.status import name_of_writer

    return name_of_writer(directory)


_COUNTED = "/@"
"""Is in a baseline that is counted from the newest run of a remote."""


class Baseline(NamedTuple):
    """A run to compare with, and which runs before it count for the cases that it did not judge."""

    run: Run
    counts: RunFilter = every_run


def find_baseline(
    location: Location, project: Project, options: RunOptions, note: Callable[[str], None]
) -> Baseline | None:
    """Return the baseline, before anything is asked; None if none is named.

    Of one that is counted from the newest run of a remote, note which it is. Raises
    `EvalstoreError`.
    """
    if options.baseline is None:
        return None
    if options.fail_on != "regression":
        raise UnsuitedError(
            "'--baseline' needs '--fail-on regression'",
            hint="the other gates do not depend on earlier runs",
        )
    if options.threshold is not None:
        raise UnsuitedError(
            "'--baseline' has no effect with '--threshold'",
            hint="leave one of them out; with '--threshold' only the pass rate counts",
        )
    if _COUNTED not in options.baseline:
        return Baseline(resolve_run(project.store, options.baseline))
    return _count_back(location, project, options.baseline, note)


def choose_runs(root: Path, revision: str) -> RunFilter:
    """Return which runs may be a baseline, or stand for one that did not judge a case.

    `root` is the folder of the workspace. For `origin/@`, runs of the present commit do not count:
    a job that is tried again would accept what its first attempt has found, and a shard what other
    shards have found. A workspace with changes may be compared with its commit.
    """
    state = read_state(root) if _COUNTED in revision else None
    if state is None:
        return every_run
    return lambda run: not _is_same_state(run.git, state)


def _is_same_state(git: RunCommit | None, state: RunCommit | State | None) -> bool:
    """Return whether a run was of a state of the checkout, as far as is known."""
    if git is None or state is None or git.commit != state.commit:
        return False
    return None in (git.dirty, state.dirty) or git.dirty == state.dirty


class GateRuns:
    """The earlier runs that tell whether a failure is a regression, if no baseline is named.

    In a git checkout they are those of commits that the present one builds on, if there is a
    complete one among them; else all. A job that is tried again must not accept what its first
    attempt has found.
    """

    def __init__(
        self, root: Path, git: RunCommit | State | None, store: Store | None, present: str = ""
    ) -> None:
        """`git` is the present state; None: outside git. `present` is the id of the present run.

        Without a `store` only runs of commits are taken, as others may be copied there later.
        """
        self._git = git
        self._commits = Ancestors(root, git.commit) if git else None
        runs = store.find_recent_runs(limit=store.count_runs()) if store and git else ()
        if store and not any(run.id != present and self.is_complete(run) for run in runs):
            self._commits = None

    def counts(self, run: Run) -> bool:
        """Return whether a run tells what was in the history of the present files."""
        if self._commits is None:
            return True
        return run.git is not None and not run.git.dirty and run.git.commit in self._commits

    def is_complete(self, run: Run) -> bool:
        """Return whether a run counts, and is about all cases and complete."""
        return run.status == "complete" and not is_partial(run) and self.counts(run)

    def kind(self, run: Run) -> object:
        """Return equal values for runs that count alike."""
        return self.is_complete(run), self.counts(run), self.is_accepted(run)

    def is_accepted(self, run: Run) -> bool:
        """Return whether what failed in a run was accepted, so that it does not count again.

        Without commits, or if files may have had changes, it is not known whether it was accepted,
        or is the same failure.
        """
        if self._commits is None or run.git is None or run.git.dirty is None:
            return False
        return not _is_same_state(run.git, self._git)


def _count_back(
    location: Location, project: Project, revision: str, note: Callable[[str], None]
) -> Baseline:
    """Return the newest run that counts, from the named one of a remote on; note which it is."""
    store = project.store
    run = resolve_run(store, revision)
    counts = choose_runs(project.workspace.root, revision)
    remote = revision.partition("/")[0]
    ids = store.find_remote_runs(remote) if store.find_remote_runs else [run.id]
    for skipped, id in enumerate(ids[ids.index(run.id) :]):
        run = resolve_run(store, f"{remote}/{id}")
        if counts(run):
            since = f"; {plural(skipped, 'run')} of this commit" if skipped else ""
            verb = " does not count" if skipped == 1 else " do not count"
            note(f"the baseline is {_describe(location, run)}{since}{verb if since else ''}")
            return Baseline(run, counts)
    raise RevisionError(
        f"'{revision}' cannot be a baseline: it and all runs of '{remote}' before it are of the "
        "current commit, so what they found would be accepted",
        hint="leave out '--baseline', or give the id of the run whose failures you accept",
    )


def _describe(location: Location, run: Run) -> str:
    push = first_push_of(location, "run", run.id)
    by = f", pushed by {safe(push.writer)}" if push else ""
    commit = f" of commit {run.git.commit[:8]}" if run.git else ""
    return f"run {short(run.id)}{commit}{by}"
