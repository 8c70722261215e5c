"""Computes the verdicts of cells, with their reasons and judges, and builds the result tree."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from evalstore.checks.aggregation import (
    JudgedSession,
    combine_votes,
    judge_session,
    wants_models,
)
from evalstore.checks.types.judge import JUDGE
from evalstore.core import hashing
from evalstore.core.batches import in_batches
from evalstore.core.display import short
from evalstore.core.hashing import canonical_json
from evalstore.core.values import Decision, Json, Result, Sample, Verdict, Vote
from evalstore.planning.cells import Cell
from evalstore.planning.plan import (
    CHECKS,
    Missing,
    Plan,
    PlannedJudgement,
    counted_votes,
    decided_first,
    is_checked,
)
from evalstore.store import Store
from evalstore.store.events import StoredJudgement
from evalstore.store.results import conversations_of, describe_cell
from evalstore.store.trees.case_chunks import Load, ResultBuilder, collect, is_tree

if TYPE_CHECKING:
    from evalstore.planning.settled_parts import SettledParts
    from evalstore.workspace.reader import Reading

Key = tuple[str, str, int] | str
"""The id of a vote; or the evaluation version, the evaluator and the time of one carried over."""


def told_to_judges(evaluation: Json) -> Json:
    """Return the part of an evaluation version on which the calls of judges depend.

    That is everything except the checks that judges are not told of: all but the check `judge`.
    """
    told = {name: value for name, value in evaluation.items() if name != "checks"}
    judges = [check for check in evaluation.get("checks", ()) if check["type"] == JUDGE]
    return {**told, "checks": judges} if judges else told


def digest_told(evaluation: Json) -> str:
    """Return the digest of what judges are told; equal digests lead to equal calls."""
    return hashing.hash_content(canonical_json(told_to_judges(evaluation)))


def carry_over(plan: Plan, missing: Missing, load: Load) -> None:
    """Take votes under other evaluation versions for missing judgements, as many as are missing.

    They are added to the votes of the plan under the evaluation version of the judgement, with the
    id and the time of the stored vote. Judgements that lack no more are taken out of `missing`;
    those about which nothing else is missing are noted in the plan.
    """
    wanted = {
        key: (judgement, votes)
        for key, judgement in missing.items()
        if judgement.judge and judgement.sessions and (votes := _votes_elsewhere(plan, judgement))
    }
    if not wanted:
        return
    versions = dict.fromkeys(key[1] for key in wanted)
    versions |= dict.fromkeys(vote.evaluation for _, votes in wanted.values() for vote in votes)
    told = {
        id: digest_told(content)
        for batch in in_batches(versions)
        for id, content in load(batch).items()
    }
    for key, (judgement, votes) in wanted.items():
        evaluation = key[1]
        here = told.get(evaluation)
        same = [vote for vote in votes if here and told.get(vote.evaluation) == here]
        if taken := _take(plan, judgement, evaluation, same):
            subject = hashing.subject_of(judgement.sessions)
            cast = [*plan.votes[subject], *taken]
            plan.votes[subject] = sorted(cast, key=lambda vote: vote[:2])
            left = judgement.count - len(taken)
            if left:
                missing[key] = replace(judgement, count=left)
            else:
                del missing[key]
                plan.carried.append(judgement)
    if plan.carried:
        incomplete = {key[:2] for key in missing}
        plan.carried = [each for each in plan.carried if _is_all(plan, each, incomplete)]


def _is_all(
    plan: Plan, judgement: PlannedJudgement, incomplete: Collection[tuple[object, str]]
) -> bool:
    """Return whether a judgement is carried over and nothing else is missing about its subject."""
    cell, subject = judgement.cell, hashing.subject_of(judgement.sessions)
    votes = [vote for vote in plan.votes[subject] if vote.evaluation == cell.case.evaluation]
    return (subject, cell.case.evaluation) not in incomplete and any(
        vote.is_carried for vote in without_unneeded(cell, votes)
    )


def _votes_elsewhere(plan: Plan, judgement: PlannedJudgement) -> list[Vote]:
    """Return the votes that count of the same evaluator under other evaluation versions."""
    return [
        vote
        for vote in plan.votes.get(hashing.subject_of(judgement.sessions), ())
        if vote.evaluator == judgement.evaluator
        and vote.evaluation != judgement.cell.case.evaluation
        and not vote.is_carried
        and not vote.human
    ]


def _take(
    plan: Plan, judgement: PlannedJudgement, evaluation: str, votes: Sequence[Vote]
) -> list[Vote]:
    """Return as many of these votes as are missing, those first that count first.

    A vote that was carried over earlier has the time of the first one, so both count once; the
    first one tells what was paid.
    """
    subject, evaluator = hashing.subject_of(judgement.sessions), judgement.evaluator
    times = {
        vote.started
        for vote in plan.votes[subject]
        if (vote.evaluation, vote.evaluator) == (evaluation, evaluator)
    }
    taken: list[Vote] = []
    by_time = sorted(votes, key=lambda vote: (vote.started, -plan.costs.get(vote.id, 0.0)))
    for vote in decided_first(by_time):
        if len(taken) < judgement.count and vote.started not in times:
            times.add(vote.started)
            taken.append(vote._replace(evaluation=evaluation, is_carried=True))
    return taken


def without_unneeded(cell: Cell, votes: Sequence[Vote]) -> Sequence[Vote]:
    """Return votes without those carried over that the verdict of the checks makes needless."""
    if "checks" not in cell.case.judged_by or not any(vote.is_carried for vote in votes):
        return votes
    checked = next((vote.verdict for vote in votes if vote.evaluator == CHECKS), None)
    if checked is not None and wants_models(cell.case.judged_by, checked):
        return votes
    return [vote for vote in votes if not vote.is_carried]


def keys_of(votes: Iterable[Vote]) -> set[Key]:
    """Return the keys of votes that are known, by which `is_known` finds others."""
    keys: set[Key] = set()
    for vote in votes:
        keys.add((vote.evaluation, vote.evaluator, vote.started) if vote.is_carried else vote.id)
    return keys


def is_known(vote: Vote, known: Collection[Key]) -> bool:
    """Return whether a stored vote is among those that are known.

    Another run may have stored one that this one carries over, too.
    """
    return vote.id in known or (vote.evaluation, vote.evaluator, vote.started) in known


class CellResult(NamedTuple):
    """A cell with its verdict, sessions and votes."""

    cell: Cell
    verdict: Verdict | None
    """None when it is pending or has no evaluation."""
    score: float | None
    sessions: tuple[str, ...]
    votes: tuple[Vote, ...]
    attempts: tuple[Verdict, ...] = ()
    """The verdict on each attempt if several are judged."""

    @property
    def pending(self) -> bool:
        """Return whether an answer or a judgement is missing."""
        return self.verdict is None and (
            self.cell.case.evaluation is not None or len(self.sessions) < self.cell.required_answers
        )

    @property
    def word(self) -> str | None:
        """Return the verdict, or `pending`; None for an answered case without an evaluation."""
        return self.verdict or ("pending" if self.pending else None)


def compute_results(
    plan: Plan,
    rule: str,
    new_sessions: Mapping[str, Sequence[Sample]] | None = None,
    new_votes: Mapping[str, Sequence[Vote]] | None = None,
) -> list[CellResult]:
    """Return the verdict of every cell, from stored and new sessions and votes."""
    new_sessions, new_votes = new_sessions or {}, new_votes or {}
    single: dict[tuple[Verdict, float | None], JudgedSession] = {}
    """What a single vote means, by its verdict and score."""
    results = []
    for cell in plan.cells:
        evaluation = cell.case.evaluation
        session = plan.only_session(cell, new_sessions)
        if session and evaluation:
            cast = [*plan.votes.get(session, ()), *new_votes.get(session, ())]
            if is_checked(cell, cast) and cast[0].verdict != "none":
                word, score = cast[0].verdict, cast[0].score
                combined = single.get((word, score))
                if combined is None:
                    combined = single[word, score] = _combine(JudgedSession(word, score), rule=rule)
                results.append(CellResult(cell, *combined, (session,), (cast[0],)))
                continue
        answers = {
            question: _answers(question, most, plan, new_sessions)
            for question, _, most in cell.distinct_questions()
        }
        sessions = [session for session_ids in answers.values() for session in session_ids]
        votes: list[Vote] = []
        judged: list[JudgedSession] = []
        for together in cell.subjects(answers):
            subject = hashing.subject_of(together)
            cast = [*plan.votes.get(subject, ()), *new_votes.get(subject, ())]
            counted = without_unneeded(cell, counted_votes(cell, cast))
            votes += counted
            if evaluation and _is_complete(cell, counted):
                so_far = judge_session(counted, cell.case.judged_by, CHECKS, rule)
                judged += [so_far] if so_far else ()
        if evaluation and len(judged) == cell.attempts:
            verdict, score = _combine(*judged, rule=rule)
        else:
            verdict, score = None, None
        attempts = tuple(each.verdict for each in judged) if len(judged) > 1 else ()
        results.append(CellResult(cell, verdict, score, tuple(sessions), tuple(votes), attempts))
    return results


@lru_cache(maxsize=1024)
def _combine(*judged: JudgedSession, rule: str) -> JudgedSession:
    """Return what `combine_votes` does; most answers have one of few verdicts and scores."""
    return combine_votes(judged, rule)


def _answers(
    question: str, most: int, plan: Plan, new: Mapping[str, Sequence[Sample]]
) -> list[str]:
    """Return the ids of the sessions of a question that count."""
    stored = plan.sessions.get(question, [])
    if question not in new:
        return stored[:most]
    fresh = sorted(new.get(question, ()), key=lambda sample: sample[:2])
    return [*stored, *(sample.id for sample in fresh)][:most]


def _is_complete(cell: Cell, votes: Sequence[Vote]) -> bool:
    """Return whether a subject lacks no judgement."""
    if any(vote.human for vote in votes):
        return True
    if "checks" in cell.case.judged_by:
        checked = next((vote.verdict for vote in votes if vote.evaluator == CHECKS), None)
        if checked is None or not wants_models(cell.case.judged_by, checked):
            return checked is not None
    if "models" not in cell.case.judged_by:
        return True
    expected = sum(judge.times for judge in cell.judges)
    return 0 < expected == len([vote for vote in votes if vote.evaluator != CHECKS])


def verdict_without_labels(cell: Cell, votes: Sequence[Vote], rule: str) -> Verdict | None:
    """Return the verdict of checks and models on a subject; None if a judgement is missing."""
    others = [vote for vote in votes if not vote.human]
    judged = judge_session(others, cell.case.judged_by, CHECKS, rule)
    return judged.verdict if judged and _is_complete(cell, others) else None


class LeafBuilder:
    """Builds the leaves of a result tree, one for each test file, batch by batch.

    Of a long file only the results of the last few cases are in memory.
    """

    def __init__(
        self,
        reading: Reading,
        load: Load,
        settled: SettledParts,
        tell: Callable[[str, str, str], object] = lambda _file, _cases, _results: None,
    ) -> None:
        """`load` loads nodes of cases; the results of `settled` parts are taken as they are.

        `tell` is called with the file and the nodes of the cases and of the results of each
        finished part.
        """
        self._reading = reading
        self._load = load
        self._tell = tell
        self._left = {path: sorted(parts.items()) for path, parts in settled.by_file.items()}
        """The settled parts that are not added yet."""
        self._contents: dict[str, tuple[str, str]] = {}
        self._leaves: dict[str, str] = {}
        self._file = ""
        self._builder: ResultBuilder | None = None

    def add(self, results: Iterable[CellResult]) -> None:
        """Add the next cells, in the order of files and rows."""
        for file, of_file in groupby(results, key=lambda result: result.cell.file):
            if self._builder is None or file != self._file:
                self.finish()
                self._file, self._builder = file, self._begin(file)
            if file not in self._left:
                self._builder.add(map(_describe, of_file))
                continue
            for result in of_file:
                self._add_settled(self._builder, result.cell.number)
                self._builder.add([_describe(result)])

    def _begin(self, file: str) -> ResultBuilder:
        load = self._load if is_tree(self._reading.files[file]) else None
        keep = collect(self._contents)
        return ResultBuilder(self._reading.nodes[file], load, keep, partial(self._tell, file))

    def _add_settled(self, builder: ResultBuilder, until: float) -> None:
        """Add the settled parts of the current file that begin before a case."""
        left = self._left.get(self._file, [])
        while left and left[0][0] < until:
            first, part = left.pop(0)
            builder.add_part(first, part.results)

    def store(self, store: Store, others: Mapping[str, tuple[str, str]] = {}) -> None:
        """Store the nodes since the last call, and others; they are kept until this is done."""
        store.ensure_versions({**self._contents, **others})
        self.forget()

    def forget(self) -> None:
        """Drop the nodes since the last call without storing them."""
        self._contents.clear()

    def finish(self) -> dict[str, str]:
        """Finish the last file; returns the leaves by file."""
        if self._builder is not None:
            self._add_settled(self._builder, math.inf)
            self._leaves[self._file] = self._builder.finish()
            self._builder = None
        return self._leaves

    def finish_all(self) -> dict[str, str]:
        """Finish the last file, and those with only settled parts; returns the leaves by file."""
        self.finish()
        for path in [path for path, left in self._left.items() if left]:
            self._file, self._builder = path, self._begin(path)
            self.finish()
        return self._leaves


def _describe(result: CellResult) -> Json:
    cell = result.cell
    return describe_cell(
        cell.number,
        cell.prompt_number,
        cell.candidate.id,
        cell.required_answers,
        result.verdict,
        result.score,
        result.sessions,
        [vote.id for vote in result.votes],
    )


def as_result(result: CellResult) -> Result:
    """Return the result of a cell in the form in which runs are compared."""
    cell = result.cell
    return Result(
        file=cell.file,
        row=cell.case.row,
        key=cell.case.key,
        prompt_number=cell.prompt_number,
        prompt=cell.prompt,
        model=cell.candidate.id,
        test=cell.case.tests[0],
        conversations=conversations_of(cell.case.tests),
        evaluation=cell.case.evaluation,
        verdict=result.verdict,
        score=result.score,
        sessions=result.sessions,
        evaluations=tuple(vote.id for vote in result.votes),
        required_answers=cell.required_answers,
    )


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
    are of those with the verdict; in a tie each judge has a reason or its verdict, and each person
    both. Where several judges judged, each reason begins with who gives it: `strict: it is too
    long`. `known` are the judgements with their feedback, if they were read before.
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
        if is_tie:  # people, and judges without a reason, say how they judged
            listed = [
                each._replace(feedback=": ".join(filter(None, (said, each.feedback))))
                for each in cast
                for said in [each.vote.verdict * (each.vote.human or not each.feedback)]
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
