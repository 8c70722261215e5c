"""Opens the endpoints that a plan needs: providers with their keys, and prices."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from evalstore.core.clock import today
from evalstore.core.display import shorten
from evalstore.files.atomic_write import default_place
from evalstore.files.processes.application import Application
from evalstore.planning.participants import find
from evalstore.providers import Provider, open_provider
from evalstore.runs.execution.key_access import (
    KeyAccess,
    find_missing_key,
    find_variables,
    named_variables,
    read_environment,
)
from evalstore.runs.execution.limits.rate_limiter import Account
from evalstore.runs.execution.model_calls import Endpoint
from evalstore.workspace.model_files import Model, Part
from evalstore.workspace.reader import Reading
from evalstore.workspace.trust import TrustList


class ProviderPool:
    """Opens providers with their keys; each account is opened once."""

    def __init__(
        self, root: Path, reading: Reading, agrees: Callable[[str], bool] = lambda question: False
    ) -> None:
        """`agrees` asks the user whether a variable may be sent to a host."""
        self.day = today()
        named = named_variables(reading.models.values())
        self.environment = read_environment(root, named)
        self.notes: list[str] = [*self.environment.warnings]
        """Notes for the user before the first call."""
        self.keys = KeyAccess(self.environment, agrees)
        self._currencies = reading.currencies
        self._open: dict[tuple[object, ...], tuple[Provider, Account]] = {}

    def endpoint(self, model: Model, part: Part, temperature: float | None) -> Endpoint:
        """Return the endpoint of a model; raises `EvalstoreError` when it cannot be called."""
        provider = model.provider
        access = self.keys.find(provider)
        missing = find_missing_key(provider, self.environment)
        if missing and missing.variable:
            self._note(f"{missing.message}, so '{model.id}' is called without a key")
        if access.warning:
            self._note(access.warning)
        key = (
            provider.type,
            access.base_url,
            access.api_key,
            model.id if provider.type == "scripted" or model.application else None,
        )
        if key not in self._open:
            opened = (
                self._open_application(model, model.application)
                if model.application
                else open_provider(
                    provider.type,
                    base_url=access.base_url,
                    api_key=access.api_key,
                    parameters=access.parameters,
                    responses=model.responses,
                    supports_structured_outputs=provider.structured,
                )
            )
            account = Account(
                f"{provider.code} {len(self._open)}",
                f"{provider.code} {access.base_url or ''}".strip(),
                provider.concurrency,
                provider.requests_per_minute,
                provider.tokens_per_minute,
            )
            self._open[key] = opened, account
        opened, account = self._open[key]
        return Endpoint(
            model=model,
            version=model.version(part),
            provider=opened,
            price=find(model, self._currencies, self.day),
            temperature=temperature,
            structured=provider.structured and model.capabilities.get("structured") is not False,
            account=account,
        )

    def _open_application(self, model: Model, application: Application) -> Provider:
        """Return the provider of an application, which runs nothing unless the user trusts it."""
        from evalstore.providers.applications import ApplicationProvider

        environment = find_variables(self.environment, application.variables)
        for name in application.variables:
            if name not in environment:
                self._note(f"{name} is not set, so '{model.id}' is called without it")
        return ApplicationProvider(
            application,
            environment,
            untrusted=self.find_untrusted(model),
            supports_structured_outputs=model.provider.structured,
        )

    @staticmethod
    def find_untrusted(model: Model) -> str | None:
        """Return a message if the application of a model is not trusted; else None."""
        application = model.application
        if not application:
            return None
        if TrustList(default_place()).allows_application(application.digest):
            return None
        return f"{shorten(application.code)} is not trusted on this machine"

    def _note(self, note: str) -> None:
        self.notes += [] if note in self.notes else [note]

    async def close(self) -> None:
        """Close every provider that was opened."""
        for provider, _ in self._open.values():
            await provider.close()
