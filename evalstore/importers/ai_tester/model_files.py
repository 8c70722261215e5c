"""The models of an ai-tester project, and the lists of its configuration that name them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalstore.errors import FileProblem
from evalstore.files.access import normalise
from evalstore.files.yaml12 import read_yaml
from evalstore.importers.source_files import read_source
from evalstore.workspace.settings import QUERY_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evalstore.values import Json

_KINDS = {
    "vertex": "vertex_ai",
    "vertex_anthropic": "vertex_ai",
    "vertex-anthropic": "vertex_ai",
}
"""Kinds of providers that litellm calls something else."""
_CAPABILITIES = {
    "input": ("text", "image", "file", "pdf"),
    "output": ("text", "structured", "tools"),
}
"""What ai-tester looks for before it calls a model."""
_PARTICIPANT = ("id", "temperature", "requiredTags", "prohibitedTags")
_CHOSEN = ("id", "temperature")
_NAMED = ("provider", "model")
"""The parts of an id: the code of a provider, and the model's name there."""
_LISTS = ("candidates", "evaluators")


@dataclass(frozen=True, slots=True)
class Models:
    """The ids of model files."""

    ids: dict[tuple[str, str], str]
    """By provider and the model's name there."""
    all_ids: frozenset[str]
    without_id: dict[str, str]
    """For files without an `id`: `provider/model`, which it is called there, and its id here."""
    notes: tuple[str, ...] = ()
    """What of their options means something else when it is sent unchanged."""

    def id_of(self, provider: str, model: str) -> tuple[str, bool]:
        """The id of a model, and whether it has a file."""
        known_id = self.ids.get((provider, model))
        return known_id or f"{_KINDS.get(provider, provider)}/{model}", known_id is not None

    def find(self, id: str) -> str | None:
        """The id here of a model that has a file and is called so there; None without a file."""
        return self.without_id.get(id) or (id if id in self.all_ids else None)


def participants(place: str, entries: list[Json], models: Models, notes: list[str]) -> list[Json]:
    """The candidates or evaluators of a configuration, as settings.

    As in ai-tester, an id without a model file is left out. `place` is the list in words; what is
    left out is added to `notes`.
    """
    return list(_entries(place, entries, models, notes, _PARTICIPANT))


def queries(entries: list[Json], models: Models, notes: list[str]) -> list[Json]:
    """The analysis queries of a configuration, as settings; what is left out is noted.

    A query of which no candidate or no evaluator remains is left out: an empty list would select
    everything.
    """
    converted = (
        _query(entry, models, notes) if isinstance(entry, dict) else entry for entry in entries
    )
    return [query for query in converted if query is not None]


def _query(entry: dict[str, Json], models: Models, notes: list[str]) -> Json:
    query = f"the query '{entry.get('description')}'"
    result: dict[str, Json] = {}
    for field, value in entry.items():
        if field not in QUERY_NAMES:
            notes.append(f"'{field}' of {query} is left out: evalstore has no such field")
        elif field in _LISTS and isinstance(value, list) and value:
            participants_left = list(
                _entries(f"'{field}' of {query}", value, models, notes, _CHOSEN)
            )
            if not participants_left:
                notes.append(f"{query} is left out: none of its {field} has a model file")
                return None
            result[field] = participants_left
        else:
            result[field] = value
    return result


def _entries(
    place: str, entries: list[Json], models: Models, notes: list[str], fields: tuple[str, ...]
) -> Iterator[Json]:
    for item in entries:
        entry = {"id": item} if isinstance(item, str) else item
        if not isinstance(entry, dict):
            yield entry  # the settings say what is wrong with it
            continue
        id = _find_id(place, entry, models, notes)
        if id is None and isinstance(entry.get("id"), str):
            notes.append(f"'{entry['id']}' in {place} is left out: no model file has this id")
            continue
        fields_by_name = {
            "id": id,
            **{name: value for name, value in entry.items() if name != "id"},
        }
        for field, value in fields_by_name.items():
            if field not in (*fields, *_NAMED) and value is not None:
                why = "" if field not in _PARTICIPANT else ": a query has tags for all its models"
                notes.append(f"'{field}' of '{id}' in {place} is left out{why}")
        yield {
            field: fields_by_name[field]
            for field in fields
            if fields_by_name.get(field) is not None
        }


def _find_id(place: str, entry: dict[str, Json], models: Models, notes: list[str]) -> str | None:
    named_id = entry.get("id")
    if isinstance(named_id, str):
        return models.find(named_id)
    provider, model = (entry.get(field) for field in _NAMED)
    if not isinstance(provider, str) or not isinstance(model, str):
        return None
    id, is_known = models.id_of(provider, model)
    if not is_known:
        notes.append(f"'{id}' in {place} has no model file: no call knows more than its name")
    return id


def read_models(folder: Path) -> Models:
    """The models of a folder; files that cannot be read are told when the workspace is."""
    ids: dict[tuple[str, str], str] = {}
    inactive_ids: dict[tuple[str, str], str] = {}
    without_id: dict[str, str] = {}
    with_id: set[str] = set()
    all_ids: set[str] = set()
    notes: list[str] = []
    for path, document in _read_files(folder):
        place = path.relative_to(folder).with_suffix("").as_posix()
        code = document.get("code") or document.get("id")
        id, provider = document.get("id") or code or place, document.get("provider")
        name = document.get("providerModelCode") or code
        if isinstance(id, str):
            all_ids.add(id)
        if not (isinstance(provider, str) and isinstance(name, str) and isinstance(id, str)):
            continue
        if "id" in document:
            with_id.add(id)
        else:
            without_id.setdefault(f"{provider}/{name}", id)
        if document.get("active") is False:
            inactive_ids.setdefault((provider, name), id)
            continue
        ids.setdefault((provider, name), id)
        notes += [f"the model '{id}': {note}" for note in _notes(document)]
    without_id = {name: id for name, id in without_id.items() if name not in with_id}
    return Models({**inactive_ids, **ids}, frozenset(all_ids), without_id, tuple(notes))


def provider_notes(folder: Path) -> list[str]:
    """What provider files leave out that means something else in ai-tester."""
    return [
        f"the provider '{document.get('code')}': 'supportsStructuredOutputs' is not set, which is "
        "false in ai-tester and true in evalstore: write which one it is"
        for _, document in _read_files(folder)
        if document.get("type") == "openai-compatible"
        and "supportsStructuredOutputs" not in document
    ]


def _read_files(folder: Path) -> Iterator[tuple[Path, dict[str, Json]]]:
    """The YAML files of a folder that can be read."""
    for path in sorted(folder.rglob("*")):
        if path.suffix not in (".yaml", ".yml") or not path.is_file():
            continue
        try:
            document = read_yaml(normalise(read_source(path))).value
        except FileProblem:
            continue
        if isinstance(document, dict):
            yield path, document


def _omitted_capabilities(declaration: Json) -> list[str]:
    """What ai-tester needs of a model and a declaration of its capabilities leaves out."""
    if not isinstance(declaration, dict):
        return []
    sides = {side: declaration.get(side) or {} for side in _CAPABILITIES}
    return [
        f"{side}.{name}"
        for side, names in _CAPABILITIES.items()
        for name in names
        if isinstance(sides[side], dict) and name not in sides[side]
    ]


def _notes(document: dict[str, Json]) -> Iterator[str]:
    """Options are sent as they stand, and what is left out may mean something else."""
    if omitted := _omitted_capabilities(document.get("capabilities")):
        yield (
            f"'capabilities' leaves out {', '.join(omitted)}, which is false in ai-tester and true "
            "in evalstore: write which one it is"
        )
    parts = [document, document.get("candidateOverrides"), document.get("evaluatorOverrides")]
    for part in parts:
        if not isinstance(part, dict):
            continue
        thinking, options = part.get("thinking"), part.get("providerOptions")
        if isinstance(thinking, dict) and thinking.keys() != {"effort"}:
            yield "'thinking' is sent unchanged: write it as the provider wants it"
        for name in options if isinstance(options, dict) else ():
            snake = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()
            if snake != name:
                yield f"'{name}' in 'providerOptions' is sent unchanged: is it '{snake}'?"
