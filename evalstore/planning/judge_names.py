"""The names of models and judges in the settings, and the reasons that judges gave for verdicts."""

from __future__ import annotations

from collections.abc import Collection, Iterable
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


def find_feedback(store: Store, ids: Iterable[str]) -> dict[str, str]:
    """Return the feedback of those of these judgements that have one.

    Where several judges, or several people, say different things about the same answer, each text
    begins with who says it: `strict: it is too long`.
    """
    found = store.find_feedback(ids)
    makers: dict[str, set[str]] = {}
    for _, subject, maker in found.values():
        makers.setdefault(subject, set()).add(maker)
    names = evaluator_names(store, {it for each in makers.values() if len(each) > 1 for it in each})
    said: dict[tuple[str, bool], dict[str, str]] = {}
    """By what was judged and whether people did: the text by the name of the judge."""
    for text, subject, maker in found.values():
        if maker in names:
            name, is_person = names[maker]
            said.setdefault((subject, is_person), {})[name] = text

    def whose(subject: str, maker: str) -> str:
        name, is_person = names.get(maker, ("", False))
        texts = said.get((subject, is_person), {})
        return f"{name}: " if len({*texts.values()}) > 1 else ""

    return {id: whose(subject, maker) + text for id, (text, subject, maker) in found.items()}
