"""Import of configurations, one test per prompt and group of cases, and of results."""

from __future__ import annotations

import json
import os
import posixpath
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from evalstore.core.errors import EvalstoreError
from evalstore.core.values import Json
from evalstore.exchange.importers.base import (
    CountedReasons,
    Imported,
    ImportOptions,
    NotTakenError,
    SkippedItem,
    as_list,
    as_mapping,
    parsed,
    require,
    safe_file_name,
    skipping,
    taking,
    unique,
)
from evalstore.exchange.importers.json_lines import read_documents
from evalstore.exchange.importers.promptfoo import files
from evalstore.exchange.importers.promptfoo.assertions import Assertions, read_number
from evalstore.exchange.importers.promptfoo.cases import PromptfooCase, PromptfooTests
from evalstore.exchange.importers.promptfoo.files import PromptfooPrompt, read_prompts
from evalstore.exchange.importers.promptfoo.test_writer import group, write, write_judged
from evalstore.exchange.importers.recorded_messages import (
    RecordedConversation,
    UniqueNames,
    encodable,
    finite,
    name_groups,
    read_conversation,
    token_counts,
    write_messages,
)
from evalstore.files.access import LARGEST_DOCUMENT
from evalstore.files.yaml12 import Document, read_yaml
from evalstore.workspace.catalogue import litellm_id

_NAMES = ("promptfooconfig.yaml", "promptfooconfig.yml", "promptfooconfig.json")
_RESULTS = (".json", ".jsonl")
"""Suffixes of files with the results of an evaluation; a configuration may have the first."""
_KNOWN = (
    "prompts",
    "tests",
    "defaultTest",
    "providers",
    "targets",
    "description",
    "$schema",
    "scenarios",
)
_QUIET = (
    *("outputPath", "commandLineOptions", "sharing", "tags", "writeLatestResults", "metadata"),
    "assertionTemplates",
)
"""Fields about promptfoo itself, or that are only targets of references."""


def read(paths: list[Path], options: ImportOptions) -> Imported:
    """Import the tests of configurations, or of folders with a configuration, or results."""
    imported = Imported()
    configs = [config for path in paths for config in _configs(path)]
    if not configs:
        raise EvalstoreError(
            "no promptfoo configuration found",
            hint="name a 'promptfooconfig.yaml', or the folder with it, or a 'results.json'",
        )
    for config in configs:
        prefix = safe_file_name(config.parent.name) if len(configs) > 1 else ""
        folder = f"{prefix}/" if prefix else ""
        with skipping(imported.left, config):
            if config.suffix not in _RESULTS or not read_results(config, folder, imported):
                _read(config, folder, imported)
    return imported


def _configs(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    here = [path / name for name in _NAMES if (path / name).is_file()]
    return here[:1] or sorted(file for file in path.rglob("*") if file.name in _NAMES)


def _read(config: Path, prefix: str, imported: Imported) -> None:
    require(not files.is_code(config.name), "the configuration is code, which is not run")
    try:
        document = files.read_document(config)
    except NotTakenError as problem:
        if prefix:  # one of several
            raise
        file = os.path.relpath(config)
        raise EvalstoreError(f"{file}:{problem.line or 1}: {problem}") from problem
    if not isinstance(document.value, dict):
        raise NotTakenError("the configuration must be a mapping of fields", line=1)
    file = str(config)
    _report_unused_fields(document, file, imported)
    if not any(document.value.get(name) for name in ("prompts", "tests", "scenarios")):
        raise NotTakenError("it has neither prompts nor tests", line=1)
    prompts = [PromptfooPrompt("", (("user", "{{prompt}}"),), frozenset({"prompt"}))]
    if document.value.get("prompts"):
        prompts = read_prompts(document.at("prompts"), config.parent, file, imported)
        line = document.line("prompts")
        require(prompts, "none of its prompts can be imported", line=line)
    tests = PromptfooTests(config.parent, file, imported, document.value)
    if "defaultTest" in document.value:
        tests.set_default(document.at("defaultTest"))
    cases: list[PromptfooCase] = []
    if document.value.get("tests"):
        cases += tests.read(document.at("tests"))
    if document.value.get("scenarios"):
        cases += tests.scenarios(document.at("scenarios"))
    if not any(document.value.get(name) for name in ("tests", "scenarios")):
        cases = [PromptfooCase(tests.default.values, tests.default.assertions, file=file)]
    _write(prompts, cases, prefix, imported)
    read_providers(document, file, imported)


def _report_unused_fields(document: Document, file: str, imported: Imported) -> None:
    """Report the fields of a configuration that are not imported."""
    for name, value in document.value.items():
        line = document.line(name)
        if name in _KNOWN or name in _QUIET or str(name).startswith(("x-", ".")):
            continue  # fields that begin with 'x-' or '.' are for anchors
        if name == "evaluateOptions" and isinstance(value, dict):
            repeat = value.get("repeat")
            if isinstance(repeat, int) and repeat > 1:
                imported.settings["attempts"] = repeat
            continue
        imported.skip(file, f"the field '{name}' is not imported", line)


def _write(
    prompts: list[PromptfooPrompt], cases: list[PromptfooCase], prefix: str, imported: Imported
) -> None:
    groups = group(cases, imported, prompts)
    labels: list[str] = []
    for number, prompt in enumerate(prompts, 1):
        label = safe_file_name(prompt.label)[:40] if prompt.label else f"prompt-{number}"
        labels.append(unique(label, labels))
    for case_group in groups:
        rows = case_group.rows
        data = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        if any(rows) or case_group.absent:
            imported.files[f"tests/{prefix}{case_group.name}.jsonl"] = data.encode()
        for label, prompt in zip(labels, prompts, strict=True):
            name = case_group.name if len(prompts) == 1 else f"{label}.{case_group.name}"
            text = write(prompt, case_group, f"{case_group.name}.jsonl", imported)
            imported.files[f"tests/{prefix}{name}.md"] = text
            imported.rows += len(rows)


# --- conversion of the providers of a configuration to settings


def read_providers(document: Document, file: str, imported: Imported) -> None:
    """Add candidates from `providers` or `targets`, evaluators from the default test's options."""
    for field in ("providers", "targets"):
        value = document.value.get(field)
        listed = isinstance(value, list)
        for number, provider in enumerate(value if listed else [value] if value else []):
            line = document.line(field, *([number] if listed else []))
            _add("candidates", provider, file, line, imported)
    options = as_mapping(as_mapping(document.value.get("defaultTest")).get("options"))
    if options.get("provider"):
        line = document.line("defaultTest", "options", "provider")
        _add("evaluators", options["provider"], file, line, imported)


def _add(field: str, provider: Any, file: str, line: int, imported: Imported) -> None:
    fields = as_mapping(provider)
    if field == "evaluators" and "id" not in fields and "text" in fields:
        provider = fields["text"]  # beside one for embeddings
        fields = as_mapping(provider)
    name = fields.get("id") if isinstance(provider, dict) else provider
    config = as_mapping(fields.get("config"))
    if name is None and len(fields) == 1:
        ((name, settings),) = fields.items()
        config = as_mapping(as_mapping(settings).get("config"))
    id = litellm_id(name) if isinstance(name, str) else None
    if id is None:
        subject = "a provider" if name is None else f"the provider '{name}'"
        imported.skip(file, f"{subject} names no model that can be imported", line)
        return
    unused = set(config) - {"temperature"}
    address, key = config.get("apiBaseUrl"), config.get("apiKeyEnvar")
    if address is not None and id.startswith("openai/"):
        if not re.fullmatch(r"https?://[^@?#\s]+", str(address)):
            imported.skip(file, f"{name}: 'apiBaseUrl' is not an address of a server", line)
            return
        id = id.partition("/")[2]
        unused -= {"apiBaseUrl", "apiKeyEnvar"}
        server = safe_file_name(re.sub(r"^\w+://", "", f"{address}-{key}" if key else address))
        imported.add_model(id, server, address, key)
    entry: Json = id
    temperature = config.get("temperature")
    if isinstance(temperature, int | float):
        entry = {"id": id, "temperature": temperature}
    entries: list[Json] = imported.settings.setdefault(field, [])
    if entry not in entries:
        entries.append(entry)
    if fields.get("prompts"):
        reason = f"the provider '{name}' is for some prompts only: here every candidate gets all"
        imported.warn(file, reason, line)
    if unused:
        names = ", ".join(sorted(map(str, unused)))
        reason = f"the provider '{name}': not imported from its 'config': {names}"
        imported.warn(file, reason, line)


# --- imports results: the answers of an evaluation, judged by its assertions without a call


_TOKENS = {"input_tokens": ("prompt",), "output_tokens": ("completion",)}
_ABOUT_CALLS = ("cost", "latency", "finish-reason")
_YAML = re.compile(r"\s*-\s+role\s*:")
"""Matches the beginning of messages in YAML."""
_COLUMNS = ("id", "input", "answer", "recorded")
"""The columns of a conversation; variables with these names keep them."""


def find_results(line: int | None, document: Json) -> list[Any]:
    """Return the results in a document; empty if it is not the output of an evaluation."""
    fields = as_mapping(document)
    if line is not None or _is_result(fields):
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
    skipped = CountedReasons(str(path))
    answers: list[_Answer] = []
    count = 0
    problems: list[SkippedItem] = []
    for line, document in read_documents(path, problems):
        for result in find_results(line, document):
            count += 1
            try:
                answers.append(_read_answer(as_mapping(result), path))
            except NotTakenError as problem:
                skipped.add(str(problem), f"result {count}")
    if not count and path.stat().st_size <= LARGEST_DOCUMENT:
        return False
    imported.left += [*problems, *skipped.items()]
    _write_answers(answers, prefix, imported)
    return True


_Answer = tuple[RecordedConversation, PromptfooCase]
"""The answer of a provider to a prompt, with the test that it belongs to."""


def _read_answer(result: dict[str, Any], path: Path) -> _Answer:
    """Return an answer; raises `NotTakenError` for a result without one."""
    conversation = _conversation(result, _messages(result))
    test = as_mapping(result.get("testCase"))
    components = as_list(as_mapping(result.get("gradingResult")).get("componentResults"))
    listed = test.get("assert")
    if not isinstance(listed, list):
        listed = [as_mapping(component).get("assertion") for component in components]
        listed = [assertion for assertion in listed if assertion is not None]
    values = result.get("vars") if isinstance(result.get("vars"), dict) else test.get("vars")
    reader = Assertions(path.parent, None, str(path))
    return conversation, PromptfooCase(
        values=as_mapping(encodable(as_mapping(values))),
        assertions=tuple(
            replace(it, problem=f"'{it.kind}' judges the call, and recorded answers have none")
            if it.kind.removeprefix("not-") in _ABOUT_CALLS
            else it
            for it in reader.read(encodable(listed), None)
        ),
        description=str(encodable(test.get("description") or "")),
        threshold=read_number(test, "threshold", None),
        file=str(path),
    )


def _conversation(result: dict[str, Any], messages: list[Json]) -> RecordedConversation:
    response, provider = as_mapping(result.get("response")), result.get("provider")
    output = response.get("output")
    require(output is not None, "the result has no answer: the call failed")
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
    messages = parsed(raw) if raw.lstrip().startswith("[") else None
    if _YAML.match(raw):
        with taking("its YAML cannot be read: "):
            messages = read_yaml(raw).value
    if messages and all("role" in as_mapping(message) for message in messages):
        return as_list(messages)
    return [{"role": "user", "content": raw}]


def _index(result: dict[str, Any], name: str) -> int:
    """Return the number of a test or a prompt, from 1; 1 if it is not recorded."""
    value = result.get(name)
    return value + 1 if isinstance(value, int) and not isinstance(value, bool) else 1


def _write_answers(answers: list[_Answer], prefix: str, imported: Imported) -> None:
    names = UniqueNames()
    folder = posixpath.dirname(f"tests/{prefix}x")
    cases = {id(conversation): case for conversation, case in answers}
    by_name = name_groups(conversation for conversation, _ in answers)
    for model, (shape, conversations) in by_name.items():
        ids = UniqueNames()
        columns = _free_columns(cases[id(each)] for each in conversations)
        filled = []
        for conversation in conversations:
            case = cases[id(conversation)]
            row = conversation.row(ids.take(conversation.id), folder, imported)
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
