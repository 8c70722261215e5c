"""The names of models and judges in the settings, and the reasons that judges gave for verdicts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
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


def evaluator_names(store: Store, ids: Collection[str]) -> dict[str, tuple[str, bool]]:
    """Return the name of each judge, and whether it is a person."""
    contents = store.load_contents("evaluator", ids)
    models = name_models(
        store, {content["model"] for content in contents.values() if "model" in content}
    )
    names: dict[str, tuple[str, bool]] = {}
    for id, content in contents.items():
        if "model" in content:
            names[id] = (models[content["model"]], False)
        else:
            person = content.get("human")
            names[id] = (str(person or content.get("system") or "checks"), bool(person))
    return names


def find_feedback(
    store: Store,
    judgements: Iterable[Collection[str]],
    known: Mapping[str, tuple[str | None, str]] | None = None,
) -> dict[str, str]:
    """Return the feedback of those of these judgements that have one, and of all labels.

    Each collection has the judgements of one result. Where several judges say different things
    about it, each text begins with who says it: `strict: it is too long`. That of a label always
    names the person. `known` are what judgements say and who made them, if that was read before.
    """
    groups = list(judgements)
    ids = {id for group in groups for id in group}
    read = store.find_feedback(ids) if known is None else known
    found = {id: (text, maker) for id, (text, maker) in read.items() if text}
    makers = {id: maker for id, (_, maker) in found.items()}
    labels = store.find_evaluators(store.find_labels_among(ids))
    listed = [[id for id in group if id in found and id not in labels] for group in groups]
    several = [ids for ids in listed if len({makers[id] for id in ids}) > 1]
    named = {makers[id] for ids in several for id in ids} | {maker for maker, _ in labels.values()}
    names = {id: name for id, (name, _) in evaluator_names(store, named).items()}
    texts = {id: text for id, (text, _) in found.items()}
    for group in several:
        last = {names[makers[id]]: texts[id] for id in group}
        if len({*last.values()}) > 1:
            texts |= {id: f"{names[makers[id]]}: {texts[id]}" for id in group}
    for id, (maker, _) in labels.items():
        by = label_by(names[maker])
        texts[id] = f"{by}: {texts[id]}" if texts.get(id) else by
    return texts


def label_by(person: str) -> str:
    """Return who gave a label: `by Ada (a person)`."""
    return f"by {person} (a person)"
