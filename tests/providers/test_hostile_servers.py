"""Whatever a server sends, a provider returns a reply that can be stored, or a `ProviderError`."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests import raw_http_server
from tests.providers.contract import KEY, OF_LITELLM, REPLY, Door, outcome, require_storable
from tests.providers.contract import endpoint as endpoint
from tests.providers.contract import server as server

pytestmark = [pytest.mark.extended, *OF_LITELLM]

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
    header = st.sampled_from(HEADERS), st.sampled_from(HEADER_VALUES)
    headers: dict[str, str | bytes] = dict(draw(st.lists(st.tuples(*header), max_size=3)))
    status = draw(st.sampled_from([200, 200, 429, *STATUSES]))
    encoding = draw(st.sampled_from(["", "", "", "gzip", "deflate"]))
    if encoding:
        body = gzip.compress(body) if encoding == "gzip" else zlib.compress(body)
        headers.setdefault("content-encoding", encoding)
    answer = raw_http_server.response(body, status=status, headers=headers)
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 3]))):
        start = draw(st.integers(0, min(len(answer), 400)))
        end = start + draw(st.sampled_from([0, 1, 2, 50, 10**9]))
        answer = answer[:start] + draw(st.binary(max_size=3)) + answer[end:]
    return answer


# --- the property


@settings(
    max_examples=max(50, settings().max_examples),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@example(raw_http_server.response(b"{}", status=429, headers={"retry-after": HEADER_VALUES[8]}))
@example(raw_http_server.response(json.dumps(REPLY).encode(), headers={"x-request-id": b"\xff"}))
@given(answers())
def test_any_answer_is_a_reply_or_a_failure(
    endpoint: Door, server: raw_http_server.RawServer, answer: bytes
) -> None:
    server.answer = answer
    require_storable(outcome(endpoint(server.url)))
