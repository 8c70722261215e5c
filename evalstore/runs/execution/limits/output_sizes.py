"""Finds how long the stored answers of models are, for what the next ones may need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.core import hashing
from evalstore.store.costs import OutputTokens

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from evalstore.runs.execution.limits.retry_policy import ModelKey
    from evalstore.runs.execution.model_calls import Endpoint
    from evalstore.store import Store

    _Maker = tuple[str, ModelKey]


def find_output_sizes(
    store: Store, candidates: Mapping[str, Endpoint], judges: Mapping[str, Endpoint]
) -> dict[ModelKey, OutputTokens]:
    """Return the output tokens of the newest answers and judgements of each model.

    Models without any are left out; of one that answers and judges, the larger numbers count.
    `candidates` are by display id, `judges` by evaluator id.
    """
    models = [
        (hashing.identify(hashing.describe_model(each.version))[0], each.key)
        for each in candidates.values()
    ]
    return find_sizes(store, models, [(id, each.key) for id, each in judges.items()])


def find_sizes(
    store: Store, models: Iterable[_Maker], evaluators: Iterable[_Maker]
) -> dict[ModelKey, OutputTokens]:
    """Return the same for ids of model versions and of evaluators, each with its model's key."""
    sizes: dict[ModelKey, OutputTokens] = {}
    for kind, makers in (("session", [*models]), ("judgement", [*evaluators])):
        found = store.find_output_tokens(kind, [id for id, _ in makers])
        for id, key in makers:
            tokens, known = found.get(id), sizes.get(key, OutputTokens(0, 0))
            if tokens:
                most = max(known.most, tokens.most)
                sizes[key] = OutputTokens(max(known.mean, tokens.mean), most)
    return sizes
