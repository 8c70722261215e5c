"""Finds variables of the user's environment that a command would send to hosts not allowed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from evalstore.core.errors import EvalstoreError
from evalstore.providers.kinds import SCRIPTED
from evalstore.runs.execution.key_access import (
    KeyAccess,
    KeyNotAllowedError,
    named_variables,
    read_environment,
)
from evalstore.workspace.model_files import Model
from evalstore.workspace.reader import Reading


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
