"""Estimates the cost of a plan: of each batch, and of all together."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import NamedTuple

from evalstore.core.results import Session
from evalstore.core.values import RECORDED, Json, Usage
from evalstore.planning.cells.cells import Cell, limit_of
from evalstore.planning.plan import Plan, PlannedAsk, PlannedJudgement
from evalstore.planning.pricing import sum_usage
from evalstore.planning.project import Project
from evalstore.planning.reasons.reason import Reason
from evalstore.workspace.digest_set import DigestSet, digest_of_value

_CHARACTERS = 4
"""Characters of a token, on average."""
_SHORTEST, _LONGEST = 40, 300
"""Bounds for the tokens of an answer of a model without any: as many as in its question."""
_VERDICT = 60
"""Tokens of a judgement."""


def estimate(
    project: Project,
    asks: list[tuple[PlannedAsk, Reason]],
    judgements: Iterable[PlannedJudgement],
) -> BatchPrice:
    """Estimate what a plan costs, or that of a batch.

    It goes by the usage of the nearest relatives, else by the newest answers of the model. Without
    these an answer is taken to be about as long as its question. A judge is estimated from its
    newest judgements, and a model without a known price from what its newest stored answers and
    judgements have cost, or from the mean of those of its version before.
    """
    relatives = {reason.relative for _, reason in asks if reason.relative}
    samples = project.store.find_samples(relatives) if relatives else {}
    sessions = project.store.load_sessions([of_question[0].id for of_question in samples.values()])
    usages = {
        question: sum_usage(sessions[of_question[0].id].turns)
        for question, of_question in samples.items()
    }
    by_models = [judgement for judgement in judgements if judgement.judge]
    new = [ask for ask, reason in asks if (reason.relative or "") not in usages]
    stored = project.store.find_output_tokens("session", {ask.cell.candidate.model for ask in new})
    lengths = _Lengths(
        project, [*(ask.cell for ask in new), *(by_model.cell for by_model in by_models)]
    )
    prompts = project.versions.measure(
        "prompt", {by_model.judge.prompt for by_model in by_models if by_model.judge}
    )
    evaluation_lengths = project.versions.measure(
        "evaluation",
        [
            judgement.cell.case.evaluation
            for judgement in by_models
            if judgement.cell.case.evaluation
        ],
    )
    measured = project.store.find_judging_usage(
        {by_model.judge.evaluator for by_model in by_models if by_model.judge}
    )
    scripted = {id: _scripted_tokens(project, id) for id in {a.cell.candidate.id for a in new}}
    total, paid, guessed, count = 0.0, 0.0, 0, 0
    verdict_guess: int | None = None
    by_mean = Counter[str]()
    parts: dict[PartKey, tuple[int, float]] = {}

    def add(
        planned: PlannedAsk | PlannedJudgement,
        key: PartKey,
        usd: float,
        *,
        is_simulated: bool = False,
    ) -> None:
        nonlocal total, paid
        calls, known = parts.get(key, (0, 0.0))
        parts[key] = calls + planned.count, known + planned.count * usd
        total += planned.count * usd
        paid += 0.0 if is_simulated else planned.count * usd

    unpriced: dict[str, None] = {}
    answers: list[float | None] = []
    judged: list[float | None] = []
    usual_asked, usual_judged = _find_usual(project, asks, by_models)
    for ask, reason in asks:
        price = project.price_of(ask.cell.candidate.id)
        if price is None:
            cost = usual_asked.get(ask.cell.candidate.model)
            if cost is None:
                by_mean[ask.cell.candidate.id] += ask.count
            answers.append(cost)
            add(ask, (False, ask.cell.candidate.id), cost or 0.0)
            continue
        usage = usages.get(reason.relative or "")
        if usage is None:
            shown = lengths.shown(ask.question.test, ask.question.prompt)
            usual = stored.get(ask.cell.candidate.model)
            written = _guess(shown, ask.cell, scripted[ask.cell.candidate.id])
            usage = Usage(shown, usual.mean if usual else written)
            if not usual:
                guessed += ask.count * (usage.output_tokens or 0)
                count += ask.count
        usd = price.cost(usage).usd
        answers.append(usd)
        add(ask, (False, ask.cell.candidate.id), usd, is_simulated=price.is_simulated)
    for judgement in by_models:
        assert judgement.judge
        price = project.price_of(judgement.judge.id)
        if price is None:
            cost = usual_judged.get(judgement.judge.evaluator)
            if cost is None:
                unpriced[judgement.judge.id] = None
            judged.append(cost)
            add(judgement, (True, judgement.judge.id), cost or 0.0)
            continue
        usage = measured.get(judgement.judge.evaluator)
        if usage is None:
            length = max(
                lengths.shown(test, judgement.cell.prompt) for test in judgement.cell.case.tests
            )
            texts = prompts.get(judgement.judge.prompt, 0) + evaluation_lengths.get(
                judgement.cell.case.evaluation or "", 0
            )
            shown = texts // _CHARACTERS + _guess(length, judgement.cell)
            usage = Usage(shown, _VERDICT)
            if price.cost(usage) != price.cost(Usage(shown, 0)):
                verdict_guess = _VERDICT
        usd = price.cost(usage).usd
        judged.append(usd)
        add(judgement, (True, judgement.judge.id), usd, is_simulated=price.is_simulated)
    relative_sessions = {id: sessions[each[0].id] for id, each in samples.items()}
    return BatchPrice(
        answers=tuple(answers),
        judgements=tuple(judged),
        total=total,
        paid=paid,
        guessed=(guessed, count),
        verdict_guess=verdict_guess,
        by_mean=by_mean,
        costs_before=_costs_before(asks, relative_sessions, by_mean) if by_mean else {},
        unpriced_judges=tuple(unpriced),
        parts=parts,
    )


def _find_usual(
    project: Project,
    asks: Iterable[tuple[PlannedAsk, Reason]],
    by_models: Iterable[PlannedJudgement],
) -> tuple[dict[str, float], dict[str, float]]:
    """Return what an answer and a judgement have cost where only the stored ones tell.

    Some applications and providers report costs although no price is known. The costs are those
    of model versions and of evaluators.
    """
    candidates = {ask.cell.candidate for ask, _ in asks}
    models = {each.model for each in candidates if project.price_of(each.id) is None}
    judges = {judgement.judge for judgement in by_models if judgement.judge}
    evaluators = {each.evaluator for each in judges if project.price_of(each.id) is None}
    return (
        project.store.find_usual_costs("session", models),
        project.store.find_usual_costs("judgement", evaluators),
    )


def _costs_before(
    asks: Iterable[tuple[PlannedAsk, Reason]],
    relatives: Mapping[str, Session],
    candidates: Collection[str],
) -> dict[str, dict[str, float]]:
    """Return what the answers that are asked for again have cost, by question, of candidates."""
    costs: dict[str, dict[str, float]] = {}
    for ask, reason in asks:
        candidate, session = ask.cell.candidate.id, relatives.get(reason.relative or "")
        if candidate in candidates and reason.relative and session and session.cost:
            costs.setdefault(candidate, {})[reason.relative] = session.cost.usd
    return costs


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


class BatchPrice(NamedTuple):
    """What the plan of a batch costs, as far as it tells that."""

    answers: tuple[float | None, ...]
    """USD of one answer for each of the asks; None when its price is not known, or is a mean."""
    judgements: tuple[float | None, ...]
    """The same of one judgement for each of those by models."""
    total: float
    """The part with known prices, not rounded."""
    paid: float
    """The part of `total` that is not of scripted models."""
    guessed: tuple[int, int]
    """The guessed tokens of all answers, and how many answers they are of."""
    verdict_guess: int | None
    """The guessed tokens of a verdict by a judge without any; None if there is none."""
    by_mean: Mapping[str, int]
    """The candidates whose price only the answers that are asked for again tell, by id, each with
    how many answers it is asked for."""
    costs_before: Mapping[str, Mapping[str, float]]
    """What these answers have cost in USD: by the id of such a candidate and by question."""
    unpriced_judges: tuple[str, ...]
    """The judges whose price is not known."""
    parts: Mapping[PartKey, tuple[int, float]]
    """The calls of each part of `total`, and what of it is known in USD."""


class MeanCosts:
    """The mean cost of the answers that are asked for again, by candidate, each counted once.

    They are those of its version before, as of an application whose code was edited. Of each few
    bytes are kept.
    """

    def __init__(self) -> None:
        self._seen = DigestSet()
        self._sums: dict[str, Fraction] = {}
        """Exact, so that the order of the batches does not matter."""
        self._counts = Counter[str]()

    def add(self, costs: Mapping[str, Mapping[str, float]]) -> None:
        """Add costs in USD, by the id of the candidate and by question."""
        for candidate, by_question in costs.items():
            for question, usd in by_question.items():
                if self._seen.add(digest_of_value((candidate, question))):
                    self._sums[candidate] = self._sums.get(candidate, Fraction()) + Fraction(usd)
                    self._counts[candidate] += 1

    def find(self, candidate: str) -> float | None:
        """Return the mean of a candidate in USD; None if it has no answer with a cost."""
        count = self._counts[candidate]
        return float(self._sums[candidate]) / count if count else None


class PriceSums:
    """The sums of the prices of all batches."""

    def __init__(self) -> None:
        self.means = MeanCosts()
        self._total, self._paid, self._guessed = 0.0, 0.0, (0, 0)
        self._verdict_guess: int | None = None
        self._by_mean = Counter[str]()
        self._unpriced_judges: dict[str, None] = {}
        self._parts: dict[PartKey, tuple[int, float]] = {}

    def add(self, price: BatchPrice) -> None:
        """Add the price of a batch."""
        self._total += price.total
        self._paid += price.paid
        tokens, answers = price.guessed
        self._guessed = (self._guessed[0] + tokens, self._guessed[1] + answers)
        self._verdict_guess = self._verdict_guess or price.verdict_guess
        self._by_mean.update(price.by_mean)
        self.means.add(price.costs_before)
        self._unpriced_judges.update(dict.fromkeys(price.unpriced_judges))
        for key, (calls, usd) in price.parts.items():
            before = self._parts.get(key, (0, 0.0))
            self._parts[key] = before[0] + calls, before[1] + usd

    def finish(self) -> Estimate:
        """Return the estimated cost of all batches."""
        total, paid = self._total, self._paid
        unpriced: list[str] = []
        for candidate, answers in self._by_mean.items():
            mean = self.means.find(candidate)
            if mean is None:
                unpriced.append(candidate)
            total += answers * (mean or 0.0)
            paid += answers * (mean or 0.0)
        names = tuple(dict.fromkeys((*unpriced, *self._unpriced_judges)))
        known = round(total, 6)
        tokens, count = self._guessed
        return Estimate(
            usd=None if names else known,
            guess=round(tokens / count) if count else None,
            verdict_guess=self._verdict_guess,
            known=known,
            unpriced=names,
            is_simulated=total > 0 and not paid and not names,
            parts=tuple(self._list_parts(names)),
        )

    def _list_parts(self, unpriced: Collection[str]) -> Iterator[PricePart]:
        """Yield the parts, those of candidates first."""
        for (is_judge, model), (calls, usd) in sorted(self._parts.items()):
            mean = 0.0 if is_judge else self.means.find(model) or 0.0
            if model == RECORDED:
                continue
            cost = round(usd + self._by_mean[model] * mean, 6)
            yield PricePart(model, is_judge, calls, None if model in unpriced else cost)


def add_up(prices: Iterable[BatchPrice]) -> Estimate:
    """Return the estimated cost of all batches of a plan."""
    sums = PriceSums()
    for price in prices:
        sums.add(price)
    return sums.finish()
