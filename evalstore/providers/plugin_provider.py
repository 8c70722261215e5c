"""Providers of installed packages: the entry point group `evalstore.providers`.

The name of an entry point is the kind of provider. It refers to a class, which is called with
`model` (and `provider`) if it has such parameters. The instance is a `Provider`, or a service as
in LangBiTe, with `execute_prompt(prompt) -> text`; `temperature` and `tokens` are set before a
call on services that have such attributes.
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from evalstore.core.values import Reply, Request, Text
from evalstore.providers.base import Provider, ProviderError, plugged_in
from evalstore.providers.deadline import deadline
from evalstore.providers.errors import clean, find_secrets


class PluggedProvider:
    """A provider or a service of a package, created once for each model.

    A service is called in a thread, and one call at a time.
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._services: dict[str, Any] = {}
        self._providers: dict[str, Provider] = {}
        self._is_provider: bool | None = None
        """None until the class is loaded."""
        self._busy = asyncio.Lock()

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        """Return a provider's reply, or a service's text; a late service is not stopped."""
        began = time.monotonic()
        if self._is_provider is None:  # what a package loads may take long
            async with deadline(timeout):
                self._is_provider = hasattr(await asyncio.to_thread(self._load), "ask")
        if self._is_provider:
            async with deadline(timeout):
                reply = await self._provider(request.code).ask(request, timeout=timeout)
            if not isinstance(reply, Reply):
                raise self._no_reply("no reply", reply)
            return reply if reply.latency else replace(reply, latency=time.monotonic() - began)
        prompt = _as_prompt(request)
        async with self._busy:
            began = time.monotonic()
            async with deadline(timeout):
                text = await asyncio.to_thread(self._call, request, prompt)
        return replace(Reply(text), finish_reason="stop", latency=time.monotonic() - began)

    def _load(self) -> Any:
        """Load the class that the entry point names; raises `ProviderError`."""
        try:
            return plugged_in()[self._kind].load()
        except Exception as error:
            raise self._failed(error) from error

    def _provider(self, code: str) -> Provider:
        if code not in self._providers:
            try:
                self._providers[code] = _construct(self._load(), self._arguments(code))
            except ProviderError:
                raise
            except Exception as error:
                raise self._failed(error) from error
        return self._providers[code]

    def _arguments(self, code: str) -> dict[str, str]:
        return {"provider": self._kind, "model": code}

    def _failed(self, error: Exception) -> ProviderError:
        words = clean(str(error), find_secrets(None)) or type(error).__name__
        return ProviderError("service", f"the service '{self._kind}' failed: {words}")

    def _no_reply(self, lack: str, reply: object) -> ProviderError:
        words = f"the service '{self._kind}' gave {lack} but {type(reply).__name__}"
        return ProviderError("malformed", words)

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
            raise self._failed(error) from error
        if not isinstance(text, str):
            raise self._no_reply("no text", text)
        return text

    def _service(self, code: str) -> Any:
        if code not in self._services:
            self._services[code] = _make(plugged_in()[self._kind].load(), self._arguments(code))
        return self._services[code]

    async def close(self) -> None:
        """Close the providers; services have nothing to close."""
        for provider in self._providers.values():
            await provider.close()


def _make(factory: Callable[..., Any], attributes: Mapping[str, str]) -> Any:
    """Create a service, and set its provider and its model."""
    service = _construct(factory, attributes)
    for name, value in attributes.items():
        if getattr(service, name, None) is None:
            setattr(service, name, value)
    return service


def _construct(factory: Callable[..., Any], arguments: Mapping[str, str]) -> Any:
    """Return an instance, created with those of the arguments that its class accepts."""
    try:
        known = inspect.signature(factory).parameters
    except ValueError:
        known = inspect.signature(lambda: None).parameters
    return factory(**{name: value for name, value in arguments.items() if name in known})


def _as_prompt(request: Request) -> str:
    """Return a request as one text; raises `ProviderError` if it is more than a text."""
    for feature, is_used in (
        ("tools", request.tools or request.provider_options.get("tools")),
        ("a schema", request.schema is not None),
        ("JSON mode", request.json_mode),
    ):
        if is_used:
            raise ProviderError("unsupported", f"a service that takes one prompt has no {feature}")
    turns = [message for message in request.messages if message.role != "system"]
    if len(turns) != 1:
        raise ProviderError("unsupported", "a service that takes one prompt has no conversations")
    for message in request.messages:
        if not all(isinstance(part, Text) for part in message.parts):
            raise ProviderError("unsupported", "a service that takes one prompt takes no files")
    return "\n\n".join(message.text for message in request.messages if message.text)
