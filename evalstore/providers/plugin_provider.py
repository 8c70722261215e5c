"""Loads providers of other packages by the entry point group `evalstore.providers`.

An entry point is named as the kind of provider, and names a class in LangBiTe's manner:
made with `model` (and `provider`) if it takes them, with `execute_prompt(prompt) -> text`.
`temperature` and `tokens` are set before a call on services that have such attributes.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from evalstore.providers.base import ProviderError
from evalstore.providers.deadline import deadline
from evalstore.providers.errors import clean
from evalstore.providers.plugins import plugged_in
from evalstore.values import Reply, Request, Text


class PluggedProvider:
    """One service for each model; it is called in a thread, and one call at a time."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._services: dict[str, Any] = {}
        self._busy = asyncio.Lock()

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        """The text that the service gives; a service that is late is left to itself."""
        prompt = _as_prompt(request)
        async with self._busy:
            began = time.monotonic()
            async with deadline(timeout):
                text = await asyncio.to_thread(self._call, request, prompt)
        return replace(Reply(text), finish_reason="stop", latency=time.monotonic() - began)

    def _call(self, request: Request, prompt: str) -> str:
        try:
            service = self._service(request.code)
            for name, value in (
                ("temperature", request.temperature),
                ("tokens", request.max_output_tokens),
            ):
                if value is not None and hasattr(service, name):
                    setattr(service, name, value)
            text = service.execute_prompt(prompt)
        except Exception as error:
            words = clean(str(error)) or type(error).__name__
            raise ProviderError("service", f"the service '{self._kind}' failed: {words}") from error
        if not isinstance(text, str):
            what = type(text).__name__
            raise ProviderError("malformed", f"the service '{self._kind}' gave no text but {what}")
        return text

    def _service(self, code: str) -> Any:
        if code not in self._services:
            self._services[code] = _make(plugged_in()[self._kind].load(), self._kind, code)
        return self._services[code]

    async def close(self) -> None:
        """Nothing is open."""


def _make(factory: Callable[..., Any], kind: str, code: str) -> Any:
    """A service, told its provider and its model in the way that it knows."""
    given = {"provider": kind, "model": code}
    try:
        known = inspect.signature(factory).parameters
    except ValueError:
        known = inspect.signature(lambda: None).parameters
    service = factory(**{name: value for name, value in given.items() if name in known})
    for name, value in given.items():
        if getattr(service, name, None) is None:
            setattr(service, name, value)
    return service


def _as_prompt(request: Request) -> str:
    """A request as one text: such a service knows neither turns nor forms of an answer."""
    for what, wanted in (
        ("tools", request.tools or request.provider_options.get("tools")),
        ("a schema", request.schema is not None),
        ("JSON mode", request.json_mode),
    ):
        if wanted:
            raise ProviderError("unsupported", f"a service that takes one prompt has no {what}")
    turns = [message for message in request.messages if message.role != "system"]
    if len(turns) != 1:
        raise ProviderError("unsupported", "a service that takes one prompt has no conversations")
    for message in request.messages:
        if not all(isinstance(part, Text) for part in message.parts):
            raise ProviderError("unsupported", "a service that takes one prompt takes no files")
    return "\n\n".join(message.text for message in request.messages if message.text)
