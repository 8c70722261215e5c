"""What a plan is likely to cost, before anything of it is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from evalstore.planning.cells import limit_of
from evalstore.planning.pricing import sum_usage
from evalstore.values import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalstore.planning.cells import Cell
    from evalstore.planning.plan import PlannedAsk, PlannedJudgement
    from evalstore.planning.project import Project
    from evalstore.planning.reasons import Reason

_CHARACTERS = 4
"""Of a token, on average."""
_SHORTEST, _LONGEST = 40, 300
"""Tokens of an answer that nothing is known of: as many as it is shown, within these bounds."""
_VERDICT = 60
"""Tokens of a judgement."""


class Estimate(NamedTuple):
    """A price before the fact."""

    usd: float | None
    """None: a price is not known."""
    guess: int | None
    """Tokens that an answer is guessed to have, on average; None: all have stored relatives."""


def estimate(
    project: Project,
    asks: list[tuple[PlannedAsk, Reason]],
    judgements: list[tuple[PlannedJudgement, Reason]],
) -> Estimate:
    """What the plan would cost, by the usage of the nearest relatives, else by lengths of texts."""
    relatives = {reason.relative for _, reason in asks if reason.relative}
    samples = project.store.find_samples(relatives) if relatives else {}
    sessions = project.store.load_sessions([found[0].id for found in samples.values()])
    usages = {
        question: sum_usage(sessions[found[0].id].turns) for question, found in samples.items()
    }
    by_models = [one for one, _ in judgements if one.judge]
    new = [ask for ask, reason in asks if (reason.relative or "") not in usages]
    lengths = _Lengths(
        project, [*(one.cell for one in new), *(by_model.cell for by_model in by_models)]
    )
    prompts = project.versions.measure(
        "prompt", {by_model.judge.prompt for by_model in by_models if by_model.judge}
    )
    told = project.versions.measure(
        "evaluation",
        [one.cell.case.evaluation for one in by_models if one.cell.case.evaluation],
    )
    total, guessed, count = 0.0, 0, 0
    for ask, reason in asks:
        found = project.price_of(ask.cell.candidate.id)
        if found is None:
            return Estimate(None, None)
        usage = usages.get(reason.relative or "")
        if usage is None:
            shown = lengths.shown(ask.question.test, ask.question.prompt)
            usage = Usage(shown, _guess(shown, ask.cell))
            guessed += ask.count * (usage.output_tokens or 0)
            count += ask.count
        total += ask.count * found.cost(usage).usd
    for one in by_models:
        assert one.judge
        found = project.price_of(one.judge.id)
        if found is None:
            return Estimate(None, None)
        asked = max(lengths.shown(test, one.cell.prompt) for test in one.cell.case.tests)
        texts = prompts.get(one.judge.prompt, 0) + told.get(one.cell.case.evaluation or "", 0)
        usage = Usage(texts // _CHARACTERS + _guess(asked, one.cell), _VERDICT)
        total += one.count * found.cost(usage).usd
    return Estimate(round(total, 6), round(guessed / count) if count else None)


def _guess(shown: int, cell: Cell) -> int:
    """Tokens of an answer to so many tokens."""
    tokens = min(max(shown, _SHORTEST), _LONGEST)
    limit = limit_of(cell)
    return tokens if limit is None else min(tokens, limit)


class _Lengths:
    """How many tokens candidates are shown."""

    def __init__(self, project: Project, cells: Iterable[Cell]) -> None:
        listed = list(cells)
        self._tests = project.versions.measure(
            "test", [test for cell in listed for test in cell.case.tests]
        )
        self._prompts = project.versions.measure(
            "prompt", [cell.prompt for cell in listed if cell.prompt]
        )

    def shown(self, test: str, prompt: str | None) -> int:
        """Tokens of a test and a system prompt."""
        return (self._tests.get(test, 0) + self._prompts.get(prompt or "", 0)) // _CHARACTERS
