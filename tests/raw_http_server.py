r"""A server that answers with any bytes, HTTP or not.

with raw_http_server.running() as server:
    server.answer = b"HTTP/1.1 200 OK\r\n\r\n..."
    ...
    assert b"authorization" in server.received[0].lower()
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from socketserver import StreamRequestHandler

from tests.loopback_server import LoopbackServer, serving

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


class RawServer(LoopbackServer):
    """A server with its answer, and the heads of the requests that it has received."""

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.answer = b""
        self.repeated = b""
        """Bytes that are sent after the answer until the client disconnects."""
        self.received: list[bytes] = []

    def release(self) -> None:
        """End an answer that repeats itself."""
        self.repeated = b""


class _Handler(StreamRequestHandler):
    server: RawServer

    def handle(self) -> None:
        """Read one request, answer it, and close the connection."""
        with suppress(OSError):
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                line = self.rfile.readline()
                if not line:
                    return
                head += line
            if actual := _LENGTH.search(head):
                self.rfile.read(int(actual[1]))
            self.server.received.append(head)
            self.wfile.write(self.server.answer)
            while self.server.repeated:
                self.wfile.write(self.server.repeated)


def response(
    body: bytes, *, status: int = 200, headers: Mapping[str, str | bytes] | None = None
) -> bytes:
    """Return a whole response; a header `content-length` replaces the correct one."""
    fields: dict[str, str | bytes] = {
        "content-type": "application/json",
        "content-length": str(len(body)),
        **(headers or {}),
    }
    lines = [
        name.encode() + b": " + (value if isinstance(value, bytes) else value.encode())
        for name, value in fields.items()
    ]
    return b"\r\n".join([b"HTTP/1.1 %d X" % status, *lines, b"", body])


@contextmanager
def running() -> Iterator[RawServer]:
    """Serve in a thread of this process until the block ends."""
    server = RawServer()
    with serving(server, server.release):
        yield server
