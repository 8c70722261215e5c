"""The command `check`: all problems of a workspace and of its models, without a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

from evalstore.core.clock import today
from evalstore.core.errors import EvalstoreError, OutsideError, Problem, WorkspaceError
from evalstore.files.fields import suggest
from evalstore.planning import participants
from evalstore.planning.open_project import (
    find_ignored_variables,
    locate_store,
    open_workspace,
)
from evalstore.planning.options import Location
from evalstore.planning.participants import describe_retirement, find_model, find_unpriced, tags_of
from evalstore.planning.project import CodeTrust, VersionBuffer, files_of
from evalstore.planning.selection import Selection, find_targets
from evalstore.providers.base import SCRIPTED
from evalstore.store import Store
from evalstore.workspace.folder import WorkspaceFolder
from evalstore.workspace.model_files import PRICE_EXAMPLE, Model
from evalstore.workspace.reader import Reading, read_workspace


def describe_unknown_price(model: Model) -> tuple[str, str]:
    """Return the message and the hint for a model whose price is not known."""
    may_report = ", or let the application report its 'cost'" if model.application else ""
    hint = f"write its price into a model file, as in '{PRICE_EXAMPLE}'{may_report}"
    return "its price is not known", hint


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
        find_missing_key,
        find_refusal,
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
    if error := find_refusal(KeyAccess(environment), models):
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


@dataclass(frozen=True, slots=True)
class CheckReport:
    """All problems of all files."""

    problems: list[Problem]
    files: int
    cases: int

    @property
    def errors(self) -> int:
        """Return how many of the problems are errors."""
        return sum(1 for problem in self.problems if problem.severity == "error")


def check(location: Location, paths: tuple[str, ...] = ()) -> CheckReport:
    """Read, expand and validate everything; calls no model and needs no store.

    With an existing store, files that have not changed are not read again.
    """
    try:
        workspace = open_workspace(location)
    except WorkspaceError as error:
        return CheckReport(error.problems, 0, 0)
    store = _open_store(location, workspace)
    with closing(store) if store else nullcontext():
        return _check(location, paths, workspace, store)


def _open_store(location: Location, workspace: WorkspaceFolder) -> Store | None:
    """Return the store; None when there is none or it cannot be used."""
    try:
        place = locate_store(workspace, location)
        is_there = not isinstance(place, Path) or place.exists()
        return Store.open(place, create=False) if is_there else None
    except OutsideError:
        raise
    except EvalstoreError:
        return None


def _check(
    location: Location, paths: tuple[str, ...], workspace: WorkspaceFolder, store: Store | None
) -> CheckReport:
    buffer = VersionBuffer(store)
    reading = read_workspace(workspace, buffer.find_case_files, buffer.take)
    buffer.finish(workspace, reading)
    problems = list(reading.problems)
    thresholds = workspace.settings.thresholds
    tags = tags_of(reading.files.values()) if thresholds else ()
    problems += [
        Problem(
            workspace.config.name,
            f"no case has the tag '{tag}' of a threshold",
            threshold.line,
            severity="warning",
            hint=suggest(tag, tags, "tags"),
        )
        for threshold in thresholds
        for tag in threshold.where
        if tag not in tags
    ]
    judges = {judge.id for judge in workspace.settings.evaluators}
    problems += [
        Problem(
            path,
            f"'evaluators': no judge of {workspace.config.name} is '{name}'",
            severity="warning",
            hint=suggest(name, judges, "judges"),
        )
        for path, file in reading.files.items()
        for name in file.evaluators or ()
        if judges and name not in judges
    ]
    problems += find_ignored_variables(workspace.root)
    problems += find_unknown_prices(reading, today())
    problems += find_model_problems(workspace, reading)
    problems += find_untrusted(location, workspace, store, reading)
    selection = Selection(find_targets(location, workspace, reading.tests, reading.files, paths))
    tests = {path for path in reading.tests if selection.covers_file(path)}
    problems = [
        problem
        for problem in problems
        if problem.file not in reading.tests or problem.file in tests
    ]
    cases = sum(len(file.cases) for path, file in reading.files.items() if path in tests)
    return CheckReport(problems, len(tests), cases)


def find_untrusted(
    location: Location, workspace: WorkspaceFolder, store: Store | None, reading: Reading
) -> Iterator[Problem]:
    """Yield a warning for each test file that runs a file, and each application, not trusted."""
    trust = CodeTrust(location, workspace, store, reading)
    for path, state in trust.look_at(files_of(reading).items()):
        hint = f"read it, then '{state.command}'"
        yield Problem(path, f"{state.fact}, so it does not run", severity="warning", hint=hint)
    listed = (*workspace.settings.candidates, *workspace.settings.evaluators)
    for id in dict.fromkeys(participant.id for participant in listed):
        if model := trust.find_untrusted(id):
            hint = f"read it, then '{model.command}'"
            yield Problem(model.path, model.words_of_model, severity="warning", hint=hint)


def find_unknown_prices(reading: Reading, day: str) -> Iterator[Problem]:
    """Yield a warning for each price of a model file whose currency has no rate."""
    for id, model in sorted(reading.models.items()):
        for cost, then in find_unpriced(model, reading.currencies, day):
            known = reading.currencies.get(cost.currency)
            yield Problem(
                reading.model_files[id],
                f"the price is unknown: no currency file for '{cost.currency}'"
                if known is None
                else f"the price is unknown: '{cost.currency}' has no rate for {then}",
                cost.line,
                severity="warning",
                hint=f"write a currency file with the code '{cost.currency}' and its rates in USD"
                if known is None
                else f"add a rate with 'validFrom: \"{then}\"' or earlier to its currency file",
            )
