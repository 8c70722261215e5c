"""A model endpoint for tests: OpenAI's chat completions on loopback, with faults to order.

    with endpoint.running() as server:
        server.reply = lambda request: "Paris"
        ...
        assert server.received[0].body["model"] == "dummy"

It echoes the last message until `reply` is set. A text in a message orders what happens
to that request: `[[fail=429]]` (any name in `FAULTS`), `[[times=2]]` (fail only the first
two attempts of this very body), `[[latency=0.05]]` (seconds before the answer).
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import responses
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.loopback_server import LoopbackServer, serving

DIRECTIVE = re.compile(rb"\[\[(latency|fail|times)=([^\]]{1,31})\]\]")


@dataclass(frozen=True)
class Answer:
    """What goes over the wire: bytes as they are, anything else as JSON."""

    status: int = 200
    body: Any = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: int = 0
    """Close the connection this many bytes before the end."""
    hang: bool = False
    """Never answer."""


@dataclass(frozen=True)
class Received:
    """One request as it came in."""

    path: str
    headers: Mapping[str, str]
    """With names in lower case."""
    body: dict[str, Any]
    at: float = field(default_factory=time.monotonic)
    """Seconds of a clock that only goes forward."""


Reply = Callable[[dict[str, Any]], str | dict[str, Any] | Answer]
"""From the body of a request to a text, a message, or the whole answer."""


def failure(status: int, message: str, code: str, **headers: str) -> Answer:
    """An error in OpenAI's shape; `retry_after="1"` becomes the header `retry-after`."""
    return Answer(
        status,
        {"error": {"message": message, "type": "dummy_error", "param": None, "code": code}},
        {name.replace("_", "-"): value for name, value in headers.items()},
    )


def completion(message: dict[str, Any], *, finish: str = "stop", **fields: Any) -> Answer:
    """A successful answer with this message; `fields` are added to it or replace some."""
    message = {"role": "assistant", **message}
    return Answer(
        body={
            "id": "c-1",
            "object": "chat.completion",
            "created": 1,
            "model": "dummy-2026",
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
        }
        | fields
    )


ANSWERED = completion({"content": "answered"})

FAULTS: dict[str, Answer] = {
    "400": failure(400, "Invalid value", "invalid_value"),
    "401": failure(401, "Incorrect API key provided", "invalid_api_key"),
    "402": failure(402, "Insufficient credits", "payment_required"),
    "403": failure(403, "Country not supported", "forbidden"),
    "404": failure(404, "The model does not exist", "model_not_found"),
    "context": failure(
        400, "This model's maximum context length is 4096 tokens", "context_length_exceeded"
    ),
    "filter": failure(400, "The prompt was filtered", "content_filter"),
    "filtered": completion({"content": None}, finish="content_filter"),
    "408": failure(408, "Request timeout", "timeout"),
    "409": failure(409, "Conflict", "conflict"),
    "425": failure(425, "Too early", "too_early"),
    "429": failure(429, "Rate limit reached", "rate_limit_exceeded", retry_after="1"),
    "429 soon": failure(429, "Rate limit reached", "rate_limit_exceeded", retry_after_ms="200"),
    "429 absurd": failure(
        429,
        "Rate limit reached",
        "rate_limit_exceeded",
        retry_after="Wed, 21 Oct 99999999999999999999 07:28:00 GMT",
    ),
    "429 bare": failure(429, "Rate limit reached", "rate_limit_exceeded"),
    "quota": failure(429, "You exceeded your current quota", "insufficient_quota"),
    "500": failure(500, "The server had an error", "internal"),
    "501": failure(501, "Not implemented", "not_implemented"),
    "502": failure(502, "Bad gateway", "bad_gateway"),
    "503": failure(503, "Overloaded", "overloaded"),
    "504": failure(504, "Gateway timeout", "gateway_timeout"),
    "error in 200": Answer(body=failure(200, "Out of memory", "oom").body),
    "half": Answer(body=b'{"id":"c-1","choices":[{"index":0,"mess'),
    "empty object": Answer(body={}),
    "empty list": Answer(body=[]),
    "broken off": completion({"content": '{"half": '}, finish="error"),
    "not text": completion({"content": 5}),
    "no choices": completion({}, choices=[]),
    "html": Answer(
        body=b"<html><body>Welcome</body></html>", headers={"content-type": "text/html"}
    ),
    "huge": completion({"content": "x" * 2_000_000}),
    "cut": Answer(body=ANSWERED.body, cut=40),
    "silent": Answer(cut=1 << 20),
    "hang": Answer(hang=True),
}
"""What can go wrong, by name. `silent` closes the connection without a byte, `huge` is 2 MB."""


class Endpoint(LoopbackServer):
    """The server and what it has seen."""

    def __init__(self) -> None:
        super().__init__(Handler)
        self.reply: Reply = echo
        self.ends: tuple[str, ...] = ("/chat/completions",)
        """How the paths of its API end, without a query."""
        self.received: list[Received] = []
        self.most_at_once = 0
        """The highest number of requests that were waiting for an answer together."""
        self.hanging = 0
        """How many requests got no answer."""
        self.closing = threading.Event()
        self._lock = threading.Lock()
        self._at_once = 0
        self._attempts: Counter[bytes] = Counter()

    def answer(self, received: Received, raw: bytes) -> Answer:
        """Record a request, do what its directives say, and find its answer."""
        with self._lock:
            self.received.append(received)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            self._attempts[raw] += 1
            attempt = self._attempts[raw]
        order = {name.decode(): value.decode() for name, value in DIRECTIVE.findall(raw)}
        self.closing.wait(float(order.get("latency", 0)))
        if "fail" in order and attempt <= float(order.get("times", "inf")):
            answer = FAULTS[order["fail"]]
        elif not received.path.partition("?")[0].endswith(self.ends):
            answer = failure(404, "no such path", "not_found")
        else:
            answer = as_answer(self.reply(received.body))
        if answer.hang:
            with self._lock:
                self.hanging += 1
            self.closing.wait()
        with self._lock:
            self._at_once -= 1
        return answer


class Handler(BaseHTTPRequestHandler):
    """One connection, kept open between requests."""

    server: Endpoint
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        """Answer one request in a single write, because headers alone would wait for an ACK."""
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self.server.answer(Received(self.path, headers, json.loads(raw)), raw)
        body = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        lines = {
            "content-type": "application/json",
            "content-length": str(len(body)),
            "x-request-id": f"req_{len(self.server.received)}",
            **answer.headers,
        }
        head = f"HTTP/1.1 {answer.status} {responses.get(answer.status, '')}\r\n" + "".join(
            f"{name}: {value}\r\n" for name, value in lines.items()
        )
        message = head.encode() + b"\r\n" + body
        self.wfile.write(message[: max(0, len(message) - answer.cut)])
        self.close_connection = bool(answer.cut)

    def handle(self) -> None:
        """Serve until the client goes, which is not worth a word."""
        try:
            super().handle()
        except ConnectionError:
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Keep stderr for the tests."""


def echo(request: dict[str, Any]) -> str:
    """The text of the last message."""
    content = request["messages"][-1]["content"]
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)


def as_answer(reply: str | dict[str, Any] | Answer) -> Answer:
    """The whole answer for what a test's `reply` returned."""
    if isinstance(reply, Answer):
        return reply
    message = {"content": reply} if isinstance(reply, str) else reply
    finish = "tool_calls" if message.get("tool_calls") else "stop"
    return completion(message, finish=finish)


@contextmanager
def running() -> Iterator[Endpoint]:
    """Serve in a thread of this process until the block ends."""
    server = Endpoint()
    with serving(server, server.closing.set):
        yield server
