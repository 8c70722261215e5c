"""Import of results: the answers of an evaluation, judged by its assertions without a call."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from evalstore.core.values import Json
from evalstore.exchange.importers.base import (
    Imported,
    NotTakenError,
    SkippedItem,
    as_list,
    as_mapping,
    parse_json,
)
from evalstore.exchange.importers.json_lines import SourceDocument, read_documents
from evalstore.exchange.importers.promptfoo.assertion_types import (
    Assertion,
    Assertions,
    read_number,
)
from evalstore.exchange.importers.promptfoo.prompts import read_turns
from evalstore.exchange.importers.promptfoo.test_writer import group, write_judged
from evalstore.exchange.importers.promptfoo.tests import PromptfooCase
from evalstore.exchange.importers.recorded_conversations import (
    RecordedConversation,
    SkippedConversations,
    UniqueNames,
    encodable,
    finite,
    name_groups,
    token_counts,
)
from evalstore.exchange.importers.recorded_messages import (
    TOOLS_AS_TEXT,
    read_conversation,
    shows_tools,
    write_messages,
)
from evalstore.files.access import LARGEST_DOCUMENT

_TOKENS = {"input_tokens": ("prompt",), "output_tokens": ("completion",)}
_ABOUT_CALLS = ("cost", "latency", "finish-reason")
_YAML = re.compile(r"\s*-\s+role\s*:")
"""Matches the beginning of messages in YAML."""
_COLUMNS = ("id", "input", "answer", "recorded")
"""The columns of a conversation; variables with these names keep them."""


def find_results(document: SourceDocument) -> list[Any]:
    """Return the results in a document; empty if it is not the output of an evaluation."""
    fields = as_mapping(document.value)
    if document.line is not None or _is_result(fields):
        return [fields] if _is_result(fields) else []
    results = fields.get("results")
    listed = as_list(results.get("results") if isinstance(results, dict) else results)
    return listed if any(_is_result(as_mapping(result)) for result in listed) else []


def _is_result(fields: dict[str, Any]) -> bool:
    return (
        "prompt" in fields and "provider" in fields and ("response" in fields or "vars" in fields)
    )


def read_results(path: Path, prefix: str, imported: Imported) -> bool:
    """Import the results of a file; returns False for a file that is something else.

    A file that is too large to be a configuration is taken as results, and reported.
    """
    skipped = SkippedConversations(str(path))
    with_tools = SkippedConversations(str(path))
    answers: list[_Answer] = []
    count = 0
    problems: list[SkippedItem] = []
    for document in read_documents(path, problems):
        for result in find_results(document):
            count += 1
            place = f"result {count}"
            try:
                answer = _Answer(as_mapping(result), path)
            except NotTakenError as problem:
                skipped.add(str(problem), place)
                continue
            answers.append(answer)
            if answer.shows_tools:
                with_tools.add(TOOLS_AS_TEXT, place)
    if not count and path.stat().st_size <= LARGEST_DOCUMENT:
        return False
    imported.left += [*problems, *skipped.items()]
    imported.warnings += with_tools.items()
    _write(answers, prefix, imported)
    return True


class _Answer:
    """The answer of a provider to a prompt, with the test that it belongs to."""

    def __init__(self, result: dict[str, Any], path: Path) -> None:
        """Raise `NotTakenError` for a result without an answer."""
        messages = _messages(result)
        self.conversation = _conversation(result, messages)
        self.shows_tools = shows_tools(messages)
        test = as_mapping(result.get("testCase"))
        components = as_list(as_mapping(result.get("gradingResult")).get("componentResults"))
        listed = test.get("assert")
        if not isinstance(listed, list):
            listed = [as_mapping(component).get("assertion") for component in components]
            listed = [assertion for assertion in listed if assertion is not None]
        values = result.get("vars") if isinstance(result.get("vars"), dict) else test.get("vars")
        reader = Assertions(path.parent, None, str(path))
        self.case = PromptfooCase(
            values=as_mapping(encodable(as_mapping(values))),
            assertions=tuple(map(_judgeable, reader.read(encodable(listed), None))),
            description=str(encodable(test.get("description") or "")),
            threshold=read_number(test, "threshold", None),
            file=str(path),
        )


def _judgeable(assertion: Assertion) -> Assertion:
    """Return an assertion; one about the call has a problem, as the answer does not have that."""
    if assertion.kind.removeprefix("not-") not in _ABOUT_CALLS:
        return assertion
    return replace(
        assertion, problem=f"'{assertion.kind}' judges the call, and recorded answers have none"
    )


def _conversation(result: dict[str, Any], messages: list[Json]) -> RecordedConversation:
    response, provider = as_mapping(result.get("response")), result.get("provider")
    output = response.get("output")
    if output is None:
        raise NotTakenError("the result has no answer: the call failed")
    named = as_mapping(provider)
    model = (named.get("label") or named.get("id")) if named else provider
    success = result.get("success")
    return RecordedConversation(
        f"test-{_index(result, 'testIdx')}-prompt-{_index(result, 'promptIdx')}",
        read_conversation(messages),
        output if isinstance(output, str) else json.dumps(output, ensure_ascii=False),
        model if isinstance(model, str) else "",
        details={
            "usage": token_counts(as_mapping(response.get("tokenUsage")), _TOKENS),
            "cost": finite(result.get("cost")),
            "latency_ms": finite(result.get("latencyMs")),
            "success": success if isinstance(success, bool) else None,
            "score": finite(result.get("score")),
        },
    )


def _messages(result: dict[str, Any]) -> list[Json]:
    """Return the messages of a filled prompt, which is JSON, YAML or the text of the user."""
    raw = as_mapping(result.get("prompt")).get("raw")
    if not isinstance(raw, str):
        raise NotTakenError("the result does not contain its prompt")
    if _YAML.match(raw):
        return [
            {
                "role": role,
                "content": [
                    content,
                    *([{"type": "image", "image": image}] if image is not None else []),
                ],
            }
            for role, content, image in read_turns(raw)
        ]
    try:
        messages = parse_json(raw) if raw.lstrip().startswith("[") else None
    except ValueError:
        messages = None
    if messages and all("role" in as_mapping(message) for message in messages):
        return as_list(messages)
    return [{"role": "user", "content": raw}]


def _index(result: dict[str, Any], name: str) -> int:
    """Return the number of a test or a prompt, from 1; 1 if it is not recorded."""
    value = result.get(name)
    return value + 1 if isinstance(value, int) and not isinstance(value, bool) else 1


def _write(answers: list[_Answer], prefix: str, imported: Imported) -> None:
    names = UniqueNames()
    folder = posixpath.dirname(f"tests/{prefix}x")
    cases = {id(answer.conversation): answer.case for answer in answers}
    by_name = name_groups(answer.conversation for answer in answers)
    for model, (shape, conversations) in by_name.items():
        ids = UniqueNames()
        columns = _free_columns(cases[id(each)] for each in conversations)
        filled = []
        for conversation in conversations:
            case = cases[id(conversation)]
            row = conversation.with_files(folder, imported).row(ids.take(conversation.id))
            recorded = {columns[name]: row[name] for name in _COLUMNS}
            filled.append(replace(case, values={**case.values, **recorded}))
        groups = group(filled, imported)
        for case_group in groups:
            name = names.take(model if len(groups) == 1 else f"{model}.{case_group.name}")
            rows = case_group.rows
            front: dict[str, Json] = {
                "dataset": f"{name}.jsonl",
                "rowId": columns["id"],
                "messages": write_messages(shape, columns["input"]),
                "answer": f"{{{{ item.{columns['answer']} }}}}",
            }
            data = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
            text = write_judged(front, (), case_group, imported)
            imported.files[f"tests/{prefix}{name}.md"] = text
            imported.files[f"tests/{prefix}{name}.jsonl"] = data.encode()
            imported.rows += len(rows)


def _free_columns(cases: Iterator[PromptfooCase]) -> dict[str, str]:
    """Return a column for each part of a conversation that is not a variable."""
    variables = {name.lower() for case in cases for name in case.values}
    columns = {}
    for name in _COLUMNS:
        column = name
        while column in variables:
            column = f"recorded_{column}"
        columns[name] = column
    return columns
