"""Explains a comparison: how questions and evaluators differ, and which cases runs are about."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from evalstore.comparison.answer_pairs import ANOTHER, OLDER, counts_older, has_other_answers
from evalstore.comparison.candidate_edits import number_or_none
from evalstore.comparison.version_diff import CODE_CHANGED, differ_models
from evalstore.core.display import plural
from evalstore.files.filed_mapping import FiledMapping
from evalstore.results.compare.same_answers import sessions_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from evalstore.comparison.comparison import Comparison, Pair
    from evalstore.core.results import ComparedSession
    from evalstore.planning.project import Project
    from evalstore.results.compare.compared_side import Side
    from evalstore.results.compare.diff_reasons import PairIds


def selection_notes(was: Side, filled: Side, now: Side) -> Iterator[str]:
    """Yield notes about runs of only some of the cases, and about unfinished runs."""
    others = len(filled.earlier)
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
    numbers = Counter(sides for sides in comparison.attempts() if sides[0] != sides[1])
    if numbers:
        kinds = {f"{was} -> {now}" for was, now in numbers}
        which = f" ({kinds.pop()})" if len(kinds) == 1 else ""
        count = numbers.total()
        results = f"{plural(count, 'result')} {'has' if count == 1 else 'have'}"
        yield (
            f"{results} another number of attempts{which}: that alone changes how often "
            "a verdict is a pass"
        )


def _scope(side: Side) -> str:
    """Return the selection of a run, with the number of its results."""
    return f"{side.selection} ({plural(side.count, 'result')})"


def alone_notes(count: int) -> list[str]:
    """Return the note on results of cases that have only one of two system prompts, if any."""
    if not count:
        return []
    verb = "is" if count == 1 else "are"
    return [f"{plural(count, 'result')} of cases with only one of both prompts {verb} left out"]


class QuestionChanges:
    """Describes how questions, or the ages of answers, differ in pairs that are the same otherwise.

    In both directions, as a comparison can be turned around.
    """

    def __init__(self, project: Project) -> None:
        self.words: FiledMapping[PairIds, str] = FiledMapping()
        """By the sessions of both sides."""
        self._project = project
        self._of_models: dict[tuple[str, str], str] = {}

    def read(self, pairs: Iterable[Pair], sessions: Mapping[str, ComparedSession]) -> None:
        """Add the pairs that have other answers, whose sessions are given."""
        others = filter(has_other_answers, pairs)
        both = (side for pair in others for side in (pair, pair.swapped()))
        found = {sessions_of(side): self._describe(side, sessions) for side in both}
        self.words.update({ids: change for ids, change in found.items() if change})

    def _describe(self, pair: Pair, sessions: Mapping[str, ComparedSession]) -> str:
        """Describe how the question, or the age of the answers, differs; empty if neither does."""
        assert pair.was
        assert pair.now
        was, now = (sessions.get(side.sessions[0]) for side in (pair.was, pair.now))
        if was is None or now is None:
            return ""
        old, new = was.question, now.question
        if old.model != new.model:
            models = old.model, new.model
            if models not in self._of_models:
                self._of_models[models] = _model_change(self._project, *models)
            return self._of_models[models]
        if old.temperature != new.temperature:
            temperatures = map(number_or_none, (old.temperature, new.temperature))
            return "temperature " + " -> ".join(temperatures)
        if old.seed != new.seed:
            return f"seed {old.seed} -> {new.seed}"
        words = OLDER if counts_older(pair, sessions) else ""
        if was.resolved and now.resolved and not {*was.resolved} & {*now.resolved}:
            names = " -> ".join(", ".join(side.resolved) for side in (was, now))
            return f"{words or ANOTHER}: resolved model {names}"
        return words


def _model_change(project: Project, was: str, now: str) -> str:
    """Describe how a model changed, with the changed file of an application."""
    old, new = (project.versions.find("model", id) or {} for id in (was, now))
    first = next(iter(differ_models(old, new)), None)
    return str(first) if first and first.subject.startswith(CODE_CHANGED) else "model changed"
