"""Describes the parts of a test: the texts for candidates and for evaluators."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from evalstore.comparison.version_diff import RECORDED_ANSWER, recorded_text
from evalstore.core import deserialize
from evalstore.core.values import Case, CaseFile, Json
from evalstore.planning.reasons.version_reader import VersionReader
from evalstore.results.rendering import check_yaml, text_of

if TYPE_CHECKING:
    from evalstore.planning.project import Project
    from evalstore.store import Store

SYSTEM, SHOWN, INSTRUCTIONS, CHECKS, SETTINGS = (
    *("system prompt", "test", "instructions", "checks", "settings"),
)
"""The names of the parts of a test."""


def load_test_parts(
    store: Store, project: Project | None, cases: Sequence[Case]
) -> dict[str, Json]:
    """Return the contents of all versions of these cases, by id."""
    ids_of = {
        "test": {id for case in cases for id in case.tests},
        "prompt": {id for case in cases for id in (*case.prompts, *case.judge_prompts) if id},
        "evaluation": {case.evaluation for case in cases if case.evaluation},
        "model": {case.recorded for case in cases if case.recorded},
    }
    reader = VersionReader(store, project.reading.contents if project else {})
    contents: dict[str, Json] = {}
    for kind, ids in ids_of.items():
        contents |= reader.load(kind, ids)
    tools = {id for content in contents.values() for id in content.get("tools", ())}
    return contents | reader.load("tool", tools)


def describe_parts(case: Case, contents: Mapping[str, Json], file: CaseFile) -> dict[str, str]:
    """Return the texts for candidates and evaluators by the name of the part."""
    parts: dict[str, str] = {}
    for number, prompt in enumerate(case.prompts, 1):
        name = f"{SYSTEM} {number}" if len(case.prompts) > 1 else SYSTEM
        parts[name] = _messages(contents.get(prompt, {}), bare=True) if prompt else ""
    conversations = [(id, len(list(same))) for id, same in groupby(case.tests)]
    for number, (id, times) in enumerate(conversations, 1):
        name = f"{SHOWN} {number}" if len(conversations) > 1 else SHOWN
        held = f"\n(held {times} times)" if times > 1 else ""
        parts[name] = _messages(contents.get(id, {})) + held
    parts[RECORDED_ANSWER] = recorded_text(contents.get(case.recorded or "", {}))
    evaluation = contents.get(case.evaluation or "", {})
    parts[INSTRUCTIONS] = text_of(deserialize.restore_parts(evaluation.get("instructions", ())))
    parts[CHECKS] = "\n".join(
        "- " + check_yaml(check).replace("\n", "\n  ") for check in evaluation.get("checks", ())
    )
    parts[SETTINGS] = "\n".join(_settings(case, contents, file))
    return {name: text for name, text in parts.items() if text}


def _messages(content: Json, *, bare: bool = False) -> str:
    """Return messages with their roles; with `bare`, a single message has no role."""
    messages = deserialize.restore_messages(content.get("messages", ()))
    if bare and len(messages) == 1:
        return text_of(messages[0].parts)
    return "\n\n".join(
        f"{message.name or message.role}:\n"
        + ("(filled by the candidate)" if message.filled else text_of(message.parts))
        for message in messages
    )


def _settings(case: Case, contents: Mapping[str, Json], file: CaseFile) -> Iterator[str]:
    for id in dict.fromkeys(case.tests):
        test = contents.get(id, {})
        for tool in test.get("tools", ()):
            yield f"tool {contents.get(tool, {}).get('name', '')} {tool[:8]}"
        if test.get("schema"):
            yield f"schema {test['schema'][:8]}"
        for name, value in sorted(test.get("options", {}).items()):
            yield f"{name}: {json.dumps(value, ensure_ascii=False)}"
        for tag in test.get("specialTags", ()):
            yield f"tag {tag}"
    for name, setting in (
        ("temperature", case.temperature),
        ("seed", case.seed),
        ("limit", case.limit),
        ("attempts", file.attempts),
        ("threshold", file.threshold),
    ):
        if setting is not None:
            yield f"{name}: {setting}"
    if file.evaluators is not None:
        yield f"evaluators: {', '.join(file.evaluators) or 'none'}"
    for id in case.judge_prompts:
        text = _messages(contents.get(id, {}), bare=True)
        yield f"judge prompt {id[:8]}\n    " + text.replace("\n", "\n    ")
    if case.judged_by != ("models",):
        yield f"judged by: {', '.join(case.judged_by)}"
