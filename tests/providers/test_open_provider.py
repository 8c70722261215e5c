"""Which door is opened, and what loading them costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

from evalstore.core.errors import EvalstoreError
from evalstore.providers import open_provider


@pytest.mark.parametrize(
    ("kind", "endpoint"),
    [
        ("scripted", "ScriptedProvider"),
        ("openai", "OpenAICompatibleProvider"),
        ("openrouter", "OpenAICompatibleProvider"),
        ("ollama_chat", "OpenAICompatibleProvider"),
        ("anthropic", "LitellmProvider"),
        ("vertex-anthropic", "LitellmProvider"),
    ],
)
def test_the_kind_decides_the_door(kind: str, endpoint: str) -> None:
    assert type(open_provider(kind, api_key=" sk-1234 \n")).__name__ == endpoint


@pytest.mark.parametrize(
    ("base_url", "message"),
    [
        (None, "a provider of type 'openai-compatible' needs a base URL"),
        ("localhost:8000/v1", "'localhost:8000/v1' is not a base URL"),
        ("http://", "'http://' is not a base URL"),
        ("http://[::1/v1", "'http://[::1/v1' is not a base URL"),
        ("http://host:99999/v1", "'http://host:99999/v1' is not a base URL"),
        ("http://me:secret@host/v1", "the base URL contains a user name or a password"),
    ],
)
def test_a_base_url_no_call_could_use_is_refused(base_url: str | None, message: str) -> None:
    with pytest.raises(EvalstoreError) as raised:
        open_provider("openai-compatible", base_url=base_url)
    assert str(raised.value) == message
    assert raised.value.hint


def test_a_key_that_would_break_the_headers_is_refused() -> None:
    with pytest.raises(EvalstoreError) as raised:
        open_provider("openai", api_key="sk-1234\nx-other: 1")
    assert str(raised.value) == "the API key holds a control character"


@pytest.mark.parametrize(
    ("code", "loaded"),
    [
        ("import evalstore.providers.price_table", []),
        ("from evalstore.providers import open_provider; open_provider('scripted')", []),
        ("from evalstore.providers import open_provider; open_provider('openai')", ["aiohttp"]),
        ("from evalstore.providers import open_provider; open_provider('anthropic')", []),
    ],
    ids=["the package", "a script", "our own client", "litellm before its first call"],
)
def test_a_library_is_loaded_when_it_is_needed(code: str, loaded: list[str]) -> None:
    probe = f"{code}; import sys; print(*({{'aiohttp', 'litellm'}} & set(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == loaded


def test_a_model_that_was_only_recorded_cannot_be_called() -> None:
    with pytest.raises(EvalstoreError, match="the model was only recorded and cannot be called"):
        open_provider("recorded")
