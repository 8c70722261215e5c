"""The names of models and judges in the settings, and the reasons that judges gave for verdicts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from evalstore.core.display import short
from evalstore.planning.plan import CHECKS

if TYPE_CHECKING:
    from evalstore.core.results import Decision
    from evalstore.store import Store
    from evalstore.store.costs import StoredJudgement


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
    decisions: Iterable[Decision],
    known: Mapping[str, StoredJudgement] | None = None,
) -> dict[Decision, str]:
    """Return the reasons for verdicts, one line each; those without reasons are left out.

    On an answer that a person labelled, only labels count, and each names the person. The reasons
    are of those with the verdict; if there are none, as in a tie, of all. Where several judges
    judged, each reason begins with who gives it: `strict: it is too long`. `known` are the
    judgements with their feedback, if they were read before.
    """
    wanted = dict.fromkeys(decisions)
    ids = {id for _, judgements in wanted for id in judgements}
    made = store.find_judgements(ids, feedback=True) if known is None else known
    counted = {
        decision: _counted([made[id] for id in decision[1] if id in made]) for decision in wanted
    }
    several = {decision for decision, each in counted.items() if len({*_named_judges(each)}) > 1}
    shown = {
        (verdict, ids): [each for each in judgements if each.vote.verdict == verdict] or judgements
        for (verdict, ids), judgements in counted.items()
    }
    named = {
        each.vote.evaluator
        for decision, judgements in shown.items()
        for each in judgements
        if each.vote.human or decision in several
    }
    names = {id: name for id, (name, _) in evaluator_names(store, named).items()}
    reasons = {
        decision: "\n".join(_reasons(judgements, names if decision in several else {}, names))
        for decision, judgements in shown.items()
    }
    return {decision: text for decision, text in reasons.items() if text}


def _counted(judgements: Sequence[StoredJudgement]) -> Sequence[StoredJudgement]:
    """Return those that count: on an answer with labels, only these."""
    labelled = {each.subject for each in judgements if each.vote.human}
    return [each for each in judgements if each.vote.human or each.subject not in labelled]


def _named_judges(judgements: Iterable[StoredJudgement]) -> Iterator[str]:
    """Yield the judges who are named if there are several; checks only if they give a reason."""
    for vote, _, _, feedback in judgements:
        if not vote.human and (feedback or vote.evaluator != CHECKS):
            yield vote.evaluator


def _reasons(
    judgements: Iterable[StoredJudgement], judges: Mapping[str, str], people: Mapping[str, str]
) -> Iterator[str]:
    """Yield the different reasons; the same one of several judges once, with all their names."""
    makers: dict[str, dict[str, None]] = {}
    for vote, _, _, feedback in judgements:
        if vote.human:
            by = label_by(people[vote.evaluator])
            makers[f"{by}: {feedback}" if feedback else by] = {}
        elif feedback:
            names = makers.setdefault(feedback, {})
            if vote.evaluator in judges:
                names[judges[vote.evaluator]] = None
    for text, names in makers.items():
        yield f"{', '.join(names)}: {text}" if names else text


def label_by(person: str) -> str:
    """Return who gave a label: `by Ada (a person)`."""
    return f"by {person} (a person)"
