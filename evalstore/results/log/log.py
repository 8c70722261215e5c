"""The command `log`: the runs, or the history of one test file, or of one of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from evalstore.core import clock
from evalstore.core.clock import read_moment
from evalstore.core.errors import EvalstoreError, RevisionError
from evalstore.core.values import order_counts
from evalstore.files.fields import suggest
from evalstore.planning.cells.earlier_results import RecentRuns
from evalstore.planning.first_pushes import find_first_pushes
from evalstore.planning.open_project import open_project, open_store, open_workspace
from evalstore.planning.options import Location
from evalstore.planning.path_targets import find_row_in, name_file, no_run_has, split_row
from evalstore.planning.reasons.path_history import name_in_newest_run
from evalstore.results.edits.edited_files import find_run_edits
from evalstore.results.flips.verdict_changes import find_verdict_changes
from evalstore.results.log.file_log import find_logged_changes
from evalstore.results.log.log_entry import LogEntry
from evalstore.results.prompt_names import PromptNames
from evalstore.store import Store
from evalstore.store.revisions import (
    RunInProgressError,
    RunTag,
    add_tag,
    names_of_runs,
    read_tags,
    require_name,
    resolve_run,
)
from evalstore.store.runs import RUNS_SEARCHED
from evalstore.store.schema.table_definitions import RUNS
from evalstore.store.trees.path_trees import find_entry, read_tree
from evalstore.workspace.user_name import name_of_user

_MOST_RUNS = 10
"""The most runs whose verdicts are compared with those before."""
MOST_COMPARED = 20_000
"""About the most results of them that are compared, so that the list comes at once."""
_MOST_SEARCHED = 300
"""About the most runs that are looked at for earlier verdicts: all, for each that has new cases."""


@dataclass
class Log:
    """Runs, newest first."""

    JSON_FIELDS = ("entries", "total")
    entries: list[LogEntry] = field(metadata={"json_name": "runs"})
    total: int
    file: str | None = None
    row: str | None = None
    """The row of the file, as it was named."""
    others: int = 0
    """With a file, how many runs changed neither it nor its verdicts, and are left out."""
    compared: int | None = None
    """How many of the newest entries are compared with the runs before; None: all of them."""
    bounds: dict[str, int] = field(default_factory=dict)
    """The first moment of `since`, and that of `before`."""


def log(
    location: Location,
    file: str | None = None,
    limit: int | None = None,
    *,
    since: str | None = None,
    until: str | None = None,
) -> Log:
    """Return the runs; with a file, those that changed it or its verdicts, with its edits.

    `FILE::ROW` is a row of it. Only runs after `since` and before `until`, each a date or a run.
    Raises `NothingSelectedError` for a row that no run has.
    """
    with open_store(location) as store:
        bounds: dict[str, int] = {}
        for name, text, offset in (("since", since, 1), ("before", until, 0)):
            if text is not None:  # a run that is named is not listed
                if (moment := read_moment(text)) is None:
                    moment = resolve_run(store, text).started + offset
                bounds[name] = moment
        if file is None:
            runs = store.find_runs(limit=limit, **bounds)
            names = names_of_runs(store)
            pushes = find_first_pushes(location, RUNS.name, [run.id for run in runs])
            edits = find_run_edits(location, store, runs)
            entries = [
                LogEntry(
                    run,
                    order_counts(run.verdicts),
                    edited,
                    push=pushes.get(run.id),
                    names=names.get(run.id, ()),
                )
                for run, edited in zip(runs, edits, strict=True)
            ]
            entries, compared = add_outcomes(location, store, entries)
            return Log(entries, store.count_runs(**bounds), compared=compared, bounds=bounds)
        workspace = open_workspace(location)
        file, row = split_row(file)
        name = name_file(location, workspace, file)
        folder = workspace.settings.paths["tests"]
        path = _name_in_runs(location, store, name)
        prompts = PromptNames(location)
        find_row = None if row is None else partial(find_row_in, path, row)
        entries = find_logged_changes(store, path, folder, prompts, find_row)
        pushes = find_first_pushes(location, RUNS.name, [entry.run.id for entry in entries])
        entries = [replace(entry, push=pushes.get(entry.run.id)) for entry in entries]
        if not entries:
            newest = store.find_run_before()
            files = read_tree(newest.snapshot, store.load_nodes) if newest else {}
            problem = no_run_has(workspace, name, files)
            try:  # it may be the name of a run
                resolve_run(store, name)
            except RunInProgressError:
                raise
            except EvalstoreError:
                raise problem from None
            raise EvalstoreError(str(problem), hint=f"'evalstore show {name}' shows a run")
        others = store.count_runs() - len(entries)
        low, high = bounds.get("since"), bounds.get("before")
        entries = [
            entry
            for entry in entries
            if (low is None or entry.run.started >= low)
            and (high is None or entry.run.started < high)
        ]
        listed, compared = add_outcomes(location, store, entries[:limit])
        return Log(listed, len(entries), name, row, others, compared, bounds)


def add_outcomes(
    location: Location, store: Store, entries: Sequence[LogEntry]
) -> tuple[list[LogEntry], int | None]:
    """Return runs, the newest of them with how many results broke and were fixed.

    And how many of the runs were compared; None if all were.
    """
    folder = open_workspace(location).settings.paths["tests"]
    listed = list(entries)
    left = MOST_COMPARED
    newest = entries[0].run if entries else None
    recent = RecentRuns(store, newest, _MOST_RUNS + RUNS_SEARCHED) if newest else None
    for number, entry in enumerate(entries):
        left -= sum(entry.verdicts.values())
        is_enough = recent is not None and recent.searched > _MOST_SEARCHED
        if left < 0 or number == _MOST_RUNS or is_enough:
            return listed, number
        if entry.is_covered and (
            changes := find_verdict_changes(store, folder, entry.run, recent, entry.part)
        ):
            listed[number] = replace(entry, outcome=changes.outcome)
    return listed, None


def _name_in_runs(location: Location, store: Store, file: str) -> str:
    """Return the path of a test file in the newest run, reading the workspace if that lacks it."""
    runs = store.find_runs(limit=1)
    if runs and not find_entry([runs[0].snapshot], file, store.load_nodes):
        with suppress(EvalstoreError), open_project(location) as project:
            return name_in_newest_run(project, file)
    return file


# --- the command `tag`: gives names to runs, which `push` and `pull` copy


def list_tags(location: Location) -> list[RunTag]:
    """Return the names of runs."""
    with open_store(location) as store:
        return [*read_tags(store).values()]


def tag_run(location: Location, name: str, revision: str = "@") -> tuple[RunTag, RunTag | None]:
    """Give a name to a run; return also the run that had it. Raises `RevisionError`."""
    require_name(name)
    with open_store(location) as store:
        run = resolve_run(store, revision).id
        before = read_tags(store).get(name)
        at = max(clock.now(), before.at + 1 if before else 0)  # also if the clock was set back
        tag = RunTag(name, run, at, name_of_user(location.directory), is_removed=False)
        add_tag(store, tag)
        return tag, before


def untag(location: Location, name: str) -> list[RunTag]:
    """Remove a name; raises `RevisionError` if no run has it."""
    with open_store(location) as store:
        tags = read_tags(store)
        if name not in tags:
            raise RevisionError(f"no run is called '{name}'", hint=suggest(name, tags, "names"))
        at = max(clock.now(), tags[name].at + 1)
        tag = replace(tags[name], at=at, by=name_of_user(location.directory), is_removed=True)
        add_tag(store, tag)
        return [tag]
