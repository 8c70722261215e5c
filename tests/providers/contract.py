"""The doors that speak HTTP, with a key, and what one call through them comes to."""

from __future__ import annotations

import asyncio
import gc
import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from evalstore.core import hashing
from evalstore.core.values import Failure, OutgoingMessage, Question, Reply, Request, Session, Text
from evalstore.providers import Provider, ProviderError, open_provider
from evalstore.providers.litellm import LitellmProvider
from tests import raw_http_server

KEY = "sk-very-secret-0123456789"
REQUEST = Request("dummy", (OutgoingMessage("user", (Text("Hi"),)),))
Door = Callable[[str], Provider]
REPLY: dict[str, Any] = {
    "id": "c-1",
    "object": "chat.completion",
    "created": 1,
    "model": "dummy-2026",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "answered", "refusal": None},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ],
    "usage": {
        "prompt_tokens": 11,
        "completion_tokens": 7,
        "total_tokens": 18,
        "prompt_tokens_details": {"cached_tokens": 3},
    },
}


def own_client(url: str) -> Provider:
    return open_provider("openai-compatible", base_url=url, api_key=KEY)


def litellm_vllm(url: str) -> Provider:
    return LitellmProvider("hosted_vllm", base_url=url, api_key=KEY)


def litellm_openai(url: str) -> Provider:
    return LitellmProvider("openai", base_url=url, api_key=KEY)


def litellm_anthropic(url: str) -> Provider:
    return LitellmProvider("anthropic", base_url=url.removesuffix("/v1"), api_key=KEY)


DOORS = [own_client, litellm_vllm, litellm_openai, litellm_anthropic]


OF_LITELLM = [
    # What litellm is warned of, and connections that it leaves to the garbage collector.
    pytest.mark.filterwarnings("ignore:Pydantic serializer warnings"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]


@pytest.fixture(params=DOORS[:3], ids=lambda endpoint: endpoint.__name__)
def endpoint(request: pytest.FixtureRequest) -> Door:
    chosen: Door = request.param
    return chosen


@pytest.fixture(scope="module")
def server() -> Iterator[raw_http_server.RawServer]:
    with raw_http_server.running() as server:
        yield server
    gc.collect()


def outcome(provider: Provider, timeout: float = 20) -> Reply | ProviderError:
    """What one call comes to; any exception but `ProviderError` is raised."""

    async def ask() -> Reply | ProviderError:
        try:
            return await provider.ask(REQUEST, timeout=timeout)
        except ProviderError as problem:
            return problem
        finally:
            await provider.close()

    return asyncio.run(ask())


def failure(provider: Provider, timeout: float = 20) -> ProviderError:
    problem = outcome(provider, timeout)
    assert isinstance(problem, ProviderError)
    return problem


def require_storable(result: Reply | ProviderError) -> None:
    """A reply has an id, a failure has one and tells no key; waits are bounded."""
    if isinstance(result, Reply):
        session = Session(Question("t", None, "m", None), (result,), started=1, nonce="n")
        _, content = hashing.identify(hashing.describe_session(session))
        assert 0 <= result.wait <= 15
    else:
        _, content = hashing.identify(
            hashing.describe_failure(
                Failure("q", None, None, result.kind, result.message, 1, "n", result.status)
            )
        )
        wait = result.retry_after
        assert wait is None or (math.isfinite(wait) and wait >= 0)
        assert len(result.message) <= 600
        assert result.message.isprintable()
    content.encode()
    assert KEY not in content
