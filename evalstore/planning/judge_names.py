"""The names of models and judges in the settings, and the reasons that judges gave for verdicts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from evalstore.core.display import short
from evalstore.core.results import Decision
from evalstore.planning.plan import CHECKS
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
    are of those with the verdict; in a tie each judge has a reason or its verdict. Where several
    judges judged, each reason begins with who gives it: `strict: it is too long`. `known` are the
    judgements with their feedback, if they were read before.
    """
    wanted = dict.fromkeys(decisions)
    ids = {id for _, judgements in wanted for id in judgements}
    made = store.find_judgements(ids, feedback=True) if known is None else known
    evaluators = evaluator_names(store, {each.vote.evaluator for each in made.values()})
    names = {id: name for id, (name, _) in evaluators.items()}
    shown: dict[Decision, list[tuple[StoredJudgement, bool]]] = {}
    for verdict, judgements in wanted:
        cast = [made[id] for id in judgements if id in made]
        labelled = {each.subject for each in cast if each.vote.human}
        cast = [each for each in cast if each.vote.human or each.subject not in labelled]
        # The checks are named beside others only if they give a reason.
        judges = {
            names.get(each.vote.evaluator)
            for each in cast
            if not each.vote.human and (each.feedback or each.vote.evaluator != CHECKS)
        }
        listed = [each for each in cast if each.vote.verdict == verdict]
        is_tie = verdict == "undecided" and not listed
        if is_tie:  # judges without a reason say how they judged
            listed = [
                each._replace(feedback=each.feedback or each.vote.verdict)
                for each in cast
                if each.feedback or each.vote.evaluator != CHECKS
            ]
        shown[verdict, judgements] = [
            (each, each.vote.human or len(judges) > 1 or is_tie) for each in listed or cast
        ]
    reasons = {decision: "\n".join(_reasons(each, names)) for decision, each in shown.items()}
    return {decision: text for decision, text in reasons.items() if text}


def _reasons(
    shown: Iterable[tuple[StoredJudgement, bool]], names: Mapping[str, str]
) -> Iterator[str]:
    """Yield the different reasons; the same one of several judges once, with all their names."""
    makers: dict[str, dict[str, None]] = {}
    for (vote, _, _, feedback), is_named in shown:
        name = names.get(vote.evaluator, "") if is_named else ""
        if vote.human:
            by = label_by(name)
            makers[f"{by}: {feedback}" if feedback else by] = {"": None}
        elif feedback:
            makers.setdefault(feedback, {})[name] = None
    for text, by_names in makers.items():
        yield f"{', '.join(by_names)}: {text}" if any(by_names) else text


def label_by(person: str) -> str:
    """Return who gave a label: `by Ada (a person)`."""
    return f"by {person} (a person)"
