"""Adds up the estimated cost of a plan, batch by batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import NamedTuple

from evalstore.core.values import RECORDED, Json
from evalstore.workspace.digest_set import DigestSet, digest_of_value

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
