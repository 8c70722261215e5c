"""Finds problems of the models in the settings that no file shows: keys and unknown prices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from evalstore.core.clock import today
from evalstore.core.errors import EvalstoreError, Problem
from evalstore.planning import participants
from evalstore.planning.participants import find_model
from evalstore.providers.base import SCRIPTED
from evalstore.providers.price_table import find_retirement
from evalstore.workspace.folder import WorkspaceFolder
from evalstore.workspace.model_files import PRICE_EXAMPLE, Model, bare_model
from evalstore.workspace.reader import Reading


def describe_unknown_price(model: Model) -> tuple[str, str]:
    """Return the message and the hint for a model whose price is not known."""
    may_report = ", or let the application report its 'cost'" if model.application else ""
    hint = f"write its price into a model file, as in '{PRICE_EXAMPLE}'{may_report}"
    return "its price is not known", hint


def describe_retirement(reading: Reading, ids: Iterable[str]) -> str | None:
    """Return which of these models are retired or will be, in one line; None if none is."""
    days: dict[str, str] = {}
    for id in dict.fromkeys(ids):
        model = reading.models.get(id) or bare_model(id)
        if model is None or not model.active or model.provider.type == SCRIPTED:
            continue
        codes = {model.version("candidate").code, model.version("evaluator").code}
        if found := [day for code in codes if (day := find_retirement(model.provider.type, code))]:
            days[id] = min(found)
    gone = ", ".join(f"{id} (since {day})" for id, day in days.items() if day <= today())
    going = ", ".join(f"{id} (on {day})" for id, day in days.items() if day > today())
    listed = (
        f"{word}: {models}" for word, models in (("retired", gone), ("retiring", going)) if models
    )
    text = "; ".join(listed)
    return f"{text}, according to litellm's table" if text else None


def find_model_problems(workspace: WorkspaceFolder, reading: Reading) -> Iterator[Problem]:
    """Yield a warning for each problem of the models in the settings that a run would have."""
    settings = workspace.settings
    models: list[Model] = []
    for id in dict.fromkeys(
        participant.id for participant in (*settings.candidates, *settings.evaluators)
    ):
        with suppress(EvalstoreError):  # already among the problems
            models.append(find_model(reading, id, "models"))
    called = [model for model in models if model.active and model.provider.type != SCRIPTED]
    if not called:
        return
    if retirement := describe_retirement(reading, (model.id for model in called)):
        yield Problem(workspace.config.name, retirement, severity="warning")
    yield from _find_key_problems(workspace, reading, called)
    for model in called if settings.max_cost is not None else ():
        # A price without a rate is reported with the line of its file.
        if not model.costs and participants.find(model, reading.currencies, today()) is None:
            message, hint = describe_unknown_price(model)
            message = f"{message}, so a run cannot keep to 'maxCost'"
            yield _warn(workspace, reading, model, message, hint)


def _find_key_problems(
    workspace: WorkspaceFolder, reading: Reading, models: Iterable[Model]
) -> Iterator[Problem]:
    """Yield warnings about keys that are not set, and keys that a run would not send."""
    from evalstore.runs.execution.key_access import (
        KeyAccess,
        collect_refused,
        combine_refusals,
        find_missing_key,
        named_variables,
        read_environment,
    )

    name = workspace.config.name
    try:
        environment = read_environment(
            workspace.root, named_variables((*reading.models.values(), *models))
        )
    except EvalstoreError:  # the run reports errors in files of keys
        return
    if refused := collect_refused(KeyAccess(environment), models):
        error = combine_refusals(refused)
        yield Problem(name, str(error), severity="warning", hint=error.hint)
    for model in models:
        if missing := find_missing_key(model.provider, environment):
            yield _warn(workspace, reading, model, missing.message, missing.hint)


def _warn(
    workspace: WorkspaceFolder, reading: Reading, model: Model, message: str, hint: str
) -> Problem:
    """Return a warning at the file of a model, or at the settings if it has none."""
    file = reading.model_files.get(model.id, workspace.config.name)
    return Problem(file, f"model '{model.id}': {message}", severity="warning", hint=hint)
