"""Restores values from stored descriptions; the inverse of `hashing`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from evalstore.core.hashing import Description, stored_fields
from evalstore.core.values import (
    AnswerRef,
    Case,
    CaseFile,
    Cost,
    Evaluation,
    Failure,
    FileRef,
    Json,
    Message,
    Options,
    Part,
    Question,
    Reply,
    SampleRef,
    Session,
    TestVersion,
    Text,
    ToolCall,
    Usage,
)


def _fields(kind: type, content: Description, *names: str) -> dict[str, Any]:
    """Return the fields of a kind of value that a description has; those with names are tuples."""
    fields = stored_fields(kind, content)
    return fields | {name: tuple(fields[name]) for name in names if name in fields}


def restore_test(content: Description) -> TestVersion:
    """Restore a test version from its description."""
    return TestVersion(
        messages=restore_messages(content.get("messages", ())),
        special_tags=tuple(content.get("specialTags", ())),
        tools=tuple(content.get("tools", ())),
        schema=content.get("schema"),
        options=Options(**_fields(Options, content.get("options", {}), "stop")),
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
    fields = _fields(CaseFile, content, "evaluators")
    return CaseFile(**{**fields, "cases": tuple(restore_cases(content["cases"])), "code": None})


def restore_question(content: Description) -> Question:
    """Restore the question in the content of a session."""
    return Question(**{"prompt": None, "temperature": None, **_fields(Question, content)})


def restore_session(content: Description) -> Session:
    """Restore a session from its description."""
    fields = _fields(Session, content) | {"question": restore_question(content)}
    fields["turns"] = tuple(restore_reply(turn) for turn in content["turns"])
    fields["cost"] = _restore_cost(content.get("cost"))
    return Session(**fields)


def restore_evaluation_result(content: Description) -> Evaluation:
    """Restore a judgement from its description."""
    fields = _fields(Evaluation, content, "sessions", "checks")
    fields["usage"] = _restore_usage(content.get("usage"))
    fields["cost"] = _restore_cost(content.get("cost"))
    return Evaluation(**fields)


def restore_failure(content: Description) -> Failure:
    """Restore a failure from its description."""
    fields: dict[str, Any] = {"question": None, "subject": None, "evaluator": None, "nonce": ""}
    return Failure(**{**fields, **_fields(Failure, content), "kind": content["type"]})


def restore_reply(content: Description) -> Reply:
    """Restore a turn of an answer from its description."""
    fields = _fields(Reply, content) | {"text": content.get("text"), "wait": 0.0, "cost": None}
    fields["tool_calls"] = restore_calls(content)
    fields["usage"] = _restore_usage(content.get("usage"))
    return Reply(**fields)


def restore_calls(content: Description) -> tuple[ToolCall, ...]:
    """Restore the tool calls of a turn from its description."""
    if "toolCalls" not in content:
        return ()
    return tuple([ToolCall(call["name"], call["arguments"]) for call in content["toolCalls"]])


def _restore_usage(content: Description | None) -> Usage:
    return Usage(**_fields(Usage, content)) if content else _NO_USAGE


def _restore_cost(content: Description | None) -> Cost | None:
    return None if content is None else Cost(content["usd"], content["price"])
