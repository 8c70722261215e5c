"""Adds the costs and times of its answers and judgements to each result."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from evalstore.judging.aggregation import combine_votes, judge_so_far
from evalstore.operations.attempts import group_votes
from evalstore.planning.plan import CHECKS
from evalstore.providers.kinds import SCRIPTED
from evalstore.reports.group_totals import CallFacts, MeasuredResult, Spending
from evalstore.results import Evaluation, Result
from evalstore.values import RECORDED, Case, Reply

if TYPE_CHECKING:
    from evalstore.judging.aggregation import JudgedSession
    from evalstore.operations.stats_filter import Filter
    from evalstore.planning.pricing import Price
    from evalstore.store import Store
    from evalstore.store.costs import JudgingCost, Spent, StoredJudgement

_AT_ONCE = 4_000
"""Results whose answers and judgements are looked up together."""
_FREE = (SCRIPTED, RECORDED)
"""Providers whose answers cost nothing when they have no price."""


class Calls(Protocol):
    """Where the facts of answers and judgements come from: a store, or what is read of it."""

    def find_spent(self, sessions: Iterable[str], /) -> Mapping[str, Spent]:
        """Return the cost and the duration of these sessions, by id."""

    def find_judging_costs(self, evaluations: Iterable[str], /) -> Mapping[str, JudgingCost]:
        """Return who made these evaluations, when, and what they cost, by id."""


class ResultMeter:
    """Adds the facts of their answers and judgements to results."""

    def __init__(
        self,
        store: Store,
        rule: str,
        keep: Filter,
        convert: Callable[[float, int], float],
        prices: Mapping[str, Price],
    ) -> None:
        """`rule` combines votes; `convert` makes an amount of the currency of USD at a time.

        `prices` are those of today by model version, for calls whose price was not known.
        """
        self._store, self._rule, self._keep = store, rule, keep
        self._prices = CostReader(store, convert, prices=prices)

    def measure(
        self, batch: Sequence[tuple[Result, Case]], calls: Calls
    ) -> Iterator[tuple[MeasuredResult, Case]]:
        """Yield results, which all count, with the facts of their answers and judgements."""
        keep, rule = self._keep, self._rule
        made = [id for result, _ in batch for id in result.evaluations]
        asked = [id for result, _ in batch for id in result.sessions]
        spent, costs = self.find_spending(asked, made, calls)
        needs_votes = keep.is_about_votes or any(_count_attempts(*entry) > 1 for entry in batch)
        judged = self._store.find_judgements(made) if needs_votes else {}
        answers = {id: CallFacts(hash(id), *facts) for id, facts in spent.items()}
        judgements = {id: CallFacts(hash(id), *facts) for id, facts in costs.items()}
        for result, case in batch:
            verdict = result.verdict
            attempts: list[JudgedSession] = []
            expected = _count_attempts(result, case)
            if keep.is_about_votes or expected > 1:
                votes = [judged[id] for id in result.evaluations if id in judgements]
                attempts = _judge_attempts(votes, case.judged_by, rule)
            if keep.is_about_votes:
                is_whole = len(attempts) == expected
                verdict = combine_votes(attempts, rule).verdict if is_whole else None
            yield (
                MeasuredResult(
                    result,
                    verdict,
                    [answers[id] for id in result.sessions if id in answers],
                    [judgements[id] for id in result.evaluations if id in judgements],
                    [word for word, _ in attempts] if len(attempts) == expected else [],
                ),
                case,
            )

    def find_spending(
        self, sessions: Iterable[str], evaluations: Iterable[str], calls: Calls
    ) -> tuple[dict[str, Spending], dict[str, Spending]]:
        """Return the spending of answers, and of those of the judgements that count, by id."""
        keep, prices = self._keep, self._prices
        spent = calls.find_spent(sessions)
        made = {
            id: cost
            for id, cost in calls.find_judging_costs(evaluations).items()
            if keep.evaluator(cost.evaluator)
        }
        answers = prices.costs_of_answers(spent)
        return (
            {id: (usd, spent[id].seconds) for id, usd in answers.items()},
            {id: (usd, None) for id, usd in prices.costs_of_judgements(made).items()},
        )

    @property
    def priced_later(self) -> int:
        """Return how many calls have today's price, as theirs was not known."""
        return len(self._prices.later)


def _judge_attempts(
    judgements: Iterable[StoredJudgement], judged_by: Collection[str], rule: str
) -> list[JudgedSession]:
    """Return the verdicts on attempts, apart from those on which those who decide are to vote."""
    by_attempt = group_votes((each.subject, each.vote) for each in judgements)
    judged = (judge_so_far(votes, judged_by, CHECKS, rule) for votes in by_attempt.values())
    return [each for each in judged if each is not None]


def _count_attempts(result: Result, case: Case) -> int:
    """Return how many answers to each conversation of a case are required."""
    return max(1, result.required_answers // max(1, len(case.tests)))


def select_results(
    batches: Iterable[list[tuple[Result, Case]]], keep: Filter
) -> Iterator[list[tuple[Result, Case]]]:
    """Yield the results that count, in larger batches."""
    waiting: list[tuple[Result, Case]] = []
    for batch in batches:
        waiting += [entry for entry in batch if keep(*entry)]
        if len(waiting) >= _AT_ONCE:
            yield waiting
            waiting = []
    yield waiting


class CostReader:
    """Computes the cost of answers and judgements in a currency."""

    def __init__(
        self,
        store: Store,
        convert: Callable[[float, int], float] = lambda usd, _: usd,
        *,
        prices: Mapping[str, Price],
    ) -> None:
        """`convert` makes an amount of the currency of USD at a time.

        `prices` are those of today by model version.
        """
        self._store, self._today = store, prices
        self.later: dict[str, float] = {}
        """The cost in USD, at the prices of today, of calls whose price was not known."""
        self._convert = convert
        evaluators, models = store.load_all("evaluator"), store.load_all("model")
        self._models: dict[str, str | None] = {
            id: content.get("model") for id, content in evaluators.items()
        }
        """The models of evaluators; checks and people have none."""
        self._free = {id for id, content in models.items() if content["provider"] in _FREE}

    def costs_of_answers(self, spent: Mapping[str, Spent]) -> dict[str, float | None]:
        """Return the costs of answers in the currency by id; None where one is unknown."""
        unknown = [id for id, each in spent.items() if self._may_price(each.usd, each.model)]
        for id, session in self._store.find_sessions(set(unknown) - self.later.keys()).items():
            self._price(id, session.question.model, session.turns)
        return {
            id: self._cost(id, each.usd, each.started, each.model) for id, each in spent.items()
        }

    def costs_of_judgements(self, made: Mapping[str, JudgingCost]) -> dict[str, float | None]:
        """Return the costs of judgements in the currency by id; None where one is unknown."""
        models = {id: self.model_of(each.evaluator) for id, each in made.items()}
        unknown = [id for id, each in made.items() if self._may_price(each.usd, models[id])]
        for id, each in self._store.find_evaluations(set(unknown) - self.later.keys()).items():
            self._price(id, models[id] or "", [each])
        return {id: self._cost(id, each.usd, each.started, models[id]) for id, each in made.items()}

    def model_of(self, evaluator: str) -> str | None:
        """Return the model version of an evaluator; None for checks and people."""
        return self._models.get(evaluator)

    def is_free(self, model: str | None) -> bool:
        """Return whether calls of a model version without a price cost nothing."""
        return model is None or model in self._free

    def _may_price(self, usd: float | None, model: str | None) -> bool:
        return usd is None and model in self._today

    def _price(self, id: str, model: str, calls: Sequence[Reply | Evaluation]) -> None:
        """Price a call at the price of today, if its tokens are known."""
        if (usd := self._today[model].cost_of(calls)) is not None:
            self.later[id] = usd

    def _cost(self, id: str, usd: float | None, at: int, model: str | None) -> float | None:
        usd = self.later.get(id) if usd is None else usd
        if usd is not None:
            return self._convert(usd, at)
        return 0.0 if self.is_free(model) else None
