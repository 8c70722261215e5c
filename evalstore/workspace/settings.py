"""Settings: what `evalstore.yaml` says, with its defaults.

The string below a field is its reference documentation.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from evalstore.errors import EvalstoreError, FileProblem
from evalstore.files.access import LARGEST_TEXT, read_file
from evalstore.files.fields import MOST_SAMPLES, Collector, Fields
from evalstore.files.yaml12 import Document, read_yaml, with_value
from evalstore.values import DEFAULT_PROMPT
from evalstore.workspace.allowed_paths import WorkspaceBoundary

if TYPE_CHECKING:
    from pathlib import Path

FILE = "evalstore.yaml"
DEFAULT_EVALUATOR_PROMPT = "_evaluator_default"

FOLDERS = {
    "tests": "tests",
    "prompts": "prompts",
    "tools": "tools",
    "schemas": "schemas",
    "models": "models",
    "providers": "providers",
    "currencies": "currencies",
}
_LATER = {
    "thresholds": "kept for per-tag gates, which this version does not have yet",
    "remotes": "kept for sharing, which this version does not have yet",
}
_AGE = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s*([smhdw])", re.ASCII)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
AGE_HINT = "write a number with s, m, h, d or w: '30d', '1.5h'"
_VERDICT = re.compile(r"majority|all|any|>=\s*(?:0(?:\.\d+)?|1(?:\.0+)?)")


@dataclass(frozen=True, slots=True)
class Participant:
    """A model that answers or judges, as the settings name it."""

    id: str
    """The `id` of a model file, or a litellm name such as `openai/gpt-4o-mini`."""
    temperature: float | None = None
    """Instead of `candidatesTemperature` or `evaluatorsTemperature`."""
    required_tags: tuple[str, ...] = ()
    """Only for tests with one of these tags."""
    prohibited_tags: tuple[str, ...] = ()
    """Never for tests with one of these tags."""
    prompt: str = DEFAULT_PROMPT
    """Evaluators: the id of the evaluator prompt."""
    name: str = field(default="", compare=False)
    """Candidates: what reports call it. A model that is listed again has its temperature in it."""
    line: int = field(default=0, compare=False)
    """Where the settings name it."""


@dataclass(frozen=True, slots=True)
class BrowserSettings:
    """How `view` looks and which keys it has; the browser knows which names there are."""

    theme: str | None = None
    """The name of a theme."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """From the id of an action to its keys, with commas between them."""
    lines: Mapping[str, int] = field(default_factory=dict, compare=False)
    """Where the settings say it: of `theme`, and of `keys.ID`."""


@dataclass(frozen=True, slots=True)
class QueryModel:
    """A model whose answers or judgements a query is about."""

    id: str
    """What the run calls it."""
    temperature: float | None = None
    """Only at this one."""


@dataclass(frozen=True, slots=True)
class AnalysisQuery:
    """A part of the results, for the statistics. Empty lists ask for nothing."""

    description: str
    """What it is called by."""
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
    """Only judgements of these: verdicts are made of them alone."""
    candidates_temperature: float | None = None
    """Only answers at this temperature."""
    evaluators_temperature: float | None = None
    """Only judgements at this temperature."""


QUERY_NAMES = (
    "description",
    "currency",
    "requiredTags1",
    "requiredTags2",
    "prohibitedTags",
    "systemPrompts",
    "candidates",
    "evaluators",
    "candidatesTemperature",
    "evaluatorsTemperature",
)


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a workspace."""

    candidates: tuple[Participant, ...] = ()
    """The models that answer."""
    candidates_temperature: float = 0.0
    """Temperature of the candidates, 0..2."""
    attempts: int = 1
    """How many answers are wanted to each question."""
    required_tags1: tuple[str, ...] = ()
    """A test runs when it has one of these tags; an empty list asks for none."""
    required_tags2: tuple[str, ...] = ()
    """And one of these."""
    prohibited_tags: tuple[str, ...] = ()
    """A test with one of these tags does not run."""
    evaluators: tuple[Participant, ...] = ()
    """The models that judge."""
    evaluators_temperature: float = 0.0
    """Temperature of the evaluators, 0..2."""
    evaluations_per_evaluator: int = 1
    """How many judgements are wanted from each evaluator on each answer."""
    verdict: str = "majority"
    """How votes become a verdict: `majority`, `all`, `any`, or `>= t` with a share 0..1."""
    max_test_output_tokens: int | None = None
    """Token limit of an answer, not part of any id: an answer that it cut is asked again when it is
    raised."""
    max_evaluation_output_tokens: int | None = None
    """Token limit of a judgement."""
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
    """USD: a run that is likely to cost more asks first, or wants `--yes`; null: it never asks."""
    retries: int = 2
    """Further tries after a call that failed in a way that may pass."""
    paths: dict[str, str] = field(default_factory=lambda: dict(FOLDERS))
    """The folders of tests, prompts, tools, schemas, models, providers, currencies."""
    dataset_roots: dict[str, str] = field(default_factory=dict)
    """From the beginning of a dataset's path, such as `hf://`, to the folder it stands for."""
    store: str = ".evalstore/store.db"
    """The store's file, relative to the workspace."""
    browser: BrowserSettings = field(default_factory=BrowserSettings)
    """How `view` looks and which keys it has: `theme`, and `keys` from actions to their keys."""
    analysis_queries: tuple[AnalysisQuery, ...] = ()
    """Parts of the results, for `stats --query`."""


def find_root(start: Path) -> Path:
    """The folder of the nearest `evalstore.yaml`, upwards from `start`."""
    for folder in (start, *start.parents):
        if (folder / FILE).is_file():
            return folder
    raise EvalstoreError(
        f"no {FILE} in '{start.name or start}' or above", hint="run 'evalstore init' first"
    )


SETTING_NAMES = tuple(
    re.sub(r"_([a-z])", lambda found: found[1].upper(), one.name) for one in fields(Settings)
)


def read_settings(text: str, overrides: Sequence[str] = ()) -> Settings:
    """Settings from the text of `evalstore.yaml`; raises `FileProblem`.

    `overrides` are of the form `KEY=VALUE`, with dots in the key for what lies deeper; one that
    is wrong by itself raises `EvalstoreError`.
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
    found = Fields(document, [*SETTING_NAMES, *_LATER], collector=collector)
    default = Settings()

    def or_default(value: Any, name: str) -> Any:
        return getattr(default, name) if value is None else value

    none: tuple[Participant, ...] = ()
    settings = Settings(
        candidates=collector.attempt(lambda: _participants(found, "candidates"), none),
        candidates_temperature=or_default(
            found.number("candidatesTemperature", 0, 2), "candidates_temperature"
        ),
        attempts=or_default(found.whole("attempts", least=1, most=MOST_SAMPLES), "attempts"),
        required_tags1=tuple(found.names("requiredTags1")),
        required_tags2=tuple(found.names("requiredTags2")),
        prohibited_tags=tuple(found.names("prohibitedTags")),
        evaluators=collector.attempt(lambda: _participants(found, "evaluators"), none),
        evaluators_temperature=or_default(
            found.number("evaluatorsTemperature", 0, 2), "evaluators_temperature"
        ),
        evaluations_per_evaluator=or_default(
            found.whole("evaluationsPerEvaluator", least=1, most=MOST_SAMPLES),
            "evaluations_per_evaluator",
        ),
        verdict=collector.attempt(lambda: _verdict(found), default.verdict),
        max_test_output_tokens=found.whole("maxTestOutputTokens", least=1),
        max_evaluation_output_tokens=found.whole("maxEvaluationOutputTokens", least=1),
        max_age=collector.attempt(lambda: _max_age(found), None),
        timeout=or_default(found.number("timeout", 0.001, 86_400), "timeout"),
        concurrency=or_default(found.whole("concurrency", least=1, most=1024), "concurrency"),
        requests_per_minute=found.number("requestsPerMinute", 0.001, 1e9),
        tokens_per_minute=found.number("tokensPerMinute", 1, 1e9),
        max_cost=found.number("maxCost", 0, 1e9),
        max_time=found.number("maxTime", 0, 1e9),
        confirm_above=found.number("confirmAbove", 0, 1e9)
        if "confirmAbove" in document.value
        else default.confirm_above,
        retries=or_default(found.whole("retries", least=0, most=100), "retries"),
        paths=collector.attempt(lambda: _paths(found), default.paths),
        dataset_roots=collector.attempt(lambda: _roots(found), {}),
        store=or_default(found.text("store"), "store"),
        browser=_browser(found),
        analysis_queries=_queries(found, collector),
    )
    collector.finish()
    return settings


def _participants(found: Fields, name: str) -> tuple[Participant, ...]:
    value = found.value(name)
    if value is None or found.document is None:
        return ()
    if not isinstance(value, list):
        raise FileProblem(f"'{name}' must be a list of models", found.line(name))
    known = ("id", "temperature", "requiredTags", "prohibitedTags")
    given = found.value(f"{name}Temperature")
    default = given if isinstance(given, int | float) else 0
    result: list[Participant] = []
    for number, entry in enumerate(value):
        line = found.line(name, number)
        document = found.document.at(name, number)
        if isinstance(entry, str):
            document = Document({"id": entry}, None, line)
        elif not isinstance(entry, dict):
            raise FileProblem(f"an entry of '{name}' must be a mapping with an 'id'", line)
        one = Fields(document, (*known, "prompt") if name == "evaluators" else known)
        id = one.text("id")
        if id is None:
            raise FileProblem(f"an entry of '{name}' has no 'id'", line)
        participant = Participant(
            id=id,
            temperature=one.number("temperature", 0, 2),
            required_tags=tuple(one.names("requiredTags")),
            prohibited_tags=tuple(one.names("prohibitedTags")),
            prompt=one.text("prompt") or DEFAULT_PROMPT,
            line=line,
        )
        participant = replace(participant, name=_name(participant, result, default))
        for other in result:
            if _place(participant, default) == _place(other, default) or (
                name == "candidates" and participant.name == other.name
            ):
                raise FileProblem(f"'{id}' is listed twice in '{name}'", line, hint=_TWICE)
        result.append(participant)
    return tuple(result)


def _queries(found: Fields, collector: Collector) -> tuple[AnalysisQuery, ...]:
    queries: list[AnalysisQuery] = []
    for entry in found.entries("analysisQueries", QUERY_NAMES):
        description = entry.text("description")
        if description is None:
            if "description" not in entry.values:
                collector.found.append(FileProblem("a query has no 'description'", entry.line()))
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
    """Models by their names, or as mappings with an `id`."""
    value = query.value(name)
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return tuple(QueryModel(id) for id in query.names(name))
    chosen: list[QueryModel] = []
    for entry in query.entries(name, ("id", "temperature")):
        id = entry.text("id")
        if id is not None:
            chosen.append(QueryModel(id, entry.number("temperature", 0, 2)))
        elif "id" not in entry.values and query.collector:
            problem = FileProblem(f"an entry of '{name}' has no 'id'", entry.line())
            query.collector.found.append(problem)
    return tuple(chosen)


_TWICE = "a model can be listed again with another temperature"


def _name(participant: Participant, before: Iterable[Participant], default: Any) -> str:
    """The id; with the temperature when the model has been listed before."""
    if all(other.id != participant.id for other in before):
        return participant.id
    return f"{participant.id}@{_place(participant, default)[1]:.9g}"


def _place(participant: Participant, default: Any) -> tuple[str, Any, str]:
    """What no two entries of a list may have in common."""
    return (
        participant.id,
        default if participant.temperature is None else participant.temperature,
        participant.prompt,
    )


def _max_age(found: Fields) -> str | None:
    value = found.value("maxAge")
    if value is not None and (not isinstance(value, str) or read_age(value) is None):
        raise FileProblem(
            "'maxAge' must be an age such as 30d", found.line("maxAge"), hint=AGE_HINT
        )
    return None if value is None else str(value)


def read_age(text: str) -> float | None:
    """The seconds of an age such as `30d` or `1.5h`; None for what is none, and for nothing."""
    found = _AGE.fullmatch(text.strip())
    return float(found[1]) * _SECONDS[found[2]] or None if found else None


def _verdict(found: Fields) -> str:
    value = found.text("verdict")
    if value is not None and not _VERDICT.fullmatch(value):
        raise FileProblem(
            "'verdict' must be majority, all, any, or a share such as '>= 0.5'",
            found.line("verdict"),
        )
    return value or "majority"


def _paths(found: Fields) -> dict[str, str]:
    one = found.inner("paths", FOLDERS)
    return {name: _folder(one, name) or default for name, default in FOLDERS.items()}


def _folder(paths: Fields, name: str) -> str | None:
    given = paths.text(name)
    if given is None:
        return None
    path = posixpath.normpath(given.strip().replace("\\", "/"))
    if path.startswith("/") or path.split("/")[0] == ".." or re.match(r"[A-Za-z]:", path):
        raise FileProblem(
            f"the folder '{given}' is outside of the workspace",
            paths.line(name),
            hint=f"name a folder below the one with {FILE}, or move {FILE} up",
        )
    return path


def _roots(found: Fields) -> dict[str, str]:
    roots = found.mapping("datasetRoots")
    for root, folder in roots.items():
        if not root or not isinstance(folder, str) or not folder:
            raise FileProblem(
                "'datasetRoots' maps the beginning of a path to a folder",
                found.line("datasetRoots", root),
                hint="as in 'hf://: ../data'",
            )
    return roots


def _browser(found: Fields) -> BrowserSettings:
    one = found.inner("browser", ("theme", "keys"))
    named = one.value("keys")
    keys = one.inner("keys", map(str, named) if isinstance(named, dict) else ())
    given = {id: text for id in keys.values if (text := keys.text(id)) is not None}
    lines = {f"keys.{id}": keys.line(id) for id in given}
    return BrowserSettings(one.text("theme"), given, {"theme": one.line("theme"), **lines})


def ignored_settings(names: Iterable[str]) -> list[tuple[str, str]]:
    """Settings of the format that this version ignores, with the reason."""
    return [(name, _LATER[name]) for name in names if name in _LATER]


def browser_settings(directory: Path, config: Path | None = None) -> tuple[str, BrowserSettings]:
    """The name of the settings' file and what it says of the browser.

    Settings that cannot be read say nothing here: whoever needs them tells what is wrong.
    """
    try:
        path = config or find_root(directory) / FILE
        read = read_file if config else WorkspaceBoundary(path.parent).read
        return path.name, read_settings(read(path, LARGEST_TEXT).decode("utf-8-sig")).browser
    except (EvalstoreError, FileProblem, UnicodeDecodeError):
        return FILE, BrowserSettings()
