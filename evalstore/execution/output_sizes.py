"""Finds how long the stored answers of models are, for what the next ones may need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore import hashing
from evalstore.store.costs import OutputTokens

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evalstore.execution.model_calls import Endpoint
    from evalstore.execution.retry_policy import ModelKey
    from evalstore.store import Store


def find_output_sizes(
    store: Store, candidates: Mapping[str, Endpoint], judges: Mapping[str, Endpoint]
) -> dict[ModelKey, OutputTokens]:
    """Return the output tokens of the newest answers and judgements of each model.

    Models without any are left out; of one that answers and judges, the larger numbers count.
    `candidates` are by display id, `judges` by evaluator id.
    """
    sizes: dict[ModelKey, OutputTokens] = {}
    for endpoint, tokens in _find_tokens(store, candidates, judges):
        known = sizes.get(endpoint.key, OutputTokens(0, 0))
        largest = OutputTokens(max(known.mean, tokens.mean), max(known.most, tokens.most))
        sizes[endpoint.key] = largest
    return sizes


def _find_tokens(
    store: Store, candidates: Mapping[str, Endpoint], judges: Mapping[str, Endpoint]
) -> Iterator[tuple[Endpoint, OutputTokens]]:
    endpoints = list(candidates.values())
    models = [hashing.identify(hashing.describe_model(each.version))[0] for each in endpoints]
    of_models = store.find_output_tokens("session", models)
    for model, endpoint in zip(models, endpoints, strict=True):
        if model in of_models:
            yield endpoint, of_models[model]
    for evaluator, tokens in store.find_output_tokens("judgement", judges).items():
        yield judges[evaluator], tokens
