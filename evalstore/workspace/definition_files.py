"""Reads the files that tests refer to by id: prompts, tools and schemas."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from evalstore.core.errors import FileProblem, Problem
from evalstore.core.values import DEFAULT_PROMPT, FileVersion
from evalstore.files.access import normalise
from evalstore.files.processes.limited_calls import limited_together
from evalstore.workspace.catalogue import claim_id, read_texts
from evalstore.workspace.definitions import read_schema, read_tool
from evalstore.workspace.file_ids import default_id
from evalstore.workspace.testfiles.context import Definitions
from evalstore.workspace.testfiles.judge_prompt import shows_instructions
from evalstore.workspace.testfiles.parser import PromptFile, parse_prompt
from evalstore.workspace.testfiles.prompt_expansion import expand_prompt

if TYPE_CHECKING:
    from evalstore.workspace.file_references import References
    from evalstore.workspace.folder import WorkspaceFolder
    from evalstore.workspace.index import Index

_BUILT_IN = Path(__file__).parent.parent / "prompts" / f"{DEFAULT_PROMPT}.md"


@dataclass
class DefinitionFiles:
    """The prompts, tools and schemas in the files; those with errors are missing."""

    definitions: Definitions
    names: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    """`prompts`, `tools`, `schemas` -> id in the files -> ids of its versions."""
    contents: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Id -> kind and canonical content of a version."""
    blobs: dict[str, FileVersion] = field(default_factory=dict)
    """Id -> file that a prompt mentions."""
    problems: list[Problem] = field(default_factory=list)


def read_definition_files(
    workspace: WorkspaceFolder, index: Index, references: References
) -> DefinitionFiles:
    """Read the prompts, tools and schemas of a workspace, and collect their problems."""
    files = DefinitionFiles(Definitions({}, {}, {}, {}, references.read, references.open_data))
    tools = dict(_read_definitions(workspace, "tools", index, files))
    schemas = dict(_read_definitions(workspace, "schemas", index, files))
    library = replace(files.definitions, tools=tools, schemas=schemas)
    prompts: dict[str, tuple[str, ...]] = {}
    evaluators: dict[str, tuple[str, ...]] = {}
    silent: set[str] = set()
    for prompt, text in _read_prompts(workspace, files.problems):
        with limited_together():
            ids, expansion = expand_prompt(prompt, library)
        files.problems += [problem.located(text.split("\n")) for problem in expansion.problems]
        files.contents |= expansion.contents
        files.blobs |= expansion.files
        if ids:
            (evaluators if prompt.is_evaluator else prompts)[prompt.id] = ids
        if prompt.is_evaluator:
            contents = expansion.contents
            silent |= {id for id in ids if not shows_instructions(contents[id][1])}
    files.names = {
        "prompts": {**prompts, **evaluators},
        "tools": {name: (id,) for name, id in tools.items()},
        "schemas": {name: (id,) for name, id in schemas.items()},
    }
    files.definitions = replace(
        library, prompts=prompts, evaluator_prompts=evaluators, silent=frozenset(silent)
    )
    return files


def _read_prompts(
    workspace: WorkspaceFolder, problems: list[Problem]
) -> Iterator[tuple[PromptFile, str]]:
    """Yield the prompts with their texts, and the built-in one unless a file takes its id."""
    seen: dict[str, str] = {}
    folder = workspace.settings.paths["prompts"]
    for path, text in read_texts(workspace, "prompts", problems, ".md"):
        try:
            prompt = parse_prompt(path, text, folder)
            claim_id(prompt.id, path, seen, "prompts", prompt.line_of("id"))
        except FileProblem as problem:
            problems += problem.all_at(path, text.split("\n"))
            seen.setdefault(default_id(path, folder), path)
        else:
            problems += [warning.at(path) for warning in prompt.warnings]
            yield prompt, text
    if DEFAULT_PROMPT not in seen:
        text = normalise(_BUILT_IN.read_bytes())
        yield parse_prompt(f"(built in)/{DEFAULT_PROMPT}.md", text), text


def _read_definitions(
    workspace: WorkspaceFolder, kind: str, index: Index, files: DefinitionFiles
) -> Iterator[tuple[str, str]]:
    """Yield the ids of tools or schemas in the files, each with the id of its version."""
    seen: dict[str, str] = {}
    suffixes = (".yaml", ".yml", ".json") if kind == "schemas" else (".yaml", ".yml")
    for path, text in read_texts(workspace, kind, files.problems, *suffixes):
        default = default_id(path, workspace.settings.paths[kind])
        try:
            if kind == "tools":
                definition = read_tool(text, default, index)
            else:
                is_json = path.endswith(".json")
                definition = read_schema(text, default, index, is_json_file=is_json)
            claim_id(definition.name, path, seen, kind, definition.line)
        except FileProblem as problem:
            files.problems += problem.all_at(path, text.split("\n"))
            continue
        files.contents[definition.id] = (kind[:-1], definition.content)
        yield definition.name, definition.id
