"""Generates workspaces whose cases are rows of data, and a library of LangBiTe to import.

Everything is a function of the numbers, so that two measurements use the same files.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from benches.workspaces import settle
from tests.exchange.importers.langbite.library import model, requirement

if TYPE_CHECKING:
    from pathlib import Path

TEMPLATES = 339
"""The number of templates in the largest library of LangBiTe."""
_PAST = 1_700_000_000
ANSWER = "That is a question for an atlas: it has a map of every country, with its capital."
_CANDIDATE = f"id: candidate\nprovider: scripted\nresponses:\n  - answer: '{ANSWER}'\n"
_COMMUNITIES = ["cats", "dogs", "horses", "parrots", "turtles"]
_COLUMNS = (
    *("prompt_id", "concern", "input_type", "reflection_type", "task_prefix", "prompt"),
    *("output_formatting", "oracle", "oracle_prediction"),
)


def make_rows(root: Path, rows: int, changed: int = 0, edition: int = 0) -> None:
    """Write a workspace with one test file and this many rows of data; each row has a check.

    Every edition asks other questions in the rows that are changed.
    """
    write_check(root)
    data = root / "tests/data/capitals.jsonl"
    data.parent.mkdir(parents=True, exist_ok=True)
    with data.open("w", encoding="utf-8") as file:
        for number in range(rows):
            file.write(json.dumps(_row(number, edition if number < changed else 0)) + "\n")
    os.utime(data, (_PAST, _PAST))
    write_settings(root)
    _write(root, "models/candidate.yaml", _CANDIDATE)
    settle()


def _row(number: int, edition: int = 0) -> dict[str, str | int]:
    again = f" (edition {edition})" * bool(edition)
    return {
        "id": number,
        "question": f"What is the capital of the country with the number {number}, and why?{again}",
        "wrong": f"Paris {number}",
        "level": "easy",
    }


def write_check(root: Path, edition: int = 0) -> None:
    """Write the test file; every edition has another check, which every answer passes."""
    text = (
        "---\ndataset: data/capitals.jsonl\n---\n\n# 👤\n\nAnswer in one sentence: {{question}}\n"
        f'\n---\n\n~~~checks\n- {{contains: "{edition}: {{{{wrong}}}}", not: true}}\n~~~\n'
    )
    _write(root, "tests/capitals.md", text)


def write_settings(root: Path, attempts: int = 1) -> None:
    """Write the settings: one candidate, and so many attempts at each row."""
    _write(root, "evalstore.yaml", f"candidates: [candidate]\nattempts: {attempts}\n")


def write_question(root: Path, edition: int = 0) -> None:
    """Write a test file with one question, whose check every edition changes."""
    check = f'~~~checks\n- {{contains: "Paris {edition}", not: true}}\n~~~\n'
    _write(root, "tests/one.md", f"# 👤\n\nWhere is Oslo?\n\n---\n\n{check}")


def make_library(folder: Path) -> list[Path]:
    """Write a library of LangBiTe, and a requirements model that selects all of it."""
    table = "".join(
        "\t".join(row) + "\n" for row in [_COLUMNS, *(_template(n) for n in range(TEMPLATES))]
    )
    petism = requirement(
        communities={"en_us": _COMMUNITIES}, inputs=["constrained"], reflections=["observational"]
    )
    _write(folder, "prompts_en_us.csv", table)
    _write(folder, "model.json", json.dumps(model(petism, nTemplates=TEMPLATES)))
    return [folder / "prompts_en_us.csv", folder / "model.json"]


def _template(number: int) -> tuple[str, ...]:
    """A template; every fourth compares two communities, and so has more instances."""
    start = ("petism", "constrained", "observational", "")
    if number % 4:
        prompt, expected = f"Is habit {number} of {{PET}} bad?", {"operation": "equal"}
    else:
        prompt = f"Are {{PET1}} better than {{PET2}} at task {number}?"
        expected = {"operation": "different"}
    oracle = json.dumps({**expected, "expected_value": ["No"]})
    return (str(number + 1), *start, prompt, "Say Yes or No.", "expected value", oracle)


def _write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    os.utime(path, (_PAST, _PAST))
