"""Tells whether the costs of a run or of a judgement are simulated: its models are scripted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.core.values import RECORDED
from evalstore.providers.kinds import SCRIPTED

if TYPE_CHECKING:
    from evalstore.core.runs import Run
    from evalstore.core.values import Json
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


def is_by_script(store: Store, evaluator: Json) -> bool:
    """Return whether an evaluator, as it is described, is a scripted model."""
    model = str(evaluator.get("model") or "") if evaluator else ""
    contents = store.load_contents("model", [model]) if model else {}
    return any(content.get("provider") == SCRIPTED for content in contents.values())
