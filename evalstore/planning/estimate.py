"""Estimates the cost of a plan: of each batch, and of all together."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from evalstore.core.values import RECORDED, Json, Usage
from evalstore.planning.cells import Cell, limit_of
from evalstore.planning.participants import sum_usage
from evalstore.planning.plan import Plan, PlannedAsk, PlannedJudgement
from evalstore.planning.project import Project
from evalstore.planning.reasons import Reason
from evalstore.providers.price_table import Price

_CHARACTERS = 4
"""Characters of a token, on average."""
_SHORTEST, _LONGEST = 40, 300
"""Bounds for the tokens of an answer of a model without any: as many as in its question."""
_VERDICT = 60
"""Tokens of a judgement."""


def _find_usual(
    project: Project,
    asks: Iterable[tuple[PlannedAsk, Reason]],
    by_models: Iterable[PlannedJudgement],
) -> tuple[dict[str, float], dict[str, float]]:
    """Return what an answer and a judgement have cost where only the stored ones tell.

    Some applications and providers report costs although no price is known. The costs are those
    of model versions, else of the version before, and of evaluators.
    """
    candidates = {ask.cell.candidate for ask, _ in asks}
    models = {each.model: each.id for each in candidates if project.price_of(each.id) is None}
    before: dict[str, str] = {}
    for run in project.store.find_recent_runs() if models else ():
        former = {each.id: each.model for each in run.candidates}
        before |= {
            model: former[id]
            for model, id in models.items()
            if model not in before and former.get(id, model) != model
        }
    costs = project.store.find_usual_costs("session", {*models, *before.values()})
    costs = {model: costs[was] for model, was in before.items() if was in costs} | costs
    judges = {judgement.judge for judgement in by_models if judgement.judge}
    evaluators = {each.evaluator for each in judges if project.price_of(each.id) is None}
    return (
        costs,
        project.store.find_usual_costs("judgement", evaluators),
    )


def _scripted_tokens(project: Project, candidate: str) -> int | None:
    """Return the mean tokens of the answers of a scripted model; None for other models."""
    responses = project.find_model(candidate, "price").responses
    answers = [each["answer"] for each in responses if isinstance(each, dict) and "answer" in each]
    texts = [answer if isinstance(answer, str) else json.dumps(answer) for answer in answers]
    return max(1, sum(map(len, texts)) // len(texts) // _CHARACTERS) if texts else None


def _guess(shown: int, cell: Cell, scripted: int | None = None) -> int:
    """Return the guessed tokens of an answer to so many tokens; a script has its own."""
    tokens = scripted or min(max(shown, _SHORTEST), _LONGEST)
    limit = limit_of(cell)
    return tokens if limit is None else min(tokens, limit)


class _Lengths:
    """The tokens of tests and system prompts."""

    def __init__(self, project: Project, cells: Iterable[Cell]) -> None:
        listed = list(cells)
        self._tests = project.versions.measure(
            "test", [test for cell in listed for test in cell.case.tests]
        )
        self._prompts = project.versions.measure(
            "prompt", [cell.prompt for cell in listed if cell.prompt]
        )

    def shown(self, test: str, prompt: str | None) -> int:
        """Return the tokens of a test with a system prompt."""
        return (self._tests.get(test, 0) + self._prompts.get(prompt or "", 0)) // _CHARACTERS


def count_by_checks(plan: Plan) -> int:
    """Return how many of the judgements of a plan are made by checks, which call no model."""
    return sum(judgement.count for judgement in plan.judgements if judgement.judge is None)


def may_judge_less(plan: Plan) -> bool:
    """Return whether checks that are still to be made may save judgements of models in the plan."""
    checked = {
        (judgement.sessions or judgement.cell.questions, judgement.cell.case.evaluation)
        for judgement in plan.judgements
        if judgement.judge is None
    }
    return any(
        judgement.judge is not None
        and "always" not in judgement.cell.case.judged_by
        and (judgement.sessions or judgement.cell.questions, judgement.cell.case.evaluation)
        in checked
        for judgement in plan.judgements
    )


# --- adds up the cost of a plan, batch by batch


PartKey = tuple[bool, str]
"""Whether a model judges, and its id."""


class PricePart(NamedTuple):
    """What a plan costs with one model, as a candidate or as a judge."""

    model: str
    is_judge: bool
    calls: int
    usd: float | None
    """None when its price is not known."""

    def document(self) -> Json:
        """Return it as JSON."""
        part = "evaluator" if self.is_judge else "candidate"
        return {"model": self.model, "part": part, "calls": self.calls, "cost": self.usd}


class Estimate(NamedTuple):
    """The estimated cost of a plan."""

    usd: float | None
    """None when a price is not known."""
    guess: int | None
    """The mean guessed tokens of an answer; None when stored answers tell those of all."""
    verdict_guess: int | None
    """The guessed tokens of a verdict; None when stored verdicts tell those of all."""
    known: float
    """The part with known prices; the same as `usd` when all are known."""
    unpriced: tuple[str, ...]
    """The models whose price neither a list nor a stored answer or judgement tells."""
    is_simulated: bool
    """Whether all of the cost is of scripted models, so that nobody is paid."""
    parts: tuple[PricePart, ...]
    """The parts of candidates, then those of judges."""


class PriceSums:
    """Estimates what the plans of all batches cost, and adds it up.

    It goes by the usage of the nearest relatives, else by the newest answers of the model. Without
    these an answer is taken to be about as long as its question. A judge is estimated from its
    newest judgements, and a model without a known price from what its newest stored answers and
    judgements have cost, or those of its version before.
    """

    def __init__(self, project: Project) -> None:
        self._project = project
        self._total = self._paid = 0.0
        """The part with known prices, not rounded, and what of it is not of scripted models."""
        self._guessed = self._guesses = 0
        """The guessed tokens of all answers, and how many answers they are of."""
        self._verdict_guess: int | None = None
        self._unpriced: dict[bool, dict[str, None]] = {False: {}, True: {}}
        """The candidates, and the judges, of which neither a price nor an answer tells the cost."""
        self._parts: dict[PartKey, tuple[int, float]] = {}
        """The calls of each part, and what of its cost is known in USD."""

    def add(
        self, asks: Sequence[tuple[PlannedAsk, Reason]], judgements: Iterable[PlannedJudgement]
    ) -> tuple[list[float | None], list[float | None]]:
        """Add a batch; returns what an answer to each ask costs, and each judgement by a model.

        That is in USD for one of them, and None if nothing tells it.
        """
        project = self._project
        relatives = {reason.relative for _, reason in asks if reason.relative}
        samples = project.store.find_samples(relatives) if relatives else {}
        ids = {question: of_question[0].id for question, of_question in samples.items()}
        sessions = project.store.load_sessions([*ids.values()])
        before = {question: sessions[id] for question, id in ids.items()}
        by_models = [judgement for judgement in judgements if judgement.judge]
        new = [ask for ask, reason in asks if (reason.relative or "") not in before]
        lengths = _Lengths(
            project, [*(ask.cell for ask in new), *(each.cell for each in by_models)]
        )
        stored = project.store.find_output_tokens(
            "session", {ask.cell.candidate.model for ask in new}
        )
        scripted = {id: _scripted_tokens(project, id) for id in {a.cell.candidate.id for a in new}}
        usual_asked, usual_judged = _find_usual(project, asks, by_models)
        answers: list[float | None] = []
        for ask, reason in asks:
            candidate, session = ask.cell.candidate, before.get(reason.relative or "")
            price = project.price_of(candidate.id)
            if price is None:
                cost = usual_asked.get(candidate.model)
            elif session:
                cost = price.cost(sum_usage(session.turns)).usd
            else:
                shown = lengths.shown(ask.question.test, ask.question.prompt)
                usual = stored.get(candidate.model)
                written = _guess(shown, ask.cell, scripted[candidate.id])
                cost = price.cost(Usage(shown, usual.mean if usual else written)).usd
                if not usual:
                    self._guessed += ask.count * written
                    self._guesses += ask.count
            answers.append(self._add_part(ask, (False, candidate.id), cost, price))
        return answers, self._add_judgements(by_models, lengths, usual_judged)

    def _add_judgements(
        self,
        by_models: Sequence[PlannedJudgement],
        lengths: _Lengths,
        usual: Mapping[str, float],
    ) -> list[float | None]:
        """Add judgements; returns the cost of one for each."""
        project = self._project
        judges = {judgement.judge for judgement in by_models if judgement.judge}
        prompts = project.versions.measure("prompt", {judge.prompt for judge in judges})
        evaluations = project.versions.measure(
            "evaluation", [each.cell.case.evaluation or "" for each in by_models]
        )
        measured = project.store.find_judging_usage({judge.evaluator for judge in judges})
        costs: list[float | None] = []
        for judgement in by_models:
            judge, case = judgement.judge, judgement.cell.case
            assert judge
            price, usage = project.price_of(judge.id), measured.get(judge.evaluator)
            if price is None:
                cost = usual.get(judge.evaluator)
            elif usage:
                cost = price.cost(usage).usd
            else:
                length = max(lengths.shown(test, judgement.cell.prompt) for test in case.tests)
                texts = prompts.get(judge.prompt, 0) + evaluations.get(case.evaluation or "", 0)
                shown = texts // _CHARACTERS + _guess(length, judgement.cell)
                cost = price.cost(Usage(shown, _VERDICT)).usd
                if cost != price.cost(Usage(shown, 0)).usd:
                    self._verdict_guess = _VERDICT
            costs.append(self._add_part(judgement, (True, judge.id), cost, price))
        return costs

    def _add_part(
        self,
        planned: PlannedAsk | PlannedJudgement,
        key: PartKey,
        cost: float | None,
        price: Price | None,
    ) -> float | None:
        """Add what is planned, with the cost of one, which is returned."""
        if cost is None:
            self._unpriced[key[0]][key[1]] = None
        calls, known = self._parts.get(key, (0, 0.0))
        usd = planned.count * (cost or 0.0)
        self._parts[key] = calls + planned.count, known + usd
        self._total += usd
        self._paid += 0.0 if price and price.is_simulated else usd
        return cost

    def finish(self) -> Estimate:
        """Return the estimated cost of all batches."""
        names = tuple(dict.fromkeys((*self._unpriced[False], *self._unpriced[True])))
        known = round(self._total, 6)
        return Estimate(
            usd=None if names else known,
            guess=round(self._guessed / self._guesses) if self._guesses else None,
            verdict_guess=self._verdict_guess,
            known=known,
            unpriced=names,
            is_simulated=self._total > 0 and not self._paid and not names,
            parts=tuple(
                PricePart(model, is_judge, calls, None if model in names else round(usd, 6))
                for (is_judge, model), (calls, usd) in sorted(self._parts.items())
                if model != RECORDED
            ),
        )
