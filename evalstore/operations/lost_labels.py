"""Finds the labels that no longer count because their case was edited since the last run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.planning.row_index import RowIndex
from evalstore.store.path_trees import read_tree

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalstore.operations.status_report import FileChange
    from evalstore.planning.project import Project
    from evalstore.results import Evaluation
    from evalstore.runs import Run
    from evalstore.values import Case


def find_lost_labels(
    project: Project, last: Run, changes: Iterable[FileChange]
) -> list[tuple[str, str]]:
    """Return the file and row of each label that counted in the last run, but not after an edit."""
    edited = [change for change in changes if "M" in change.code]
    labels = _current_labels(project) if edited else []
    if not labels:
        return []
    store = project.store
    nodes = read_tree(last.snapshot, store.load_nodes)
    names = {change.file: change.old_file or change.file for change in edited}
    files = store.load_case_files(list({nodes[name] for name in names.values()}))
    tests = {
        id: session.question.test
        for id, session in store.find_sessions(label.sessions[0] for label in labels).items()
    }
    evaluations = {label.evaluation for label in labels}
    lost: list[tuple[str, str]] = []
    for path, name in names.items():
        rows = RowIndex(project.reading.files[path])
        cases: dict[str, list[Case]] = {}
        for case in files[nodes[name]].cases:
            if case.evaluation and case.evaluation in evaluations:
                cases.setdefault(case.evaluation, []).append(case)
        for label in labels:
            test = tests.get(label.sessions[0])
            was = next((c for c in cases.get(label.evaluation, ()) if test in c.tests), None)
            now = rows.find(was) if was else None
            if now and not (now.evaluation == label.evaluation and test in now.tests):
                lost.append((path, now.row))
    return lost


def _current_labels(project: Project) -> list[Evaluation]:
    """Return the last label of each person on each answer, without those that were removed."""
    labels = {
        (label.person, label.evaluation.evaluation, label.evaluation.sessions): label.evaluation
        for label in project.store.find_labels()
    }
    return [label for label in labels.values() if label.verdict != "none"]
