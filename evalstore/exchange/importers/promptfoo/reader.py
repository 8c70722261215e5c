"""Import of configurations, one test per prompt and group of cases, and of results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from evalstore.core.errors import EvalstoreError
from evalstore.core.values import Json
from evalstore.exchange.importers.base import Imported, ImportOptions, NotTakenError
from evalstore.exchange.importers.promptfoo import files
from evalstore.exchange.importers.promptfoo.prompts import PromptfooPrompt, read_prompts
from evalstore.exchange.importers.promptfoo.results import read_results
from evalstore.exchange.importers.promptfoo.test_writer import group, write
from evalstore.exchange.importers.promptfoo.tests import PromptfooCase, PromptfooTests
from evalstore.exchange.importers.template_writer import safe_file_name, unique
from evalstore.files.yaml12 import Document
from evalstore.workspace.settings.model_suggestions import litellm_id

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
        try:
            if config.suffix in _RESULTS and read_results(config, folder, imported):
                continue
            _read(config, folder, imported)
        except NotTakenError as problem:
            imported.skip(config, problem, problem.line)
    return imported


def _configs(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    here = [path / name for name in _NAMES if (path / name).is_file()]
    return here[:1] or sorted(file for file in path.rglob("*") if file.name in _NAMES)


def _read(config: Path, prefix: str, imported: Imported) -> None:
    if files.is_code(config.name):
        raise NotTakenError("the configuration is code, which is not run")
    document = files.read_document(config)
    if not isinstance(document.value, dict):
        raise NotTakenError("the configuration must be a mapping of fields", line=1)
    file = str(config)
    _report_unused_fields(document, file, imported)
    if not any(document.value.get(name) for name in ("prompts", "tests", "scenarios")):
        raise NotTakenError("it has neither prompts nor tests", line=1)
    prompts = _prompts(document, config.parent, file, imported)
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


def _prompts(
    document: Document, folder: Path, file: str, imported: Imported
) -> list[PromptfooPrompt]:
    if not document.value.get("prompts"):
        return [PromptfooPrompt("", (("user", "{{prompt}}"),), frozenset({"prompt"}))]
    prompts = read_prompts(document.at("prompts"), folder, file, imported.left)
    if not prompts:
        raise NotTakenError("none of its prompts can be imported", line=document.line("prompts"))
    return prompts


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
        providers = value if isinstance(value, list) else [value] if value else []
        for number, provider in enumerate(providers):
            line = document.line(field, number) if isinstance(value, list) else document.line(field)
            _add("candidates", provider, file, line, imported)
    default = document.value.get("defaultTest")
    options = default.get("options") if isinstance(default, dict) else None
    if isinstance(options, dict) and options.get("provider"):
        line = document.line("defaultTest", "options", "provider")
        _add("evaluators", options["provider"], file, line, imported)


def _add(field: str, provider: Any, file: str, line: int, imported: Imported) -> None:
    config: Any = None
    if (
        field == "evaluators"
        and isinstance(provider, dict)
        and "id" not in provider
        and "text" in provider
    ):
        provider = provider["text"]  # beside one for embeddings
    name = provider
    if isinstance(provider, dict):
        name = provider.get("id")
        config = provider.get("config")
        if name is None and len(provider) == 1:
            ((name, settings),) = provider.items()
            config = settings.get("config") if isinstance(settings, dict) else None
    id = litellm_id(name) if isinstance(name, str) else None
    if id is None:
        subject = "a provider" if name is None else f"the provider '{name}'"
        imported.skip(file, f"{subject} names no model that can be imported", line)
        return
    entry: Json = id
    temperature = config.get("temperature") if isinstance(config, dict) else None
    if isinstance(temperature, int | float):
        entry = {"id": id, "temperature": temperature}
    entries: list[Json] = imported.settings.setdefault(field, [])
    if entry not in entries:
        entries.append(entry)
    if isinstance(provider, dict) and provider.get("prompts"):
        reason = f"the provider '{name}' is for some prompts only: here every candidate gets all"
        imported.warn(file, reason, line)
    unused = set(config) - {"temperature"} if isinstance(config, dict) else set()
    if unused:
        names = ", ".join(sorted(unused))
        reason = f"the provider '{name}': {names} of its 'config' are not imported"
        imported.warn(file, reason, line)
