"""Rows whose labels cut long values are found by the values in full."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.builders import tree
from tests.interfaces.cli.conftest import Echo, Evalstore

CUT = ("question=How long does st…shipping take?", "question=Does express go…rway on Monday?")
FULL = "How long does standard shipping take?"
ROWS = (FULL, "Does express go to  Norway on Monday?", "Hi")


@pytest.fixture
def service(echo: Echo) -> Path:
    """A test with three rows, two of which have long values."""
    rows = "".join(f"  - {question}\n" for question in ROWS)
    text = (
        f"---\nreplacements:\n  question:\n{rows}---\n# 👤\n\nPlease: {{{{question}}}}\n\n---\n\n"
    )
    return tree(Path.cwd(), {"tests/service.md": f"{text}```checks\n- contains: Please\n```\n"})


def rows_of(document: Any) -> list[str]:
    return [row["row"] for row in document["cases"]]


@pytest.mark.parametrize(
    "name",
    [f"question={FULL}", FULL, FULL.lower(), CUT[0], "st…shipping"],
)
def test_a_full_value_names_its_row(service: Path, documents: Any, name: str) -> None:
    place = f"tests/service.md::{name}"
    assert {item["row"] for item in documents("status", place)["items"]} == {CUT[0]}
    assert {cell["row"] for cell in documents("run", place)["cases"]} == {CUT[0]}
    assert documents("show", place)["row"] == CUT[0]
    assert [each["row"] for each in documents("label", place, "pass")["labels"]] == [CUT[0]]


def test_a_full_value_that_fits_several_rows_names_none(
    service: Path, evalstore: Evalstore
) -> None:
    path = service / "tests/service.md"
    other = FULL.replace("standard", "stylish")
    path.write_text(path.read_text(encoding="utf-8").replace("  - Hi", f"  - {other}"))
    ran = evalstore("run", f"tests/service.md::{other}")
    assert (ran.exit_code, ran.stderr) == (
        5,
        f"error: 'tests/service.md::{other}' fits 2 rows\n"
        f"hint: name one of them: '{CUT[0]}', '{CUT[0]} #2'\n",
    )


@pytest.mark.parametrize(
    ("words", "rows"),
    [
        ("standard", [CUT[0]]),
        ("norway or standard", [CUT[0], CUT[1]]),
        ("not standard", [CUT[1], "question=Hi"]),
        ("please", []),
    ],
)
def test_a_word_of_a_full_value_selects_its_row(
    service: Path, documents: Any, words: str, rows: list[str]
) -> None:
    assert rows_of(documents("ls", "cases", "-k", words)) == rows
