"""Reads the results of an export together with their answers and judgements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from evalstore.checks.aggregation import judge_session
from evalstore.core.batches import in_small_batches
from evalstore.core.display import case_name
from evalstore.core.values import Case, Evaluation, Result, Session, Vote
from evalstore.exchange.exports.formats import (
    Export,
)
from evalstore.planning.cell_results import evaluator_names
from evalstore.planning.plan import CHECKS
from evalstore.results.answer.answer import TurnView, read_conversation
from evalstore.results.names import name_prompts_of_cases


class ExportedJudgement(NamedTuple):
    """A judgement that counts, with the evaluator who made it."""

    id: str
    by: str
    """The model, the person, `checks`, or the system whose verdict was imported."""
    is_person: bool
    content: Evaluation


class AnsweredAttempt(NamedTuple):
    """A session of a result, and what was decided about it."""

    id: str
    attempt: int
    """Its number among the answers to the same conversation, from 1."""
    conversation: int
    """The number of its conversation, from 1; 0 when the case has only one."""
    session: Session
    turns: tuple[TurnView, ...]
    """What the candidate was shown, and its earlier answers; empty unless asked for."""
    judgements: tuple[ExportedJudgement, ...]
    """Those on this answer, alone or together with others."""
    verdict: str | None
    """The verdict on the attempt; None while it is not judged."""
    score: float | None


class AnsweredResult(NamedTuple):
    """A result with its answers and judgements."""

    result: Result
    case: Case
    name: str
    """The name of the case, with that of the system prompt if the case has several."""
    prompt: str | None
    """The name of the system prompt; None without one."""
    answers: tuple[AnsweredAttempt, ...]
    judgements: tuple[ExportedJudgement, ...]


def read_answers(export: Export, *, turns: bool = False) -> Iterator[AnsweredResult]:
    """Yield the results of an export with their answers and judgements, a few at a time.

    With `turns`, each answer has the conversation that leads to it.
    """
    store, rule, versions = export.project.store, export.run.verdict_rule, export.project.versions
    evaluators: dict[str, tuple[str, bool]] = {}
    for batch in in_small_batches(export.results):
        sessions = store.find_sessions(id for result, _ in batch for id in result.sessions)
        questions = [each.question for each in sessions.values()] if turns else []
        versions.read_ahead(
            it for each in questions for it in (("test", each.test), ("prompt", each.prompt))
        )
        conversations = {
            id: [*read_conversation(versions, asked.test, asked.prompt, each.turns)]
            for id, each in sessions.items()
            for asked in [each.question]
            if turns
        }
        contents = store.find_evaluations(id for result, _ in batch for id in result.evaluations)
        unnamed = {content.evaluator for content in contents.values()} - evaluators.keys()
        evaluators |= evaluator_names(store, unnamed)
        names = name_prompts_of_cases(export.project, (case for _, case in batch))
        for result, case in batch:
            judgements = tuple(
                ExportedJudgement(
                    id, *evaluators.get(contents[id].evaluator, ("", False)), contents[id]
                )
                for id in result.evaluations
                if id in contents
            )
            prompt = result.prompt and names[case.prompts][result.prompt]
            yield AnsweredResult(
                result,
                case,
                case_name(result.file, result.row, prompt if len(case.prompts) > 1 else None),
                prompt,
                tuple(_list_answers(result, case, sessions, conversations, judgements, rule)),
                judgements,
            )


def _list_answers(
    result: Result,
    case: Case,
    sessions: Mapping[str, Session],
    conversations: Mapping[str, Sequence[TurnView]],
    judgements: Sequence[ExportedJudgement],
    rule: str,
) -> Iterator[AnsweredAttempt]:
    tests = list(dict.fromkeys(result.tests))
    attempts = dict.fromkeys(tests, 0)
    for id in result.sessions:
        if id not in sessions:
            continue
        test = sessions[id].question.test
        attempts[test] = attempts.get(test, 0) + 1
        several = len(tests) > 1 and test in tests
        about = tuple(each for each in judgements if id in each.content.sessions)
        verdict, score = _decide(result, case, about, rule)
        yield AnsweredAttempt(
            id,
            attempts[test],
            tests.index(test) + 1 if several else 0,
            sessions[id],
            tuple(turn for turn in conversations.get(id, ())[:-1] if turn.answer != 0),
            about,
            verdict,
            score,
        )


def _decide(
    result: Result, case: Case, judgements: Sequence[ExportedJudgement], rule: str
) -> tuple[str | None, float | None]:
    """Return the verdict and the score of an attempt: of a single one, those of the result."""
    if result.required_answers <= len(result.tests) or not judgements:
        return (result.verdict, result.score) if judgements else (None, None)
    judged = judge_session([*map(_vote, judgements)], case.judged_by, CHECKS, rule)
    return (judged.verdict, judged.score) if judged else (None, None)


def _vote(judgement: ExportedJudgement) -> Vote:
    made = judgement.content
    return Vote(
        *(made.started, judgement.id, made.evaluation, made.evaluator, made.verdict, made.score),
        human=judgement.is_person,
    )
