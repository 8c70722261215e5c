"""What only our own client promises, beyond what both doors do."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from evalstore.providers import ProviderError, answer_size, open_provider
from evalstore.values import OutgoingMessage, Reply, Request, Text
from tests import endpoint

HI = Request("dummy", (OutgoingMessage("user", (Text("Hi"),)),), max_output_tokens=9)


@pytest.fixture
def server() -> Iterator[endpoint.Endpoint]:
    with endpoint.running() as server:
        yield server


def ask(url: str, *, kind: str = "openai-compatible") -> Reply:
    async def ask_and_close() -> Reply:
        provider = open_provider(kind, base_url=url)
        try:
            return await provider.ask(HI, timeout=5)
        finally:
            await provider.close()

    return asyncio.run(ask_and_close())


def failure(url: str) -> ProviderError:
    with pytest.raises(ProviderError) as raised:
        ask(url)
    return raised.value


@pytest.mark.parametrize(
    ("kind", "name"), [("openai", "max_completion_tokens"), ("ollama", "max_tokens")]
)
def test_the_limit_has_the_name_the_service_knows(
    server: endpoint.Endpoint, kind: str, name: str
) -> None:
    ask(server.url, kind=kind)
    assert server.received[0].body[name] == 9


def test_without_a_key_none_is_sent(server: endpoint.Endpoint) -> None:
    ask(server.url + "/")
    assert "authorization" not in server.received[0].headers
    assert server.received[0].path == "/v1/chat/completions"


@pytest.mark.parametrize("root", ["", "/", "/api", "/v1", "/v1/"])
def test_ollama_is_found_by_any_of_its_roots(server: endpoint.Endpoint, root: str) -> None:
    ask(server.url.removesuffix("/v1") + root, kind="ollama")
    assert server.received[0].path == "/v1/chat/completions"


def test_a_text_in_parts_is_put_together(server: endpoint.Endpoint) -> None:
    parts = [{"type": "text", "text": "Par"}, {"type": "text", "text": "is"}]
    server.reply = lambda request: {"content": parts}
    assert ask(server.url).text == "Paris"


def test_the_id_in_the_body_serves_when_there_is_no_other(server: endpoint.Endpoint) -> None:
    server.reply = lambda request: endpoint.Answer(
        body=endpoint.ANSWERED.body, headers={"x-request-id": ""}
    )
    assert ask(server.url).request_id == "c-1"


def test_a_status_inside_of_a_success_counts(server: endpoint.Endpoint) -> None:
    error = {"code": 502, "message": "upstream is gone"}
    server.reply = lambda request: endpoint.completion({}, choices=[{"error": error}])
    problem = failure(server.url)
    assert problem.message == "the server answered 502: upstream is gone"
    assert (problem.status, problem.retry) == (502, True)


def test_a_tool_call_without_a_name_makes_no_sense(server: endpoint.Endpoint) -> None:
    server.reply = lambda request: {"content": None, "tool_calls": [{"function": {}}]}
    problem = failure(server.url)
    assert (problem.kind, problem.retry) == ("malformed", True)


def test_a_reply_that_is_not_json_is_shown(server: endpoint.Endpoint) -> None:
    server.reply = lambda request: endpoint.FAULTS["html"]
    assert failure(server.url).message == (
        "the server answered with no JSON: <html><body>Welcome</body></html>"
    )


def test_an_endless_answer_is_not_read(
    server: endpoint.Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_size, "MAX_ANSWER", 1_000_000)
    server.reply = lambda request: "x" * 2_000_000
    problem = failure(server.url)
    assert problem.message == "the answer is larger than 1000000 bytes"
    assert (problem.kind, problem.retry) == ("malformed", False)


def test_a_redirect_is_not_followed(server: endpoint.Endpoint) -> None:
    with endpoint.running() as elsewhere:
        headers = {"location": f"{elsewhere.url}/chat/completions"}
        server.reply = lambda request: endpoint.Answer(307, b"", headers)
        problem = failure(server.url)
        assert elsewhere.received == []
    assert (problem.message, problem.retry) == ("the server answered 307", False)


def test_no_proxy_is_taken_from_the_environment(
    server: endpoint.Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    with endpoint.running() as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        monkeypatch.setenv("http_proxy", proxy.url)
        ask(server.url)
        assert proxy.received == []
    assert len(server.received) == 1


@pytest.mark.parametrize("kind", ["ollama", "ollama_chat"])
@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("<think>\nIt is <b>.\n</think>\n\nNo.\n", "No."),
        (" <think></think>No", "No"),
        ("<think>and on", "<think>and on"),
        ("No <think>why</think>", "No <think>why</think>"),
    ],
)
def test_reasoning_in_front_of_an_answer_of_ollama_is_taken_off(
    server: endpoint.Endpoint, kind: str, content: str, text: str
) -> None:
    server.reply = lambda request: {"content": content}
    assert ask(server.url, kind=kind).text == text


def test_what_looks_like_reasoning_stays_elsewhere(server: endpoint.Endpoint) -> None:
    server.reply = lambda request: {"content": "<think>a</think>b"}
    assert ask(server.url).text == "<think>a</think>b"
