"""Reads the entries of a script, each an answer with its condition.

An entry is a mapping with the fields of `ScriptEntry`, in camelCase, and exactly one of
`answer`, `toolCalls` and `error`. `check_responses` lists all other problems.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from evalstore.core.errors import NotRunError
from evalstore.core.values import Json, OutgoingMessage, ToolCall, Usage
from evalstore.files.processes.limited_calls import LimitReached, has_match, pattern_problem
from evalstore.providers.base import ProviderError
from evalstore.providers.errors import status_error

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
