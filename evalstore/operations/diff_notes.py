"""Explains a comparison: how questions differ, and which cases a run was restricted to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.display import plural
from evalstore.reports.version_diff import CODE_CHANGED, differ_models

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evalstore.operations.diff_sides import Side
    from evalstore.planning.project import Project
    from evalstore.reports.comparison import Comparison

Sessions = tuple[str, ...]
"""The sessions of one side of a pair."""


def selection_notes(was: Side, filled: Side, now: Side) -> Iterator[str]:
    """Yield notes about runs of only some of the cases, and about unfinished runs."""
    own = {id(result) for result in was.results}
    others = sum(1 for result in filled.results if id(result) not in own)
    earlier = f"{plural(others, 'other')} as in the last run before it that judged them"
    for side in (was, now):
        rest = earlier if side is was and others else "only those are compared"
        if side.selection:
            about = f"{side.selection} ({plural(len(side.results), 'case')})"
            yield f"run {side.name[:8]} was about {about}: {rest}"
        elif side is was and others:
            yield f"run {side.name[:8]} did not judge all cases: {rest}"


def question_changes(
    project: Project, comparison: Comparison
) -> dict[tuple[Sessions, Sessions], str]:
    """Return how questions differ in pairs with the same test and system prompt."""
    pairs = {
        (pair.was.sessions, pair.now.sessions)
        for group in (comparison.broke, comparison.fixed, comparison.changed)
        for pair in group
        if pair.was and pair.now
        if pair.was.sessions and pair.now.sessions and pair.was.sessions != pair.now.sessions
        if (pair.was.tests, pair.was.prompt) == (pair.now.tests, pair.now.prompt)
    }
    ids = {sessions[0] for pair in pairs for sessions in pair}
    sessions = project.store.find_sessions(ids)
    questions = {id: session.question for id, session in sessions.items()}
    words: dict[tuple[Sessions, Sessions], str] = {}
    for was, now in pairs:
        if was[0] not in questions or now[0] not in questions:
            continue
        old, new = questions[was[0]], questions[now[0]]
        if old.model != new.model:
            words[was, now] = _model_change(project, old.model, new.model)
        elif old.temperature != new.temperature:
            words[was, now] = f"temperature {old.temperature} -> {new.temperature}"
        elif old.seed != new.seed:
            words[was, now] = f"seed {old.seed} -> {new.seed}"
    return words


def _model_change(project: Project, was: str, now: str) -> str:
    """Describe how a model changed, with the changed file of an application."""
    old, new = (project.versions.find("model", id) or {} for id in (was, now))
    first = next(iter(differ_models(old, new)), None)
    return str(first) if first and first.what.startswith(CODE_CHANGED) else "model changed"
