"""A provider whose answers come from a script, for examples and tests; reads its entries.

It behaves like any other provider, with failures, latencies and token counts, but needs no
network. The first entry that matches is the answer.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from evalstore.core.errors import EvalstoreError, NotRunError
from evalstore.core.values import Json, OutgoingMessage, Reply, Request, ToolCall, Usage
from evalstore.files.processes.limited_calls import (
    LimitReached,
    has_match,
    is_cheap_pattern,
    pattern_problem,
)
from evalstore.providers.base import ProviderError
from evalstore.providers.errors import clean, require_finished, status_error

_WHEN_FLAGS = frozenset({"dotAll", "multiline"})
_SHOWN = 60
"""Characters of a pattern in a message."""

NO_MATCH = "no response in the script matches"
"""The start of the message on a conversation that no entry of 'responses' answers."""
JUDGED = "the judged"
"""Follows it where the conversation is one with a judge."""

RETRIED_KINDS = frozenset({"connection", "timeout", "malformed"})
"""Kinds of errors after which another try may succeed; for a status, its number decides."""

ERROR_KINDS = RETRIED_KINDS | {"status", "context", "unsupported"}


@dataclass(frozen=True, slots=True)
class ScriptEntry:
    """An answer and the condition under which it is given."""

    when: str | None
    """The last message, or a regular expression for all messages; None if it always matches."""
    answer: str | None
    tool_calls: tuple[ToolCall, ...]
    error: Json
    times: int | None
    """How often it is given; None if there is no limit."""
    usage: Usage | None
    latency: float
    finish_reason: str | None
    model: str | None

    def matches(self, messages: Sequence[OutgoingMessage]) -> bool:
        """Return whether this entry answers the conversation."""
        if self.when is None or self.when == messages[-1].text.strip():
            return True
        text = "\n\n".join(message.text for message in messages)
        try:
            return has_match(self.when, text, _WHEN_FLAGS)
        except (LimitReached, NotRunError) as limit:
            words = f"'when' was stopped: {limit}: {self.when[:_SHOWN]}"
            raise ProviderError("unsupported", words, stops_model=True) from None


def read_entry(response: Mapping[str, Json]) -> ScriptEntry:
    """Return the entry that a well-formed mapping describes."""
    answer = response.get("answer")
    usage = response.get("usage")
    return ScriptEntry(
        when=response.get("when"),
        answer=answer
        if "answer" not in response or isinstance(answer, str)
        else json.dumps(answer, ensure_ascii=False),
        tool_calls=tuple(
            ToolCall(name=call["name"], arguments=call.get("arguments", {}))
            for call in response.get("toolCalls", ())
        ),
        error=response.get("error"),
        times=response.get("times"),
        usage=None
        if usage is None
        else Usage(
            input_tokens=usage.get("inputTokens"),
            output_tokens=usage.get("outputTokens"),
            cached_tokens=usage.get("cachedTokens"),
            reasoning_tokens=usage.get("reasoningTokens"),
        ),
        latency=response.get("latency", 0.0),
        finish_reason=response.get("finishReason"),
        model=response.get("model"),
    )


def as_error(error: Json) -> ProviderError:
    """Return the error that an entry describes: a server's status, or a failure of a kind."""
    fields = error if isinstance(error, Mapping) else {}
    status = error if isinstance(error, int) else fields.get("status")
    message = error if isinstance(error, str) else fields.get("message", "")
    kind = fields.get("kind", "status")
    if status is not None:
        problem = status_error(status, message)
        problem.kind = kind
    else:
        words = message or f"scripted failure of the kind '{kind}'"
        problem = ProviderError(kind, words, retry=kind in RETRIED_KINDS)
    if "retryAfter" in fields:
        problem.retry_after = fields["retryAfter"]
    return problem


def check_responses(responses: Sequence[Json]) -> list[tuple[int, str]]:
    """Return the problems of a script: for each, the index of an entry and a message."""
    return [
        (index, problem)
        for index, response in enumerate(responses)
        for problem in _check_entry(response)
    ]


def _check_entry(response: Json) -> Iterator[str]:
    if not isinstance(response, Mapping):
        yield "a response is a mapping"
        return
    yield from _check_fields(response, FIELDS)
    outcomes = [name for name in ("answer", "toolCalls", "error") if name in response]
    if len(outcomes) != 1:
        names = " and ".join(f"'{name}'" for name in outcomes) or "none of them"
        yield f"a response has one of 'answer', 'toolCalls' and 'error', not {names}"
    when = response.get("when")
    if isinstance(when, str) and (problem := pattern_problem(when, _WHEN_FLAGS)):
        yield f"'when' is not a regular expression: {problem}"
    for call in response["toolCalls"] if is_list_of_mappings(response.get("toolCalls")) else ():
        yield from _check_fields(call, TOOL_CALL_FIELDS)
        if "name" not in call:
            yield "a tool call has a 'name'"
    if isinstance(response.get("usage"), Mapping):
        yield from _check_fields(response["usage"], USAGE_FIELDS)
    if isinstance(response.get("error"), Mapping):
        yield from _check_fields(response["error"], ERROR_FIELDS)


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0


def _is_count(value: Json) -> bool:
    return _is_number(value) and isinstance(value, int)


def is_list_of_mappings(value: Json) -> bool:
    """Return whether a value is a list whose items are mappings."""
    return isinstance(value, list) and all(isinstance(item, Mapping) for item in value)


def _is_status(value: Json) -> bool:
    return _is_count(value) and 400 <= value < 600


Kind = tuple[Callable[[Json], bool], str]
ANYTHING: Kind = (lambda value: True, "anything")
TEXT: Kind = (lambda value: isinstance(value, str), "a text")
COUNT: Kind = (_is_count, "a whole number")
SECONDS: Kind = (_is_number, "a number of seconds")

FIELDS: dict[str, Kind] = {
    "when": TEXT,
    "answer": ANYTHING,
    "toolCalls": (is_list_of_mappings, "a list of mappings"),
    "error": (
        lambda value: _is_status(value) or isinstance(value, str | Mapping),
        "a status from 400 to 599, a message or a mapping",
    ),
    "times": (lambda value: _is_count(value) and value > 0, "a whole number above zero"),
    "usage": (lambda value: isinstance(value, Mapping), "a mapping"),
    "latency": SECONDS,
    "finishReason": TEXT,
    "model": TEXT,
}
TOOL_CALL_FIELDS: dict[str, Kind] = {"name": TEXT, "arguments": ANYTHING}
USAGE_FIELDS: dict[str, Kind] = {
    "inputTokens": COUNT,
    "outputTokens": COUNT,
    "cachedTokens": COUNT,
    "reasoningTokens": COUNT,
}
ERROR_FIELDS: dict[str, Kind] = {
    "status": (_is_status, "a status from 400 to 599"),
    "message": TEXT,
    "retryAfter": SECONDS,
    "kind": (
        lambda value: isinstance(value, str) and value in ERROR_KINDS,
        "one of " + ", ".join(sorted(ERROR_KINDS)),
    ),
}


def _check_fields(mapping: Mapping[Json, Json], fields: Mapping[str, Kind]) -> Iterator[str]:
    """Yield problems with the names and the values of a mapping."""
    for name, value in mapping.items():
        if name not in fields:
            near = get_close_matches(str(name), fields, n=1)
            yield f"unknown field '{name}'" + (f": did you mean '{near[0]}'?" if near else "")
        elif not fields[name][0](value):
            yield f"'{name}' is {fields[name][1]}"


_JUDGED = re.compile(
    r"\[begin of the (?P<label>response|conversation) (?P<nonce>\w+): [^\]]*\]\n"
    r"(?P<text>.*?)\n\[end of the (?P=label) (?P=nonce)\]",
    re.DOTALL,
)
"""What a judge is shown between marks; see `judging.transcript`."""
CHARACTERS_PER_TOKEN = 4
"""The usual estimate for English, by which a script counts tokens."""


class ScriptedProvider:
    """A provider with a script, which counts how often each entry was given in this process."""

    def __init__(self, responses: Sequence[Mapping[str, Json]]) -> None:
        if problems := check_responses(responses):
            words = (f"response {index + 1}: {problem}" for index, problem in problems)
            raise EvalstoreError("; ".join(words))
        self._entries = [read_entry(response) for response in responses]
        self._uses = [0] * len(self._entries)
        self._lock = threading.Lock()

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        """Return the first entry that matches, after its latency; raises `ProviderError`."""
        import asyncio

        from evalstore.providers.deadline import deadline

        messages = request.messages
        size = sum(len(message.text) for message in messages)
        if all(it.when is None or is_cheap_pattern(it.when, size) for it in self._entries):
            entry = self._take(messages)
        else:
            entry = await asyncio.to_thread(self._take, messages)
        async with deadline(timeout):
            await asyncio.sleep(entry.latency)
        if entry.error is not None:
            raise as_error(entry.error)
        require_finished(entry.finish_reason)
        return as_reply(entry, request)

    async def close(self) -> None:
        """Do nothing: a scripted model has no connections."""

    def _take(self, messages: Sequence[OutgoingMessage]) -> ScriptEntry:
        """Take the first entry that matches and is not used up, and count its use."""
        with self._lock:
            for index, entry in enumerate(self._entries):
                used_up = entry.times is not None and self._uses[index] >= entry.times
                if not used_up and entry.matches(messages):
                    self._uses[index] += 1
                    return entry
        raise ProviderError("unsupported", f"{NO_MATCH} {_start_of(messages[-1].text)}")


def _start_of(text: str) -> str:
    """Return the start of a message; of a message to a judge, the start of what is judged."""
    marked = {match["label"]: match for match in _JUDGED.finditer(text)}
    judged = marked.get("response") or marked.get("conversation")
    name = f"{JUDGED} {judged['label']} " if judged else ""
    whole = clean(judged["text"] if judged else text)
    return f"{name}'{whole[:_SHOWN]}{'…' if len(whole) > _SHOWN else ''}'"


def as_reply(entry: ScriptEntry, request: Request) -> Reply:
    """Return the reply that an entry describes, cut off at the request's limit of tokens."""
    text, finish_reason = entry.answer, "tool_calls" if entry.tool_calls else "stop"
    if text is not None and request.max_output_tokens is not None:
        limit = request.max_output_tokens * CHARACTERS_PER_TOKEN
        if len(text) > limit:
            text, finish_reason = text[:limit], "length"
    calls = "".join(call.name + json.dumps(call.arguments) for call in entry.tool_calls)
    sent = "".join(message.text for message in request.messages)
    estimate = Usage(count_tokens(sent), count_tokens(f"{text or ''}{calls}"))
    return Reply(
        text=text,
        tool_calls=entry.tool_calls,
        finish_reason=entry.finish_reason or finish_reason,
        usage=entry.usage or estimate,
        resolved_model=entry.model or request.code,
        latency=entry.latency,
    )


def count_tokens(text: str) -> int:
    """Return about how many tokens a text has, so that equal requests have equal costs."""
    return (len(text) + CHARACTERS_PER_TOKEN - 1) // CHARACTERS_PER_TOKEN
