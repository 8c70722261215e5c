"""Explains a comparison: how questions differ, and which cases a run was restricted to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.display import plural
from evalstore.reports.answer_pairs import OLDER, counts_older, has_other_answers
from evalstore.reports.version_diff import CODE_CHANGED, differ_models

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from evalstore.operations.diff_sides import Side
    from evalstore.planning.project import Project
    from evalstore.reports.comparison import Pair
    from evalstore.results import Session

Sessions = tuple[str, ...]
"""The sessions of one side of a pair."""


def selection_notes(was: Side, filled: Side, now: Side) -> Iterator[str]:
    """Yield notes about runs of only some of the cases, and about unfinished runs."""
    own = {id(result) for result in was.results}
    others = sum(1 for result in filled.results if id(result) not in own)
    verb = "is" if others == 1 else "are"
    earlier = f"{plural(others, 'other')} {verb} taken from the last earlier run that judged them"
    for side in (was, now):
        rest = earlier if side is was and others else "only those are compared"
        if side.selection:
            scope = f"{side.selection} ({plural(len(side.results), 'case')})"
            yield f"run {side.name[:8]} covered only {scope}; {rest}"
        elif side is was and others:
            yield f"run {side.name[:8]} did not judge all cases; {rest}"


def question_changes(
    project: Project, pairs: Iterable[Pair], sessions: Mapping[str, Session]
) -> dict[tuple[Sessions, Sessions], str]:
    """Return how questions, or the ages of answers, differ in pairs that are the same otherwise."""
    words: dict[tuple[Sessions, Sessions], str] = {}
    for pair in filter(has_other_answers, pairs):
        assert pair.was
        assert pair.now
        was, now = pair.was.sessions, pair.now.sessions
        if was[0] not in sessions or now[0] not in sessions:
            continue
        old, new = sessions[was[0]].question, sessions[now[0]].question
        if old.model != new.model:
            words[was, now] = _model_change(project, old.model, new.model)
        elif old.temperature != new.temperature:
            words[was, now] = f"temperature {old.temperature} -> {new.temperature}"
        elif old.seed != new.seed:
            words[was, now] = f"seed {old.seed} -> {new.seed}"
        elif counts_older(pair, sessions):
            words[was, now] = OLDER
    return words


def _model_change(project: Project, was: str, now: str) -> str:
    """Describe how a model changed, with the changed file of an application."""
    old, new = (project.versions.find("model", id) or {} for id in (was, now))
    first = next(iter(differ_models(old, new)), None)
    return str(first) if first and first.subject.startswith(CODE_CHANGED) else "model changed"
