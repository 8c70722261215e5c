"""Import of the answers and verdicts in the database of an ai-tester project.

The tests are files that evalstore reads unchanged, so none are written.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from evalstore.core.errors import EvalstoreError, FileProblem
from evalstore.core.values import SPECIAL_TAGS, Reply, Role, ToolCall, ToolVersion, Usage
from evalstore.exchange.importers.base import (
    Imported,
    ImportOptions,
    NotTakenError,
    RecordedAnswer,
    RecordedModel,
    RecordedVerdict,
    parse_json,
    require_regular,
)
from evalstore.files.markdown import SPACE

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
            reason = f"{sessions} skipped: inactive ('active' is false)"
            self._imported.warn(self._path, reason)

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
    if "{{_file:" in content:
        raise NotTakenError("shows a file, and the database does not keep files")
    return content


def _messages(content: str) -> Iterator[tuple[Role, str]]:
    """Yield the messages shown to the model; text before the first marker was not shown."""
    if "---" in content:
        raise NotTakenError(
            "has '---' in its messages: the messages and instructions cannot be separated"
        )
    _, *parts = _MARKER.split(content)
    if not parts:
        raise NotTakenError("has no message")
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
