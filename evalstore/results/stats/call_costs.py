"""Computes what answers and judgements cost in a currency, some of them at the prices of today."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from evalstore.core.results import Evaluation
from evalstore.core.values import RECORDED, Reply
from evalstore.providers.kinds import SCRIPTED

if TYPE_CHECKING:
    from evalstore.planning.pricing import Price
    from evalstore.store import Store
    from evalstore.store.costs import Spent

_FREE = (SCRIPTED, RECORDED)
"""Providers whose answers cost nothing when they have no price."""


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
        self.convert = convert
        evaluators, models = store.load_all("evaluator"), store.load_all("model")
        self._models: dict[str, str | None] = {
            id: content.get("model") for id, content in evaluators.items()
        }
        """The models of evaluators; checks and people have none."""
        self._free = {id for id, content in models.items() if content["provider"] in _FREE}

    def costs_of_answers(self, spent: Mapping[str, Spent]) -> dict[str, float | None]:
        """Return the costs of answers in the currency by id; None where one is unknown."""
        unknown = [
            id for id, each in spent.items() if each.usd is None and self.has_price(each.maker)
        ]
        for id, session in self._store.find_sessions(set(unknown) - self.later.keys()).items():
            self._price(id, session.question.model, session.turns)
        return {
            id: self._cost(id, each.usd, each.started, each.maker) for id, each in spent.items()
        }

    def costs_of_judgements(self, made: Mapping[str, Spent]) -> dict[str, float | None]:
        """Return the costs of judgements in the currency by id; None where one is unknown."""
        models = {id: self.model_of(each.maker) for id, each in made.items()}
        unknown = [
            id for id, each in made.items() if each.usd is None and self.has_price(models[id])
        ]
        for id, each in self._store.find_evaluations(set(unknown) - self.later.keys()).items():
            self._price(id, models[id] or "", [each])
        return {id: self._cost(id, each.usd, each.started, models[id]) for id, each in made.items()}

    def model_of(self, evaluator: str) -> str | None:
        """Return the model version of an evaluator; None for checks and people."""
        return self._models.get(evaluator)

    def is_free(self, model: str | None) -> bool:
        """Return whether calls of a model version without a price cost nothing."""
        return model is None or model in self._free

    def has_price(self, model: str | None) -> bool:
        """Return whether a model version has a price today."""
        return model in self._today

    def _price(self, id: str, model: str, calls: Sequence[Reply | Evaluation]) -> None:
        """Price a call at today's price, if its tokens are known."""
        if (usd := self._today[model].cost_of(calls)) is not None:
            self.later[id] = usd

    def _cost(self, id: str, usd: float | None, at: int, model: str | None) -> float | None:
        usd = self.later.get(id) if usd is None else usd
        if usd is not None:
            return self.convert(usd, at)
        return 0.0 if self.is_free(model) else None
