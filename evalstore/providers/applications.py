"""A provider that asks an application: a Python function or a program of the workspace.

A request has OpenAI's chat format. The answer is a text, or a mapping with `text`, `tool_calls`,
`usage` and `cost`. An application is started only if the user trusts exactly what would run.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace

from evalstore.core.values import Json, Reply, Request
from evalstore.files.processes.application import PYTHON, Application
from evalstore.files.processes.application_calls import ApplicationCalls, ApplicationError
from evalstore.files.yaml12 import parse_json
from evalstore.providers.base import ProviderError
from evalstore.providers.chat_completions import decode_reply, dump, encode_request, redact
from evalstore.providers.deadline import deadline
from evalstore.providers.errors import MAX_ANSWER, clean, find_secrets, forms_of_secrets

_KEYS = (
    *("text", "content", "tool_calls", "usage", "cost"),
    *("model", "finish_reason", "refusal"),
)
"""The keys of a mapping that an application may return."""
_ANSWERS = ("text", "content", "tool_calls", "refusal")
"""Keys of which such a mapping must have at least one."""
_USAGE = {"input_tokens": "prompt_tokens", "output_tokens": "completion_tokens"}
_MOST_COST = 1e9


class ApplicationProvider:
    """A provider that calls one application; `close` ends its processes."""

    def __init__(
        self,
        application: Application,
        environment: Mapping[str, str],
        *,
        untrusted: str | None,
        supports_structured_outputs: bool = True,
    ) -> None:
        """`untrusted` is the reason why it must not run; None if the user trusts it."""
        self._application = application
        self._untrusted = untrusted
        self._structured = supports_structured_outputs
        self._secrets = forms_of_secrets(environment.values())
        self._calls = ApplicationCalls(application, environment, MAX_ANSWER, self._secrets)

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        """Make one call; a process that exceeds the timeout is ended."""
        if self._untrusted is not None:
            raise ProviderError("unsupported", self._untrusted, stops_model=True)
        document = encode_call(request, supports_structured_outputs=self._structured)
        try:
            async with deadline(timeout):
                answer, seconds = await self._calls.call(document)
        except ApplicationError as error:
            kind = "timeout" if error.timeout else "connection" if error.retry else "application"
            words = clean(str(error), find_secrets(None, *self._secrets))
            raise ProviderError(kind, words, retry=error.retry, stops_model=error.stops) from None
        if self._application.kind != PYTHON:
            answer = read_output(answer)
        has_form = "response_format" in document["options"]
        reply = decode_answer(answer, seconds, has_form=has_form)
        for secret in self._secrets:
            reply = redact(reply, secret)
        return reply

    async def close(self) -> None:
        """End all processes."""
        self._calls.close()


def encode_call(request: Request, *, supports_structured_outputs: bool = True) -> Json:
    """Return the messages and the options of a call in OpenAI's chat format."""
    options = encode_request(request, supports_structured_outputs=supports_structured_outputs)
    del options["model"]
    options.pop("tool_choice", None)
    messages = options.pop("messages")
    if request.schema is not None:
        options["schema"] = request.schema
    document = {"messages": messages, "options": options}
    dump(document)
    return document


def read_output(text: str) -> Json:
    """Parse a program's output: a mapping with an answer or a JSON text, else the plain text."""
    text = text.strip()
    try:
        document = parse_json(text)
    except (ValueError, RecursionError):
        return text
    if isinstance(document, str):
        return document
    is_answer = isinstance(document, dict) and any(name in document for name in _ANSWERS)
    return document if is_answer and all(name in _KEYS for name in document) else text


def decode_answer(answer: Json, seconds: float, *, has_form: bool = False) -> Reply:
    """Return the reply that an application returned; raises `ProviderError`.

    `has_form` means that JSON was requested: a mapping with other keys is then the answer itself.
    """
    if has_form and isinstance(answer, dict) and not any(name in answer for name in _ANSWERS):
        answer = json.dumps(answer, ensure_ascii=False)
    if isinstance(answer, str):
        answer = {"text": answer}
    if not isinstance(answer, dict):
        kind = "nothing" if answer is None else type(answer).__name__
        raise _malformed(f"it returned {kind}, not a text or a mapping")
    if unknown := next((name for name in answer if name not in _KEYS), None):
        raise _malformed(f"it returned '{unknown}'; it may return {', '.join(_KEYS)}")
    if all(answer.get(name) is None for name in _ANSWERS):
        raise _malformed("it returned neither a 'text' nor 'tool_calls'")
    if answer.get("text") is not None and answer.get("content") is not None:
        raise _malformed("it returned both 'text' and 'content'")
    calls = answer.get("tool_calls") or []
    message = {
        "content": answer.get("text") if answer.get("content") is None else answer["content"],
        "tool_calls": [_as_call(call) for call in calls] if isinstance(calls, list) else calls,
        "refusal": answer.get("refusal"),
    }
    reason = answer.get("finish_reason") or ("tool_calls" if calls else "stop")
    document = {
        "choices": [{"message": message, "finish_reason": reason}],
        "usage": _as_usage(answer.get("usage")),
        "model": answer.get("model"),
    }
    try:
        reply = decode_reply(document, latency=seconds)
    except ProviderError as error:
        raise _malformed(error.message.replace("the server's answer", "its answer")) from None
    return replace(reply, cost=_read_cost(answer.get("cost")))


def _as_call(call: Json) -> Json:
    """Return a tool call in OpenAI's form; `{name, arguments}` is accepted as a short form."""
    if isinstance(call, dict) and "function" not in call and "name" in call:
        return {"function": {"name": call["name"], "arguments": call.get("arguments")}}
    return call


def _as_usage(usage: Json) -> Json:
    if usage is None:
        return None
    if not isinstance(usage, dict):
        raise _malformed("the 'usage' that it returned is not a mapping")
    return {_USAGE.get(name, name): value for name, value in usage.items()}


def _read_cost(cost: Json) -> float | None:
    """Return a cost in USD."""
    if cost is None:
        return None
    is_number = isinstance(cost, int | float) and not isinstance(cost, bool)
    if not is_number or not math.isfinite(cost) or not 0 <= cost <= _MOST_COST:
        raise _malformed("the 'cost' that it returned is not a number of USD")
    return float(cost)


def _malformed(message: str) -> ProviderError:
    return ProviderError("malformed", message)
