"""Builds the requests to a candidate from a question."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from evalstore.checks.judging.transcript import Outgoing, fill_turns
from evalstore.core.values import (
    AnswerRef,
    FilePart,
    Json,
    OutgoingMessage,
    Part,
    Question,
    Reply,
    Request,
    SampleRef,
    TestVersion,
    Text,
    is_text,
)
from evalstore.runs.execution.content_cache import ContentCache


def build_request(
    contents: ContentCache,
    question: Question,
    code: str,
    limit: int | None,
    options: Mapping[str, Json],
) -> Request:
    """Return the request for the last answer to a question.

    `code` is the model's, `limit` the maximum tokens of an answer. Model-generated turns are still
    empty: `next_request` fills them.
    """
    test = contents.test(question.test)
    return Request(
        code=code,
        messages=tuple(build_conversation(contents, test, question.prompt)),
        tools=tuple(contents.tool(id) for id in test.tools),
        schema=contents.schema(test.schema) if test.schema else None,
        json_mode="_json_mode" in test.special_tags,
        temperature=question.temperature,
        max_output_tokens=limit,
        top_p=test.options.top_p,
        seed=question.seed,
        stop=test.options.stop,
        provider_options={**options, **(test.options.provider_options or {})},
    )


def build_conversation(
    contents: ContentCache, test: TestVersion, prompt: str | None
) -> list[OutgoingMessage]:
    """Return the messages to the candidate; `prompt` is the id of the system prompt.

    The test's own system text follows the system prompt in the same message.
    """
    messages = [
        OutgoingMessage(each.role, tuple(build_parts(contents, each.parts)), each.filled, each.name)
        for each in test.messages
    ]
    if prompt:
        system = [
            part
            for message in contents.prompt(prompt).messages
            for part in build_parts(contents, message.parts)
        ]
        if messages and messages[0].role == "system":
            system += [Text("\n\n"), *messages.pop(0).parts]
        messages.insert(0, OutgoingMessage("system", tuple(system)))
    return messages


def build_parts(
    contents: ContentCache,
    parts: tuple[Part, ...],
    show_answers: Callable[[AnswerRef | SampleRef], Outgoing] = lambda _reference: [],
) -> Outgoing:
    """Return parts with their files: text files as text, all others as bytes.

    References to answers are replaced with the result of `show_answers`.
    """
    result: Outgoing = []
    for part in parts:
        if isinstance(part, Text):
            result.append(part)
            continue
        if isinstance(part, AnswerRef | SampleRef):
            result += show_answers(part)
            continue
        file = contents.file(part.id)
        if is_text(file.media_type):
            result.append(Text(file.data.decode("utf-8-sig")))
        else:
            result.append(FilePart(part.path, file.media_type, file.data))
    return result


def next_request(request: Request, answers: Sequence[Reply]) -> tuple[Request, bool]:
    """Return the request for the next turn of a conversation, and whether it is the last one.

    A format of the answer is requested only in the last turn.
    """
    messages = fill_turns(request.messages, answers)
    open_turns = [number for number, message in enumerate(messages) if message.filled]
    if not open_turns:
        return replace(request, messages=tuple(messages)), True
    shown = tuple(messages[: open_turns[0]])
    return replace(request, messages=shown, schema=None, json_mode=False), False
