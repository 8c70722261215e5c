"""Integrity: every id is computed again from what is stored, every reference followed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from evalstore import hashing
from evalstore.store.store import Store
from evalstore.store.tables import EVENTS, VERSIONS
from evalstore.values import FileVersion


class Damage(NamedTuple):
    """Something wrong in the store."""

    kind: str
    id: str
    message: str


def check_store(store: Store) -> tuple[int, list[Damage]]:
    """How many rows were checked, and everything that is wrong with them."""
    damages = [Damage("database", "", line) for line in store.database_problems()]
    kinds: dict[str, set[str]] = {}
    for kind, table in {**VERSIONS, **EVENTS}.items():
        kinds.setdefault(str(table.__tablename__), set()).add(kind)
    present: set[str] = set()
    references: list[tuple[str, str, str]] = []
    checked = 0
    for table, row in store.iterate():
        checked += 1
        id = str(row["id"])
        present.add(id)
        try:
            content = json.loads(row["content"])
            kind = content["kind"]
        except (ValueError, KeyError, TypeError):
            damages.append(Damage(table, id, "the content cannot be read"))
            continue
        if kind not in kinds[table]:
            damages.append(Damage(table, id, f"a {kind} does not belong here"))
        elif hashing.hash_content(row["content"]) != id:
            damages.append(Damage(kind, id, "the content does not match the id"))
        else:
            damages += [Damage(kind, id, message) for message in _columns(kind, row, content)]
            references += [(kind, id, target) for target in _references(kind, content)]
    damages += [
        Damage(kind, id, f"refers to {target}, which is not there")
        for kind, id, target in references
        if target not in present
    ]
    return checked, damages


def _columns(kind: str, row: Mapping[str, Any], content: dict[str, Any]) -> Iterator[str]:
    """Columns that differ from the content they repeat."""
    expected: dict[str, Any] = {}
    if kind == "file":
        digest = hashing.describe_file(FileVersion(content["mediaType"], row["data"]))
        if digest != content:
            yield "the bytes do not match the id"
    elif kind == "session":
        expected = {
            "question": hashing.question_id(hashing.restore_question(content)),
            "started": content["started"],
            "token_limit": content.get("limit"),
        }
    elif kind == "judgement":
        expected = {
            "subject": hashing.subject_of(tuple(content["sessions"])),
            "evaluation": content["evaluation"],
            "evaluator": content["evaluator"],
            "started": content["started"],
            "verdict": content["verdict"],
            "score": content.get("score"),
        }
    elif kind == "failure":
        expected = {"question": content.get("question"), "at": content["at"]}
    elif kind == "run":
        expected = {"started": content["started"]}
    for name, value in expected.items():
        if row[name] != value:
            yield f"column '{name}' does not match the content"


def _references(kind: str, content: dict[str, Any]) -> Iterator[str]:
    """Ids that a content refers to."""
    if kind in ("session", "evaluator", "test"):
        yield from (
            content[name] for name in ("test", "prompt", "model", "schema") if name in content
        )
    if kind == "test":
        yield from content.get("tools", ())
    if kind == "judgement":
        yield from content["sessions"]
        yield content["evaluation"]
        yield content["evaluator"]
    if kind == "tree":
        yield from content.get("entries", {}).values()
        yield from content.get("children", {}).values()
    if kind == "cases":
        for case in content["cases"]:
            yield from case["tests"]
            yield from (prompt for prompt in case.get("prompts", ()) if prompt)
            if "evaluation" in case:
                yield case["evaluation"]
    if kind == "results":
        yield content["cases"]
        for cell in content["cells"]:
            yield from cell.get("sessions", ())
            yield from cell.get("evaluations", ())
    if kind == "run":
        yield from (content[name] for name in ("snapshot", "results") if content.get(name))
        yield from (one["model"] for one in content.get("candidates", ()))
        yield from (one["evaluator"] for one in content.get("evaluators", ()))
    for message in content.get("messages", ()) if kind in ("test", "prompt") else ():
        yield from _files(message.get("content"))
    if kind == "evaluation":
        yield from _files(content.get("instructions"))
        yield from (check["schema"] for check in content.get("checks", ()) if "schema" in check)


def _files(parts: Any) -> Iterator[str]:
    if isinstance(parts, list):
        yield from (part["file"] for part in parts if "file" in part)
