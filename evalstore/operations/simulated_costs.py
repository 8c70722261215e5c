"""Tells whether the costs of a run are simulated, as all its models are scripted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.providers.kinds import SCRIPTED
from evalstore.values import RECORDED

if TYPE_CHECKING:
    from evalstore.runs import Run
    from evalstore.store import Store


def is_all_scripted(store: Store, run: Run) -> bool:
    """Return whether every candidate and judge of a run is scripted, and there is one."""
    models = {each.model for each in run.candidates if each.id != RECORDED}
    judges = store.load_contents("evaluator", {each.evaluator for each in run.evaluators})
    models |= {judge["model"] for judge in judges.values() if judge.get("model")}
    contents = store.load_contents("model", models)
    return bool(models) and all(
        contents.get(model, {}).get("provider") == SCRIPTED for model in models
    )
