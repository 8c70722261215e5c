"""Whatever a server sends, a provider returns a reply that can be stored, or a `ProviderError`."""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import math
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from evalstore import hashing
from evalstore.providers import Provider, ProviderError, open_provider, openai_compatible
from evalstore.providers.litellm import LitellmProvider
from evalstore.values import (
    Failure,
    OutgoingMessage,
    Question,
    Reply,
    Request,
    Session,
    Text,
    ToolCall,
)
from tests import wire

KEY = "sk-very-secret-0123456789"
REQUEST = Request("dummy", (OutgoingMessage("user", (Text("Hi"),)),))
Door = Callable[[str], Provider]


def own_client(url: str) -> Provider:
    return open_provider("openai-compatible", base_url=url, api_key=KEY)


def litellm_vllm(url: str) -> Provider:
    return LitellmProvider("hosted_vllm", base_url=url, api_key=KEY)


def litellm_openai(url: str) -> Provider:
    return LitellmProvider("openai", base_url=url, api_key=KEY)


def litellm_anthropic(url: str) -> Provider:
    return LitellmProvider("anthropic", base_url=url.removesuffix("/v1"), api_key=KEY)


DOORS = [own_client, litellm_vllm, litellm_openai, litellm_anthropic]


@pytest.fixture(params=DOORS[:3], ids=lambda door: door.__name__)
def door(request: pytest.FixtureRequest) -> Door:
    chosen: Door = request.param
    return chosen


pytestmark = [
    # What litellm is warned of, and connections that it leaves to the garbage collector.
    pytest.mark.filterwarnings("ignore:Pydantic serializer warnings"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),
]


@pytest.fixture(scope="module")
def server() -> Iterator[wire.Wire]:
    with wire.running() as server:
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


def require_storable(found: Reply | ProviderError) -> None:
    """A reply has an id, a failure has one and tells no key; waits are bounded."""
    if isinstance(found, Reply):
        session = Session(Question("t", None, "m", None), (found,), started=1, nonce="n")
        _, content = hashing.identify(hashing.describe_session(session))
        assert 0 <= found.wait <= 15
    else:
        _, content = hashing.identify(
            hashing.describe_failure(
                Failure("q", None, None, found.kind, found.message, 1, "n", found.status)
            )
        )
        wait = found.retry_after
        assert wait is None or (math.isfinite(wait) and wait >= 0)
        assert len(found.message) <= 600
        assert found.message.isprintable()
    content.encode()
    assert KEY not in content


# --- what can be drawn

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
CALLING = REPLY | {
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "t-1",
                        "type": "function",
                        "function": {"name": "f", "arguments": '{"city": "Oslo"}'},
                    }
                ],
            },
            "finish_reason": "tool_calls",
        }
    ]
}
IN_PARTS = REPLY | {
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": []}, {"type": "text", "text": "a"}],
            },
            "finish_reason": "stop",
        }
    ]
}
ERROR: dict[str, Any] = {
    "error": {"message": "no", "type": "invalid", "param": None, "code": "c", "metadata": {"a": 1}}
}
DOCUMENTS = [REPLY, CALLING, IN_PARTS, ERROR]

VALUES = [
    "null",
    "true",
    "false",
    "0",
    "-1",
    "5",
    "1.5",
    "502",
    "1e999",
    "-1e999",
    "NaN",
    "9" * 4000,
    "9" * 5000,
    '""',
    '"x"',
    '"error"',
    '"\\ud800"',
    '"\\u0000\\u001b[31m"',
    f'"{KEY}"',
    '"' + "x" * 100_000 + '"',
    "[]",
    "{}",
    "[[]]",
    '["x", 5, null]',
    '[{"type": "image_url"}]',
    '{"a": {"error": {"code": 5}}}',
    "[" * 300 + "]" * 300,
    '{"a":' * 900 + "1" + "}" * 900,
    "[" * 900 + "]" * 900,
    "[" * 100_000,
    json.dumps("[" * 900 + "]" * 900),
    json.dumps('{"n": ' + "9" * 5000 + "}"),
    json.dumps('{"n": 1e999}'),
]
"""JSON, and what looks like it, to stand where another value is expected."""

HEADERS = [
    "retry-after",
    "retry-after-ms",
    "x-ratelimit-remaining-requests",
    "x-ratelimit-reset-requests",
    "anthropic-ratelimit-tokens-remaining",
    "anthropic-ratelimit-tokens-reset",
    "x-request-id",
    "content-type",
    "content-encoding",
    "content-length",
    "transfer-encoding",
    "connection",
    "location",
    "date",
    "set-cookie",
    "trailer",
    "upgrade",
    "x-should-retry",
]
HEADER_VALUES = [
    b"",
    b"0",
    b"-1",
    b"1e999",
    b"nan",
    b"9" * 400,
    b"9" * 5000,
    b"x" * 10_000,
    b"Wed, 21 Oct 99999999999999999999 07:28:00 GMT",
    b"Wed, 21 Oct 2015 07:28:00 +99999999999999",
    b"Fri, 31 Dec 9999 23:59:59 -2359",
    b"0001-01-01T00:00:00",
    b"9999-12-31T23:59:59-23:59",
    b"6m0s",
    b"\xff\xfe\x00",
    b"\x00",
    b"caf\xc3\xa9 \xed\xa0\x80",
    KEY.encode(),
    b"gzip",
    b"deflate",
    b"br",
    b"zstd",
    b"gzip, gzip",
    b"chunked",
    b"text/html; charset=utf-99",
    b"application/json; charset=utf-16",
    b"text/event-stream",
    b"http://127.0.0.1:1/",
    b"//",
    b"close",
    b"a\r\nretry-after: 5\r\nretry-after: 7",
]
STATUSES = [100, 101, 103, 200, 201, 204, 206, 299, 301, 304, 307, 400, 401, 418, 422, 429, 500]
STATUSES += [503, 529, 599, 600, 999, 0, 42, 10**9]


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every place in a document, by the keys and numbers that lead there."""
    yield path
    if isinstance(value, dict | list):
        parts = value.items() if isinstance(value, dict) else enumerate(value)
        for key, part in parts:
            yield from places(part, (*path, key))


def replaced(document: Any, path: tuple[str | int, ...], value: Any) -> Any:
    """A copy of a document with another value at a place."""
    if not path:
        return value
    copy = document.copy()
    copy[path[0]] = replaced(copy[path[0]], path[1:], value)
    return copy


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    """A document in which up to two values are replaced."""
    document = draw(st.sampled_from(DOCUMENTS))
    put: list[str] = []
    for number in range(draw(st.integers(0, 2))):
        path = draw(st.sampled_from(list(places(document))))
        document = replaced(document, path, f"@{number}@")
        put.append(draw(st.sampled_from(VALUES)))
    text = json.dumps(document)
    for number, value in enumerate(put):
        text = text.replace(f'"@{number}@"', value)
    return text.encode()


@st.composite
def answers(draw: st.DrawFn) -> bytes:
    """An answer over HTTP with odd headers, an odd status, or some bytes replaced."""
    body = draw(bodies())
    given = st.sampled_from(HEADERS), st.sampled_from(HEADER_VALUES)
    headers: dict[str, str | bytes] = dict(draw(st.lists(st.tuples(*given), max_size=3)))
    status = draw(st.sampled_from([200, 200, 429, *STATUSES]))
    encoding = draw(st.sampled_from(["", "", "", "gzip", "deflate"]))
    if encoding:
        body = gzip.compress(body) if encoding == "gzip" else zlib.compress(body)
        headers.setdefault("content-encoding", encoding)
    answer = wire.response(body, status=status, headers=headers)
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 3]))):
        start = draw(st.integers(0, min(len(answer), 400)))
        end = start + draw(st.sampled_from([0, 1, 2, 50, 10**9]))
        answer = answer[:start] + draw(st.binary(max_size=3)) + answer[end:]
    return answer


# --- the property


@settings(
    max_examples=max(150, settings().max_examples),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@example(wire.response(b"{}", status=429, headers={"retry-after": HEADER_VALUES[8]}))
@example(wire.response(json.dumps(REPLY).encode(), headers={"x-request-id": b"\xff"}))
@given(answers())
def test_any_answer_is_a_reply_or_a_failure(door: Door, server: wire.Wire, answer: bytes) -> None:
    server.answer = answer
    require_storable(outcome(door(server.url)))


# --- one by one

GOOD = json.dumps(REPLY).encode()
BAD_FRAMES = {
    "nothing": b"",
    "not HTTP": b"SSH-2.0-OpenSSH_9.6\r\n",
    "a header of 10 MB": wire.response(GOOD, headers={"x": b"x" * 10_000_000}),
    "many headers": wire.response(GOOD, headers={f"x-{n}": "x" for n in range(20_000)}),
    "garbage for chunks": wire.response(
        GOOD, headers={"content-length": b"9", "transfer-encoding": b"chunked"}
    ),
    "chunks that break off": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nff\r\n{",
    "two lengths": wire.response(GOOD, headers={"Content-Length": b"5"}),
    "gzip that is cut": wire.response(
        gzip.compress(GOOD)[:-30], headers={"content-encoding": "gzip"}
    ),
    "gzip that is not": wire.response(GOOD, headers={"content-encoding": "gzip"}),
    "204": wire.response(b"", status=204),
    "304": wire.response(b"", status=304),
    "only 100": b"HTTP/1.1 100 Continue\r\n\r\n",
}


@pytest.mark.parametrize("answer", BAD_FRAMES.values(), ids=BAD_FRAMES.keys())
def test_an_answer_that_breaks_http_is_a_failure(
    door: Door, server: wire.Wire, answer: bytes
) -> None:
    server.answer = answer
    problem = failure(door(server.url))
    require_storable(problem)
    assert problem.kind in ("connection", "malformed", "status")


ENDLESS = {
    "early hints": (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
    "headers": (b"HTTP/1.1 200 OK\r\n", b"x: y\r\n"),
    "chunks": (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "body": (b"HTTP/1.1 200 OK\r\n\r\n", b" " * 65_536),
}


@pytest.mark.parametrize(("start", "repeated"), ENDLESS.values(), ids=ENDLESS.keys())
def test_an_answer_without_end_is_left(
    server: wire.Wire, monkeypatch: pytest.MonkeyPatch, start: bytes, repeated: bytes
) -> None:
    monkeypatch.setattr(openai_compatible, "MAX_ANSWER", 1_000_000)
    server.answer, server.repeated = start, repeated
    try:
        problem = failure(own_client(server.url), timeout=0.5)
    finally:
        server.repeated = b""
    assert problem.kind in ("timeout", "malformed", "connection")


def test_a_compressed_answer_is_bounded_by_its_size_when_read(server: wire.Wire) -> None:
    bomb = zlib.compressobj(wbits=31)
    squeezed = b"".join(bomb.compress(b" " * 2**20) for _ in range(256)) + bomb.flush()
    server.answer = wire.response(squeezed, headers={"content-encoding": "gzip"})
    problem = failure(own_client(server.url))
    assert problem.message == f"the answer is larger than {openai_compatible.MAX_ANSWER} bytes"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("any_door", DOORS, ids=lambda door: door.__name__)
def test_no_redirect_is_followed(any_door: Door, server: wire.Wire, status: int) -> None:
    with wire.running() as elsewhere:
        elsewhere.answer = wire.response(GOOD)
        server.answer = wire.response(
            b"", status=status, headers={"location": f"{elsewhere.url}/chat/completions"}
        )
        server.received.clear()
        problem = failure(any_door(server.url))
        assert KEY.encode() in server.received[0]
        assert elsewhere.received == []
    if any_door is not litellm_anthropic:  # there litellm says 500
        assert (problem.status, problem.retry) == (status, False)


def test_an_id_in_a_header_can_be_stored(server: wire.Wire) -> None:
    server.answer = wire.response(GOOD, headers={"x-request-id": b"caf\xff"})
    reply = outcome(own_client(server.url))
    assert isinstance(reply, Reply)
    assert reply.request_id == "caf\ufffd"
    require_storable(reply)


def completion(message: dict[str, Any], **choice: Any) -> bytes:
    first = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    return wire.response(json.dumps(REPLY | {"choices": [first | choice]}).encode())


BROKEN_OFF = ["error", "ERROR", "abort", "insufficient_system_resource", "network_error"]


@pytest.mark.parametrize("reason", BROKEN_OFF)
def test_an_answer_that_the_provider_broke_off_is_a_failure(
    door: Door, server: wire.Wire, reason: str
) -> None:
    server.answer = completion({"content": "The capital of"}, finish_reason=reason)
    problem = failure(door(server.url))
    assert (problem.kind, problem.retry) == ("malformed", True)
    assert f"finish reason '{reason}'" in problem.message


def test_the_word_of_the_provider_behind_a_router_counts(server: wire.Wire) -> None:
    server.answer = completion({"content": "The capital of"}, native_finish_reason="error")
    assert failure(own_client(server.url)).kind == "malformed"
    server.answer = completion({"content": "Paris"}, native_finish_reason="end_turn")
    reply = outcome(own_client(server.url))
    assert isinstance(reply, Reply)
    assert (reply.text, reply.finish_reason) == ("Paris", "stop")


NOT_TEXT = [5, True, {"a": 1}, {"text": "Paris"}, [5], [{"type": "text", "text": 5}], [{}], [None]]


@pytest.mark.parametrize("content", NOT_TEXT, ids=str)
def test_content_that_is_not_text_is_a_failure(door: Door, server: wire.Wire, content: Any) -> None:
    server.answer = completion({"content": content})
    problem = failure(door(server.url))
    assert problem.kind in ("malformed", "connection")  # litellm calls it no answer
    assert problem.retry


@pytest.mark.parametrize("field", ["refusal", "finish_reason"])
def test_a_field_of_the_answer_that_is_not_text_is_a_failure(server: wire.Wire, field: str) -> None:
    choice = {field: 5} if field == "finish_reason" else {}
    server.answer = completion({"content": "Paris", "refusal": 5 if not choice else None}, **choice)
    problem = failure(own_client(server.url))
    assert problem.message == f"the field '{field}' in the server's answer is not text"
    assert problem.retry


MEDIA = {
    "image_url": {"content": [{"type": "text", "text": "a"}, {"type": "image_url"}]},
    "output_audio": {"content": [{"type": "output_audio"}]},
    "audio": {"content": None, "audio": {"transcript": "hello"}},
    "images": {"content": "here", "images": [{"type": "image_url"}]},
}


@pytest.mark.parametrize(("kind", "message"), MEDIA.items(), ids=MEDIA.keys())
def test_an_answer_in_another_medium_is_a_failure_that_names_it(
    server: wire.Wire, kind: str, message: dict[str, Any]
) -> None:
    server.answer = completion(message)
    problem = failure(own_client(server.url))
    assert problem.message == f"the server's answer holds '{kind}', and only text can be judged"
    assert (problem.kind, problem.retry) == ("malformed", False)


PARTS = {
    "texts": ([{"type": "text", "text": "Pa"}, {"type": "output_text", "text": "ris"}], "Paris"),
    "plain": (["Pa", {"text": "ris"}], "Paris"),
    "reasoning": (
        [{"type": "thinking", "thinking": []}, {"type": "text", "text": "a"}],
        "a",
    ),
    "references": (
        [{"type": "text", "text": "a"}, {"type": "reference", "reference_ids": [1]}],
        "a",
    ),
    "none": ([], ""),
    "empty": ("", ""),
    "null": (None, None),
}


@pytest.mark.parametrize(("content", "text"), PARTS.values(), ids=PARTS.keys())
def test_the_texts_of_an_answer_are_joined(
    server: wire.Wire, content: Any, text: str | None
) -> None:
    server.answer = completion({"content": content})
    reply = outcome(own_client(server.url))
    assert isinstance(reply, Reply)
    assert reply.text == text


@pytest.mark.parametrize(("levels", "is_parsed"), [(100, True), (101, False), (900, False)])
def test_deeply_nested_arguments_stay_text(server: wire.Wire, levels: int, is_parsed: bool) -> None:
    text = "[" * levels + "]" * levels
    call = {"id": "t", "type": "function", "function": {"name": "f", "arguments": text}}
    server.answer = completion({"content": None, "tool_calls": [call]})
    reply = outcome(own_client(server.url))
    assert isinstance(reply, Reply)
    assert reply.tool_calls == (ToolCall("f", json.loads(text) if is_parsed else text),)
    require_storable(reply)
