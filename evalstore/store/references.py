"""The ids of other rows that a content refers to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evalstore.core import hashing
from evalstore.core.values import Json

OF_SESSIONS = ("test", "prompt", "model", "schema")
"""The fields of a session in which it refers to one row."""
OF_VERSIONS = ("test", "prompt", "prompts", "model", "schema", "tools", "file")
"""The fields of a version, and of what is in it, that refer to other rows."""


def iterate_references(kind: str, content: Json) -> Iterator[str]:
    """Yield the ids that a content refers to."""
    if kind in ("session", "evaluator", "test"):
        yield from (content[name] for name in OF_SESSIONS if name in content)
    if kind == "test":
        yield from content.get("tools", ())
    if kind == "judgement":
        yield from content["sessions"]
        yield content["evaluation"]
        yield content["evaluator"]
    if kind == "tree":
        yield from content.get("entries", {}).values()
        yield from content.get("children", {}).values()
    if kind in ("cases", "results"):
        yield from (part for part in content.get("parts", ()) if part)
    if kind == "cases":
        for case in content.get("cases", ()):
            yield from iterate_case_references(case)
    if kind == "results":
        yield content["cases"]
        for cell in content.get("cells", ()):
            yield from cell.get("sessions", ())
            yield from cell.get("evaluations", ())
    if kind == "run":
        yield from (
            content[name] for name in ("snapshot", "results", "sources") if content.get(name)
        )
        yield from (candidate["model"] for candidate in content.get("candidates", ()))
        yield from (evaluator["evaluator"] for evaluator in content.get("evaluators", ()))
    for message in content.get("messages", ()) if kind in ("test", "prompt") else ():
        yield from _files(message.get("content"))
    if kind == "evaluation":
        yield from _files(content.get("instructions"))
        yield from _of_checks(content.get("checks", ()))


def iterate_case_references(case: Json) -> Iterator[str]:
    """Yield the ids that a case refers to."""
    yield from case["tests"]
    yield from (prompt for prompt in case.get("prompts", ()) if prompt)
    yield from case.get("judgePrompts", ())
    if "evaluation" in case:
        yield case["evaluation"]


def iterate_joint_subjects(kind: str, content: Json) -> Iterator[str]:
    """Yield the subjects of judgements of several answers together that a content is about."""
    judged = [content["sessions"]] if kind == "judgement" else []
    if kind == "results":
        judged = [cell.get("sessions", ()) for cell in content.get("cells", ())]
    for sessions in judged:
        if len(sessions) > 1:
            yield hashing.subject_of(tuple(sessions))


def _of_checks(checks: Any) -> Iterator[str]:
    """Yield the ids of schemas, prompts and files that checks refer to."""
    for check in checks:
        if isinstance(check.get("schema"), str):
            yield check["schema"]
        yield from check.get("prompts", ())
        if "file" in check:
            yield check["file"]["id"]
        yield from _of_checks(check["checks"] if check["type"] == "block" else ())


def _files(parts: Any) -> Iterator[str]:
    if isinstance(parts, list):
        yield from (part["file"] for part in parts if "file" in part)
