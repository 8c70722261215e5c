"""A provider whose answers come from a script, for examples and tests.

It behaves like any other provider, with failures, latencies and token counts, but needs no
network. The first entry that matches is the answer.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Mapping, Sequence

from evalstore.core.errors import EvalstoreError
from evalstore.core.values import Json, OutgoingMessage, Reply, Request, Usage
from evalstore.files.processes.limited_calls import is_cheap_pattern
from evalstore.providers.base import ProviderError
from evalstore.providers.deadline import deadline
from evalstore.providers.errors import clean, require_finished
from evalstore.providers.script import (
    JUDGED,
    NO_MATCH,
    ScriptEntry,
    as_error,
    check_responses,
    read_entry,
)

__all__ = ["ScriptedProvider", "check_responses"]

_SHOWN = 60
"""Characters of a message that are shown."""
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

    @property
    def used(self) -> frozenset[int]:
        """Return the numbers of the entries that were given in this process."""
        return frozenset(number for number, uses in enumerate(self._uses) if uses)

    async def close(self) -> None:
        """Do nothing: there are no connections."""

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
    return Reply(
        text=text,
        tool_calls=entry.tool_calls,
        finish_reason=entry.finish_reason or finish_reason,
        usage=entry.usage or estimate_usage(request, f"{text or ''}{calls}"),
        resolved_model=entry.model or request.code,
        latency=entry.latency,
    )


def estimate_usage(request: Request, answer: str) -> Usage:
    """Return tokens by the length of the texts; equal requests have equal costs."""
    return Usage(
        input_tokens=count_tokens("".join(message.text for message in request.messages)),
        output_tokens=count_tokens(answer),
    )


def count_tokens(text: str) -> int:
    """Return about how many tokens a text has."""
    return (len(text) + CHARACTERS_PER_TOKEN - 1) // CHARACTERS_PER_TOKEN
