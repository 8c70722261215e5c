"""In which form a verdict is asked for: the strictest one that a judge's server takes.

Some servers refuse a schema, some any form at all, and some take a schema and do not hold their
model to it. What a model is declared to take is where to begin; what its server refuses or does
not keep is learnt once and kept for the rest of a run.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from evalstore.judging.verdict_reply import VERDICT_SCHEMA

if TYPE_CHECKING:
    from evalstore.providers.base import ProviderError
    from evalstore.values import Request

Mode = Literal["schema", "json", "text"]
"""Held to the schema of a verdict; held to some JSON object; left free."""

_LOWER: dict[Mode, Mode] = {"schema": "json", "json": "text"}


class ReplyModes:
    """The form that each model is asked for, as far as one execution has learnt it."""

    def __init__(self) -> None:
        self._learnt: dict[Hashable, Mode] = {}

    def mode(self, model: Hashable, *, structured: bool, strictest: Mode = "schema") -> Mode:
        """The form to ask for now; `structured` is what the model is declared to take."""
        first = "json" if strictest == "schema" and not structured else strictest
        return self._learnt.get(model, first)

    def step_down(self, model: Hashable, tried: Mode, error: ProviderError) -> bool:
        """Learn from an error of a request in the form `tried`; whether to ask once more.

        Requests that were in flight together all fail the same way, and go down one step,
        not one each.
        """
        if error.kind != "format" or tried not in _LOWER:
            return False
        self._lower(model, tried)
        return True

    def distrust(self, model: Hashable, tried: Mode) -> None:
        """Learn that a server took a schema and its model did not keep to it."""
        if tried == "schema":
            self._lower(model, tried)

    def _lower(self, model: Hashable, tried: Mode) -> None:
        if self._learnt.get(model, tried) == tried:
            self._learnt[model] = _LOWER[tried]


def in_mode(request: Request, mode: Mode) -> Request:
    """The request for a verdict in this form."""
    return replace(
        request, schema=VERDICT_SCHEMA if mode == "schema" else None, json_mode=mode == "json"
    )
