"""The names of models in the settings, by the versions that took part in runs."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from evalstore.core.display import short

if TYPE_CHECKING:
    from evalstore.store import Store


def name_models(store: Store, models: Collection[str]) -> dict[str, str]:
    """Return the name that each model version had in the newest run in which it took part.

    Without such a run it is the provider's name for the model, else the start of the id.
    """
    names: dict[str, str] = {}
    for run in store.find_recent_runs() if models else ():
        evaluators = {each.evaluator: each.id for each in run.evaluators}
        contents = store.load_contents("evaluator", evaluators)
        pairs = [(each.model, each.id) for each in run.candidates]
        pairs += [(contents[id].get("model", ""), evaluators[id]) for id in contents]
        for model, name in pairs:
            if model in models:
                names.setdefault(model, name)
        if len(names) == len(models):
            return names
    for model, content in store.load_contents("model", set(models) - names.keys()).items():
        names[model] = str(content.get("code") or short(model))
    return {model: names.get(model, short(model)) for model in models}
