"""Chooses the structured output that is requested of each judge.

Some servers refuse a schema, some any structured output, and some accept a schema and do not
enforce it. The first request follows the declared capabilities of the model; a refusal is
remembered for the rest of a run.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Literal

from evalstore.core.values import Json, Request
from evalstore.providers.base import ProviderError

Mode = Literal["schema", "json", "text"]
"""The schema of a reply, any JSON object, or plain text."""

_LOWER: dict[Mode, Mode] = {"schema": "json", "json": "text"}


class ReplyModes:
    """The mode of each model during one execution."""

    def __init__(self) -> None:
        self._learnt: dict[Hashable, Mode] = {}

    def mode(self, model: Hashable, *, structured: bool, strictest: Mode = "schema") -> Mode:
        """Choose the mode of the next request; `structured` is the model's declared capability."""
        first = "json" if strictest == "schema" and not structured else strictest
        return self._learnt.get(model, first)

    def step_down(self, model: Hashable, tried: Mode, error: ProviderError) -> bool:
        """Lower the mode after an error of a request in the mode `tried`; return whether to retry.

        Concurrent requests that fail in the same way lower it only once.
        """
        if error.kind != "format" or tried not in _LOWER:
            return False
        self._lower(model, tried)
        return True

    def distrust(self, model: Hashable, tried: Mode) -> None:
        """Lower the mode because a server accepted a schema and did not enforce it."""
        if tried == "schema":
            self._lower(model, tried)

    def _lower(self, model: Hashable, tried: Mode) -> None:
        if self._learnt.get(model, tried) == tried:
            self._learnt[model] = _LOWER[tried]


def in_mode(request: Request, mode: Mode, schema: Json) -> Request:
    """Return the request for a reply with this schema in this mode."""
    return replace(request, schema=schema if mode == "schema" else None, json_mode=mode == "json")
