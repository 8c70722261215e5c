"""Finds how long the stored answers of models are, for what the next ones may cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore import hashing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from evalstore.execution.model_calls import Endpoint
    from evalstore.execution.retry_policy import ModelKey
    from evalstore.store import Store


def find_longest_outputs(
    store: Store, candidates: Mapping[str, Endpoint], judges: Mapping[str, Endpoint]
) -> dict[ModelKey, int]:
    """Return the most output tokens among the newest answers and judgements of each model.

    Models without any are left out. `candidates` are by display id, `judges` by evaluator id.
    """
    longest: dict[ModelKey, int] = {}
    for endpoint, most in _find_most(store, candidates, judges):
        key = endpoint.key
        longest[key] = max(longest.get(key, 0), most)
    return longest


def _find_most(
    store: Store, candidates: Mapping[str, Endpoint], judges: Mapping[str, Endpoint]
) -> Iterator[tuple[Endpoint, int]]:
    endpoints = list(candidates.values())
    models = [hashing.identify(hashing.describe_model(each.version))[0] for each in endpoints]
    of_models = store.find_output_tokens("session", models)
    for model, endpoint in zip(models, endpoints, strict=True):
        if model in of_models:
            yield endpoint, of_models[model].most
    for evaluator, tokens in store.find_output_tokens("judgement", judges).items():
        yield judges[evaluator], tokens.most
