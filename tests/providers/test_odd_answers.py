"""Answers that break HTTP, never end, lead elsewhere, or hold something else than text."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

import pytest

from evalstore.core.values import Reply, ToolCall
from evalstore.providers import errors
from tests import raw_http_server
from tests.providers.contract import (
    DOORS,
    KEY,
    OF_LITELLM,
    REPLY,
    Door,
    failure,
    litellm_anthropic,
    outcome,
    own_client,
    require_storable,
)
from tests.providers.contract import endpoint as endpoint
from tests.providers.contract import server as server

pytestmark = [pytest.mark.extended, *OF_LITELLM]

GOOD = json.dumps(REPLY).encode()
BAD_FRAMES = {
    "nothing": b"",
    "not HTTP": b"SSH-2.0-OpenSSH_9.6\r\n",
    "a header of 10 MB": raw_http_server.response(GOOD, headers={"x": b"x" * 10_000_000}),
    "many headers": raw_http_server.response(GOOD, headers={f"x-{n}": "x" for n in range(20_000)}),
    "garbage for chunks": raw_http_server.response(
        GOOD, headers={"content-length": b"9", "transfer-encoding": b"chunked"}
    ),
    "chunks that break off": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nff\r\n{",
    "two lengths": raw_http_server.response(GOOD, headers={"Content-Length": b"5"}),
    "gzip that is cut": raw_http_server.response(
        gzip.compress(GOOD)[:-30], headers={"content-encoding": "gzip"}
    ),
    "gzip that is not": raw_http_server.response(GOOD, headers={"content-encoding": "gzip"}),
    "204": raw_http_server.response(b"", status=204),
    "304": raw_http_server.response(b"", status=304),
    "only 100": b"HTTP/1.1 100 Continue\r\n\r\n",
}


@pytest.mark.parametrize("answer", BAD_FRAMES.values(), ids=BAD_FRAMES.keys())
def test_an_answer_that_breaks_http_is_a_failure(
    endpoint: Door, server: raw_http_server.RawServer, answer: bytes
) -> None:
    server.answer = answer
    problem = failure(endpoint(server.url))
    require_storable(problem)
    assert problem.kind in ("connection", "malformed", "status")


ENDLESS = {
    "early hints": (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
    "headers": (b"HTTP/1.1 200 OK\r\n", b"x: y\r\n"),
    "chunks": (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "body": (b"HTTP/1.1 200 OK\r\n\r\n", b" " * 65_536),
}


@pytest.mark.parametrize("any_door", DOORS, ids=lambda endpoint: endpoint.__name__)
@pytest.mark.parametrize(("start", "repeated"), ENDLESS.values(), ids=ENDLESS.keys())
def test_an_answer_without_end_is_left(
    server: raw_http_server.RawServer,
    monkeypatch: pytest.MonkeyPatch,
    any_door: Door,
    start: bytes,
    repeated: bytes,
) -> None:
    monkeypatch.setattr(errors, "MAX_ANSWER", 1_000_000)
    server.answer, server.repeated = start, repeated
    try:
        problem = failure(any_door(server.url), timeout=0.3)
    finally:
        server.repeated = b""
    assert problem.kind in ("timeout", "malformed", "connection")


@pytest.mark.parametrize("any_door", DOORS, ids=lambda endpoint: endpoint.__name__)
@pytest.mark.parametrize("status", [200, 429])
def test_a_compressed_answer_is_bounded_by_its_size_when_read(
    server: raw_http_server.RawServer, any_door: Door, status: int
) -> None:
    bomb = zlib.compressobj(wbits=31)
    squeezed = b"".join(bomb.compress(b" " * 2**20) for _ in range(64)) + bomb.flush()
    server.answer = raw_http_server.response(
        squeezed, status=status, headers={"content-encoding": "gzip"}
    )
    problem = failure(any_door(server.url))
    assert problem.message == f"the answer is larger than {errors.MAX_ANSWER} bytes"
    assert not problem.retry


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("any_door", DOORS, ids=lambda endpoint: endpoint.__name__)
def test_no_redirect_is_followed(
    any_door: Door, server: raw_http_server.RawServer, status: int
) -> None:
    with raw_http_server.running() as elsewhere:
        elsewhere.answer = raw_http_server.response(GOOD)
        server.answer = raw_http_server.response(
            b"", status=status, headers={"location": f"{elsewhere.url}/chat/completions"}
        )
        server.received.clear()
        problem = failure(any_door(server.url))
        assert KEY.encode() in server.received[0]
        assert elsewhere.received == []
    if any_door is not litellm_anthropic:  # there litellm says 500
        assert (problem.status, problem.retry) == (status, False)


def test_an_id_in_a_header_can_be_stored(server: raw_http_server.RawServer) -> None:
    server.answer = raw_http_server.response(GOOD, headers={"x-request-id": b"caf\xff"})
    reply = outcome(own_client(server.url))
    assert isinstance(reply, Reply)
    assert reply.request_id == "caf\ufffd"
    require_storable(reply)


def completion(message: dict[str, Any], **choice: Any) -> bytes:
    first = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    return raw_http_server.response(json.dumps(REPLY | {"choices": [first | choice]}).encode())


BROKEN_OFF = ["error", "ERROR", "abort", "insufficient_system_resource", "network_error"]


@pytest.mark.parametrize("reason", BROKEN_OFF)
def test_an_answer_that_the_provider_broke_off_is_a_failure(
    endpoint: Door, server: raw_http_server.RawServer, reason: str
) -> None:
    server.answer = completion({"content": "The capital of"}, finish_reason=reason)
    problem = failure(endpoint(server.url))
    assert (problem.kind, problem.retry) == ("malformed", True)
    assert f"finish reason '{reason}'" in problem.message


def test_the_word_of_the_provider_behind_a_router_counts(server: raw_http_server.RawServer) -> None:
    server.answer = completion({"content": "The capital of"}, native_finish_reason="error")
    assert failure(own_client(server.url)).kind == "malformed"
    server.answer = completion({"content": "Paris"}, native_finish_reason="end_turn")
    reply = outcome(own_client(server.url))
    assert isinstance(reply, Reply)
    assert (reply.text, reply.finish_reason) == ("Paris", "stop")


NOT_TEXT = [5, True, {"a": 1}, {"text": "Paris"}, [5], [{"type": "text", "text": 5}], [{}], [None]]


@pytest.mark.parametrize("content", NOT_TEXT, ids=str)
def test_content_that_is_not_text_is_a_failure(
    endpoint: Door, server: raw_http_server.RawServer, content: Any
) -> None:
    server.answer = completion({"content": content})
    problem = failure(endpoint(server.url))
    assert problem.kind in ("malformed", "connection")  # litellm calls it no answer
    assert problem.retry


@pytest.mark.parametrize("field", ["refusal", "finish_reason"])
def test_a_field_of_the_answer_that_is_not_text_is_a_failure(
    server: raw_http_server.RawServer, field: str
) -> None:
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
    server: raw_http_server.RawServer, kind: str, message: dict[str, Any]
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
    server: raw_http_server.RawServer, content: Any, text: str | None
) -> None:
    server.answer = completion({"content": content})
    reply = outcome(own_client(server.url))
    assert isinstance(reply, Reply)
    assert reply.text == text


@pytest.mark.parametrize(("levels", "is_parsed"), [(100, True), (101, False), (900, False)])
def test_deeply_nested_arguments_stay_text(
    server: raw_http_server.RawServer, levels: int, is_parsed: bool
) -> None:
    text = "[" * levels + "]" * levels
    call = {"id": "t", "type": "function", "function": {"name": "f", "arguments": text}}
    server.answer = completion({"content": None, "tool_calls": [call]})
    reply = outcome(own_client(server.url))
    assert isinstance(reply, Reply)
    assert reply.tool_calls == (ToolCall("f", json.loads(text) if is_parsed else text),)
    require_storable(reply)
