"""Builds small databases as ai-tester leaves them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

from evalstore.core.values import Json

if TYPE_CHECKING:
    from pathlib import Path

_TABLES = """
CREATE TABLE providers (id INTEGER PRIMARY KEY, code TEXT, name TEXT);
CREATE TABLE model_versions (id INTEGER PRIMARY KEY, model_id INTEGER, provider_id INTEGER,
    provider_model_code TEXT, runtime_options_json TEXT, active INTEGER);
CREATE TABLE prompt_versions (id INTEGER PRIMARY KEY, prompt_id INTEGER, content TEXT);
CREATE TABLE tags (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE prompt_to_tag_rels (tag_id INTEGER, prompt_id INTEGER);
CREATE TABLE test_to_tag_rels (tag_id INTEGER, test_version_id INTEGER);
CREATE TABLE structured_object_versions (id INTEGER PRIMARY KEY, schema TEXT);
CREATE TABLE tool_versions (id INTEGER PRIMARY KEY, schema TEXT);
CREATE TABLE test_to_tool_version_rels (test_version_id INTEGER, tool_version_id INTEGER);
CREATE TABLE test_versions (id INTEGER PRIMARY KEY, content TEXT, active INTEGER,
    structured_object_version_id INTEGER);
CREATE TABLE test_evaluation_instructions_versions (id INTEGER PRIMARY KEY, content TEXT);
CREATE TABLE sessions (id INTEGER PRIMARY KEY, test_version_id INTEGER,
    candidate_sys_prompt_version_id INTEGER, model_version_id INTEGER, temperature REAL,
    reasoning TEXT, answer TEXT, completion_tokens INTEGER, prompt_tokens INTEGER,
    time_taken INTEGER, created_at INTEGER);
CREATE TABLE session_evaluations (id INTEGER PRIMARY KEY, session_id INTEGER,
    evaluation_prompt_version_id INTEGER, test_evaluation_instructions_version_id INTEGER,
    model_version_id INTEGER, temperature REAL, pass INTEGER, feedback TEXT,
    completion_tokens INTEGER, prompt_tokens INTEGER, time_taken INTEGER, created_at INTEGER);
"""
JUDGE = "JUDGE BY:\n`{{_evaluationInstructions}}`\n\n# 👤\n\nRESPONSE:\n`{{_actualResponse}}`\n"
SYSTEM = "SYSTEM ONE\n"
TIME = 1_730_000_000
NO_OPTIONS = '{"providerOptions":{},"thinking":null}'
CANDIDATE, EVALUATOR = 1, 2


class Database:
    """A database with a candidate, an evaluator, and one prompt for each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ids: dict[str, int] = {}
        with closing(sqlite3.connect(path)) as database:
            database.executescript(_TABLES)
        self.insert("providers", code="local", name="Local")
        for code in ("m-text", "m-judge"):
            self.insert(
                "model_versions",
                model_id=1,
                provider_id=1,
                provider_model_code=code,
                runtime_options_json=NO_OPTIONS,
                active=1,
            )
        self.insert("prompt_versions", prompt_id=1, content=SYSTEM)
        self.insert("prompt_versions", prompt_id=2, content=JUDGE)
        for name in ("_evaluator", "_json_mode", "t", "_tools_only"):
            self.insert("tags", name=name)
        for tag in (1, 2):
            self.execute("INSERT INTO prompt_to_tag_rels VALUES (?, 2)", tag)

    def execute(self, statement: str, *values: Any) -> None:
        with closing(sqlite3.connect(self.path)) as database:
            database.execute("PRAGMA synchronous = OFF")
            database.execute(statement, values)
            database.commit()

    def insert(self, table: str, **values: Any) -> int:
        """Insert a row; returns its id."""
        id = self._ids[table] = self._ids.get(table, 0) + 1
        places = ", ".join("?" * (len(values) + 1))
        names = ", ".join(["id", *values])
        self.execute(f"INSERT INTO {table} ({names}) VALUES ({places})", id, *values.values())
        return id

    def test(self, content: str, *, schema: Json = None, tool: Json = None) -> int:
        """A test version."""
        structured = None
        if schema is not None:
            structured = self.insert("structured_object_versions", schema=json.dumps(schema))
        id = self.insert(
            "test_versions", content=content, active=1, structured_object_version_id=structured
        )
        if tool is not None:
            number = self.insert("tool_versions", schema=json.dumps(tool))
            self.execute("INSERT INTO test_to_tool_version_rels VALUES (?, ?)", id, number)
        return id

    def session(self, test: int, answer: str, **fields: Any) -> int:
        """An answer."""
        defaults = {
            "candidate_sys_prompt_version_id": 1,
            "model_version_id": CANDIDATE,
            "temperature": 0.3,
            "completion_tokens": 7,
            "prompt_tokens": 11,
            "time_taken": 1500,
            "created_at": TIME,
        }
        return self.insert(
            "sessions", test_version_id=test, answer=answer, **{**defaults, **fields}
        )

    def verdict(self, session: int, instructions: str, **fields: Any) -> int:
        """A judgement."""
        instructions_id = self.insert("test_evaluation_instructions_versions", content=instructions)
        defaults: dict[str, Any] = {
            "evaluation_prompt_version_id": 2,
            "test_evaluation_instructions_version_id": instructions_id,
            "model_version_id": EVALUATOR,
            "temperature": 0.5,
            "pass": 1,
            "feedback": None,
            "completion_tokens": 5,
            "prompt_tokens": 30,
            "time_taken": 900,
            "created_at": TIME + 5,
        }
        return self.insert("session_evaluations", session_id=session, **{**defaults, **fields})
