"""Reads the results of an export together with their answers and judgements.

`write_otlp` writes judgements as OpenTelemetry logs in the JSON form of OTLP. Each judgement is an
event `gen_ai.evaluation.result` of the semantic conventions for generative AI. The document is an
`ExportLogsServiceRequest`, which an OTLP/HTTP receiver accepts at `/v1/logs`.

`write_langbite` writes the three tables of LangBiTe: responses, evaluations, and totals.

The columns are those of its classes `ResponseView`, `EvaluationView` and `GlobalEvaluation`, behind
a column without a name for the number of the row.

The tags of a test that `import langbite` made are its concern, language, input type and reflection
type. They are stored in alphabetical order, so they are recognised by their words; the concern is
the tag that is also a folder of the test file, else the first one that is left.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import lru_cache, partial
from itertools import count
from pathlib import Path
from typing import NamedTuple

from evalstore.checks.aggregation import judge_so_far
from evalstore.core.batches import in_small_batches
from evalstore.core.deserialize import restore_messages
from evalstore.core.display import case_name
from evalstore.core.results import Evaluation, Result, Session, Vote
from evalstore.core.values import SPECIAL_TAGS, Case, Json, Message, Reply
from evalstore.exchange.exports.writers import (
    ByteWriter,
    Export,
    RecordWriter,
    make_encoder,
    make_record_writer,
    write_items,
)
from evalstore.files.atomic_write import temporary_file
from evalstore.planning.plan import CHECKS
from evalstore.planning.results import evaluator_names
from evalstore.results.names import name_prompts_of_cases
from evalstore.results.rendering import answer_text, joined, text_of
from evalstore.store import Store


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
    turns: tuple[ExportedTurn, ...]
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
    store, rule = export.project.store, export.run.verdict_rule
    evaluators: dict[str, tuple[str, bool]] = {}
    for batch in in_small_batches(export.results):
        sessions = store.find_sessions(id for result, _ in batch for id in result.sessions)
        conversations = read_turns(store, sessions) if turns else {}
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
    conversations: Mapping[str, tuple[ExportedTurn, ...]],
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
            conversations.get(id, ()),
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
    judged = judge_so_far([*map(_vote, judgements)], case.judged_by, CHECKS, rule)
    return (judged.verdict, judged.score) if judged else (None, None)


def _vote(judgement: ExportedJudgement) -> Vote:
    made = judgement.content
    return Vote(
        *(made.started, judgement.id, made.evaluation, made.evaluator, made.verdict, made.score),
        human=judgement.is_person,
    )


# --- the conversations that lead to answers, as plain turns


class ExportedTurn(NamedTuple):
    """A turn of a conversation."""

    role: str
    text: str
    """The text; files are named in it."""
    reply: Reply | None = None
    """The candidate's answer; None for a turn of the test."""


def read_turns(
    store: Store, sessions: Mapping[str, Session]
) -> dict[str, tuple[ExportedTurn, ...]]:
    """Return the turns before the last answer of each session, by id of the session."""
    questions = [session.question for session in sessions.values()]
    tests = store.load_contents("test", {question.test for question in questions})
    prompts = store.load_contents(
        "prompt", {question.prompt for question in questions if question.prompt}
    )
    return {
        id: tuple(
            _fill(
                joined(
                    restore_messages(
                        prompts.get(session.question.prompt or "", {}).get("messages", ())
                    ),
                    restore_messages(tests.get(session.question.test, {}).get("messages", ())),
                ),
                session,
            )
        )
        for id, session in sessions.items()
    }


def _fill(messages: tuple[Message, ...], session: Session) -> Iterator[ExportedTurn]:
    """Yield the turns with the candidate's answers in their places."""
    replies = iter(session.turns[:-1])
    for message in messages:
        if not message.filled:
            yield ExportedTurn(message.role, text_of(message.parts))
        elif reply := next(replies, None):
            yield ExportedTurn("assistant", reply.text or "", reply)


_EVENT = "gen_ai.evaluation.result"
_INFO = 9
"""The severity number of OpenTelemetry for `INFO`."""
_SPAN_DIGITS = 16


def write_otlp(export: Export, file: ByteWriter) -> None:
    """Write one request with a log record for each judgement, one on a line."""
    from evalstore import __version__

    encode = make_encoder()
    resource = {
        "service.name": "evalstore",
        "service.version": __version__,
        "evalstore.run.id": export.run.id,
    }
    scope = {"name": "evalstore", "version": __version__}
    file.write(
        b'{"resourceLogs":[{"resource":{"attributes":'
        + encode(_attributes(resource))
        + b'},"scopeLogs":[{"scope":'
        + encode(scope)
        + b',"logRecords":['
    )
    write_items(
        file,
        (
            _record(answered, judgement)
            for answered in read_answers(export)
            for judgement in answered.judgements
        ),
    )
    file.write(b"\n]}]}]}\n")


def _record(answered: AnsweredResult, judgement: ExportedJudgement) -> dict[str, Json]:
    """Return a log record; its trace is the answer that was judged, the first of several."""
    made = judgement.content
    session = made.sessions[0]
    nanoseconds = str(made.started * 1000)
    return {
        "timeUnixNano": nanoseconds,
        "observedTimeUnixNano": nanoseconds,
        "severityNumber": _INFO,
        "severityText": "INFO",
        "eventName": _EVENT,
        "attributes": _attributes(_describe(answered, judgement)),
        "traceId": session,
        "spanId": session[:_SPAN_DIGITS],
    }


def _describe(answered: AnsweredResult, judgement: ExportedJudgement) -> dict[str, Json]:
    made, result = judgement.content, answered.result
    first = next((answer for answer in answered.answers if answer.id == made.sessions[0]), None)
    reply = first.session.answer if first else None
    return {
        "gen_ai.evaluation.name": judgement.by,
        "gen_ai.evaluation.score.value": None if made.score is None else float(made.score),
        "gen_ai.evaluation.score.label": made.verdict,
        "gen_ai.evaluation.explanation": made.feedback or None,
        "error.type": "_OTHER" if made.verdict == "error" else None,
        "gen_ai.response.id": reply.request_id if reply else None,
        "gen_ai.response.model": reply.resolved_model if reply else None,
        "gen_ai.request.model": result.model,
        "evalstore.file": result.file,
        "evalstore.row": result.row or None,
        "evalstore.prompt": answered.prompt,
        "evalstore.tags": list(answered.case.tags) or None,
        "evalstore.judgement.id": judgement.id,
        "evalstore.session.ids": list(made.sessions),
    }


def _attributes(values: Mapping[str, Json]) -> list[Json]:
    """Return the attributes that have a value, as OTLP writes them."""
    return [
        {"key": key, "value": _value(value)} for key, value in values.items() if value is not None
    ]


def _value(value: Json) -> Json:
    if isinstance(value, list):
        return {"arrayValue": {"values": [_value(item) for item in value]}}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"stringValue": str(value)}


_NUMBER = ""
RESPONSES = (_NUMBER, "Provider", "Model", "Instance", "Response")
_DIMENSIONS = ("Provider", "Model", "Concern", "Language", "Input Type", "Reflection Type")
EVALUATIONS = (
    *(_NUMBER, *_DIMENSIONS),
    *("Template", "Oracle Evaluation", "Oracle Prediction", "Evaluation"),
)
GLOBAL_EVALUATION = (
    *(_NUMBER, *_DIMENSIONS),
    *("Passed Nr", "Failed Nr", "Error Nr", "Passed Pct", "Failed Pct", "Total"),
    *("Tolerance", "Tolerance Evaluation"),
)
_LANGUAGE = re.compile(r"[a-z]{2}_[a-z]{2}")
_INPUT_TYPES = ("constrained", "verbose")
_REFLECTION_TYPES = ("observational", "utopian")
_WORDS = {"pass": "Passed", "fail": "Failed", "undecided": "Error", "error": "Error"}
_NO_TOLERANCE = "Not evaluated"
"""LangBiTe's word for a total that is compared with no tolerance."""


class _Dimensions(NamedTuple):
    """By what LangBiTe groups its results."""

    provider: str
    model: str
    concern: str
    language: str
    input_type: str
    reflection_type: str


def write_langbite(export: Export, folder: Path) -> None:
    """Write the three tables; only the totals are in memory together."""
    totals: dict[_Dimensions, Counter[str]] = {}
    find_oracle = lru_cache(1)(partial(_read_oracle, export.project.store))  # neighbours are alike
    with ExitStack() as stack:

        def open_table(name: str, columns: tuple[str, ...]) -> RecordWriter:
            file = stack.enter_context(temporary_file(folder / name, durable=False))
            write_record = make_record_writer(file)
            write_record(columns)
            numbers = count()
            return lambda values: write_record([next(numbers), *values])

        write_response = open_table("responses.csv", RESPONSES)
        write_evaluation = open_table("evaluations.csv", EVALUATIONS)
        for answered in read_answers(export, turns=True):
            dimensions = _split(answered)
            for answer in answered.answers:
                turns = reversed(answer.turns)
                asked = next((turn.text for turn in turns if turn.role == "user"), "")
                write_response([*dimensions[:2], asked, answer_text(answer.session.answer)])
            word = _WORDS.get(answered.result.verdict or "")
            if word is None:
                continue
            totals.setdefault(dimensions, Counter())[word] += 1
            oracle = find_oracle(answered.result.evaluation)
            write_evaluation([*dimensions, answered.result.file, *oracle, word])
        write_total = open_table("global_evaluation.csv", GLOBAL_EVALUATION)
        for dimensions, counts in sorted(totals.items()):
            sums = _sum_up(counts)
            write_total([*dimensions, *sums, *_tolerance(export, dimensions, sums)])


def _split(answered: AnsweredResult) -> _Dimensions:
    """Return the dimensions of a result."""
    provider, _, model = answered.result.model.rpartition("/")
    tags = [tag for tag in answered.case.tags if tag not in SPECIAL_TAGS]
    language = next(filter(_LANGUAGE.fullmatch, tags), "")
    input_type = next((tag for tag in tags if tag in _INPUT_TYPES), "")
    reflection_type = next((tag for tag in tags if tag in _REFLECTION_TYPES), "")
    concerns = [tag for tag in tags if tag not in (language, input_type, reflection_type)]
    folders = answered.result.file.split("/")
    concern = next((tag for tag in concerns if tag in folders), next(iter(concerns), ""))
    return _Dimensions(provider, model, concern, language, input_type, reflection_type)


def _sum_up(counts: Counter[str]) -> tuple[Json, ...]:
    """Return the numbers of results by verdict, the shares of pass and fail, and their total."""
    passed, failed = counts["Passed"], counts["Failed"]
    total = passed + failed
    shares = (passed / total, failed / total) if total else (0, 0)
    return passed, failed, counts["Error"], *shares, total


def _tolerance(
    export: Export, dimensions: _Dimensions, sums: tuple[Json, ...]
) -> tuple[float | None, str]:
    """Return the threshold of the settings for a total, and LangBiTe's word for it."""
    thresholds = export.project.settings.thresholds
    rates = [each.pass_rate for each in thresholds if each.where and {*each.where} <= {*dimensions}]
    tolerance, total = max(rates, default=None), sums[-1]
    if tolerance is None or not total:
        return tolerance, _NO_TOLERANCE
    return tolerance, "Passed" if sums[0] / total >= tolerance else "Failed"


def _read_oracle(store: Store, evaluation: str | None) -> tuple[Json, Json]:
    """Return the types of the checks of a version, and the checks, which a cell shows as JSON."""
    if evaluation is None:
        return None, None
    content = store.load_contents("evaluation", [evaluation]).get(evaluation, {})
    checks = content.get("checks") or []
    types = dict.fromkeys(str(check["type"]) for check in checks)
    judged = ["instructions"] if content.get("instructions") else []
    return ", ".join([*types, *judged]) or None, checks or None
