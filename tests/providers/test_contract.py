"""Both doors that speak HTTP: the same requests go out, the same replies and errors come back."""

from __future__ import annotations

import asyncio
import base64
import os
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from evalstore.core.values import (
    FilePart,
    OutgoingMessage,
    Reply,
    Request,
    Text,
    ToolCall,
    ToolVersion,
    Usage,
)
from evalstore.providers import Provider, ProviderError, open_provider
from evalstore.providers.litellm import LitellmProvider
from evalstore.workspace.model_files import provider_options, read_model
from tests import endpoint

KEY = "sk-very-secret-0123456789"

Door = Callable[..., Provider]


def own_client(url: str, **options: Any) -> Provider:
    return open_provider("openai-compatible", base_url=url, api_key=KEY, **options)


def litellm_vllm(url: str, **options: Any) -> Provider:
    return LitellmProvider("hosted_vllm", base_url=url, api_key=KEY, **options)


def litellm_openai(url: str, **options: Any) -> Provider:
    return LitellmProvider("openai", base_url=url, api_key=KEY, **options)


@pytest.fixture(params=[own_client, litellm_vllm, litellm_openai], ids=lambda door: door.__name__)
def door(request: pytest.FixtureRequest) -> Door:
    chosen: Door = request.param
    return chosen


@pytest.fixture
def server() -> Iterator[endpoint.Endpoint]:
    with endpoint.running() as server:
        yield server


def user(*parts: str | FilePart) -> OutgoingMessage:
    return OutgoingMessage(
        "user", tuple(Text(part) if isinstance(part, str) else part for part in parts)
    )


def ask(provider: Provider, request: Request | str, *, timeout: float = 10) -> Reply:
    """Make one call in a loop of its own."""
    if isinstance(request, str):
        request = Request("dummy", (user(request),))

    async def ask_and_close() -> Reply:
        try:
            return await provider.ask(request, timeout=timeout)
        finally:
            await provider.close()

    return asyncio.run(ask_and_close())


def failure(provider: Provider, request: Request | str, *, timeout: float = 10) -> ProviderError:
    with pytest.raises(ProviderError) as raised:
        ask(provider, request, timeout=timeout)
    return raised.value


# --- what is sent ----------------------------------------------------------------------


def test_a_conversation_is_sent_as_it_is(door: Door, server: endpoint.Endpoint) -> None:
    conversation = (
        OutgoingMessage("system", (Text("Be "), Text("brief."))),
        user("Bonjour, ça va? 👤\n"),
        OutgoingMessage("assistant", (Text("Oui."),)),
        user("And you?"),
    )
    ask(door(server.url), Request("dummy", conversation))
    [received] = server.received
    assert received.path == "/v1/chat/completions"
    assert received.headers["authorization"] == f"Bearer {KEY}"
    assert received.body == {
        "model": "dummy",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Bonjour, ça va? 👤\n"},
            {"role": "assistant", "content": "Oui."},
            {"role": "user", "content": "And you?"},
        ],
    }


def test_settings_are_sent_when_made(door: Door, server: endpoint.Endpoint) -> None:
    request = Request(
        "dummy",
        (user("Hi"),),
        temperature=0.0,
        max_output_tokens=400,
        top_p=0.5,
        seed=7,
        stop=("END",),
        provider_options={"min_p": 0.1, "top_p": 0.25},
    )
    ask(door(server.url), request)
    sent = server.received[0].body
    del sent["messages"]
    assert sent == {
        "model": "dummy",
        "temperature": 0.0,
        "max_tokens": 400,
        "top_p": 0.25,
        "seed": 7,
        "stop": ["END"],
        "min_p": 0.1,
    }


def test_tools_are_offered(door: Door, server: endpoint.Endpoint) -> None:
    # litellm 1.106.0 to 1.106.2 fail here, for want of a package: pyproject.toml caps it.
    parameters = {"type": "object", "properties": {"city": {"type": "string"}}}
    tool = ToolVersion("cityWeather", "The weather in a city", parameters)
    ask(door(server.url), Request("dummy", (user("Hi"),), tools=(tool,)))
    sent = server.received[0].body
    assert sent["tool_choice"] == "auto"
    assert sent["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "cityWeather",
                "description": "The weather in a city",
                "parameters": parameters,
            },
        }
    ]


def test_tools_of_the_provider_are_sent_beside_those_of_the_test(
    door: Door, server: endpoint.Endpoint
) -> None:
    text = "code: dummy\nprovider: openai\nproviderTools: [{type: web_search}]\n"
    model = read_model(text, {}, "m")
    options = provider_options(model.version("candidate"))
    tool = ToolVersion("cityWeather", "", {"type": "object"})
    for tools in ((), (tool,)):
        ask(
            door(server.url), Request("dummy", (user("Hi"),), tools=tools, provider_options=options)
        )
    alone, beside = (request.body for request in server.received)
    assert alone["tools"] == [{"type": "web_search"}]
    assert "tool_choice" not in alone
    assert [item["type"] for item in beside["tools"]] == ["function", "web_search"]


SCHEMA = {"type": "object", "properties": {"pass": {"type": "boolean"}}, "required": ["pass"]}


def test_a_schema_is_asked_for(door: Door, server: endpoint.Endpoint) -> None:
    ask(door(server.url), Request("dummy", (user("Hi"),), schema=SCHEMA))
    assert server.received[0].body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "response", "schema": SCHEMA, "strict": False},
    }


def test_an_object_is_asked_for_where_schemas_are_not_supported(
    door: Door, server: endpoint.Endpoint
) -> None:
    provider = door(server.url, supports_structured_outputs=False)
    ask(provider, Request("dummy", (user("Hi"),), schema=SCHEMA))
    assert server.received[0].body["response_format"] == {"type": "json_object"}


def test_json_mode_asks_for_an_object(door: Door, server: endpoint.Endpoint) -> None:
    ask(door(server.url), Request("dummy", (user("Hi"),), json_mode=True))
    assert server.received[0].body["response_format"] == {"type": "json_object"}


DATA = b"\x00\xff data"
BASE64 = base64.b64encode(DATA).decode()

FILES = {
    "image": (
        FilePart("images/cat.png", "image/png", DATA),
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{BASE64}"}},
    ),
    "image by its address": (
        FilePart("https://h/a.png", "image/x-address", b"https://h/a.png"),
        {"type": "image_url", "image_url": {"url": "https://h/a.png"}},
    ),
    "pdf": (
        FilePart("docs/a b.pdf", "application/pdf", DATA),
        {
            "type": "file",
            "file": {"filename": "a b.pdf", "file_data": f"data:application/pdf;base64,{BASE64}"},
        },
    ),
    "wav": (
        FilePart("hello.wav", "audio/x-wav", DATA),
        {"type": "input_audio", "input_audio": {"data": BASE64, "format": "wav"}},
    ),
    "mp3": (
        FilePart("hello.mp3", "audio/mpeg", DATA),
        {"type": "input_audio", "input_audio": {"data": BASE64, "format": "mp3"}},
    ),
}


@pytest.mark.parametrize(("file", "part"), FILES.values(), ids=FILES.keys())
def test_a_file_is_shown_at_its_place(
    door: Door, server: endpoint.Endpoint, file: FilePart, part: dict[str, Any]
) -> None:
    ask(door(server.url), Request("dummy", (user("Look: ", file, "", file, "What is it?"),)))
    assert server.received[0].body["messages"][0]["content"] == [
        {"type": "text", "text": "Look: "},
        part,
        part,
        {"type": "text", "text": "What is it?"},
    ]


VIDEO = FilePart("films/cat.mp4", "video/mp4", DATA)
IMAGE = FilePart("cat.png", "image/png", DATA)

UNSENDABLE = {
    "a media type nobody takes": (
        Request("dummy", (user("Look: ", VIDEO),)),
        "'films/cat.mp4' is of the type 'video/mp4', which cannot be sent to a model: "
        "images, PDF, WAV and MP3 can",
    ),
    "a file from the assistant": (
        Request("dummy", (OutgoingMessage("assistant", (IMAGE,)), user("Nice"))),
        "'cat.png' cannot be shown in a message of the role 'assistant': "
        "models take files from the user only",
    ),
    "half a character": (
        Request("dummy", (user("Cut \ud83d here"),)),
        "the request contains half of a surrogate pair, which is not a character (U+D83D)",
    ),
    "not a number": (
        Request("dummy", (user("Hi"),), provider_options={"x": float("nan")}),
        "the request contains a number that JSON does not allow, such as NaN",
    ),
    "a stream": (
        Request("dummy", (user("Hi"),), provider_options={"stream": True}),
        "the provider option 'stream' cannot be used: answers are not streamed",
    ),
}


@pytest.mark.parametrize(("request_", "message"), UNSENDABLE.values(), ids=UNSENDABLE.keys())
def test_unsupported_requests_are_never_sent(
    door: Door, server: endpoint.Endpoint, request_: Request, message: str
) -> None:
    problem = failure(door(server.url), request_)
    assert (problem.kind, problem.message, problem.retry) == ("unsupported", message, False)
    assert server.received == []


# --- what comes back -------------------------------------------------------------------


def test_a_text_comes_back_with_its_facts(door: Door, server: endpoint.Endpoint) -> None:
    server.reply = lambda request: endpoint.completion(
        {"content": "Paris"},
        usage={
            "prompt_tokens": 20,
            "completion_tokens": 9,
            "total_tokens": 29,
            "prompt_tokens_details": {"cached_tokens": 16},
            "completion_tokens_details": {"reasoning_tokens": 5},
        },
    )
    reply = ask(door(server.url), "The capital of France?")
    assert 0 < reply.latency < 10
    assert reply == Reply(
        text="Paris",
        finish_reason="stop",
        usage=Usage(20, 9, 16, 5),
        resolved_model="dummy-2026",
        request_id="req_1",
        latency=reply.latency,
    )


def test_tokens_nobody_counted_are_not_known(door: Door, server: endpoint.Endpoint) -> None:
    server.reply = lambda request: endpoint.completion({"content": "Paris"}, usage=None)
    assert ask(door(server.url), "Hi").usage == Usage()


def test_tool_calls_come_back_parsed(door: Door, server: endpoint.Endpoint) -> None:
    arguments = ['{"city": "Oslo"}', "", '{"city": "Os', '{"n": NaN}', '{"s": "\\ud83d"}']
    server.reply = lambda request: {
        "content": None,
        "tool_calls": [
            {"id": f"c{index}", "type": "function", "function": {"name": "f", "arguments": text}}
            for index, text in enumerate(arguments)
        ],
    }
    reply = ask(door(server.url), "Hi")
    assert (reply.text, reply.finish_reason) == (None, "tool_calls")
    assert reply.tool_calls == (
        ToolCall("f", {"city": "Oslo"}),
        ToolCall("f", {}),
        ToolCall("f", '{"city": "Os'),
        ToolCall("f", '{"n": NaN}'),
        ToolCall("f", '{"s": "\\ud83d"}'),
    )


def test_a_refusal_comes_back(door: Door, server: endpoint.Endpoint) -> None:
    server.reply = lambda request: {"content": None, "refusal": "I cannot help with that."}
    assert ask(door(server.url), "Hi").refusal == "I cannot help with that."


def test_an_answer_kept_back_by_a_filter_is_a_refusal(
    door: Door, server: endpoint.Endpoint
) -> None:
    server.reply = lambda request: endpoint.completion({"content": None}, finish="content_filter")
    reply = ask(door(server.url), "Hi")
    assert reply.text is None
    assert reply.refusal == "the provider's content filter withheld the answer"


def test_a_cut_answer_says_so(door: Door, server: endpoint.Endpoint) -> None:
    server.reply = lambda request: endpoint.completion({"content": "Par"}, finish="length")
    reply = ask(door(server.url), "Hi")
    assert (reply.text, reply.finish_reason) == ("Par", "length")


def test_half_a_character_in_an_answer_is_replaced(door: Door, server: endpoint.Endpoint) -> None:
    server.reply = lambda request: "Cut \ud83d"
    assert ask(door(server.url), "Hi").text == "Cut \ufffd"


# --- what goes wrong -------------------------------------------------------------------

STATUSES = {
    "400": (400, False, False),
    "401": (401, False, True),
    "402": (402, False, True),
    "403": (403, False, True),
    "404": (404, False, True),
    "409": (409, True, False),
    "425": (425, True, False),
    "429": (429, True, False),
    "quota": (429, False, True),
    "500": (500, True, False),
    "501": (501, False, False),
    "502": (502, True, False),
    "503": (503, True, False),
    "error in 200": (200, False, False),
}


@pytest.mark.parametrize(
    ("fault", "status", "retry", "stops_model"),
    [(fault, *expected) for fault, expected in STATUSES.items()],
    ids=STATUSES.keys(),
)
def test_the_status_decides_whether_to_try_again(
    door: Door,
    server: endpoint.Endpoint,
    fault: str,
    status: int,
    retry: bool,
    stops_model: bool,
) -> None:
    problem = failure(door(server.url), f"[[fail={fault}]]")
    message = endpoint.FAULTS[fault].body["error"]["message"]
    place = f" at {server.url}/chat/completions" if status == 404 else ""
    assert problem.message == f"the server answered {status}{place}: {message}"
    assert (problem.kind, problem.status) == ("status", status)
    assert (problem.retry, problem.stops_model) == (retry, stops_model)
    assert len(server.received) == 1


@pytest.mark.parametrize(("schema", "kind"), [({"type": "object"}, "format"), (None, "status")])
@pytest.mark.parametrize("status", [400, 500])
def test_a_refused_form_is_an_error_of_its_own(
    door: Door, server: endpoint.Endpoint, status: int, schema: Any, kind: str
) -> None:
    server.reply = lambda _body: endpoint.failure(status, "no such response_format", "c")
    problem = failure(door(server.url), Request("dummy", (user("Hi"),), schema=schema))
    assert (problem.kind, problem.status) == (kind, status)
    assert problem.retry == (kind == "status" and status == 500)


def test_a_conversation_that_is_too_long_is_an_error_of_its_own(
    door: Door, server: endpoint.Endpoint
) -> None:
    problem = failure(door(server.url), "[[fail=context]]")
    assert "This model's maximum context length is 4096 tokens" in problem.message
    assert (problem.kind, problem.status, problem.retry) == ("context", 400, False)


@pytest.mark.parametrize("fault", ["408", "504"])
def test_a_server_out_of_time_is_asked_again(
    door: Door, server: endpoint.Endpoint, fault: str
) -> None:
    problem = failure(door(server.url), f"[[fail={fault}]]")
    assert (problem.status, problem.retry, problem.stops_model) == (int(fault), True, False)
    assert len(server.received) == 1


@pytest.mark.parametrize(
    "fault", ["half", "empty object", "empty list", "no choices", "html", "cut", "silent"]
)
def test_an_answer_that_makes_no_sense_is_asked_for_again(
    door: Door, server: endpoint.Endpoint, fault: str
) -> None:
    problem = failure(door(server.url), f"[[fail={fault}]]")
    assert problem.kind in {"malformed", "connection"}
    assert (problem.status, problem.retry, problem.stops_model) == (None, True, False)
    assert len(server.received) == 1


def test_a_server_that_says_when_to_come_back_is_heard(
    door: Door, server: endpoint.Endpoint
) -> None:
    problem = failure(door(server.url), "[[fail=429]]")
    assert (problem.retry_after, problem.retry) == (1.0, True)


def test_a_server_that_hangs_is_left_in_time(door: Door, server: endpoint.Endpoint) -> None:
    problem = failure(door(server.url), "[[fail=hang]]", timeout=0.2)
    assert (problem.kind, problem.retry) == ("timeout", True)


def test_a_server_that_is_not_there_may_come(door: Door) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
        problem = failure(door(url), "Hi")
    assert (problem.kind, problem.status, problem.retry) == ("connection", None, True)
    assert problem.message.startswith("nothing listens at http://127.0.0.1:")
    assert problem.is_permanent


@pytest.mark.parametrize("status", [200, 400, 401, 500])
def test_no_message_holds_a_key(
    door: Door,
    server: endpoint.Endpoint,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTHER_API_KEY", "other-secret-value")
    output = f"bad key '{KEY}' or\x1b[31m other-secret-value {'x' * 5000}"
    server.reply = lambda request: endpoint.failure(status, output, "c")
    problem = failure(door(server.url), "Hi")
    assert KEY not in problem.message
    assert "other-secret-value" not in problem.message
    assert "bad key '***' or\\x1b[31m *** xxx" in problem.message
    assert len(problem.message) == 500


# --- how it lives ----------------------------------------------------------------------


def test_many_calls_share_a_provider(door: Door, server: endpoint.Endpoint) -> None:
    together = threading.Barrier(20, timeout=60)

    def reply(body: dict[str, Any]) -> str:
        together.wait()  # none is answered before all are there, however slow the machine is
        return endpoint.echo(body)

    async def ask_many() -> list[Reply]:
        provider = door(server.url)
        requests = [Request("dummy", (user(str(n)),)) for n in range(20)]
        try:
            return await asyncio.gather(
                *(provider.ask(request, timeout=120) for request in requests)
            )
        finally:
            await provider.close()

    server.reply = reply
    replies = asyncio.run(ask_many())
    assert [reply.text for reply in replies] == [str(n) for n in range(20)]
    assert server.most_at_once == 20


def test_a_loaded_litellm_fetches_nothing_and_says_nothing(
    server: endpoint.Endpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    failure(litellm_vllm(server.url), "[[fail=401]]")
    assert os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] == "True"
    assert capsys.readouterr() == ("", "")


def test_a_key_that_litellm_misses_stops_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    problem = failure(open_provider("anthropic"), "Hi")
    assert problem.message.startswith("litellm answered 401: Missing Anthropic API Key")
    assert (problem.status, problem.stops_model) == (401, True)


def test_a_form_that_litellm_knows_to_be_refused_is_not_sent(server: endpoint.Endpoint) -> None:
    request = Request("dummy", (user("Hi"),), json_mode=True)
    problem = failure(LitellmProvider("cohere", base_url=server.url, api_key=KEY), request)
    assert (problem.kind, problem.retry) == ("format", False)
    assert server.received == []


@pytest.mark.parametrize("option", ["api_base", "num_retries", "mock_response"])
def test_provider_options_cannot_redirect_litellm(server: endpoint.Endpoint, option: str) -> None:
    request = Request("dummy", (user("Hi"),), provider_options={option: "x"})
    problem = failure(litellm_vllm(server.url), request)
    assert problem.message == f"the provider option '{option}' cannot be used"
    assert server.received == []


@pytest.mark.parametrize("name", ["HOSTED_VLLM_API_KEY", "HOSTEDVLLM_API_KEY"])
def test_a_key_that_litellm_finds_by_itself_is_in_no_reply(
    server: endpoint.Endpoint, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, KEY)
    server.reply = lambda request: f"You said {KEY}."
    provider = LitellmProvider("hosted_vllm", base_url=server.url)
    assert ask(provider, "Hi").text == "You said ***."


def test_a_reply_holds_no_key_whatever_the_door(door: Door, server: endpoint.Endpoint) -> None:
    server.reply = lambda request: endpoint.Answer(
        200, endpoint.completion({"content": f"key {KEY}"}, model=KEY).body, {"x-request-id": KEY}
    )
    reply = ask(door(server.url), "Hi")
    assert KEY not in repr(reply)
    assert reply.text == "key ***"
