"""The pages for people who come from another system name all that is taken over."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalstore.exchange.importers.base import find_importer
from evalstore.exchange.importers.langbite_templates import OPERATIONS
from evalstore.exchange.importers.lve.checkers import CHECKERS
from evalstore.exchange.importers.nemo_metrics import METRICS
from evalstore.exchange.importers.openai_evals import CHECKS
from evalstore.exchange.importers.promptfoo.assertions import CONVERTERS

PAGES = Path(__file__).parents[3] / "docs" / "coming-from"
NAMES = [
    *(("lve", name) for name in CHECKERS if name != "MonotoncityChecker"),
    *(("langbite", name) for names in OPERATIONS.values() for name in names),
    *(("openai-evals", name) for name in (*CHECKS, "ModelBasedClassify")),
    *(("nemo", name) for name in (*METRICS, "tool-calling", "llm-judge")),
    *(
        ("promptfoo", name)
        for name in CONVERTERS
        if not name.startswith(("icontains", "model-graded"))
    ),
]


@pytest.mark.parametrize(("page", "name"), NAMES)
def test_what_is_taken_over_is_on_the_page(page: str, name: str) -> None:
    assert f"`{name}`" in (PAGES / f"{page}.md").read_text(encoding="utf-8")


FORMATS = ["lve", "langbite", "openai-evals", "evalsone", "nemo", "promptfoo", "otel", "inspect"]


@pytest.mark.parametrize("format", FORMATS)
def test_a_page_says_how_to_import_and_what_differs(format: str) -> None:
    text = (PAGES / f"{format}.md").read_text(encoding="utf-8")
    assert f"evalstore import {format} " in text
    assert "## What differs" in text
    assert "## What is left" in text
    assert callable(find_importer(format))


def test_the_page_on_ai_tester_says_how_its_database_is_imported() -> None:
    text = (PAGES / "ai-tester.md").read_text(encoding="utf-8")
    assert "evalstore import ai-tester-db " in text
    assert "## What is left" in text
    assert callable(find_importer("ai-tester-db"))
