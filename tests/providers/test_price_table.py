"""Prices and capabilities, read from litellm's table without litellm."""

from __future__ import annotations

from importlib.metadata import version

import pytest

from evalstore.providers import price_table
from evalstore.providers.price_table import (
    Price,
    find_price,
    find_support,
    is_known_provider,
    is_listed,
)

LITELLM = f"litellm {version('litellm')}"


def capabilities(kind: str, code: str) -> frozenset[str]:
    """What the table says that a model can do."""
    return frozenset(word for word, can in (find_support(kind, code) or {}).items() if can)


def test_a_price_says_where_it_comes_from() -> None:
    assert find_price("openai", "gpt-4o-mini") == Price(LITELLM, 1.5e-7, 6e-7, 7.5e-8)


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("anthropic", "claude-sonnet-4-5"),
        ("gemini", "gemini-2.5-flash"),
        ("vertex", "gemini-2.5-flash"),
        ("vertex-anthropic", "claude-sonnet-4-5"),
        ("mistral", "mistral-small"),
        ("ollama_chat", "llama3.1"),
    ],
)
def test_a_model_is_found_however_the_table_lists_it(kind: str, code: str) -> None:
    assert find_price(kind, code) is not None


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("openai", "no-such-model"),
        ("openai-compatible", "gpt-4o-mini"),
        ("groq", "gpt-4o-mini"),
        ("openai", "sample_spec"),
        ("scripted", "gpt-4o-mini"),
    ],
)
def test_a_model_of_another_provider_has_no_price(kind: str, code: str) -> None:
    assert find_price(kind, code) is None
    assert find_support(kind, code) is None


@pytest.mark.parametrize(
    ("kind", "code", "listed"),
    [
        ("openai", "gpt-4o-mini", True),
        ("anthropic", "claude-sonnet-4-5", True),
        ("openai", "no-such-model", False),
        ("groq", "gpt-4o-mini", False),
        ("hosted_vllm", "my-model", True),
    ],
)
def test_a_model_is_listed_unless_the_table_knows_its_provider_without_it(
    kind: str, code: str, listed: bool
) -> None:
    assert is_listed(kind, code) is listed


def test_capabilities_have_our_words() -> None:
    assert capabilities("anthropic", "claude-sonnet-4-5") == frozenset(
        {"tools", "structured", "image", "pdf", "reasoning"}
    )
    assert "audio" in capabilities("gemini", "gemini-2.5-flash")


@pytest.mark.parametrize(
    "kind",
    [
        "scripted",
        "openai",
        "openai-compatible",
        "ollama_chat",
        "vertex",
        "vertex-anthropic",
        "anthropic",
        "perplexity",
        "huggingface",
    ],
)
def test_a_provider_with_a_door_is_known(kind: str) -> None:
    assert is_known_provider(kind)


@pytest.mark.parametrize("kind", ["", "opnai", "None", "one of https://docs.litellm.ai"])
def test_a_provider_without_a_door_is_not_known(kind: str) -> None:
    assert not is_known_provider(kind)


def test_what_the_table_denies_differs_from_what_it_does_not_know(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entry = {
        "litellm_provider": "openai",
        "supports_vision": True,
        "supports_image_input": False,
        "supports_pdf_input": False,
        "supports_reasoning": None,
    }
    monkeypatch.setattr(price_table, "_table", lambda: {"m": entry})
    assert price_table.find_support("openai", "m") == {"image": True, "pdf": False}
    assert capabilities("openai", "m") == frozenset({"image"})
    assert price_table.find_support("openai", "other") is None
