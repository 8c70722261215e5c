"""The models, providers and currencies of a workspace."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, TypeVar

from evalstore.core.errors import FileProblem, Problem
from evalstore.files.access import LARGEST_TEXT, normalise
from evalstore.files.fields import is_json, suggest
from evalstore.files.yaml12 import read_yaml
from evalstore.providers.base import EXAMPLE
from evalstore.providers.price_table import is_known_provider, provider_of
from evalstore.workspace import model_files
from evalstore.workspace.file_references import References
from evalstore.workspace.folder import WorkspaceFolder, default_id
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
    catalogue: Catalogue | None = None,
    *,
    check_scripts: bool = False,
    references: References | None = None,
) -> Catalogue:
    """Read the files of models, providers and currencies; errors are added to `problems`.

    They are added to `catalogue`, if there is one. With `check_scripts`, the answers of scripted
    models are checked, too. `references` reads the files of applications.
    """
    catalogue = catalogue or Catalogue()
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
            model = model_files.read_model(text, providers, default_id(path, folder), programs)
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


ANY_MODEL = f"write a model file, or a litellm name such as '{EXAMPLE}'"
NO_FILE = f"'PROVIDER/MODEL', such as '{EXAMPLE}', needs no file"
_LIKE = 0.85
"""How similar the name of a model is that is meant although a provider file has its provider."""


def suggest_model(id: str, known: Iterable[str], providers: Collection[str] = ()) -> str:
    """Return a hint: the nearest model, also with a provider in front of its name, or a list.

    Of a provider with a colon, as in promptfoo, it is the name with a slash. A model of one of the
    `providers`, which have files, needs a file, too.
    """
    models = sorted(known)
    provider, slash, code = id.partition("/")
    if slash and code and provider in providers:
        if near := get_close_matches(id, models, n=1, cutoff=_LIKE):
            return f"did you mean '{near[0]}'?"
        return (
            f"a model of the provider file '{provider}' needs a model file "
            f"with 'provider: {provider}', 'code: {code}' and 'id: {id}'"
        )
    if name := _with_slash(id):
        return f"write '{name}'"
    if name := _nearest(id, models):
        return f"did you mean '{name}'?"
    return f"{suggest(id, models, 'models')}; {NO_FILE}" if models else ANY_MODEL


def _with_slash(id: str) -> str | None:
    """Return `openai/gpt-5.4-mini` for `openai:gpt-5.4-mini`; None if the provider is not known."""
    provider, colon, code = id.partition(":")
    if not colon or not code or "/" in provider:
        return None
    is_plain = ":" not in code and is_known_provider(provider)
    return litellm_id(id) or (f"{provider}/{code}" if is_plain else None)


def _nearest(id: str, models: list[str]) -> str | None:
    """Return the model with this name or one like it, with or without its provider."""
    codes = {model.rpartition("/")[2]: model for model in reversed(models)}
    if id in codes:
        return codes[id]
    provider = provider_of(id) if "/" not in id else None
    if provider and is_known_provider(provider):
        return f"{provider}/{id}"
    if near := get_close_matches(id, models, n=1):
        return near[0]
    near = [] if "/" in id else get_close_matches(id, codes, n=1)
    return codes[near[0]] if near else None


_SERVICES = {
    "openai": "openai",
    "openai:chat": "openai",
    "openai:responses": "openai",
    "openai:completion": "openai",
    "anthropic": "anthropic",
    "anthropic:messages": "anthropic",
    "ollama": "ollama",
    "ollama:chat": "ollama_chat",
    "ollama:completion": "ollama",
    "google": "gemini",
    "vertex": "vertex_ai",
    "azure:chat": "azure",
    "bedrock": "bedrock",
    "bedrock:converse": "bedrock/converse",
    "mistral": "mistral",
    "groq": "groq",
    "openrouter": "openrouter",
    "deepseek": "deepseek",
    "cohere": "cohere",
    "xai": "xai",
}
"""Maps promptfoo's names of services to litellm's."""
_NO_CHAT = re.compile(
    r"(?:embeddings?|image|moderation|assistant|realtime|transcription|video|speech|agents?):"
)
"""Name prefixes of models that do not generate text."""


def litellm_id(name: str) -> str | None:
    """Return litellm's name of a model; None if the provider is not a supported model."""
    if name in _SERVICES:
        return None
    for service in sorted(_SERVICES, key=len, reverse=True):
        if name.startswith(f"{service}:") and (model := name[len(service) + 1 :]):
            return None if _NO_CHAT.match(model) else f"{_SERVICES[service]}/{model}"
    return None
