"""The judgements on an answer by people, checks and models, and the verdict on each attempt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, TypeVar

from evalstore.checks.aggregation import judge_session
from evalstore.checks.difference_locator import flat_checks
from evalstore.checks.types.judge import without_judge
from evalstore.core import hashing
from evalstore.core.values import Evaluation, Json, Result, Verdict, Vote, Word
from evalstore.planning.cell_results import evaluator_names
from evalstore.planning.plan import CHECKS, decided_first
from evalstore.results.edits.edits import judge_part
from evalstore.store import Store
from evalstore.store.contents import damaged

OTHER_VERSION = "other instructions or checks"
OTHER_JUDGE = "other or edited judge"
TOGETHER = "about another group of answers"
IN_WORKSPACE = "the verdict that counts in the workspace"
AGAIN = "judged again, does not count"
"""Reasons why a judgement does not count in the verdict."""
AFTER = "after this run"
TAKEN_BACK, REPLACED = "removed later", "replaced by a later label of this person"
TAKES_BACK = "label removed"
"""Reasons why a label does not count in the verdict."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The result of one check."""

    verdict: str
    name: str
    feedback: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict on an answer, or on several together, by checks, a model or a person."""

    id: str
    verdict: Word
    """`none`: a person has withdrawn a label."""
    evaluator: str
    """The id of the evaluator."""
    by: str
    """`checks`, the display id of a model, or a person's name."""
    is_person: bool
    started: int
    """Microseconds since 1970, UTC."""
    evaluation: str
    """The id of the evaluation version by which it was judged."""
    why_not: str
    """Why the judgement does not count in the verdict; empty if it counts."""
    score: float | None
    """The score from 0 to 1; None if there is none."""
    label: str
    """The class that a classifying judge chose; or empty."""
    feedback: str
    reasoning: str
    checks: tuple[CheckResult, ...]
    sessions: tuple[str, ...]
    """Ids of the judged answers."""
    cost: float | None
    """The cost in USD; None if it is not known."""
    latency: float
    """The duration in seconds."""
    taken_from: str = ""
    """The id of the judgement that is used again because only checks were edited."""

    @property
    def counts(self) -> bool:
        """Return whether it counts for the verdict on the case."""
        return not self.why_not

    @property
    def is_of_other_version(self) -> bool:
        """Return whether it is not by the instructions, checks and evaluators of the case."""
        if self.is_person:
            return self.why_not == OTHER_VERSION
        return bool(self.why_not) and not self.is_repeated

    @property
    def is_repeated(self) -> bool:
        """Return whether another judgement of the same version by the same evaluator counts."""
        return self.why_not in (IN_WORKSPACE, AGAIN)


def read_judgements(
    store: Store, id: str, judged: Sequence[str], current: Collection[str] | None
) -> tuple[list[tuple[str, ...]], tuple[Judgement, ...]]:
    """Return the groups of sessions judged with this one, and all judgements on it.

    `judged` are the ids of the judgements that count. `current` are the evaluation versions of the
    displayed cases; with None, no judgement is marked as not counting.
    """
    counted = store.find_evaluations(judged)
    subjects = list(
        dict.fromkeys(
            evaluation.sessions for evaluation in counted.values() if id in evaluation.sessions
        )
    ) or [(id,)]
    votes = store.find_votes({id, *map(hashing.subject_of, subjects)})
    evaluations = store.find_evaluations({vote.id for cast in votes.values() for vote in cast})
    judging = {each.evaluator for run in store.find_recent_runs(limit=1) for each in run.evaluators}
    evaluators = {each.evaluator for each in evaluations.values()} | judging
    names, makers = evaluator_names(store, evaluators), store.load_contents("evaluator", evaluators)
    judges = {
        each.evaluator: None
        for each in counted.values()
        if "model" in makers.get(each.evaluator, ())
    }
    is_labelled = any(
        names[each.evaluator][1]
        for each in counted.values()
        if each.sessions in subjects and each.evaluator in names
    )
    last = {_of_whom(vote, subject): vote for subject, cast in votes.items() for vote in cast}
    counts = Counter(
        _of_whom(evaluation, hashing.subject_of(evaluation.sessions))
        for evaluation in counted.values()
    )
    with_checks = {each.evaluation for each in evaluations.values() if each.checks}
    contents = store.load_contents("evaluation", with_checks)
    listed: list[Judgement] = []
    for key, stored in evaluations.items():
        why_not, evaluator = "", stored.evaluator
        by, is_person = names.get(evaluator, ("", False))
        whose = _of_whom(stored, hashing.subject_of(stored.sessions))
        if current is None:
            pass
        elif stored.evaluation not in current:
            why_not = OTHER_VERSION
        elif key in counted:
            pass
        elif stored.sessions not in subjects:
            why_not = TOGETHER
        elif is_person:
            if whose not in last:
                raise damaged("evaluations", key, "its columns do not match its content")
            newer, is_removed = last[whose], stored.verdict == "none"
            why_not = TAKES_BACK if is_removed and whose not in counts else AFTER
            if newer.id != key:
                why_not = TAKEN_BACK if newer.verdict == "none" and not is_removed else REPLACED
        elif whose in counts:
            cast = [vote for vote in votes[whose[2]] if _of_whom(vote, whose[2]) == whose]
            in_workspace = [vote.id for vote in decided_first(cast)][: counts[whose]]
            why_not = IN_WORKSPACE if key in in_workspace else AGAIN
        elif same := [
            judge
            for judge in (*judges, *sorted(judging))
            if judge != evaluator and evaluator in names and names.get(judge) == names[evaluator]
        ]:
            why_not = f"other {judge_part((makers[evaluator], makers[same[0]]))}"
        elif evaluator in judging and is_labelled:
            why_not = "a label decides"
        else:  # the judges of an older run, or of the workspace, are not those of the newest run
            why_not = OTHER_JUDGE
        checks = contents.get(stored.evaluation, {}).get("checks", ())
        listed.append(judgement_view(key, stored, by, is_person, why_not, checks))
    places: dict[str, int] = {}
    for key in judged:
        if key in counted:
            places.setdefault(counted[key].evaluator, len(places))
    return subjects, tuple(sorted(listed, key=partial(_rank, places)))


def _rank(places: Mapping[str, int], judgement: Judgement) -> tuple[bool, bool, int, str, int, str]:
    """Return the sort key: judgements that count come first, then people's, then by judge.

    `places` are those of the judges in the verdict, which has them in the order of the settings;
    others follow by name. Of one judge the newest comes first.
    """
    return (
        bool(judgement.why_not),
        not judgement.is_person,
        places.get(judgement.evaluator, len(places)),
        judgement.by,
        -judgement.started,
        judgement.id,
    )


def _of_whom(judgement: Evaluation | Vote, subject: str) -> tuple[str, str, str]:
    """Return the evaluator, the evaluation version and the subject of a judgement."""
    return judgement.evaluator, judgement.evaluation, subject


def check_name(check: Json) -> str:
    """Return the name of a check, else its type, behind `not` when the opposite must hold."""
    turned_round = "not " if check.get("not") else ""
    return str(check.get("name") or f"{turned_round}{check.get('type') or ''}")


def judgement_view(
    id: str,
    evaluation: Evaluation,
    by: str,
    is_person: bool,
    why_not: str = "",
    checks: Sequence[Json] = (),
) -> Judgement:
    """Return a stored judgement as it is shown.

    `by` is the name of its evaluator, and `checks` are those of its evaluation version.
    """
    made_of = list(flat_checks(without_judge(checks)))
    named = made_of if len(made_of) == len(evaluation.checks) else evaluation.checks
    return Judgement(
        id=id,
        verdict=evaluation.verdict,
        evaluator=evaluation.evaluator,
        by=by,
        is_person=is_person,
        started=evaluation.started,
        evaluation=evaluation.evaluation,
        why_not=why_not,
        score=evaluation.score,
        label=evaluation.label or "",
        feedback=evaluation.feedback,
        reasoning=evaluation.reasoning,
        checks=tuple(
            CheckResult(str(check.get("verdict", "")), name, str(check.get("feedback") or ""))
            for name, check in zip(map(check_name, named), evaluation.checks, strict=True)
        ),
        sessions=evaluation.sessions,
        cost=evaluation.cost.usd if evaluation.cost else None,
        latency=evaluation.latency,
        taken_from=evaluation.taken_from or "",
    )


Subject = TypeVar("Subject", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One of several attempts at a case."""

    JSON_FIELDS = ("sessions", "verdict")
    sessions: tuple[str, ...]
    """The conversations that are judged together; mostly one."""
    verdict: Verdict
    judgements: tuple[str, ...] = ()
    """The ids of the judgements that make the verdict."""


Attempts = Mapping[tuple[str, ...], tuple[Attempt, ...]]
"""The attempts of results that have several, by the judgements of the result."""


class MixedAttempts(NamedTuple):
    """Attempts at a case of which some pass and some do not."""

    passed: int
    total: int
    first_failed: int
    """The number of the first answer that does not pass, from 0."""


class CellToJudge(NamedTuple):
    """A result with all that decides the verdicts on its attempts."""

    result: Result
    judged_by: Collection[str]
    """Who judges its case: `Case.judged_by`."""
    rule: str
    """The rule by which several votes make a verdict."""


class CastVote(NamedTuple):
    """A vote with the answers that it is about."""

    vote: Vote
    sessions: tuple[str, ...]


def find_votes(store: Store, results: Sequence[Result]) -> dict[str, CastVote]:
    """Return the votes on these results by the ids of the judgements."""
    made = store.find_judgements(dict.fromkeys(id for each in results for id in each.evaluations))
    single = {session for result in results for session in result.sessions}
    together = store.find_evaluations(id for id, it in made.items() if it.subject not in single)
    return {
        id: CastVote(it.vote, together[id].sessions if id in together else (it.subject,))
        for id, it in made.items()
    }


def read_attempts(store: Store, cells: Sequence[CellToJudge]) -> Attempts:
    """Return the attempts of these results, as far as they have several.

    A result is left out while those who decide are to vote on one of them.
    """
    several = [cell for cell in cells if cell.result.has_attempts]
    cast = find_votes(store, [cell.result for cell in several])
    attempts: dict[tuple[str, ...], tuple[Attempt, ...]] = {}
    for result, judged_by, rule in several:
        votes = [cast[id] for id in result.evaluations if id in cast]
        by_sessions = group_votes((sessions, vote) for vote, sessions in votes)
        made = tuple(
            Attempt(sessions, judged.verdict, tuple(vote.id for vote in listed))
            for sessions, listed in by_sessions.items()
            if (judged := judge_session(listed, judged_by, CHECKS, rule))
        )
        if 1 < len(made) == len(by_sessions):
            attempts[result.evaluations] = made
    return attempts


def shown_session(result: Result, attempts: Sequence[Attempt]) -> str | None:
    """Return the answer that stands for a result: the first that does not pass, else the first."""
    failed = (attempt.sessions[0] for attempt in attempts if attempt.verdict != "pass")
    return next(failed, None) or next(iter(result.sessions), None)


def mix_of(result: Result, attempts: Sequence[Attempt]) -> MixedAttempts | None:
    """Return how many attempts pass and where the first fails; None unless both occur."""
    passed = sum(1 for attempt in attempts if attempt.verdict == "pass")
    if not 0 < passed < len(attempts):
        return None
    shown = shown_session(result, attempts)
    first = result.sessions.index(shown) if shown in result.sessions else 0
    return MixedAttempts(passed, len(attempts), first)


def group_votes(votes: Iterable[tuple[Subject, Vote]]) -> dict[Subject, list[Vote]]:
    """Return the votes on each attempt, in the order of the first votes."""
    by_subject: dict[Subject, list[Vote]] = {}
    for subject, vote in votes:
        by_subject.setdefault(subject, []).append(vote)
    return by_subject


def attempts_text(verdicts: Iterable[str]) -> str:
    """Return how many attempts fail, as in `2 of 3 attempts fail`; empty if there are not two."""
    listed = list(verdicts)
    return failed_text(sum(1 for verdict in listed if verdict != "pass"), len(listed))


def failed_text(failed: int, count: int) -> str:
    """Return `2 of 3 attempts fail`; empty unless there are several attempts."""
    if count < 2:
        return ""
    if not failed:
        return f"{count} attempts pass"
    return f"{failed} of {count} attempts {'fails' if failed == 1 else 'fail'}"
