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
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
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
        self._class: Any = None
        """The class that the entry point names, once it is loaded."""
        self._instances: dict[str, Any] = {}
        """Model code -> its provider or service."""
        self._busy = asyncio.Lock()

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        """Return a provider's reply, or a service's text; a late service is not stopped."""
        began = time.monotonic()
        if self._class is None:  # what a package loads may take long
            async with deadline(timeout):
                load = plugged_in()[self._kind].load
                self._class = await asyncio.to_thread(self._guard, load)
        if hasattr(self._class, "ask"):
            async with deadline(timeout):
                provider: Provider = self._guard(lambda: self._instance(request.code))
                reply = await provider.ask(request, timeout=timeout)
            if not isinstance(reply, Reply):
                raise self._no_reply("no reply", reply)
            return reply if reply.latency else replace(reply, latency=time.monotonic() - began)
        prompt = _as_prompt(request)
        async with self._busy:
            began = time.monotonic()
            async with deadline(timeout):
                execute = partial(self._execute, request, prompt)
                text = await asyncio.to_thread(self._guard, execute)
        if not isinstance(text, str):
            raise self._no_reply("no text", text)
        return Reply(text, finish_reason="stop", latency=time.monotonic() - began)

    def _guard(self, call: Callable[[], Any]) -> Any:
        """Return what the code of the package returns; raises `ProviderError` for its errors."""
        try:
            return call()
        except ProviderError:
            raise
        except Exception as error:
            words = clean(str(error), find_secrets(None)) or type(error).__name__
            message = f"the service '{self._kind}' failed: {words}"
            raise ProviderError("service", message) from error

    def _no_reply(self, lack: str, reply: object) -> ProviderError:
        words = f"the service '{self._kind}' gave {lack} but {type(reply).__name__}"
        return ProviderError("malformed", words)

    def _instance(self, code: str) -> Any:
        """Return the instance for a model, created with what its class accepts."""
        if code not in self._instances:
            accepted: dict[str, str] = {}
            with suppress(ValueError):  # nothing is known of a class of another language
                known = inspect.signature(self._class).parameters
                given = {"provider": self._kind, "model": code}
                accepted = {name: value for name, value in given.items() if name in known}
            self._instances[code] = self._class(**accepted)
        return self._instances[code]

    def _execute(self, request: Request, prompt: str) -> Any:
        service = self._instance(request.code)
        for name, text in (("provider", self._kind), ("model", request.code)):
            if getattr(service, name, None) is None:
                setattr(service, name, text)
        numbers = {"temperature": request.temperature, "tokens": request.max_output_tokens}
        for name, number in numbers.items():
            if number is not None and hasattr(service, name):
                setattr(service, name, number)
        return service.execute_prompt(prompt)

    async def close(self) -> None:
        """Close the providers; services have nothing to close."""
        for instance in self._instances.values() if hasattr(self._class, "ask") else ():
            await instance.close()


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
