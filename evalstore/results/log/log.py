"""The command `log`: the runs, or the history of one test file, or of one of its rows."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from evalstore.core.clock import iso, read_moment
from evalstore.core.errors import EvalstoreError
from evalstore.core.values import Json, order_counts
from evalstore.files.json_output import to_json
from evalstore.planning.cells.earlier_results import RecentRuns
from evalstore.planning.first_pushes import FirstPush, find_first_pushes
from evalstore.planning.open_project import open_project, open_store, open_workspace
from evalstore.planning.options import describe_selection
from evalstore.planning.path_targets import find_row_in, name_file, no_run_has, split_row
from evalstore.planning.reasons.renames import name_in_newest_run
from evalstore.results.edits.run_edits import find_run_edits
from evalstore.results.flips.verdict_changes import Outcome, find_verdict_changes
from evalstore.results.log.file_log import find_logged_changes
from evalstore.results.prompt_names import PromptNames
from evalstore.store.revisions import RunInProgressError, names_of_runs, resolve_run
from evalstore.store.runs import RUNS_SEARCHED
from evalstore.store.schema.table_definitions import RUNS
from evalstore.store.trees.path_trees import find_entry, read_tree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalstore.comparison.version_diff import Difference
    from evalstore.core.runs import Run
    from evalstore.planning.options import Location
    from evalstore.store import Store


_MOST_RUNS = 10
"""The most runs whose verdicts are compared with those before."""
MOST_COMPARED = 20_000
"""About the most results of them that are compared, so that the list comes at once."""
_MOST_SEARCHED = 300
"""About the most runs that are looked at for earlier verdicts: all, for each that has new cases."""


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A run; with a file, one that changed the file or its verdicts."""

    run: Run
    verdicts: dict[str, int]
    """The counts of the verdicts of the run; with a file, those of its cells."""
    edits: tuple[Difference, ...] = ()
    """What was edited since the runs before: test files, system prompts, candidates and evaluators;
    with a file, its own edits in full. An edit belongs to the first run that judged it."""
    is_covered: bool = True
    """Whether the run has results of the file, or of the row."""
    answered: int = 0
    """With a file, how many results it judged that were pending before, and no other changed."""
    outcome: Outcome | None = None
    """How many results broke and were fixed since they were judged before; None: not computed."""
    push: FirstPush | None = None
    """Who pushed the run; None for a run of this machine."""
    names: tuple[str, ...] = ()
    """The names that `tag` gave the run."""

    @property
    def is_idle(self) -> bool:
        """Return whether nothing was asked, judged or changed, and the run has no name or note."""
        run = self.run
        work = (run.asked, run.recorded, run.judged, run.failed, run.message, self.names)
        return not any((*work, self.edits, self.push, *(self.outcome or ())))

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
            **({"names": list(self.names)} if self.names else {}),
            **({"push": to_json(self.push)} if self.push else {}),
            **({"edits": to_json(self.edits)} if self.edits else {}),
            **(dict(zip(("broke", "fixed"), self.outcome, strict=False)) if self.outcome else {}),
        }


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
            outcomes, compared = find_outcomes(location, store, runs)
            entries = [
                LogEntry(
                    run,
                    order_counts(run.verdicts),
                    edited,
                    outcome=outcomes.get(run.id),
                    push=pushes.get(run.id),
                    names=names.get(run.id, ()),
                )
                for run, edited in zip(runs, edits, strict=True)
            ]
            is_whole = compared == len(runs)
            return Log(entries, store.count_runs(**bounds), compared=None if is_whole else compared)
        workspace = open_workspace(location)
        file, row = split_row(file)
        name = name_file(location, workspace, file)
        folder = workspace.settings.paths["tests"]
        path = _name_in_runs(location, store, name)
        prompts = PromptNames(location)
        find_row = None if row is None else partial(find_row_in, path, row)
        changes = list(find_logged_changes(store, path, folder, prompts, find_row))
        pushes = find_first_pushes(location, RUNS.name, [change.run.id for change in changes])
        entries = [
            LogEntry(
                change.run,
                order_counts(change.words),
                change.edits,
                change.is_covered,
                answered=change.answered,
                push=pushes.get(change.run.id),
            )
            for change in changes
        ]
        if not entries:
            newest = store.find_run_before()
            files = read_tree(newest.snapshot, store.load_nodes) if newest else {}
            problem = no_run_has(workspace, name, files)
            raise _explain_run(store, name, problem)
        others = store.count_runs() - len(entries)
        low, high = bounds.get("since"), bounds.get("before")
        entries = [
            entry
            for entry in entries
            if (low is None or entry.run.started >= low)
            and (high is None or entry.run.started < high)
        ]
        return Log(entries[:limit], len(entries), name, row, others)


def _explain_run(store: Store, name: str, problem: EvalstoreError) -> EvalstoreError:
    """Return the error for a name that no run has as a file, but which may be that of a run."""
    try:
        resolve_run(store, name)
    except RunInProgressError as error:
        return error
    except EvalstoreError:
        return problem
    return EvalstoreError(str(problem), hint=f"'evalstore show {name}' shows a run")


def find_outcomes(
    location: Location, store: Store, runs: Sequence[Run]
) -> tuple[dict[str, Outcome], int]:
    """Return how many results broke and were fixed in each of the newest of these runs, by id.

    And how many of the runs were compared.
    """
    folder = open_workspace(location).settings.paths["tests"]
    outcomes: dict[str, Outcome] = {}
    left = MOST_COMPARED
    recent = RecentRuns(store, runs[0], _MOST_RUNS + RUNS_SEARCHED) if runs else None
    for number, run in enumerate(runs):
        left -= sum(run.verdicts.values())
        is_enough = recent is not None and recent.searched > _MOST_SEARCHED
        if left < 0 or number == _MOST_RUNS or is_enough:
            return outcomes, number
        if changes := find_verdict_changes(store, folder, run, recent=recent):
            outcomes[run.id] = changes.outcome
    return outcomes, len(runs)


def _name_in_runs(location: Location, store: Store, file: str) -> str:
    """Return the path of a test file in the newest run, reading the workspace if that lacks it."""
    runs = store.find_runs(limit=1)
    if runs and not find_entry([runs[0].snapshot], file, store.load_nodes):
        with suppress(EvalstoreError), open_project(location) as project:
            return name_in_newest_run(project, file)
    return file
