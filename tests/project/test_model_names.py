"""The models that pages, examples and hints name can be used today."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evalstore.providers.base import EXAMPLE, EXAMPLE_JUDGE
from evalstore.providers.price_table import find_price, find_retirement, is_listed, provider_of

ROOT = Path(__file__).parents[2]
DAY = "2026-11-28"
"""The day of the last look at the names; litellm's table changes only with its version."""
_SERVICES = ("openai", "anthropic", "gemini")
_NAME = re.compile(r"(?:([a-z_]+)/)?([a-z][a-z0-9]*(?:[-.][a-z0-9]+)+)")


def retired(text: str) -> set[str]:
    """The names of models in a text that are not served any more."""
    found = set()
    for provider, code in _NAME.findall(text):
        kind = provider or provider_of(code) or ""
        day = find_retirement(kind, code) if kind else None
        # The table leaves out what was retired long ago.
        if (day and day <= DAY) or (provider in _SERVICES and not is_listed(provider, code)):
            found.add(code)
    return found


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("use `openai/gpt-3.5-turbo-0301`", {"gpt-3.5-turbo-0301"}),
        ("gpt-4-turbo answers", {"gpt-4-turbo"}),
        (f"use `{EXAMPLE}`", set()),
    ],
)
def test_a_retired_model_is_found(text: str, names: set[str]) -> None:
    assert retired(text) == names


def test_no_page_names_a_retired_model() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "example").rglob("*")]
    pages += (ROOT / "evalstore").rglob("*.py")
    found = {
        str(page.relative_to(ROOT)): names
        for page in pages
        if page.is_file() and ".evalstore" not in page.parts
        for names in [retired(page.read_text(encoding="utf-8", errors="ignore"))]
        if names
    }
    assert found == {}


@pytest.mark.parametrize("name", [EXAMPLE, EXAMPLE_JUDGE])
def test_the_models_of_examples_are_listed_with_a_price(name: str) -> None:
    kind, _, code = name.partition("/")
    assert is_listed(kind, code)
    assert find_price(kind, code)
    assert not find_retirement(kind, code)
