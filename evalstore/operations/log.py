"""The command `log`: the runs, or the history of one test file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalstore.clock import iso
from evalstore.operations.file_edits import PromptNames, find_edits
from evalstore.operations.json_output import to_json
from evalstore.operations.show import _Changed, _count_words, _name_in_runs
from evalstore.planning.open_project import open_store, open_workspace
from evalstore.planning.options import describe_selection
from evalstore.planning.path_history import follow_file
from evalstore.planning.path_targets import name_file, no_run_has
from evalstore.planning.version_reader import VersionReader
from evalstore.reports.version_diff import Difference
from evalstore.store.case_chunks import find_same
from evalstore.store.path_trees import read_tree
from evalstore.values import Json, order_counts

if TYPE_CHECKING:
    from evalstore.planning.options import Location
    from evalstore.runs import Run
    from evalstore.store import Store


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One run, or one change of a test file in a run."""

    run: Run
    verdicts: dict[str, int]
    """The counts of the verdicts of the run; with a file, those of its cells."""
    edits: tuple[Difference, ...] = ()
    """The edits of the file since the previous run, if a file is named."""

    def document(self) -> Json:
        """Return the entry as JSON."""
        run, git = self.run, self.run.git
        return {
            "run": run.id,
            "started": iso(run.started),
            "ended": iso(run.ended),
            "message": run.message,
            "selection": describe_selection(run.selection) or None,
            "status": run.status,
            "asked": run.asked,
            "recorded": run.recorded,
            "judged": run.judged,
            "reused": run.reused,
            "verdicts": self.verdicts,
            "cost": run.cost,
            "gitCommit": git.commit if git else None,
            "gitDirty": git.dirty if git else None,
            **({"author": run.author} if run.author else {}),
            **({"cases": run.cases._asdict()} if run.cases else {}),
            **({"edits": to_json(self.edits)} if self.edits else {}),
        }


@dataclass
class Log:
    """Runs, newest first."""

    JSON_FIELDS = ("entries", "total")
    entries: list[LogEntry] = field(metadata={"json_name": "runs"})
    total: int
    file: str | None = None


def log(location: Location, file: str | None = None, limit: int | None = None) -> Log:
    """Return the runs; with a file, those in which it was new or changed, with its edits."""
    with open_store(location) as store:
        if file is None:
            runs = store.find_runs(limit=limit)
            entries = [LogEntry(run, order_counts(run.verdicts)) for run in runs]
            return Log(entries, store.count_runs())
        workspace = open_workspace(location)
        name = name_file(location, workspace, file)
        folder = workspace.settings.paths["tests"]
        entries = list(_file_log(location, store, _name_in_runs(location, store, name), folder))
        if not entries:
            newest = next(store.find_recent_runs(limit=1), None)
            files = read_tree(newest.snapshot, store.load_nodes) if newest else {}
            raise no_run_has(name, files)
        return Log(entries[:limit], len(entries), name)


def _file_log(location: Location, store: Store, file: str, folder: str) -> Iterator[LogEntry]:
    """Yield the runs in which the cases of the file differ from the previous run, newest first."""
    runs = store.find_runs()
    then = follow_file(store, runs, file, folder)
    versions_of_runs = [
        (run, path, node) for run, (path, node) in zip(runs, then, strict=True) if node is not None
    ]
    files = store.load_case_files(list({node for _, _, node in versions_of_runs}))
    changed: list[_Changed] = []
    for number, (run, path, node) in enumerate(versions_of_runs):
        _, old, before = (
            versions_of_runs[number + 1] if number + 1 < len(versions_of_runs) else (None,) * 3
        )
        if old != path or not before or not find_same(node, files[node], {before: files[before]}):
            changed.append(_Changed(run, path, node, old, before))
    versions = {
        change.run.id: (files[change.before], files[change.node])
        for change in changed
        if change.before
    }
    edits = find_edits(VersionReader(store), versions, PromptNames(location))
    words = _count_words(store, changed)
    for change in changed:
        differences = edits[change.run.id] if change.before else [Difference("new")]
        if change.old and change.old != change.path:
            differences = [Difference("renamed", change.old, change.path), *differences]
        differences = differences or [Difference("no change in content")]
        yield LogEntry(change.run, order_counts(words[change.run.id]), tuple(differences))
