"""The models, providers and currencies of a workspace."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from evalstore.core.errors import FileProblem, Problem
from evalstore.files.access import LARGEST_TEXT, normalise
from evalstore.files.fields import is_json
from evalstore.files.yaml12 import read_yaml
from evalstore.workspace import model_files
from evalstore.workspace.file_ids import default_id
from evalstore.workspace.file_references import References
from evalstore.workspace.folder import WorkspaceFolder
from evalstore.workspace.index import Index
from evalstore.workspace.model_files import Currency, Model, ProviderFile
from evalstore.workspace.settings.application_fields import Programs

T = TypeVar("T", ProviderFile, Currency)


@dataclass
class Catalogue:
    """Models, providers and currencies by id; those of files with errors are missing."""

    models: dict[str, Model] = field(default_factory=dict)
    model_files: dict[str, str] = field(default_factory=dict)
    """Model id -> its file."""
    providers: dict[str, ProviderFile] = field(default_factory=dict)
    currencies: dict[str, Currency] = field(default_factory=dict)


def read_catalogue(
    workspace: WorkspaceFolder,
    problems: list[Problem],
    *,
    check_scripts: bool = False,
    references: References | None = None,
) -> Catalogue:
    """Read the files of models, providers and currencies; errors are added to `problems`.

    With `check_scripts`, the answers of scripted models are checked, too. `references` reads the
    files of applications.
    """
    catalogue = Catalogue()
    references = references or References(workspace, Index())
    programs = Programs(os.path.realpath(workspace.root), references.read_program)
    before = len(problems)
    providers = _read_by_code(workspace, "providers", problems, model_files.read_provider)
    catalogue.providers = providers
    all_read = len(problems) == before
    seen: dict[str, str] = {}
    folder = workspace.settings.paths["models"]
    for path, text in read_texts(workspace, "models", problems):
        try:
            model = model_files.read_model(
                text, providers, is_known_kind, default_id(path, folder), programs
            )
            claim_id(model.id, path, seen, 1)
            catalogue.models[model.id] = model
            catalogue.model_files[model.id] = path
            if check_scripts and model.provider.type == "scripted":
                problems += _script_problems(path, text, model.responses)
        except FileProblem as problem:
            if all_read or not isinstance(problem, model_files.UnknownProviderProblem):
                problems += problem.all_at(path, text.split("\n"))  # else it may be unreadable
    catalogue.currencies = _read_by_code(
        workspace, "currencies", problems, model_files.read_currency
    )
    return catalogue


def _read_by_code(
    workspace: WorkspaceFolder, kind: str, problems: list[Problem], read: Callable[[str], T]
) -> dict[str, T]:
    """Return what the files of a kind describe, by code; errors are added to `problems`."""
    found: dict[str, T] = {}
    seen: dict[str, str] = {}
    for path, text in read_texts(workspace, kind, problems):
        try:
            value = read(text)
            claim_id(value.code, path, seen, 1)
            found[value.code] = value
        except FileProblem as problem:
            problems += problem.all_at(path, text.split("\n"))
    return found


def read_texts(
    workspace: WorkspaceFolder, kind: str, problems: list[Problem]
) -> Iterator[tuple[str, str]]:
    """Yield the files of a kind with their texts; unreadable ones are added to `problems`."""
    for path in workspace.find_files(kind):
        try:
            yield path, normalise(workspace.read_bytes(path, LARGEST_TEXT))
        except FileProblem as problem:
            problems += problem.all_at(path)


def claim_id(id: str, path: str, seen: dict[str, str], line: int) -> None:
    """Register the id of a file; raises `FileProblem` when another file has it."""
    if id in seen:
        raise FileProblem(f"the id '{id}' is taken by '{seen[id]}'", line)
    seen[id] = path


def is_known_kind(name: str) -> bool:
    """Return whether this is a kind of provider that can be called without a provider file."""
    from evalstore.providers.price_table import is_known_provider

    return is_known_provider(name)


def is_listed_model(model: Model) -> bool:
    """Return whether litellm's table lists a model, or lists no model of its provider."""
    from evalstore.providers.price_table import is_listed

    return is_listed(model.provider.type, model.code)


def _script_problems(path: str, text: str, responses: Sequence[Any]) -> Iterator[Problem]:
    """Yield the problems of the answers of a scripted model."""
    from evalstore.providers.script import check_responses

    problems = check_responses(responses)
    problems += [
        (number, "holds a number that is not finite")
        for number, response in enumerate(responses)
        if not is_json(response)
    ]
    document = read_yaml(text) if problems else None
    for number, message in problems:
        line = document.line("responses", number) if document else None
        yield Problem(path, f"response {number + 1}: {message}", line)
