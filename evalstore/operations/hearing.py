"""What has been said of an answer: by people, by checks and by models."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalstore import hashing

if TYPE_CHECKING:
    from evalstore.store import Store
    from evalstore.values import Evaluation

EARLIER, LATER, PASSED_OVER = "earlier instructions", "later instructions", "does not count"
"""Why a judgement is not one that the verdict is made of."""


@dataclass(frozen=True, slots=True)
class Found:
    """What one check found."""

    verdict: str
    name: str
    feedback: str


@dataclass(frozen=True, slots=True)
class Opinion:
    """One judgement of a session, or of several together."""

    id: str
    verdict: str
    by: str
    is_person: bool
    started: int
    """Microseconds since 1970, UTC."""
    evaluation: str
    """Id of what it was judged under."""
    why_not: str
    """Why it is none of those that the verdict is made of; or empty."""
    score: float | None
    """0..1"""
    label: str
    feedback: str
    reasoning: str
    checks: tuple[Found, ...]
    sessions: tuple[str, ...]
    cost: float | None
    """USD"""
    latency: float
    """Seconds"""


def opinions_on(
    store: Store, id: str, judged: Sequence[str], current: Collection[str]
) -> tuple[list[tuple[str, ...]], tuple[Opinion, ...]]:
    """What is judged with this session in it, and all that was ever said of it."""
    counted = store.load_evaluations(judged)
    subjects = list(
        dict.fromkeys(one.sessions for one in counted.values() if id in one.sessions)
    ) or [(id,)]
    votes = store.find_votes({id, *map(hashing.subject_of, subjects)})
    found = store.load_evaluations({vote.id for some in votes.values() for vote in some})
    names = _evaluators(store, {one.evaluator for one in found.values()})
    first = min((one.started for one in found.values() if one.evaluation in current), default=None)
    listed: list[Opinion] = []
    for key, one in found.items():
        why_not = ""
        if one.evaluation not in current:
            why_not = LATER if first is not None and one.started > first else EARLIER
        elif key not in counted:
            why_not = PASSED_OVER
        by, is_person = names.get(one.evaluator, ("", False))
        listed.append(_opinion(key, one, by, is_person, why_not))
    listed.sort(key=lambda one: (bool(one.why_not), not one.is_person, -one.started, one.id))
    return subjects, tuple(listed)


def _opinion(id: str, one: Evaluation, by: str, is_person: bool, why_not: str) -> Opinion:
    return Opinion(
        id=id,
        verdict=one.verdict,
        by=by,
        is_person=is_person,
        started=one.started,
        evaluation=one.evaluation,
        why_not=why_not,
        score=one.score,
        label=one.label or "",
        feedback=one.feedback,
        reasoning=one.reasoning,
        checks=tuple(
            Found(
                str(check.get("verdict", "")),
                str(check.get("name") or check.get("type") or ""),
                str(check.get("feedback") or ""),
            )
            for check in one.checks
        ),
        sessions=one.sessions,
        cost=one.cost.usd if one.cost else None,
        latency=one.latency,
    )


def _evaluators(store: Store, ids: Collection[str]) -> dict[str, tuple[str, bool]]:
    """The name of each evaluator, and whether it is a person."""
    found = store.load_contents("evaluator", ids)
    models = store.load_contents(
        "model", {one["model"] for one in found.values() if "model" in one}
    )
    names: dict[str, tuple[str, bool]] = {}
    for id, one in found.items():
        if "model" in one:
            names[id] = (str(models.get(one["model"], {}).get("code") or one["model"][:8]), False)
        else:
            person = one.get("human")
            names[id] = (str(person or one.get("system") or "checks"), bool(person))
    return names
