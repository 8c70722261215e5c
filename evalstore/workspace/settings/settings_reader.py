"""Reads `evalstore.yaml`, and settings on the command line that replace its own."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evalstore.core.errors import EvalstoreError, FileProblem
from evalstore.core.values import DEFAULT_PROMPT
from evalstore.files.access import LARGEST_TEXT, read_file
from evalstore.files.fields import MOST_SAMPLES, Collector, Fields
from evalstore.files.yaml12 import Document, read_yaml, with_value
from evalstore.workspace.allowed_paths import WorkspaceBoundary
from evalstore.workspace.settings.remote_names import is_remote_name, path_of
from evalstore.workspace.settings.settings import (
    AGE_HINT,
    FILE,
    FOLDERS,
    QUERY_NAMES,
    SETTING_NAMES,
    AnalysisQuery,
    BrowserSettings,
    Participant,
    PathSetting,
    QueryModel,
    RemoteSettings,
    Settings,
    Threshold,
    find_root,
    name_at,
    read_age,
)

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
        remotes[name] = replace(_remote(address, entry), line=line)
    return remotes


def _remote(address: str, fields: Fields | None) -> RemoteSettings:
    if fields is None:
        return RemoteSettings(address)
    if fields.value("trust") == []:
        raise FileProblem(
            "'trust' names no writer",
            fields.line("trust"),
            hint="leave it out to pull the pushes of everybody",
        )
    return RemoteSettings(
        address,
        _path(fields, "sign"),
        _path(fields, "allowedSigners"),
        tuple(fields.names("trust")),
        tuple(fields.names("excludeTags")),
    )


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
