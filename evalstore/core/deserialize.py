"""Restores values from stored descriptions; the inverse of `hashing`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from evalstore.core.hashing import Description
from evalstore.core.results import Cost, Evaluation, Failure, Session
from evalstore.core.values import (
    AnswerRef,
    Case,
    CaseFile,
    FileRef,
    Json,
    Message,
    Options,
    Part,
    Question,
    Reply,
    SampleRef,
    TestVersion,
    Text,
    ToolCall,
    Usage,
)


def restore_test(content: Description) -> TestVersion:
    """Restore a test version from its description."""
    options = content.get("options", {})
    return TestVersion(
        messages=restore_messages(content.get("messages", ())),
        special_tags=tuple(content.get("specialTags", ())),
        tools=tuple(content.get("tools", ())),
        schema=content.get("schema"),
        options=Options(
            temperature=options.get("temperature"),
            max_output_tokens=options.get("maxOutputTokens"),
            top_p=options.get("topP"),
            seed=options.get("seed"),
            stop=tuple(options.get("stop", ())),
            provider_options=options.get("providerOptions"),
        ),
    )


def versions_in(content: Description) -> Iterator[tuple[str, str]]:
    """Yield the kind and id of each version of another kind that a test or an evaluation names.

    They are its tools and schemas, and the evaluator prompts of its checks.
    """
    for id in content.get("tools", ()):
        yield "tool", id
    if isinstance(content.get("schema"), str):
        yield "schema", content["schema"]
    for id in content.get("prompts", ()):
        yield "prompt", id
    for check in content.get("checks", ()):
        yield from versions_in(check)


def restore_messages(messages: Json) -> tuple[Message, ...]:
    """Restore messages from their description."""
    return tuple(
        Message(
            message["role"],
            restore_parts(message.get("content", ())),
            message.get("filled", False),
            message.get("name"),
        )
        for message in messages
    )


def restore_parts(content: Json) -> tuple[Part, ...]:
    """Restore parts: a text, or a list of texts, files and references to answers."""
    if isinstance(content, str):
        return (Text(content),)
    return tuple(_restore_part(part) for part in content)


def _restore_part(part: Json) -> Part:
    if "text" in part:
        return Text(part["text"])
    if "answers" in part:
        return AnswerRef(tuple((session, turn) for session, turn in part["answers"]))
    if "sample" in part:
        return SampleRef(part["sample"])
    return FileRef(part["path"], part["mediaType"], part["file"])


_NO_USAGE = Usage()
_NO_PROMPT = (None,)
MODELS = ("models",)
"""Who judges a case that does not say so."""
Shared = Callable[[Iterable[Any]], tuple[Any, ...]]
"""Creates tuples; equal ones are the same object."""


def share_tuples() -> Shared:
    """Return a function that creates tuples; equal ones are the same object."""
    seen: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    def shared(values: Iterable[Any]) -> tuple[Any, ...]:
        items = tuple(values)
        return seen.setdefault(items, items)

    return shared


def restore_case(case: Json, shared: Shared) -> Case:
    """Restore a case from its description."""
    find = case.get
    return Case(
        find("row", ""),
        case["key"],
        tuple(case["tests"]),
        sys.intern(case["evaluation"]) if "evaluation" in case else None,
        shared(case["tags"]) if "tags" in case else (),
        shared(case["prompts"]) if "prompts" in case else _NO_PROMPT,
        shared(case["needs"]) if "needs" in case else (),
        shared(case["judgedBy"]) if "judgedBy" in case else MODELS,
        find("temperature"),
        find("seed"),
        find("limit"),
        find("recorded"),
        shared(case["judgePrompts"]) if "judgePrompts" in case else (),
        shared(case["code"]) if "code" in case else (),
    )


def restore_cases(cases: Iterable[Json]) -> Iterator[Case]:
    """Restore cases; equal parts of them are shared in memory."""
    shared = share_tuples()
    return (restore_case(case, shared) for case in cases)


def restore_case_file(content: Description) -> CaseFile:
    """Restore the cases of a file; equal parts of them are shared in memory."""
    evaluators = content.get("evaluators")
    return CaseFile(
        cases=tuple(restore_cases(content["cases"])),
        attempts=content.get("attempts"),
        evaluators=None if evaluators is None else tuple(evaluators),
        threshold=content.get("threshold"),
        id=content.get("id"),
    )


def restore_question(content: Description) -> Question:
    """Restore the question in the content of a session."""
    return Question(
        content["test"],
        content.get("prompt"),
        content["model"],
        content.get("temperature"),
        content.get("seed"),
    )


def restore_session(content: Description) -> Session:
    """Restore a session from its description."""
    return Session(
        question=restore_question(content),
        turns=tuple(restore_reply(turn) for turn in content["turns"]),
        started=content["started"],
        nonce=content["nonce"],
        cost=_restore_cost(content.get("cost")),
        limit=content.get("limit"),
        origin=content["origin"],
    )


def restore_evaluation_result(content: Description) -> Evaluation:
    """Restore a judgement from its description."""
    return Evaluation(
        sessions=tuple(content["sessions"]),
        evaluation=content["evaluation"],
        evaluator=content["evaluator"],
        verdict=content["verdict"],
        started=content["started"],
        nonce=content["nonce"],
        score=content.get("score"),
        label=content.get("label"),
        feedback=content.get("feedback", ""),
        reasoning=content.get("reasoning", ""),
        checks=tuple(content.get("checks", ())),
        usage=_restore_usage(content.get("usage")),
        cost=_restore_cost(content.get("cost")),
        latency=content.get("latency", 0.0),
        origin=content["origin"],
        taken_from=content.get("takenFrom"),
    )


def restore_failure(content: Description) -> Failure:
    """Restore a failure from its description."""
    return Failure(
        question=content.get("question"),
        subject=content.get("subject"),
        evaluator=content.get("evaluator"),
        kind=content["type"],
        message=content["message"],
        at=content["at"],
        nonce=content.get("nonce", ""),
        status=content.get("status"),
        attempts=content["attempts"],
        model=content.get("model"),
        evaluation=content.get("evaluation"),
    )


def restore_reply(content: Description) -> Reply:
    """Restore a turn of an answer from its description."""
    return Reply(
        text=content.get("text"),
        tool_calls=restore_calls(content),
        finish_reason=content.get("finishReason"),
        refusal=content.get("refusal"),
        usage=_restore_usage(content.get("usage")),
        resolved_model=content.get("resolvedModel"),
        request_id=content.get("requestId"),
        latency=content.get("latency", 0.0),
    )


def restore_calls(content: Description) -> tuple[ToolCall, ...]:
    """Restore the tool calls of a turn from its description."""
    if "toolCalls" not in content:
        return ()
    return tuple([ToolCall(call["name"], call["arguments"]) for call in content["toolCalls"]])


def _restore_usage(content: Description | None) -> Usage:
    if not content:
        return _NO_USAGE
    return Usage(
        content.get("inputTokens"),
        content.get("outputTokens"),
        content.get("cachedTokens"),
        content.get("reasoningTokens"),
        content.get("cacheWriteTokens"),
    )


def _restore_cost(content: Description | None) -> Cost | None:
    return None if content is None else Cost(content["usd"], content["price"])
