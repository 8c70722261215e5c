"""Explains a comparison: how questions and evaluators differ, and which cases runs are about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.display import plural
from evalstore.reports.answer_pairs import OLDER, counts_older, has_other_answers
from evalstore.reports.version_diff import CODE_CHANGED, differ_models

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from evalstore.operations.compared_side import Side
    from evalstore.operations.same_answers import Sessions
    from evalstore.planning.project import Project
    from evalstore.reports.comparison import Comparison, Pair
    from evalstore.results import Result, Session


def selection_notes(was: Side, filled: Side, now: Side) -> Iterator[str]:
    """Yield notes about runs of only some of the cases, and about unfinished runs."""
    own = {id(result) for result in was.results}
    others = sum(1 for result in filled.results if id(result) not in own)
    verb = "is" if others == 1 else "are"
    earlier = f"{plural(others, 'other')} {verb} taken from the last earlier run that judged them"
    if not others and was.name != now.name and was.selection and _scope(was) == _scope(now):
        runs = f"runs {was.name[:8]} and {now.name[:8]}"
        yield f"{runs} covered only {_scope(was)}; only those are compared"
        return
    for side in (was, now) if was is not now else (was,):
        rest = earlier if side is was and others else "only those are compared"
        if side.selection:
            yield f"run {side.name[:8]} covered only {_scope(side)}; {rest}"
        elif side is was and others:
            yield f"run {side.name[:8]} did not judge all cases; {rest}"


def attempts_notes(comparison: Comparison) -> Iterator[str]:
    """Yield a note about results whose verdicts are those of more or fewer attempts than before.

    A majority of several attempts passes at another rate than a single one, without any edit.
    """
    numbers = [
        (was, now)
        for pair in comparison.pairs
        if pair.was and pair.now
        for was, now in [(_attempts(pair.was), _attempts(pair.now))]
        if was != now
    ]
    if numbers:
        kinds = {f"{was} -> {now}" for was, now in numbers}
        which = f" ({kinds.pop()})" if len(kinds) == 1 else ""
        results = f"{plural(len(numbers), 'result')} {'has' if len(numbers) == 1 else 'have'}"
        yield (
            f"{results} another number of attempts{which}: that alone changes how often "
            "a verdict is a pass"
        )


def _attempts(result: Result) -> int:
    return result.required_answers // len(result.tests)


def _scope(side: Side) -> str:
    """Return the selection of a run, with the number of its results."""
    return f"{side.selection} ({plural(len(side.results), 'result')})"


def alone_notes(count: int) -> list[str]:
    """Return the note on results of cases that have only one of two system prompts, if any."""
    if not count:
        return []
    verb = "is" if count == 1 else "are"
    return [f"{plural(count, 'result')} of cases with only one of both prompts {verb} left out"]


def question_changes(
    project: Project, pairs: Iterable[Pair], sessions: Mapping[str, Session]
) -> dict[tuple[Sessions, Sessions], str]:
    """Return how questions, or the ages of answers, differ in pairs that are the same otherwise.

    In both directions, as a comparison can be turned around.
    """
    words: dict[tuple[Sessions, Sessions], str] = {}
    for pair in filter(has_other_answers, pairs):
        assert pair.was
        assert pair.now
        was, now = pair.was.sessions, pair.now.sessions
        words[was, now] = _question_change(project, pair, sessions)
        words[now, was] = _question_change(project, pair.swapped(), sessions)
    return {sides: change for sides, change in words.items() if change}


def _question_change(project: Project, pair: Pair, sessions: Mapping[str, Session]) -> str:
    """Describe how the question, or the age of the answers, differs; empty if neither does."""
    assert pair.was
    assert pair.now
    was, now = (sessions.get(side.sessions[0]) for side in (pair.was, pair.now))
    if was is None or now is None:
        return ""
    old, new = was.question, now.question
    if old.model != new.model:
        return _model_change(project, old.model, new.model)
    if old.temperature != new.temperature:
        return f"temperature {old.temperature} -> {new.temperature}"
    if old.seed != new.seed:
        return f"seed {old.seed} -> {new.seed}"
    return OLDER if counts_older(pair, sessions) else ""


def _model_change(project: Project, was: str, now: str) -> str:
    """Describe how a model changed, with the changed file of an application."""
    old, new = (project.versions.find("model", id) or {} for id in (was, now))
    first = next(iter(differ_models(old, new)), None)
    return str(first) if first and first.subject.startswith(CODE_CHANGED) else "model changed"
