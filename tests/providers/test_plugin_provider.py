"""Services that packages bring, in the manner of LangBiTe."""

from __future__ import annotations

import asyncio
from importlib import metadata
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from evalstore.core.values import (
    FilePart,
    OutgoingMessage,
    Reply,
    Request,
    Text,
    ToolVersion,
    Usage,
)
from evalstore.providers import ProviderError, base, open_provider
from evalstore.providers.price_table import is_known_provider

if TYPE_CHECKING:
    from collections.abc import Iterator


class Service:
    """Says what it was made and called with."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.provider: str | None = None
        self.temperature: float | None = None

    def execute_prompt(self, prompt: str) -> Any:
        if prompt == "fail":
            raise RuntimeError("no credit")
        if prompt == "nothing":
            return None
        return f"{self.provider} {self.model} {self.temperature}: {prompt}"


@pytest.fixture(autouse=True)
def _plugged(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    point = EntryPoint("oracle", f"{__name__}:Service", base.GROUP)
    monkeypatch.setattr(EntryPoint, "load", lambda _self: Service)
    monkeypatch.setattr(metadata, "entry_points", lambda **_group: [point])
    base.plugged_in.cache_clear()
    yield
    base.plugged_in.cache_clear()


def ask(*messages: OutgoingMessage, **more: Any) -> Reply:
    request = Request("m1", messages, **more)
    return asyncio.run(open_provider("oracle").ask(request, timeout=60))


def user(text: str) -> OutgoingMessage:
    return OutgoingMessage("user", (Text(text),))


def test_a_service_is_asked_with_one_prompt() -> None:
    system = OutgoingMessage("system", (Text("Be brief."),))
    assert ask(system, user("Hi")).text == "oracle m1 None: Be brief.\n\nHi"


def test_settings_reach_a_service_that_has_them() -> None:
    assert ask(user("Hi"), temperature=0.7, max_output_tokens=9).text == "oracle m1 0.7: Hi"


def test_its_kind_is_known() -> None:
    assert is_known_provider("oracle")


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("fail", "service", "the service 'oracle' failed: no credit"),
        ("nothing", "malformed", "the service 'oracle' gave no text but NoneType"),
    ],
)
def test_a_service_that_gives_no_answer_is_a_failure(text: str, kind: str, message: str) -> None:
    with pytest.raises(ProviderError) as caught:
        ask(user(text))
    assert (caught.value.kind, caught.value.message) == (kind, message)


@pytest.mark.parametrize(
    ("messages", "more", "word"),
    [
        ([user("a")], {"tools": (ToolVersion("t", "", {}),)}, "tools"),
        ([user("a")], {"provider_options": {"tools": [{"type": "web_search"}]}}, "tools"),
        ([user("a")], {"schema": {}}, "a schema"),
        ([user("a"), OutgoingMessage("assistant", ()), user("b")], {}, "conversations"),
        ([OutgoingMessage("user", (FilePart("a.png", "image/png", b""),))], {}, "files"),
    ],
)
def test_what_one_prompt_cannot_hold_is_refused(
    messages: list[OutgoingMessage], more: dict[str, Any], word: str
) -> None:
    with pytest.raises(ProviderError, match=word) as caught:
        ask(*messages, **more)
    assert caught.value.kind == "unsupported"


class Model:
    """A provider in evalstore's own manner."""

    made: ClassVar[list[str]] = []
    closed = 0

    def __init__(self, model: str) -> None:
        if model == "unknown":
            raise ProviderError("unsupported", "no such model", stops_model=True)
        if model == "broken":
            raise RuntimeError("no such model sk-secret-of-the-test")
        self.made.append(model)

    async def ask(self, request: Request, *, timeout: float) -> Any:
        if request.tools:
            raise ProviderError("unsupported", "no tools here")
        if request.schema is not None:
            await asyncio.Event().wait()
        text = "".join(message.text for message in request.messages)
        return text if text == "plain" else Reply(text, usage=Usage(3, 4), finish_reason="length")

    async def close(self) -> None:
        Model.closed += 1


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> type[Model]:
    monkeypatch.setattr(EntryPoint, "load", lambda _self: Model)
    monkeypatch.setattr(Model, "made", [])
    monkeypatch.setattr(Model, "closed", 0)
    return Model


def test_a_provider_gets_the_whole_request_and_gives_the_whole_reply(model: type[Model]) -> None:
    reply = ask(user("a"), OutgoingMessage("assistant", (Text("b"),)), user("c"))
    assert (reply.text, reply.usage, reply.finish_reason) == ("abc", Usage(3, 4), "length")
    assert reply.latency > 0


def test_a_provider_is_made_once_for_each_model_and_closed(model: type[Model]) -> None:
    async def use() -> None:
        opened = open_provider("oracle")
        for code in ("m1", "m2", "m1"):
            await opened.ask(Request(code, (user("Hi"),)), timeout=60)
        await opened.close()

    asyncio.run(use())
    assert (model.made, model.closed) == (["m1", "m2"], 2)


def test_failures_of_a_provider_are_its_own_and_hide_keys(
    model: type[Model], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORACLE_API_KEY", "sk-secret-of-the-test")
    with pytest.raises(ProviderError, match="no tools here"):
        ask(user("Hi"), tools=(ToolVersion("t", "", {}),))
    with pytest.raises(ProviderError, match="the service 'oracle' gave no reply but str"):
        ask(user("plain"))
    request = Request("broken", (user("Hi"),))
    with pytest.raises(ProviderError) as caught:
        asyncio.run(open_provider("oracle").ask(request, timeout=60))
    assert caught.value.message == "the service 'oracle' failed: no such model ***"
    request = Request("unknown", (user("Hi"),))
    with pytest.raises(ProviderError, match=r"^no such model$") as caught:
        asyncio.run(open_provider("oracle").ask(request, timeout=60))
    assert (caught.value.kind, caught.value.stops_model) == ("unsupported", True)


def test_a_provider_that_is_late_is_a_failure(model: type[Model]) -> None:
    request = Request("m1", (user("Hi"),), schema={})
    with pytest.raises(ProviderError) as caught:
        asyncio.run(open_provider("oracle").ask(request, timeout=0.01))
    assert caught.value.kind == "timeout"


def test_a_package_that_cannot_be_loaded_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(_self: EntryPoint) -> None:
        raise ImportError("no module named 'oracle'")

    monkeypatch.setattr(EntryPoint, "load", load)
    with pytest.raises(ProviderError, match="the service 'oracle' failed: no module"):
        ask(user("Hi"))
