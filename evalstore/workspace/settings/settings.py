"""Reads `evalstore.yaml` to settings, with their defaults and those of the command line.

The string below a field is its reference documentation.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

from evalstore.core.errors import EvalstoreError, FileProblem, NoWorkspaceError
from evalstore.core.values import DEFAULT_PROMPT, RECORDED
from evalstore.files.access import LARGEST_TEXT, read_file
from evalstore.files.fields import MOST_SAMPLES, Collector, Fields
from evalstore.files.yaml12 import Document, read_yaml, with_value
from evalstore.workspace.settings.remote_names import is_remote_name, path_of
from evalstore.workspace.trust import WorkspaceBoundary

FILE = "evalstore.yaml"

FOLDERS = {
    "tests": "tests",
    "prompts": "prompts",
    "tools": "tools",
    "schemas": "schemas",
    "models": "models",
    "providers": "providers",
    "currencies": "currencies",
}
_AGE = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s*([smhdw])", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
AGE_HINT = "write a number with s, m, h, d or w: '30d', '1.5h'"


@dataclass(frozen=True, slots=True)
class Participant:
    """A model that answers or judges, as configured."""

    id: str
    """The `id` of a model file, or a litellm name such as `openai/gpt-5.4-mini`."""
    temperature: float | None = None
    """Instead of `candidatesTemperature` or `evaluatorsTemperature`; null: none is sent."""
    required_tags: tuple[str, ...] = ()
    """Only for tests with one of these tags."""
    prohibited_tags: tuple[str, ...] = ()
    """Never for tests with one of these tags."""
    prompt: str = DEFAULT_PROMPT
    """Judges: the id of the judge prompt."""
    name: str = field(default="", compare=False)
    """Candidates: the name in reports, with the temperature if the model is listed again."""
    line: int = field(default=0, compare=False)
    """The line in the settings."""


def name_at(id: str, temperature: float | None) -> str:
    """Return the name of a model that is listed again: `gpt@0.7`, or `gpt@default` without one."""
    return f"{id}@default" if temperature is None else f"{id}@{temperature:.9g}"


class PathSetting(NamedTuple):
    """A path in the settings."""

    path: str
    """As it is written."""
    line: int


@dataclass(frozen=True, slots=True)
class RemoteSettings:
    """A place where results are shared, and whose pushes count."""

    address: str
    """A folder, relative to the workspace, or a URL."""
    sign: PathSetting | None = None
    """The file of the SSH key that signs pushes: a private key, or a public one whose private key
    ssh-agent has."""
    allowed_signers: PathSetting | None = None
    """The file of allowed signers, as ssh-keygen describes it: only their pushes are pulled."""
    trust: tuple[str, ...] = ()
    """Only pushes of these writers are pulled: of signers where signatures are required, otherwise
    of those who give themselves these names. Without a list, those of all."""
    exclude_tags: tuple[str, ...] = ()
    """The results of cases with these tags are never pushed."""
    line: int | None = field(default=None, compare=False)
    """Where the settings have its address."""


@dataclass(frozen=True, slots=True)
class BrowserSettings:
    """The theme and the keys of `view`; the browser validates the names."""

    theme: str | None = None
    """The name of a theme."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """From the id of an action to its keys, with commas between them."""
    lines: Mapping[str, int] = field(default_factory=dict, compare=False)
    """The lines of `theme` and of `keys.ID`."""


@dataclass(frozen=True, slots=True)
class Threshold:
    """A share of results that must pass, which makes one or several gates of a run."""

    pass_rate: float
    """The share, 0..1."""
    where: tuple[str, ...] = ()
    """Only results of cases with all of these tags."""
    by: tuple[str, ...] = ()
    """`tag`, `file` or `model`: a gate for each."""
    line: int = field(default=0, compare=False)
    """The line in the settings."""


@dataclass(frozen=True, slots=True)
class QueryModel:
    """A model whose answers or judgements a query is about."""

    id: str
    """The id of the model in the run."""
    temperature: float | None = None
    """Only at this temperature."""


@dataclass(frozen=True, slots=True)
class AnalysisQuery:
    """A subset of the results for the statistics. Empty lists do not restrict it."""

    description: str
    """The name of the query."""
    currency: str | None = None
    """The `code` of a currency file, for its costs."""
    required_tags1: tuple[str, ...] = ()
    """Only cases with one of these tags."""
    required_tags2: tuple[str, ...] = ()
    """And one of these."""
    prohibited_tags: tuple[str, ...] = ()
    """And none of these."""
    system_prompts: tuple[str, ...] = ()
    """Only with these system prompts, by their ids."""
    candidates: tuple[QueryModel, ...] = ()
    """Only answers of these."""
    evaluators: tuple[QueryModel, ...] = ()
    """Only verdicts of these judges."""
    candidates_temperature: float | None = None
    """Only answers at this temperature."""
    evaluators_temperature: float | None = None
    """Only verdicts at this temperature."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a workspace."""

    candidates: tuple[Participant, ...] = ()
    """The models that answer."""
    candidates_temperature: float | None = None
    """Temperature of the candidates, 0..2; null: none is sent, and each model takes its own."""
    attempts: int = 1
    """The number of answers to each question."""
    required_tags1: tuple[str, ...] = ()
    """A test runs when it has one of these tags; an empty list does not restrict it."""
    required_tags2: tuple[str, ...] = ()
    """And one of these."""
    prohibited_tags: tuple[str, ...] = ()
    """A test with one of these tags does not run."""
    evaluators: tuple[Participant, ...] = ()
    """The models that judge."""
    evaluators_temperature: float | None = None
    """Temperature of the judges, 0..2; null: none is sent."""
    evaluations_per_evaluator: int = 1
    """The number of verdicts of each judge on each answer."""
    verdict: str = "majority"
    """How votes become a verdict: `majority`, `all`, `any`, or `>= t` with a share 0..1."""
    max_test_output_tokens: int | None = None
    """Token limit of an answer, not part of any id: an answer that it cut is asked again when it is
    raised."""
    max_evaluation_output_tokens: int | None = None
    """Token limit of a judge's reply."""
    max_age: str | None = None
    """Answers older than this do not count and are asked again: a number with s, m, h, d or w."""
    timeout: float = 120.0
    """Seconds for one call, with all its tries."""
    concurrency: int = 16
    """The most calls in flight at once, for each account; a run begins with fewer, and finds out
    how many the provider takes."""
    requests_per_minute: float | None = None
    """The most calls in a minute, for each account; a provider file can say it for its own."""
    tokens_per_minute: float | None = None
    """The most tokens in a minute, in and out, for each account; as above."""
    max_cost: float | None = None
    """USD that one run may cost: it stops before it costs more, and leaves the rest missing."""
    max_time: float | None = None
    """Seconds that one run may take; as above."""
    confirm_above: float | None = 10.0
    """USD: a run that is likely to cost more asks first, or needs `--yes`; null: it never asks."""
    retries: int | None = None
    """The most retries of a call after a temporary failure; by default as many as `timeout` allows
    if the server is overloaded, else 2."""
    paths: dict[str, str] = field(default_factory=lambda: dict(FOLDERS))
    """The folders of tests, prompts, tools, schemas, models, providers, currencies."""
    dataset_roots: dict[str, str] = field(default_factory=dict)
    """From the beginning of a dataset's path, such as `hf://`, to the folder it stands for."""
    store: str = ".evalstore/store.db"
    """The store's file, relative to the workspace."""
    remotes: dict[str, RemoteSettings] = field(default_factory=dict)
    """Places where results are shared, by name: a folder, relative to the workspace, or a URL; or
    a mapping with it."""
    browser: BrowserSettings = field(default_factory=BrowserSettings)
    """The appearance and keys of `view`: `theme`, and `keys` from actions to their keys."""
    thresholds: tuple[Threshold, ...] = ()
    """Shares of results that must pass, each a gate of a run; what they are about no longer fails a
    run case by case."""
    analysis_queries: tuple[AnalysisQuery, ...] = ()
    """Parts of the results, for `stats --query`."""

    @property
    def of_runs(self) -> dict[str, int | str | None]:
        """Return the settings that runs note, by their names in the file."""
        return {
            "attempts": self.attempts,
            "evaluationsPerEvaluator": self.evaluations_per_evaluator,
            "verdict": self.verdict,
            "maxTestOutputTokens": self.max_test_output_tokens,
        }


_NAMED = 3
"""The most workspaces below a folder that an error names."""


def find_root(start: Path) -> Path:
    """Find the folder of the nearest `evalstore.yaml`, upwards from `start`."""
    for folder in (start, *start.parents):
        if (folder / FILE).is_file():
            return folder
    inner = [each.parent.name for each in sorted(start.glob(f"*/{FILE}"))[:_NAMED]]
    raise NoWorkspaceError(
        f"no {FILE} in '{start.name or start}' or above",
        hint=f"change to a folder that has one: {', '.join(inner)}"
        if inner
        else "run 'evalstore init' first",
    )


def _names_in_file(owner: type) -> tuple[str, ...]:
    names = (setting.name for setting in fields(owner))
    return tuple(re.sub(r"_([a-z])", lambda match: match[1].upper(), name) for name in names)


SETTING_NAMES, QUERY_NAMES = _names_in_file(Settings), _names_in_file(AnalysisQuery)


def read_age(text: str) -> float | None:
    """Parse an age such as `30d` or `1.5h` to seconds; None for another text, and for zero."""
    match = _AGE.fullmatch(text.strip())
    return float(match[1]) * _SECONDS[match[2]] or None if match else None


def candidate_order(settings: Settings) -> Callable[[str], tuple[bool, int, str]]:
    """Return a sort key for the display ids of candidates.

    Those that are no longer in the settings come last, by name; recorded answers come after them.
    """
    places: dict[str, int] = {}
    for candidate in settings.candidates:
        places.setdefault(candidate.name or candidate.id, len(places))
    return lambda id: (id == RECORDED, places.get(id, len(places)), id.casefold())


CANDIDATE_FIELDS = ("id", "temperature", "requiredTags", "prohibitedTags")
BROWSER_FIELDS = ("theme", "keys")
REMOTE_FIELDS = ("address", "sign", "allowedSigners", "trust", "excludeTags")
QUERY_MODEL_FIELDS = ("id", "temperature")
THRESHOLD_FIELDS = ("passRate", "where", "by")
THRESHOLD_GROUPS = ("tag", "file", "model")
EVALUATOR_FIELDS = (*CANDIDATE_FIELDS, "prompt")
_VERDICT = re.compile(r"majority|all|any|>=\s*(?:0(?:\.\d+)?|1(?:\.0+)?)")


def read_settings(text: str, overrides: Sequence[str] = ()) -> Settings:
    """Read settings from the text of `evalstore.yaml`; raises `FileProblem`.

    `overrides` are of the form `KEY=VALUE`, with dots in the key for nested settings; a malformed
    one raises `EvalstoreError`.
    """
    document = read_yaml(text)
    for override in overrides:
        document = _override(document, override)
    return _read(document)


def _override(document: Document, text: str) -> Document:
    key, equals, value = text.partition("=")
    path = key.strip().split(".")
    if value.startswith(">"):  # `>= 0.5`, not a block of text
        value = json.dumps(value)
    if not equals or not all(path):
        raise EvalstoreError(
            f"--set '{text}' is not of the form KEY=VALUE", hint="as in --set concurrency=4"
        )
    try:
        _read(with_value(Document(None, None, 1), path, value))
        return with_value(document, path, value)
    except FileProblem as problem:
        raise EvalstoreError(f"--set {key}: {problem.message}", hint=problem.hint) from problem


def _read(document: Document) -> Settings:
    if document.value is None:
        return Settings()
    if not isinstance(document.value, dict):
        raise FileProblem("the settings must be a mapping of fields", 1)
    collector = Collector()
    fields = Fields(document, SETTING_NAMES, collector=collector, elsewhere=ELSEWHERE)
    default = Settings()

    def or_default(value: Any, name: str) -> Any:
        return getattr(default, name) if value is None else value

    none: tuple[Participant, ...] = ()
    settings = Settings(
        candidates=collector.attempt(lambda: _participants(fields, "candidates"), none),
        candidates_temperature=fields.number("candidatesTemperature", 0, 2),
        attempts=or_default(fields.whole("attempts", least=1, most=MOST_SAMPLES), "attempts"),
        required_tags1=tuple(fields.names("requiredTags1")),
        required_tags2=tuple(fields.names("requiredTags2")),
        prohibited_tags=tuple(fields.names("prohibitedTags")),
        evaluators=collector.attempt(lambda: _participants(fields, "evaluators"), none),
        evaluators_temperature=fields.number("evaluatorsTemperature", 0, 2),
        evaluations_per_evaluator=or_default(
            fields.whole("evaluationsPerEvaluator", least=1, most=MOST_SAMPLES),
            "evaluations_per_evaluator",
        ),
        verdict=collector.attempt(lambda: _verdict(fields), default.verdict),
        max_test_output_tokens=fields.whole("maxTestOutputTokens", least=1),
        max_evaluation_output_tokens=fields.whole("maxEvaluationOutputTokens", least=1),
        max_age=collector.attempt(lambda: _max_age(fields), None),
        timeout=or_default(fields.number("timeout", 0.001, 86_400), "timeout"),
        concurrency=or_default(fields.whole("concurrency", least=1, most=1024), "concurrency"),
        requests_per_minute=fields.number("requestsPerMinute", 0.001, 1e9),
        tokens_per_minute=fields.number("tokensPerMinute", 1, 1e9),
        max_cost=fields.number("maxCost", 0, 1e9),
        max_time=fields.number("maxTime", 0, 1e9),
        confirm_above=fields.number("confirmAbove", 0, 1e9)
        if "confirmAbove" in document.value
        else default.confirm_above,
        retries=or_default(fields.whole("retries", least=0, most=100), "retries"),
        paths=collector.attempt(lambda: _paths(fields), default.paths),
        dataset_roots=collector.attempt(lambda: _roots(fields), {}),
        store=or_default(fields.text("store"), "store"),
        remotes=collector.attempt(lambda: _remotes(fields), {}),
        browser=_browser(fields),
        thresholds=_thresholds(fields, collector),
        analysis_queries=_queries(fields, collector),
    )
    collector.finish()
    return settings


def _participants(fields: Fields, name: str) -> tuple[Participant, ...]:
    value = fields.value(name)
    if value is None or fields.document is None:
        return ()
    if not isinstance(value, list):
        raise FileProblem(f"'{name}' must be a list of models", fields.line(name))
    of_all = fields.value(f"{name}Temperature")
    default = float(of_all) if isinstance(of_all, int | float) else None
    result: list[Participant] = []
    for number, entry in enumerate(value):
        line = fields.line(name, number)
        document = fields.document.at(name, number)
        if isinstance(entry, str):
            document = Document({"id": entry}, None, line)
        elif not isinstance(entry, dict):
            raise FileProblem(f"an entry of '{name}' must be a mapping with an 'id'", line)
        settings = Fields(document, EVALUATOR_FIELDS if name == "evaluators" else CANDIDATE_FIELDS)
        id = settings.text("id")
        if id is None:
            raise FileProblem(f"an entry of '{name}' has no 'id'", line)
        is_given = "temperature" in settings.values
        temperature = settings.number("temperature", 0, 2) if is_given else default
        is_first = all(other.id != id for other in result)
        participant = Participant(
            id=id,
            name=id if is_first else name_at(id, temperature),
            temperature=temperature,
            required_tags=tuple(settings.names("requiredTags")),
            prohibited_tags=tuple(settings.names("prohibitedTags")),
            prompt=settings.text("prompt") or DEFAULT_PROMPT,
            line=line,
        )
        for other in result:
            if _place(participant) == _place(other) or (
                name == "candidates" and participant.name == other.name
            ):
                raise FileProblem(f"'{id}' is listed twice in '{name}'", line, hint=_TWICE)
        result.append(participant)
    return tuple(result)


def _thresholds(fields: Fields, collector: Collector) -> tuple[Threshold, ...]:
    thresholds: list[Threshold] = []
    for entry in fields.entries("thresholds", THRESHOLD_FIELDS):
        rate, by = entry.number("passRate", 0, 1), tuple(entry.names("by"))
        if rate is None and entry.value("passRate") is None:
            problem = FileProblem("a threshold has no 'passRate'", entry.line(), hint=_AS_IN)
            collector.problems.append(problem)
        for name in by:
            if name not in THRESHOLD_GROUPS:
                message = f"a threshold cannot be by '{name}'"
                hint = f"it can be by {', '.join(THRESHOLD_GROUPS)}"
                collector.problems.append(FileProblem(message, entry.line("by"), hint=hint))
        thresholds.append(Threshold(rate or 0, tuple(entry.names("where")), by, entry.line()))
    return tuple(thresholds)


_AS_IN = "as in '- {passRate: 0.9, where: [safety], by: [model]}'"


def _queries(fields: Fields, collector: Collector) -> tuple[AnalysisQuery, ...]:
    queries: list[AnalysisQuery] = []
    for entry in fields.entries("analysisQueries", QUERY_NAMES):
        description = entry.text("description")
        if description is None:
            if "description" not in entry.values:
                collector.problems.append(FileProblem("a query has no 'description'", entry.line()))
            continue
        queries.append(
            AnalysisQuery(
                description=description,
                currency=entry.text("currency"),
                required_tags1=tuple(entry.names("requiredTags1")),
                required_tags2=tuple(entry.names("requiredTags2")),
                prohibited_tags=tuple(entry.names("prohibitedTags")),
                system_prompts=tuple(entry.names("systemPrompts")),
                candidates=_chosen(entry, "candidates"),
                evaluators=_chosen(entry, "evaluators"),
                candidates_temperature=entry.number("candidatesTemperature", 0, 2),
                evaluators_temperature=entry.number("evaluatorsTemperature", 0, 2),
            )
        )
    return tuple(queries)


def _chosen(query: Fields, name: str) -> tuple[QueryModel, ...]:
    """Read models, which are listed by their names, or as mappings with an `id`."""
    value = query.value(name)
    if isinstance(value, list) and all(isinstance(entry, str) for entry in value):
        return tuple(QueryModel(id) for id in query.names(name))
    chosen: list[QueryModel] = []
    for entry in query.entries(name, QUERY_MODEL_FIELDS):
        id = entry.text("id")
        if id is not None:
            chosen.append(QueryModel(id, entry.number("temperature", 0, 2)))
        elif "id" not in entry.values and query.collector:
            problem = FileProblem(f"an entry of '{name}' has no 'id'", entry.line())
            query.collector.problems.append(problem)
    return tuple(chosen)


_TWICE = "a model can be listed again with another temperature"


def _place(participant: Participant) -> tuple[str, float | None, str]:
    """Return the values that must not be equal in two entries of a list."""
    return participant.id, participant.temperature, participant.prompt


def _max_age(fields: Fields) -> str | None:
    value = fields.value("maxAge")
    if value is not None and (not isinstance(value, str) or read_age(value) is None):
        raise FileProblem(
            "'maxAge' must be an age such as 30d", fields.line("maxAge"), hint=AGE_HINT
        )
    return None if value is None else str(value)


def _verdict(fields: Fields) -> str:
    value = fields.text("verdict")
    if value is not None and not _VERDICT.fullmatch(value):
        raise FileProblem(
            "'verdict' must be majority, all, any, or a share such as '>= 0.5'",
            fields.line("verdict"),
        )
    return value or "majority"


def _paths(fields: Fields) -> dict[str, str]:
    paths = fields.inner("paths", FOLDERS)
    return {name: _folder(paths, name) or default for name, default in FOLDERS.items()}


def _folder(paths: Fields, name: str) -> str | None:
    folder = paths.text(name)
    if folder is None:
        return None
    path = posixpath.normpath(folder.strip().replace("\\", "/"))
    if path.startswith("/") or path.split("/")[0] == ".." or re.match(r"[A-Za-z]:", path):
        raise FileProblem(
            f"the folder '{folder}' is outside the workspace",
            paths.line(name),
            hint=f"name a folder below the one with {FILE}, or move {FILE} up",
        )
    return path


def _roots(fields: Fields) -> dict[str, str]:
    roots = fields.mapping("datasetRoots")
    for root, folder in roots.items():
        if not root or not isinstance(folder, str) or not folder:
            raise FileProblem(
                "'datasetRoots' maps the beginning of a path to a folder",
                fields.line("datasetRoots", root),
                hint="as in 'hf://: ../data'",
            )
    return roots


def _remotes(fields: Fields) -> dict[str, RemoteSettings]:
    values = fields.mapping("remotes")
    inner = fields.inner("remotes", values) if values else fields
    remotes: dict[str, RemoteSettings] = {}
    for name, value in values.items():
        if not is_remote_name(str(name)):
            raise FileProblem(
                f"'{name}' cannot be the name of a remote",
                fields.line("remotes", name),
                hint="it is made of letters, digits, '.', '_' and '-', such as 'origin'",
            )
        entry = inner.inner(name, REMOTE_FIELDS) if isinstance(value, dict) else None
        address = entry.text("address") if entry else value
        if not isinstance(address, str) or not path_of(address).strip():
            raise FileProblem(
                f"the remote '{name}' has no address"
                if entry
                else "'remotes' maps names to addresses",
                fields.line("remotes", name),
                hint="as in 'origin: /mnt/team/results'",
            )
        line = entry.line("address") if entry else fields.line("remotes", name)
        if entry is None:
            remotes[name] = RemoteSettings(address, line=line)
            continue
        if entry.value("trust") == []:
            raise FileProblem(
                "'trust' names no writer",
                entry.line("trust"),
                hint="leave it out to pull the pushes of everybody",
            )
        remotes[name] = RemoteSettings(
            address,
            _path(entry, "sign"),
            _path(entry, "allowedSigners"),
            tuple(entry.names("trust")),
            tuple(entry.names("excludeTags")),
            line,
        )
    return remotes


def _path(fields: Fields, name: str) -> PathSetting | None:
    path = fields.text(name)
    return None if path is None else PathSetting(path, fields.line(name))


def _browser(fields: Fields) -> BrowserSettings:
    browser = fields.inner("browser", BROWSER_FIELDS)
    named = browser.value("keys")
    keys = browser.inner("keys", map(str, named) if isinstance(named, dict) else ())
    bindings = {id: text for id in keys.values if (text := keys.text(id)) is not None}
    lines = {f"keys.{id}": keys.line(id) for id in bindings}
    return BrowserSettings(
        browser.text("theme"), bindings, {"theme": browser.line("theme"), **lines}
    )


def browser_settings(directory: Path, config: Path | None = None) -> tuple[str, BrowserSettings]:
    """Return the name of the settings file, and its settings of the browser.

    Unreadable settings count as empty here; other commands report their problems.
    """
    try:
        path = config or find_root(directory) / FILE
        read = read_file if config else WorkspaceBoundary(path.parent).read
        return path.name, read_settings(read(path, LARGEST_TEXT).decode("utf-8-sig")).browser
    except (EvalstoreError, FileProblem, UnicodeDecodeError):
        return FILE, BrowserSettings()


# --- hints on settings of promptfoo, Inspect and DeepEval that have another name here


_CANDIDATES = "write 'candidates'"
_EVALUATORS = "write 'evaluators'"
_CHECKS = "checks are in the test files, in a block '~~~checks' below the last '---'"
_PROMPTS = "a system prompt is a file in 'prompts/'; a test file names it under 'systemPrompts'"
_TESTS = "a test is a file in 'tests/'"
_HINTS = {
    "provider providers target targets model models": _CANDIDATES,
    "judge judges grader graders scorer scorers evaluationmodel judgemodel": _EVALUATORS,
    "metric metrics assert asserts assertions checks": _CHECKS,
    "prompt prompts systemprompt systemprompts systemmessage": _PROMPTS,
    "test tests task tasks testcase testcases scenario scenarios": _TESTS,
    "defaulttest": "variables and checks are in the test files; rows can share a dataset",
    "data dataset datasets goldens": "a test file names its dataset in the field 'dataset'",
    "tool tools": "a tool is a file in 'tools/'; a test file names it under 'availableTools'",
    "evaluateoptions": "write 'attempts' for 'repeat', and 'concurrency' for 'maxConcurrency'",
    "rubricprompt": "write 'prompt' at an entry of 'evaluators'",
    "epoch epochs repeat repetitions samples": "write 'attempts'",
    "maxconcurrency maxconcurrent maxconnections": "write 'concurrency'",
    "temperature": "write 'candidatesTemperature'",
    "maxtokens maxoutputtokens": "write 'maxTestOutputTokens'",
    "maxretries": "write 'retries'",
    "costlimit budget maxbudget": "write 'maxCost'",
    "timelimit": "write 'maxTime'",
    "outputpath logdir": "'evalstore export -o FILE' and 'evalstore report -o FILE' write results",
}
"""From names to their hint."""

ELSEWHERE = {name: hint for names, hint in _HINTS.items() for name in names.split()}
"""From a name, in lower-case letters alone, to the hint."""
