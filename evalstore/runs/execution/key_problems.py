"""Finds keys of models that are not set, and those that must not be sent to a host.

A hosted service answers no call without a key. A server of the user's own may need none, so there
the call is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from evalstore.core.errors import EvalstoreError
from evalstore.providers import credentials
from evalstore.providers.base import OPENAI_COMPATIBLE, SCRIPTED, plugged_in
from evalstore.providers.base_urls import host_of, split_base_url
from evalstore.runs.execution.key_access import (
    Environment,
    KeyAccess,
    KeyNotAllowedError,
    named_variables,
    read_environment,
)
from evalstore.workspace.model_files import Model, ProviderFile
from evalstore.workspace.reader import Reading

NO_VARIABLE = (
    "name the variable that holds the key in 'apiKeyEnvVar' of the provider file: it names none"
)


@dataclass(frozen=True, slots=True)
class MissingKey:
    """The key of a provider that is not set."""

    provider: str
    """The code of the provider."""
    variable: str | None
    """The variable that should hold it; None if the provider file names none."""
    host: str | None
    """The hosted service that needs it; None if the server may need none."""

    @property
    def message(self) -> str:
        """Return what is missing, in words."""
        if self.variable:
            return f"{self.variable} is not set"
        return f"{self.host} needs a key, and the provider '{self.provider}' names no variable"

    @property
    def hint(self) -> str:
        """Return how to set the key."""
        return hint_to_set(self.variable) if self.variable else NO_VARIABLE


def hint_to_set(*variables: str) -> str:
    """Return how to set variables of keys."""
    return f"set {_list(variables)} in the environment, or in the workspace's .env"


def find_missing_key(provider: ProviderFile, environment: Environment) -> MissingKey | None:
    """Return the key of a provider that is not set; None if it is set, or there is none to set."""
    host = _find_service(provider, environment)
    variable = provider.key_variable or _find_usual(provider, host)
    if variable and environment.has(variable):
        return None
    if host and _has_litellm_key(provider, environment):
        return None
    return MissingKey(provider.code, variable, host) if variable or host else None


def require_set(models: Iterable[Model], environment: Environment) -> None:
    """Raise `EvalstoreError` for all models that cannot be called because their key is not set."""
    needed: dict[MissingKey, list[str]] = {}
    for model in models:
        missing = find_missing_key(model.provider, environment)
        if missing and missing.host:
            needed.setdefault(missing, []).append(f"'{model.id}'")
    if not needed:
        return
    messages = (
        f"{missing.message}, so {_list(ids)} cannot be called" for missing, ids in needed.items()
    )
    variables = dict.fromkeys(missing.variable for missing in needed if missing.variable)
    hints = [hint_to_set(*variables)] if variables else []
    hints += [] if all(missing.variable for missing in needed) else [NO_VARIABLE]
    raise EvalstoreError("; ".join(messages), hint="; ".join(hints))


def _find_service(provider: ProviderFile, environment: Environment) -> str | None:
    """Return the host of the service that a provider calls if it needs a key, else None."""
    kind, base = provider.type, provider.base_url
    if base is None and kind in OPENAI_COMPATIBLE:
        base = OPENAI_COMPATIBLE[kind]
    elif base is None:
        variables = (environment.user, environment.workspace)
        named = (credentials.find_base(kind, values) for values in variables)
        base = next((variable[1] for variable in named if variable), None)
    if base is not None:
        host = host_of(base) if split_base_url(base) else None
    else:
        host = credentials.SERVICE_HOSTS.get(kind)
    if host not in credentials.KNOWN_HOSTS:
        return None
    is_plugin = kind not in OPENAI_COMPATIBLE and kind in plugged_in()
    return None if is_plugin else host  # a package finds its own key


def _find_usual(provider: ProviderFile, host: str | None) -> str | None:
    """Return the variable in which the key of a service is looked for without a provider file."""
    if host is None or (provider.type in OPENAI_COMPATIBLE and provider.base_url):
        return None
    usual = credentials.usual_variables(provider.type, credentials.KNOWN_HOSTS[host])
    return usual[0] if usual else None


def _has_litellm_key(provider: ProviderFile, environment: Environment) -> bool:
    """Return whether there is a key under another of the names in which litellm looks for it."""
    kind = provider.type
    if kind in OPENAI_COMPATIBLE or (provider.base_url and provider.key_variable):
        return False
    # A key of a `.env` file is passed on only if it is not another one that the file names.
    names = dict(environment.user)
    if not provider.key_variable:
        names |= environment.workspace
    return any(environment.has(name) for name in credentials.usual_variables(kind, names))


def _list(words: Sequence[str]) -> str:
    start = ", ".join(words[:-1])
    return f"{start} and {words[-1]}" if start else words[-1]


# --- variables that a command would send to hosts that are not allowed


def find_refused_keys(
    root: Path, reading: Reading, models: Iterable[Model]
) -> list[KeyNotAllowedError]:
    """Return the refused keys of these models, each once, without asking the user."""
    called = [model for model in models if model.provider.type != SCRIPTED]
    if not called:
        return []
    try:
        named = named_variables((*reading.models.values(), *called))
        keys = KeyAccess(read_environment(root, named))
    except EvalstoreError:  # the run reports errors in files of keys
        return []
    return collect_refused(keys, called)


def collect_refused(keys: KeyAccess, models: Iterable[Model]) -> list[KeyNotAllowedError]:
    """Return the refused keys of these models, each once."""
    refused: dict[tuple[str, str], KeyNotAllowedError] = {}
    for model in models:
        try:
            keys.find(model.provider)
        except KeyNotAllowedError as error:
            refused.setdefault((error.variable, error.host), error)
        except EvalstoreError:  # opening the provider reports the error
            continue
    return list(refused.values())


def combine_refusals(refused: list[KeyNotAllowedError]) -> KeyNotAllowedError:
    """Combine all refusals into one error, whose hint allows all of them."""
    if len(refused) == 1:
        return refused[0]
    listed = ", ".join(
        f"{error.variable} to {error.host} (provider '{error.provider}')" for error in refused
    )
    commands = "; ".join(f"evalstore trust env {error.variable} {error.host}" for error in refused)
    pairs = ",".join(f"{error.variable}={error.host}" for error in refused)
    return KeyNotAllowedError(
        f"this workspace wants variables of your environment to be sent to hosts that you have "
        f"not allowed: {listed}",
        hint=f"if you trust those hosts: {commands}; in CI set EVALSTORE_ALLOW_ENV={pairs}",
        variable=refused[0].variable,
        host=refused[0].host,
        provider=refused[0].provider,
    )
