"""The command `doctor`: checks the setup and whether each model answers; it stores nothing."""

from __future__ import annotations

import asyncio
import platform
from collections.abc import Iterable, Iterator
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal, NamedTuple

from evalstore import __version__
from evalstore.core.clock import today
from evalstore.core.display import plural
from evalstore.core.errors import (
    INCOMPLETE,
    OK,
    STORE_UNUSABLE,
    USAGE,
    EvalstoreError,
    OutsideError,
    Problem,
    WorkspaceError,
    stores_text,
)
from evalstore.core.values import Json, OutgoingMessage, Reply, Request, Text
from evalstore.files.fields import suggest
from evalstore.planning import participants
from evalstore.planning.open_project import find_ignored_variables, locate_store, open_workspace
from evalstore.planning.options import Location
from evalstore.planning.participants import (
    describe_retirement,
    find_model,
    find_unpriced,
    match_one_model,
    tags_of,
)
from evalstore.planning.project import CodeTrust, VersionBuffer, files_of
from evalstore.planning.selection import Selection, find_targets
from evalstore.providers.base import OPENAI_COMPATIBLE, SCRIPTED, ProviderError
from evalstore.results.log.failures import hint_for
from evalstore.results.table.list import describe_listed_model
from evalstore.runs.execution.key_access import KeyNotAllowedError, ProviderPool, find_missing_key
from evalstore.runs.execution.model_calls import Adaptations, Endpoint
from evalstore.store import Store
from evalstore.store.schema.table_definitions import HEAD
from evalstore.store.sqlite.driver import StoreState, inspect_database, inspect_store
from evalstore.workspace.folder import NAMES, WorkspaceFolder
from evalstore.workspace.model_files import PRICE_EXAMPLE, Model, Part, provider_options
from evalstore.workspace.reader import Reading, read_workspace
from evalstore.workspace.settings.settings import Participant

QUESTION = "Answer with one word: are you there?"
MOST_TOKENS = 16


class PingTarget(NamedTuple):
    """A model in one of its parts, with the temperature a run would use."""

    id: str
    model: Model
    part: Part
    temperature: float | None


@dataclass
class Checkup:
    """The findings about one model."""

    model: str
    facts: Json
    """The facts that `ls models` lists."""
    code: str
    """The model code of the request, which an override for its part may change."""
    key_variable: str | None = None
    key_set: bool = False
    key_origin: str | None = None
    """Where the key comes from, in words."""
    refused: bool = False
    """Whether its key may not be sent to its host."""
    pinged: bool = False
    reply: Reply | None = None
    cost: float | None = None
    """The cost in USD; None if there was no answer, or the price is not known."""
    error: ProviderError | None = None
    problems: list[tuple[str, str, str | None]] = field(default_factory=list)
    """The problems: level, message and hint."""

    @property
    def reports_cost(self) -> bool:
        """Return whether its answer said what it cost, as that of an application may."""
        return self.reply is not None and self.reply.cost is not None

    @property
    def answered(self) -> bool:
        """Return whether the model answered the ping."""
        return self.reply is not None

    @property
    def level(self) -> str:
        """Return the worst of its problems: `ok`, `warn` or `fail`."""
        levels = {level for level, _, _ in self.problems}
        return "fail" if "fail" in levels else "warn" if "warn" in levels else "ok"

    def document(self) -> Json:
        """Return the findings as JSON."""
        reply, error = self.reply, self.error
        status = error.status if error else None
        return {
            **self.facts,
            "model": self.model,
            "code": self.code,
            "level": self.level,
            "keyVariable": self.key_variable,
            "keySet": self.key_set if self.key_variable else None,
            "keyOrigin": self.key_origin,
            "pinged": self.pinged,
            "reachable": self.answered or status is not None if self.pinged else None,
            "known": True if self.answered else False if status == 404 else None,
            "answered": self.answered,
            "latency": reply.latency if reply else None,
            "resolvedModel": reply.resolved_model if reply else None,
            "status": status,
            "class": error.kind if error else None,
            "cost": self.cost,
            "problems": [
                {"level": level, "message": message, "hint": hint}
                for level, message, hint in self.problems
            ],
        }


async def examine_all(
    providers: ProviderPool, reading: Reading, targets: list[PingTarget], timeout: float | None
) -> list[Checkup]:
    """Check all models at the same time; without a timeout, in seconds, none is asked."""
    try:
        return list(
            await asyncio.gather(
                *(_examine(providers, reading, target, timeout) for target in targets)
            )
        )
    finally:
        await providers.close()


async def _examine(
    providers: ProviderPool, reading: Reading, target: PingTarget, timeout: float | None
) -> Checkup:
    model, provider = target.model, target.model.provider
    facts = describe_listed_model(model, reading, providers.day)
    checkup = Checkup(target.id, facts, model.version(target.part).code, provider.key_variable)
    checkup.key_set = providers.environment.has(provider.key_variable or "")
    if missing := find_missing_key(provider, providers.environment):
        checkup.problems.append(("warn", missing.message, missing.hint))
    await _call(providers, reading, target, timeout, checkup)
    if checkup.facts["price"] is None and not model.costs and not checkup.reports_cost:
        checkup.problems.append(("warn", *describe_unknown_price(model)))
    return checkup


async def _call(
    providers: ProviderPool,
    reading: Reading,
    target: PingTarget,
    timeout: float | None,
    checkup: Checkup,
) -> None:
    """Look whether a model may be called, and call it if a timeout says so."""
    model, provider = target.model, target.model.provider
    try:
        endpoint = providers.endpoint(model, target.part, target.temperature)
        access = providers.keys.find(provider)
        checkup.key_origin = providers.environment.origin(
            provider.key_variable or "", access.api_key
        )
        if access.warning:
            checkup.problems.append(("warn", access.warning, "change 'baseURL' of its provider"))
    except EvalstoreError as error:
        checkup.refused = isinstance(error, KeyNotAllowedError)
        checkup.problems.append(("fail", str(error), error.hint))
        return
    if untrusted := providers.find_untrusted(model):
        hint = f"read what it runs, then 'evalstore trust {reading.model_files[model.id]}'"
        checkup.problems.append(("fail", untrusted, hint))
        return
    # A script has no server, and may have no answer to this question.
    if timeout is not None and provider.type != SCRIPTED:
        await _ping(checkup, endpoint, timeout)


async def _ping(checkup: Checkup, endpoint: Endpoint, timeout: float) -> None:
    request = Request(
        code=endpoint.version.code,
        messages=(OutgoingMessage("user", (Text(QUESTION),)),),
        temperature=endpoint.temperature,
        max_output_tokens=MOST_TOKENS,
        provider_options=provider_options(endpoint.version),
    )
    checkup.pinged = True
    try:
        checkup.reply = await Adaptations(
            lambda words: checkup.problems.append(("warn", words, None))
        ).ask(
            endpoint.key,
            endpoint.version.provider,
            request,
            lambda sent: endpoint.provider.ask(sent, timeout=timeout),
        )
    except ProviderError as error:
        checkup.error = error
        # A busy server is reachable, and has accepted the key and the model.
        level = "warn" if error.status == 429 and not error.stops_model else "fail"
        hint = hint_for(error.kind, error.status, error.message, key=checkup.key_variable)
        checkup.problems.append((level, error.message, hint))
    else:
        if checkup.reply.cost is not None:
            checkup.cost = checkup.reply.cost
        elif endpoint.price is not None:
            checkup.cost = endpoint.price.cost(checkup.reply.usage, checkup.reply.latency).usd


Level = Literal["ok", "warn", "fail"]

TIMEOUT = 20.0
"""Seconds for one ping."""
_CREATE = "GRANT CREATE ON DATABASE"
_WRITE = "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA"


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """The result of one check, with a hint when it is not ok."""

    topic: str
    level: Level
    message: str
    hint: str | None = None


@dataclass
class Diagnosis:
    """All findings of `doctor`."""

    JSON_FIELDS = ("findings", "models", "pings", "cost")

    findings: list[DoctorFinding] = field(default_factory=list)
    """The findings about the program and the workspace."""
    models: list[Checkup] = field(default_factory=list)
    cost: float | None = None
    """The cost of the pings in USD; None if the price of an answered ping is not known."""

    @property
    def pings(self) -> int:
        """Return how many models were pinged."""
        return sum(1 for model in self.models if model.pinged)

    @property
    def exit_code(self) -> int:
        """Return the exit code for the worst of all findings."""
        failed = {finding.topic for finding in self.findings if finding.level == "fail"}
        if failed & {"settings", "files", "environment"} or any(
            model.refused for model in self.models
        ):
            return USAGE
        if "store" in failed:
            return STORE_UNUSABLE
        return INCOMPLETE if any(model.level == "fail" for model in self.models) else OK


def doctor(
    location: Location, models: tuple[str, ...] = (), *, ping: bool = True, timeout: float = TIMEOUT
) -> Diagnosis:
    """Check the program, the workspace and the models in use, or only `models`.

    Each model is asked one tiny question unless `ping` is false. Raises `EvalstoreError`
    outside a workspace, and for a name in `models` that is not a model.
    """
    diagnosis = Diagnosis([*_versions()])
    try:
        workspace = open_workspace(location)
    except WorkspaceError as error:
        hint = "'evalstore check' lists them with their lines"
        count = len(error.problems)
        message = f"{plural(count, 'error')} in the settings"
        diagnosis.findings.append(DoctorFinding("settings", "fail", message, hint))
        return diagnosis
    reading = read_workspace(workspace)
    diagnosis.findings += [
        DoctorFinding("settings", "ok", workspace.config.name),
        _files(workspace, reading),
        _store(location, workspace),
    ]
    try:
        providers = ProviderPool(workspace.root, reading)
    except EvalstoreError as error:
        diagnosis.findings.append(DoctorFinding("environment", "fail", str(error), error.hint))
        return diagnosis
    diagnosis.findings += [*_environment(workspace, providers), *_currencies(reading)]
    targets = list(_targets(workspace, reading, models))
    if retirement := describe_retirement(reading, (target.id for target in targets)):
        diagnosis.findings.append(DoctorFinding("models", "warn", retirement))
    diagnosis.models = asyncio.run(
        examine_all(providers, reading, targets, timeout if ping else None)
    )
    costs = [model.cost for model in diagnosis.models if model.answered]
    known = [cost for cost in costs if cost is not None]
    diagnosis.cost = round(sum(known), 10) if len(known) == len(costs) else None
    return diagnosis


def _versions() -> Iterator[DoctorFinding]:
    yield DoctorFinding("python", "ok", platform.python_version())
    yield DoctorFinding("evalstore", "ok", __version__)
    try:
        yield DoctorFinding("litellm", "ok", version("litellm"))
    except PackageNotFoundError:
        hint = "pip install --force-reinstall evalstore"
        yield DoctorFinding("litellm", "fail", "it is not installed", hint)


def _files(workspace: WorkspaceFolder, reading: Reading) -> DoctorFinding:
    has_tests = bool(reading.tests)
    errors = len(reading.errors) - (not has_tests)  # which is an error of its own
    warnings = len(reading.problems) - len(reading.errors)
    cases = sum(len(file.cases) for file in reading.files.values())
    read = f"{plural(len(reading.tests), 'test file')}, {plural(cases, 'case')}"
    counts = ", ".join(
        plural(count, word) for count, word in ((errors, "error"), (warnings, "warning")) if count
    )
    level: Level = "fail" if errors else "ok" if has_tests and not warnings else "warn"
    hint = None if level == "ok" else "'evalstore check' lists them with their lines"
    if not has_tests and not counts:
        folder = workspace.settings.paths["tests"]
        hint = f"'evalstore init {folder}/hello.md' writes one"
        return DoctorFinding("files", level, "no tests yet", hint)
    message = f"{read if has_tests else 'no tests yet'}: {counts or 'no problems'}"
    return DoctorFinding("files", level, message, hint)


def _store(location: Location, workspace: WorkspaceFolder) -> DoctorFinding:
    try:
        path = locate_store(workspace, location)
        if not isinstance(path, Path):
            return describe_store(inspect_database(path), str(path), is_database=True)
    except EvalstoreError as error:
        return DoctorFinding("store", "fail", str(error), error.hint)
    state = inspect_store(path)
    name = workspace.name_of(path)
    return describe_store(state, path.name if name.startswith("..") else name)


def describe_store(state: StoreState, name: str, *, is_database: bool = False) -> DoctorFinding:
    """Return the finding about a store."""
    if state.size is None:
        if state.writable:
            if is_database:
                others = stores_text(state.others)
                hint = "'evalstore init' creates it" + f"; {others}" * bool(others)
                return DoctorFinding("store", "warn", f"{name} does not exist yet", hint)
            return DoctorFinding(
                "store", "ok", f"{name} does not exist yet: the first run creates it"
            )
        hint = f"its owner can {_CREATE}" if is_database else "check the permissions of the folder"
        hint = state.hint or hint
        return DoctorFinding("store", "fail", f"{name} does not exist and cannot be created", hint)
    if state.damage:
        hint = "restore a copy of it, or name another file with --store"
        return DoctorFinding("store", "fail", f"{name} cannot be read: {state.damage}", hint)
    kib = state.size / 2**10
    size = f"{kib / 2**10:,.1f} MiB" if kib >= 2**10 else f"{kib:,.0f} KiB"
    facts = f"{name}, {size}, version {state.version or 'none yet'}"
    if state.is_newer:
        hint = f"upgrade evalstore: it knows versions up to {HEAD}"
        return DoctorFinding("store", "fail", f"{facts}, newer than this program", hint)
    if not state.writable:
        hint = "check the permissions of the file and its folder"
        if is_database:
            others = f": {state.hint}" if state.hint else f" its owner can {_WRITE}"
            hint = f"read-only commands work; for others{others}"
        return DoctorFinding("store", "fail", f"{facts}, read-only", hint)
    if state.is_older:
        hint = "a copy of it is kept beside it"
        return DoctorFinding(
            "store", "warn", f"{facts}; the next command migrates it to {HEAD}", hint
        )
    return DoctorFinding(
        "store", "ok", f"{facts}, writable ('evalstore fsck' checks its integrity)"
    )


def _environment(workspace: WorkspaceFolder, providers: ProviderPool) -> Iterator[DoctorFinding]:
    names = [name for name in NAMES if (workspace.root / name).is_file()]
    yield DoctorFinding("environment", "ok", " and ".join(names) or "no .env file (none is needed)")
    for kind, base in OPENAI_COMPATIBLE.items():
        for name in (f"{kind.upper()}_BASE_URL", f"{kind.upper()}_API_BASE"):
            if base and providers.environment.has(name):
                message = f"{name} has no effect: '{kind}' is called at {base}"
                hint = "write a provider file with 'baseURL' to call another place"
                yield DoctorFinding("environment", "warn", message, hint)
    for ignored in find_ignored_variables(workspace.root):
        message = f"{ignored.file}:{ignored.line}: {ignored.message}"
        yield DoctorFinding("environment", "warn", message, ignored.hint)
    for warning in providers.environment.warnings:
        yield DoctorFinding("environment", "warn", warning)


def _currencies(reading: Reading) -> Iterator[DoctorFinding]:
    problems = list(find_unknown_prices(reading, today()))
    for problem in problems:
        yield DoctorFinding("currency", "warn", f"{problem.place}: {problem.message}", problem.hint)
    if reading.currencies and not problems:
        yield DoctorFinding("currency", "ok", ", ".join(sorted(reading.currencies)))


def _targets(
    workspace: WorkspaceFolder, reading: Reading, named: tuple[str, ...]
) -> Iterator[PingTarget]:
    """Yield the models to check, each once for each code by which it is called."""
    settings = workspace.settings
    seen: set[tuple[str, str]] = set()
    listed: list[tuple[Literal["candidate", "evaluator"], Participant]] = [
        *(("candidate", candidate) for candidate in settings.candidates),
        *(("evaluator", evaluator) for evaluator in settings.evaluators),
    ]
    known = [*(participant.id for _, participant in listed), *reading.models]
    named = tuple(dict.fromkeys(match_one_model(name, known) for name in named))
    for id in named:
        model = find_model(reading, id, "-m")
        if id not in {participant.id for _, participant in listed}:
            temperature = model.temperature("candidate", settings.candidates_temperature)
            yield PingTarget(id, model, "candidate", temperature)
    for part, participant in listed:
        if named and participant.id not in named:
            continue
        try:
            model = find_model(reading, participant.id, f"{part}s")
        except EvalstoreError:
            continue  # counted among the problems of the files
        key = (participant.id, model.version(part).code)
        if key in seen or not (model.active or named):
            continue
        seen.add(key)
        temperature = model.temperature(part, participant.temperature)
        yield PingTarget(participant.id, model, part, temperature)


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
