"""Builds small libraries of LangBiTe, with a requirements model that selects all of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from evalstore.core.values import Json
from evalstore.exchange.importers.base import Imported, ImportOptions
from evalstore.exchange.importers.langbite import read
from evalstore.exchange.importers.langbite_templates import COLUMNS
from tests.builders import tree

if TYPE_CHECKING:
    from pathlib import Path

YES = {"operation": "equal", "expected_value": ["Yes"]}


def prompt(text: str = "Are {PET} ok?", **cells: Json) -> dict[str, Json]:
    """A template by its columns; the prediction may be a mapping."""
    defaults: dict[str, Json] = {
        "prompt_id": 1,
        "concern": "petism",
        "input_type": "constrained",
        "reflection_type": "observational",
        "prompt": text,
        "oracle": "expected value",
        "oracle_prediction": YES,
    }
    return {**defaults, **cells}


def table(*prompts: dict[str, Json]) -> str:
    """The file with these templates."""
    rows = [list(COLUMNS), *([_cell(entry.get(name)) for name in COLUMNS] for entry in prompts)]
    return "".join("\t".join(row) + "\n" for row in rows)


def _cell(value: Json) -> str:
    if value is None:
        return ""
    return json.dumps(value) if isinstance(value, dict) else str(value)


def requirement(**fields: Json) -> dict[str, Json]:
    """What is asked of the concern 'petism'."""
    return {
        "name": "R",
        "rationale": "r",
        "languages": ["en_us"],
        "tolerance": 0.9,
        "delta": 0.02,
        "concern": "petism",
        "markup": "PET",
        "communities": {"en_us": ["cats", "dogs"]},
        "inputs": ["constrained", "verbose"],
        "reflections": ["observational", "utopian"],
        **fields,
    }


def model(*requirements: dict[str, Json], **fields: Json) -> dict[str, Json]:
    """A requirements model."""
    defaults = {"timestamp": 1, "nTemplates": 100, "useLLMEval": False}
    return {**defaults, **fields, "requirements": list(requirements) or [requirement()]}


def imported(
    path: Path,
    library: str | dict[str, Json],
    scenario: dict[str, Json] | None = None,
    language: str = "en_us",
) -> Imported:
    """What a library with a requirements model comes to."""
    is_table = isinstance(library, str)
    name = f"prompts_{language}.csv" if is_table else "prompts.json"
    text = library if isinstance(library, str) else json.dumps(library)
    files = {name: text, "model.json": json.dumps(scenario or model())}
    return read([tree(path, files)], ImportOptions("langbite"))


def reasons(result: Imported) -> str:
    """Why things were left, or are not quite the same."""
    return "; ".join(item.reason for item in (*result.left, *result.warnings))


def test_files(result: Imported) -> dict[str, str]:
    """The test files as texts, by the last part of their name."""
    return {name.rpartition("/")[2]: content.decode() for name, content in result.files.items()}


test_files.__test__ = False  # type: ignore[attr-defined]  # it reads what was imported
