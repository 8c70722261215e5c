"""Conversion of an ai-tester project in place, and import of the answers in its database.

The `.env` of ai-tester has the locations of its files, and a YAML file the settings of runs. Test,
prompt, tool, schema, model, provider and currency files load unchanged, so only the settings file
is written.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from evalstore.core.errors import EvalstoreError, FileProblem
from evalstore.core.values import SPECIAL_TAGS, Json, Reply, Role, ToolCall, ToolVersion, Usage
from evalstore.exchange.importers.base import (
    Imported,
    ImportOptions,
    NotTakenError,
    RecordedAnswer,
    RecordedModel,
    RecordedVerdict,
    as_mapping,
    parse_json,
    read_source,
    require,
    require_regular,
)
from evalstore.files.access import normalise
from evalstore.files.markdown_lines import SPACE
from evalstore.files.yaml12 import read_yaml, write_yaml
from evalstore.providers.credentials import is_provider_variable
from evalstore.workspace.folder import parse_env_file
from evalstore.workspace.settings.settings import FOLDERS, QUERY_NAMES, read_settings

_CONFIG = "AI_TESTER_CONFIG_PATH"
USUAL_CONFIG = "ai-tester.config.yaml"
"""The default configuration file."""
_DATABASE = "AI_TESTER_SQLITE_DB_PATH"
_FOLDERS = {
    "AI_TESTER_TESTS_DIR": "tests",
    "AI_TESTER_PROMPTS_DIR": "prompts",
    "AI_TESTER_TOOL_DEFINITIONS_DIR": "tools",
    "AI_TESTER_STRUCTURED_SCHEMAS_DIR": "schemas",
    "AI_TESTER_MODELS_DIR": "models",
    "AI_TESTER_PROVIDERS_DIR": "providers",
    "AI_TESTER_CURRENCIES_DIR": "currencies",
}
_OURS = ("AI_TESTER_", "MAX_", "GOOGLE_")
"""Prefixes of the variables that are read."""
_LIMITS = {
    "MAX_TEST_OUTPUT_TOKENS": "maxTestOutputTokens",
    "MAX_EVALUATION_OUTPUT_TOKENS": "maxEvaluationOutputTokens",
    "MAX_WAIT_TIME": "timeout",
}
"""Maps limits in `.env` to settings; the time is in milliseconds there."""
_SETTINGS = (
    "candidates",
    "candidatesTemperature",
    "attempts",
    "requiredTags1",
    "requiredTags2",
    "prohibitedTags",
    "evaluators",
    "evaluatorsTemperature",
    "evaluationsPerEvaluator",
    "maxTestOutputTokens",
    "maxEvaluationOutputTokens",
    "timeout",
    "analysisQueries",
)
_DEFAULTS: dict[str, Json] = {
    "candidatesTemperature": 0.3,
    "prohibitedTags": ["skip", "example"],
    "evaluatorsTemperature": 0.3,
    "evaluationsPerEvaluator": 3,
    "maxTestOutputTokens": 7000,
    "maxEvaluationOutputTokens": 2500,
}
"""ai-tester's defaults that differ from evalstore's."""


def adopt(folder: Path, root: Path | None = None) -> tuple[str, list[str]]:
    """Return an `evalstore.yaml` for an ai-tester project, and notes on what is left out.

    The file is for `root`, or for the project's folder by default. Raises `EvalstoreError` if the
    folder is not an ai-tester project, or if its files are outside the root.
    """
    variables = _read_variables(folder)
    used = {_CONFIG, _DATABASE, *_FOLDERS, *_LIMITS}
    unused = [
        name
        for name in sorted(variables.keys() - used)  # evalstore uses the keys of providers, too
        if not (name.startswith("GOOGLE_") and is_provider_variable(name))
    ]
    notes: list[str] = []
    if _DATABASE in variables:
        notes.append(f"{_DATABASE}: 'evalstore import ai-tester-db FILE' also imports its answers")
    if unused:
        notes.append(f"no effect in evalstore: {', '.join(unused)}")
    name = variables[_CONFIG]
    try:
        document = read_yaml(_text(folder / name, name)).value
    except FileProblem as problem:
        raise EvalstoreError(f"{name}:{problem.line}: {problem.message}") from problem
    if not isinstance(document, dict):
        raise EvalstoreError(f"{name}: the settings must be a mapping of fields")
    config = {
        **_DEFAULTS,
        **_limits(variables, notes),
        **{name: value for name, value in document.items() if value is not None},
    }
    of_folders: list[str] = []
    paths = _paths(folder.resolve(), (root or folder).resolve(), variables, of_folders)
    models = _read_models(folder / (variables.get("AI_TESTER_MODELS_DIR") or FOLDERS["models"]))
    settings: dict[str, Json] = {}
    for name in document:
        if name not in _SETTINGS:
            notes.append(f"'{name}' is left out: evalstore has no such setting")
    for name in _SETTINGS:
        value = config.get(name)
        if value is None:
            continue
        if name in ("candidates", "evaluators") and isinstance(value, list):
            # As in ai-tester, ids without a model file are omitted.
            value = list(_entries(f"'{name}'", value, models, notes, _PARTICIPANT))
        if name == "analysisQueries" and isinstance(value, list):
            value = [
                query
                for entry in value
                for query in [_query(entry, models, notes) if isinstance(entry, dict) else entry]
                if query is not None
            ]
        settings[name] = value
    notes = list(dict.fromkeys([*notes, *of_folders]))
    text = f"{write_yaml({**settings, 'paths': paths}, compact=True)}\n"
    try:
        read_settings(text)
    except FileProblem as problem:
        raise EvalstoreError(
            f"{variables[_CONFIG]}: {problem.message}", hint="correct it there first"
        ) from problem
    return text, notes


def _read_variables(folder: Path) -> dict[str, str]:
    """Return the variables of `.env.local` and `.env`; the first file takes precedence."""
    variables: dict[str, str] = {}
    for name in (".env.local", ".env"):
        path = folder / name
        if not path.is_file():
            continue
        for variable, value in parse_env_file(_text(path, name).encode(), name).values.items():
            if variable.startswith(_OURS):
                variables.setdefault(variable, value)
    if not variables.get(_CONFIG):
        if not (folder / USUAL_CONFIG).is_file():
            raise EvalstoreError(
                f"'{folder.name}' is not an ai-tester project: no '.env' in it sets {_CONFIG}, "
                f"and there is no '{USUAL_CONFIG}'",
                hint="name the folder that holds ai-tester's '.env'",
            )
        variables[_CONFIG] = USUAL_CONFIG
    return variables


def _text(path: Path, name: str) -> str:
    try:
        return normalise(read_source(path))
    except FileProblem as problem:
        place = name if problem.line is None else f"{name}:{problem.line}"
        raise EvalstoreError(f"{place}: {problem.message}", hint=problem.hint) from problem


def _limits(variables: dict[str, str], notes: list[str]) -> dict[str, Json]:
    """Convert the limits in `.env` to settings."""
    limits: dict[str, Json] = {}
    for variable, name in _LIMITS.items():
        limit = variables.get(variable)
        if not limit:
            continue
        if not limit.isdigit() or not int(limit):
            notes.append(f"{variable}: '{limit}' is left out: it is not a whole number above 0")
        elif name == "timeout":
            seconds = int(limit) / 1000
            limits[name] = int(seconds) if seconds.is_integer() else seconds
        else:
            limits[name] = int(limit)
    return limits


def _paths(
    project: Path, root: Path, variables: dict[str, str], notes: list[str]
) -> dict[str, Json]:
    paths: dict[str, Json] = {}
    for variable, kind in _FOLDERS.items():
        configured = variables.get(variable) or FOLDERS[kind]
        path = os.path.relpath((project / configured).resolve(), root).replace(os.sep, "/")
        if path.split("/")[0] == "..":
            raise EvalstoreError(
                f"{variable}: '{configured}' is outside the workspace '{root.name}'",
                hint="start the workspace in a folder that holds all of the project's folders",
            )
        if not (root / path).is_dir():
            notes.append(f"the folder '{path}' does not exist")
        paths[kind] = path
    return paths


# --- model files


_KINDS = {
    "vertex": "vertex_ai",
    "vertex_anthropic": "vertex_ai",
    "vertex-anthropic": "vertex_ai",
}
"""Maps ai-tester's provider kinds to litellm's, where they differ."""
_PARTICIPANT = ("id", "temperature", "requiredTags", "prohibitedTags")
_CHOSEN = ("id", "temperature")
_NAMED = ("provider", "model")
"""The parts of an id: the provider's code and its name for the model."""
_LISTS = ("candidates", "evaluators")


Models = tuple[dict[tuple[str, str], str], dict[str, str]]
"""The ids of model files by provider and its name for the model, and by ai-tester's id.

The latter is `provider/model` for a file without `id`.
"""


def _query(entry: dict[str, Json], models: Models, notes: list[str]) -> Json:
    """Convert an analysis query; None if it has no candidates or evaluators left.

    An empty list would select all of them. Omissions go to `notes`.
    """
    query = f"the query '{entry.get('description')}'"
    result: dict[str, Json] = {}
    for field, value in entry.items():
        if field not in QUERY_NAMES:
            notes.append(f"'{field}' of {query} is left out: evalstore has no such field")
            continue
        if field in _LISTS and isinstance(value, list) and value:
            value = list(_entries(f"'{field}' of {query}", value, models, notes, _CHOSEN))
            if not value:
                notes.append(f"{query} is left out: none of its {field} has a model file")
                return None
        result[field] = value
    return result


def _entries(
    place: str, entries: list[Json], models: Models, notes: list[str], fields: tuple[str, ...]
) -> Iterator[Json]:
    for item in entries:
        entry = {"id": item} if isinstance(item, str) else item
        if not isinstance(entry, dict):
            yield entry  # the settings reader reports it
            continue
        id = _find_id(place, entry, models, notes)
        if id is None and isinstance(entry.get("id"), str):
            notes.append(f"'{entry['id']}' in {place} is left out: no model file has this id")
            continue
        known = {name: value for name, value in {**entry, "id": id}.items() if value is not None}
        notes += [
            f"'{field}' of '{id}' in {place} is left out"
            + ": a query has tags for all its models" * (field in _PARTICIPANT)
            for field in known
            if field not in (*fields, *_NAMED)
        ]
        yield {field: known[field] for field in fields if field in known}


def _find_id(place: str, entry: dict[str, Json], models: Models, notes: list[str]) -> str | None:
    if isinstance(entry.get("id"), str):
        return models[1].get(entry["id"])
    provider, model = (entry.get(field) for field in _NAMED)
    if not isinstance(provider, str) or not isinstance(model, str):
        return None
    if known := models[0].get((provider, model)):
        return known
    id = f"{_KINDS.get(provider, provider)}/{model}"
    notes.append(f"'{id}' in {place} has no model file: calls use only its name")
    return id


def _read_models(folder: Path) -> Models:
    """Read the models of a folder; unreadable files are skipped, as loading reports them."""
    named: dict[tuple[str, str], str] = {}
    inactive: dict[tuple[str, str], str] = {}
    ids: dict[str, str] = {}
    with_id: dict[str, str] = {}
    without_id: dict[str, str] = {}
    files = (path for path in sorted(folder.rglob("*")) if path.suffix in (".yaml", ".yml"))
    for path in filter(Path.is_file, files):
        try:
            document = as_mapping(read_yaml(normalise(read_source(path))).value)
        except FileProblem:
            continue
        if not document:
            continue
        place = path.relative_to(folder).with_suffix("").as_posix()
        code = document.get("code") or document.get("id")
        id, provider = document.get("id") or code or place, document.get("provider")
        name = document.get("providerModelCode") or code
        if not isinstance(id, str):
            continue
        ids[id] = id
        if isinstance(provider, str) and isinstance(name, str):
            own = id if "id" in document else f"{provider}/{name}"
            (with_id if "id" in document else without_id).setdefault(own, id)
            by_name = inactive if document.get("active") is False else named
            by_name.setdefault((provider, name), id)
    return {**inactive, **named}, {**ids, **without_id, **with_id}


# --- the answers and verdicts in the database of a project


_MARKER = re.compile("# (👤|🤖)")
_ROLES: dict[str, Role] = {"👤": "user", "🤖": "assistant"}
_NEEDED = ("sessions", "session_evaluations", "test_versions", "prompt_versions", "model_versions")

Record = Mapping[str, Any]


def read(paths: list[Path], options: ImportOptions) -> Imported:
    """Import the sessions in these databases; raises `EvalstoreError` for other files."""
    imported = Imported()
    for path in paths:
        try:
            require_regular(path)
            with closing(_open(path)) as database:
                _Reader(path, database, imported).read()
        except FileProblem as problem:
            raise EvalstoreError(f"'{path.name}' {problem.message}", hint=problem.hint) from problem
        except sqlite3.Error as error:
            raise EvalstoreError(
                f"'{path.name}' cannot be read as ai-tester's database: {error}",
                hint="name the file of AI_TESTER_SQLITE_DB_PATH in the project's '.env'",
            ) from error
    return imported


def _open(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path.resolve().as_uri() + "?mode=ro", uri=True)
    database.row_factory = sqlite3.Row
    missing = [name for name in _NEEDED if not _columns(database, name)]
    if missing:
        database.close()
        raise sqlite3.DatabaseError(f"it has no table '{missing[0]}'")
    return database


def _columns(database: sqlite3.Connection, table: str) -> set[str]:
    return {row["name"] for row in database.execute(f"PRAGMA table_info({table})")}


class _Reader:
    """Reads one database of any schema version; columns added later may be missing."""

    def __init__(self, path: Path, database: sqlite3.Connection, imported: Imported) -> None:
        self._path = path
        self._database = database
        self._imported = imported
        self._tests = self._table("test_versions")
        self._prompts = self._table("prompt_versions")
        self._models = self._table("model_versions")
        self._providers = self._table("providers")
        self._instructions = self._table("test_evaluation_instructions_versions")
        self._schemas = self._table("structured_object_versions")
        self._tools = self._table("tool_versions")
        self._test_tools = self._related(
            "test_to_tool_version_rels", "test_version_id", "tool_version_id"
        )
        names = {id: str(row["name"]) for id, row in self._table("tags").items()}
        self._test_tags = self._tags("test_to_tag_rels", "test_version_id", names)
        self._prompt_tags = self._tags("prompt_to_tag_rels", "prompt_id", names)

    def read(self) -> None:
        """Add all active sessions; incomplete ones are reported."""
        rulings: dict[int, list[Record]] = {}
        for row in self._rows("session_evaluations"):
            if row.get("active", True):
                rulings.setdefault(row["session_id"], []).append(row)
        inactive = 0
        for row in self._rows("sessions"):
            if not row.get("active", True):
                inactive += 1
                continue
            try:
                answer = self._session(row, rulings.get(row["id"], []))
            except (NotTakenError, KeyError, ValueError, TypeError) as problem:
                why = problem if isinstance(problem, NotTakenError) else f"is damaged: {problem}"
                self._imported.skip(self._path, f"session {row['id']} {why}")
                continue
            self._imported.conversed.append(answer)
        if inactive:
            sessions = "1 session" if inactive == 1 else f"{inactive:,} sessions"
            self._imported.warn(self._path, f"{sessions} skipped: inactive ('active' is false)")

    def _rows(self, table: str) -> Iterator[dict[str, Any]]:
        if _columns(self._database, table):
            for row in self._database.execute(f"SELECT * FROM {table} ORDER BY id"):
                yield dict(row)

    def _table(self, table: str) -> dict[int, Record]:
        return {row["id"]: row for row in self._rows(table)}

    def _related(self, table: str, owner: str, owned: str) -> dict[int, list[int]]:
        related: dict[int, list[int]] = {}
        if _columns(self._database, table):
            query = f"SELECT {owner}, {owned} FROM {table} ORDER BY {owner}, {owned}"
            for row in self._database.execute(query):
                related.setdefault(row[0], []).append(row[1])
        return related

    def _tags(self, table: str, owner: str, names: Mapping[int, str]) -> dict[int, tuple[str, ...]]:
        return {
            id: tuple(sorted(names[tag] for tag in tags if names.get(tag) in SPECIAL_TAGS))
            for id, tags in self._related(table, owner, "tag_id").items()
        }

    def _session(self, row: Record, rulings: list[Record]) -> RecordedAnswer:
        test = self._tests[row["test_version_id"]]
        structured = test.get("structured_object_version_id")
        reason = row.get("finish_reason") or "unknown"
        tools = tuple(
            [_tool(self._tools[id]["schema"]) for id in self._test_tools.get(test["id"], ())]
        )
        return RecordedAnswer(
            by=self._model(row["model_version_id"]),
            temperature=float(row["temperature"]),
            prompt=_text_without_files(
                self._prompts[row["candidate_sys_prompt_version_id"]]["content"]
            ),
            messages=tuple(_messages(_text_without_files(test["content"]))),
            reply=Reply(
                **_answer(row["answer"], may_call=bool(tools)),
                finish_reason=None if reason == "unknown" else reason.replace("-", "_"),
                usage=_usage(row),
                latency=row["time_taken"] / 1000,
            ),
            started=_microseconds(row["created_at"]),
            place=f"session {row['id']}",
            special_tags=self._test_tags.get(test["id"], ()),
            tools=tools,
            schema=parse_json(self._schemas[structured]["schema"]) if structured else None,
            rulings=tuple([self._ruling(ruling) for ruling in rulings]),
        )

    def _ruling(self, row: Record) -> RecordedVerdict:
        prompt = self._prompts[row["evaluation_prompt_version_id"]]
        instructions = self._instructions[row["test_evaluation_instructions_version_id"]]
        return RecordedVerdict(
            by=self._model(row["model_version_id"]),
            temperature=float(row["temperature"]),
            prompt=prompt["content"],
            tags=self._prompt_tags.get(prompt["prompt_id"], ()),
            instructions=instructions["content"].strip(SPACE),
            verdict="pass" if row["pass"] else "fail",
            feedback=row["feedback"] or "",
            reasoning=row.get("reasoning") or "",
            started=_microseconds(row["created_at"]),
            usage=_usage(row),
            latency=row["time_taken"] / 1000,
        )

    def _model(self, id: int) -> RecordedModel:
        model = self._models[id]
        options = model.get("runtime_options_json")
        return RecordedModel(
            provider=self._providers[model["provider_id"]]["code"],
            code=model["provider_model_code"],
            options=None if options is None else parse_json(options),
            extra_identifier=(model["extra_identifier"] or "").strip()
            if "extra_identifier" in model
            else None,
            current=bool(model.get("active", True)),
        )


def _text_without_files(content: str) -> str:
    require("{{_file:" not in content, "shows a file, and the database does not keep files")
    return content


def _messages(content: str) -> Iterator[tuple[Role, str]]:
    """Yield the messages shown to the model; text before the first marker was not shown."""
    if "---" in content:
        raise NotTakenError(
            "has '---' in its messages: the messages and instructions cannot be separated"
        )
    _, *parts = _MARKER.split(content)
    require(parts, "has no message")
    for sign, text in zip(parts[::2], parts[1::2], strict=True):
        yield _ROLES[sign], text.strip(SPACE)


def _answer(text: str, *, may_call: bool) -> dict[str, Any]:
    """Return the fields of a reply: a text, or the tool calls encoded in it."""
    if may_call and text.startswith("["):
        try:
            calls = parse_json(text)
        except ValueError:
            return {"text": text}
        if calls and all(
            isinstance(call, dict) and isinstance(call.get("name"), str) and "arguments" in call
            for call in calls
        ):
            called = tuple([ToolCall(call["name"], call["arguments"]) for call in calls])
            return {"text": None, "tool_calls": called}
    return {"text": text}


def _tool(text: str) -> ToolVersion:
    definition = parse_json(text)
    return ToolVersion(
        definition["name"], definition.get("description") or "", definition["parameters"]
    )


def _usage(row: Record) -> Usage:
    return Usage(
        row["prompt_tokens"], row["completion_tokens"], row.get("cached_prompt_tokens_read")
    )


def _microseconds(seconds: int) -> int:
    return int(seconds) * 1_000_000
