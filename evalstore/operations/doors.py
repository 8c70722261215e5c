"""Opens the doors that a plan needs: providers with their keys, and prices."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from evalstore.execute import Door
from evalstore.operations.times import today
from evalstore.pace import Account
from evalstore.pricing import find
from evalstore.providers import Provider, open_provider
from evalstore.trust import DECIDING

if TYPE_CHECKING:
    from pathlib import Path

    from evalstore.catalogue import Currency, Model, Part
    from evalstore.cells import Candidate, Judge
    from evalstore.operations.desk import Desk


DOTENV = (".env.local", ".env")
"""Files of the workspace that may hold keys; the environment wins over them."""


class Doorkeeper:
    """Opens providers with their keys, each account once."""

    def __init__(self, root: Path, currencies: Mapping[str, Currency]) -> None:
        self.day = today()
        self.environment = read_environment(root)
        self.notes: list[str] = []
        """What the user should know before the first call."""
        self._currencies = currencies
        self._open: dict[tuple[object, ...], tuple[Provider, Account]] = {}

    def door(self, model: Model, part: Part, temperature: float | None) -> Door:
        """A model as it is called; raises `EvalstoreError` when it cannot be called at all."""
        provider = model.provider
        key = self.environment.get(provider.key_variable) if provider.key_variable else None
        if provider.key_variable and not key:
            note = f"{provider.key_variable} is not set, so '{model.id}' is called without a key"
            self.notes += [] if note in self.notes else [note]
        place = (
            provider.type,
            provider.base_url,
            key,
            model.id if provider.type == "scripted" else None,
        )
        if place not in self._open:
            opened = open_provider(
                provider.type,
                base_url=provider.base_url,
                api_key=key,
                responses=model.responses,
                supports_structured_outputs=provider.structured,
            )
            account = Account(
                f"{provider.code} {len(self._open)}",
                provider.concurrency,
                provider.requests_per_minute,
                provider.tokens_per_minute,
            )
            self._open[place] = opened, account
        opened, account = self._open[place]
        return Door(
            model=model,
            version=model.version(part),
            provider=opened,
            price=find(model, self._currencies, self.day),
            temperature=temperature,
            structured=provider.structured and model.capabilities.get("structured") is not False,
            account=account,
        )

    async def close(self) -> None:
        """Close every provider that was opened."""
        for provider, _ in self._open.values():
            await provider.close()


class Doors(Doorkeeper):
    """Opens the doors that a plan needs."""

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk.workspace.root, desk.reading.currencies)
        self.desk = desk

    def candidates(self, used: Mapping[str, Candidate]) -> dict[str, Door]:
        """By display id."""
        return {
            id: self.door(self.desk.find_model(one.id, "candidates"), "candidate", None)
            for id, one in used.items()
        }

    def judges(self, used: Mapping[str, Judge]) -> dict[str, Door]:
        """By evaluator id."""
        doors = {}
        for id, judge in used.items():
            model = self.desk.find_model(judge.id, "evaluators")
            doors[id] = self.door(model, "evaluator", judge.temperature)
        return doors


def read_environment(root: Path) -> dict[str, str]:
    """The environment, filled up from `.env.local`, then `.env`; litellm sees the same.

    What decides which Python files are trusted is not for a file of the workspace to say.
    """
    from dotenv import dotenv_values

    for name in DOTENV:
        for variable, value in dotenv_values(root / name, interpolate=False).items():
            if value is not None and variable not in DECIDING:
                os.environ.setdefault(variable, value)
    return dict(os.environ)
