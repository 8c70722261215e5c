"""Finds the test files that differ from the snapshot of a run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from evalstore.display import plural
from evalstore.operations.planned_rows import PlannedRows, planned_rows
from evalstore.operations.row_ids import lacks_row_id
from evalstore.operations.status_report import FileChange
from evalstore.planning.reason import NEW_PROMPT, NEW_ROW
from evalstore.planning.renames import pair_with_workspace
from evalstore.planning.row_index import RowIndex
from evalstore.store.path_trees import read_tree
from evalstore.values import Case, CaseFile

if TYPE_CHECKING:
    from evalstore.operations.stored_outcomes import StoredOutcomes
    from evalstore.planning.plan import Plan
    from evalstore.planning.plan_item import PlanItem
    from evalstore.planning.project import Project
    from evalstore.runs import Run


WasRun = Callable[[str, Case], bool]
"""Whether an earlier run had a case of a file as it is now."""


def all_new(plan: Plan) -> list[FileChange]:
    """Return all selected test files as new: there is no run yet."""
    cases: dict[str, set[str]] = {}
    for cell in plan.cells:
        cases.setdefault(cell.file, set()).add(cell.case.row)
    return [FileChange("A ", path, len(rows), 0, 0, "new") for path, rows in sorted(cases.items())]


def find_file_changes(
    project: Project,
    plan: Plan,
    items: list[PlanItem],
    run: Run,
    was_run: WasRun,
    *,
    narrows: bool,
) -> list[FileChange]:
    """Return test files that differ from the snapshot of a run, as git shows them.

    `items` are those of the plan. With `narrows`, only files in which the command would do
    something.
    """
    nodes = project.reading.nodes
    root, _ = project.snapshot()
    if root == run.snapshot:
        return []
    before = read_tree(run.snapshot, project.store.load_nodes)
    old_files: dict[str, CaseFile] = {}
    pairs = pair_with_workspace(project, before, old_files)
    changed = {path: old for path, old in pairs.items() if before[old] != nodes[path]}
    gone = before.keys() - set(pairs.values())
    broken = {problem.file for problem in (*project.reading.errors, *project.left_out)}
    leaves = {before[path] for path in (*changed.values(), *gone)}
    old_files |= project.store.load_case_files(leaves - old_files.keys())
    by_file: dict[str, list[PlanItem]] = {}
    for item in items:
        by_file.setdefault(item.file, []).append(item)
    selected = {cell.file for cell in plan.cells}
    changes = [
        FileChange("A ", path, len(project.reading.files[path].cases), 0, 0, "new")
        for path in nodes.keys() - pairs.keys()
        if not narrows or path in selected
    ]
    rows = planned_rows(plan, changed.keys(), project.settings.verdict)
    for path, old in pairs.items():
        change = None
        if path in changed:
            was, here = old_files[before[old]], by_file.get(path, [])
            now = project.reading.files[path]
            change = _change(path, was, now, here, rows[path], was_run)
        if change and change.gone and change.new and lacks_row_id(project.workspace, path):
            change = replace(change, may_be_edited_rows=True)
        if path != old:
            change = _as_renamed(change or FileChange("R ", path, 0, 0, 0, ""), old)
        if change:
            changes.append(change)
    changes += [
        FileChange("D ", path, 0, 0, len(old_files[before[path]].cases), "removed")
        for path in gone - broken
    ]
    if narrows:
        changes = [
            change
            for change in changes
            if change.file in by_file or change.new or change.asked or change.judged
        ]
    return sorted(changes, key=lambda change: (change.file, change.code))


def with_outcomes(change: FileChange, outcomes: StoredOutcomes) -> FileChange:
    """Return a change with how many of its results broke and were fixed without a call."""
    if not change.settled:
        return change
    broke, fixed = (
        sum(result.file == change.file for result in results)
        for results in (outcomes.broke, outcomes.fixed)
    )
    return replace(change, broke=broke, fixed=fixed)


def _as_renamed(change: FileChange, old: str) -> FileChange:
    """Return the change of a file that has been renamed."""
    reason = "; ".join(part for part in (f"was {old}", change.reason) if part)
    return replace(change, reason=reason, old_file=old)


def _change(
    path: str,
    was: CaseFile,
    now: CaseFile,
    here: list[PlanItem],
    rows: PlannedRows,
    was_run: WasRun,
) -> FileChange | None:
    """Return how a file differs; `here` are the plan items of the file, `rows` its rows."""
    known = {_shown(case) for case in was.cases}
    shown = [case for case in now.cases if _shown(case) not in known]
    fewer = _only_fewer(shown, was)
    shown = [case for case in shown if case.key not in fewer]
    evaluations = {(case.tests, case.evaluation) for case in was.cases}
    rejudged = [
        case
        for case in now.cases
        if (_shown(case) in known or case.key in fewer)
        and (case.tests, case.evaluation) not in evaluations
    ]
    kept = {case.key for case in now.cases} | {case.row for case in now.cases}
    gone = sum(1 for case in was.cases if case.key not in kept and case.row not in kept)
    if not shown and not rejudged and not gone:
        return None
    pending = rows.asked | rows.judged
    own = {item.row for item in here}
    old = RowIndex(was)
    with_others = pending - own
    new = {item.row for item in here if item.reason.startswith(NEW_ROW)} | {
        case.row for case in shown if case.row in with_others and not old.find(case)
    }
    asked, judged = rows.asked - new, rows.judged - new
    again = {item.row for item in here if item.kind == "ask" and item.reason != NEW_PROMPT}
    added = {case.row for case in now.cases if _has_more_prompts(old.find(case), case)} - again
    unsettled = pending | rows.waiting
    settled = [case for case in (*shown, *rejudged) if case.row not in unsettled]
    waiting = sum(case.row in rows.waiting for case in (*shown, *rejudged))
    failing = sum(rows.failing[row] for row in {case.row for case in settled})
    first = next((item for item in here if not item.reason.startswith(NEW_ROW)), None)
    is_again = bool(asked or judged)
    reason = _reason(first, here, judged) if first else rows.shared
    return FileChange(
        code=(
            ("M" if shown or gone else ".") + ("M" if rejudged else ".")
            if pending or waiting
            else "= "
        ),
        file=path,
        asked=len(asked),
        added=len(asked & added & own),
        judged=len(judged),
        gone=gone,
        reason=reason if is_again else "",
        new=len(new),
        was=first.was if first else None,
        now=first.now if first else None,
        also=_also_edited(first, here, judged) if first and is_again else (),
        settled=len(settled),
        waiting=waiting,
        failing=failing,
        reverted=all(was_run(path, case) for case in settled),
    )


def _has_more_prompts(was: Case | None, now: Case) -> bool:
    """Return whether a case is shown with the system prompts of before and with others."""
    return (
        was is not None
        and was.tests == now.tests
        and len(was.prompts) < len(now.prompts)
        and set(was.prompts) <= set(now.prompts)
    )


def _reason(first: PlanItem, here: list[PlanItem], judged: set[str]) -> str:
    """Return why cases are asked again, and why others are only judged again."""
    other = _judged_otherwise(first, here, judged)
    return f"{first.reason}; {other.reason}" if other else first.reason


def _also_edited(first: PlanItem, here: list[PlanItem], judged: set[str]) -> tuple[str, ...]:
    """Return what was edited beside the reasons that are given."""
    other = _judged_otherwise(first, here, judged)
    others = _edits_of_others(first, here)
    if other is None:
        return (*first.also, *others)
    described = ("instructions", "checks")  # by the other reason
    return (*(part for part in first.also if part not in described), *other.also, *others)


def _edits_of_others(first: PlanItem, here: list[PlanItem]) -> Iterator[str]:
    """Yield what was edited in other cases alone: `test of 1 case`."""
    for part, is_of in (("test", _OF_TEST), ("system prompt", _OF_PROMPT)):
        rows = {item.row for item in here if is_of(item.reason)}
        if rows and part not in first.also and not is_of(first.reason):
            yield f"{part} of {plural(len(rows), 'case')}"


_OF_TEST = re.compile("test changed").match
_OF_PROMPT = re.compile(r"system prompt (?:[^:]+ )?changed").match


def _judged_otherwise(first: PlanItem, here: list[PlanItem], judged: set[str]) -> PlanItem | None:
    """Return the first item of a case that is only judged again, if its reason is another one."""
    if first.kind == "judge":
        return None
    again = (item for item in here if item.kind == "judge" and item.row in judged)
    return next((item for item in again if item.reason != first.reason), None)


def _only_fewer(cases: list[Case], was: CaseFile) -> set[str]:
    """Return the keys of the cases whose questions all were in the older version of the file."""
    several = [case for case in cases if len(case.tests) > 1]
    if not several and all(len(case.tests) == 1 for case in was.cases):
        return set()
    held: dict[object, set[tuple[str, ...]]] = {}
    for case in was.cases:
        for test in set(case.tests):
            held.setdefault((case.prompts, case.recorded, test), set()).add(case.tests)
    return {
        case.key
        for case in cases
        if any(
            Counter(case.tests) <= Counter(tests)
            for tests in held.get((case.prompts, case.recorded, case.tests[0]), ())
        )
    }


def _shown(case: Case) -> tuple[object, ...]:
    """Return everything that the answers to a case depend on, apart from the model."""
    return case.tests, case.prompts, case.recorded
