"""The models of an ai-tester project, by what its settings call them: provider and model."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalstore.errors import FileProblem
from evalstore.file_access import normalise
from evalstore.formats.sources import read_source
from evalstore.yaml_core import read_yaml

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


@dataclass(frozen=True, slots=True)
class Models:
    """The ids of model files, by provider and the model's name there."""

    ids: dict[tuple[str, str], str]
    without_id: dict[str, str]
    """For files without an `id`: `provider/model`, which it is called there, and its id here."""
    notes: tuple[str, ...] = ()
    """What of their options means something else when it is sent as it stands."""

    def id_of(self, provider: str, model: str) -> tuple[str, bool]:
        """The id of a model, and whether it has a file."""
        found = self.ids.get((provider, model))
        return found or f"{_KINDS.get(provider, provider)}/{model}", found is not None


def read_models(folder: Path) -> Models:
    """The models of a folder; files that cannot be read are told when the workspace is."""
    ids: dict[tuple[str, str], str] = {}
    sleeping: dict[tuple[str, str], str] = {}
    without_id: dict[str, str] = {}
    with_id: set[str] = set()
    notes: list[str] = []
    for path in sorted(folder.rglob("*")):
        if path.suffix not in (".yaml", ".yml") or not path.is_file():
            continue
        try:
            given = read_yaml(normalise(read_source(path))).value
        except FileProblem:
            continue
        if not isinstance(given, dict):
            continue
        place = path.relative_to(folder).with_suffix("").as_posix()
        code = given.get("code") or given.get("id")
        id, provider = given.get("id") or code or place, given.get("provider")
        name = given.get("providerModelCode") or code
        if not (isinstance(provider, str) and isinstance(name, str) and isinstance(id, str)):
            continue
        if "id" in given:
            with_id.add(id)
        else:
            without_id.setdefault(f"{provider}/{name}", id)
        if given.get("active") is False:
            sleeping.setdefault((provider, name), id)
            continue
        ids.setdefault((provider, name), id)
        notes += [f"the model '{id}': {one}" for one in _notes(given)]
    without_id = {name: id for name, id in without_id.items() if name not in with_id}
    return Models({**sleeping, **ids}, without_id, tuple(notes))


def _notes(given: dict[str, Json]) -> Iterator[str]:
    """ai-tester translates options for each provider; here they are sent as they stand."""
    parts = [given, given.get("candidateOverrides"), given.get("evaluatorOverrides")]
    for part in parts:
        if not isinstance(part, dict):
            continue
        thinking, options = part.get("thinking"), part.get("providerOptions")
        if isinstance(thinking, dict) and thinking.keys() != {"effort"}:
            yield "'thinking' is sent as it stands: write it as the provider wants it"
        for name in options if isinstance(options, dict) else ():
            snake = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()
            if snake != name:
                yield f"'{name}' in 'providerOptions' is sent as it stands: is it '{snake}'?"
