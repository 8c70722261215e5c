"""`python -m benches.endpoint [--latency MS]`: a model on loopback that needs very little CPU.

It implements as much of OpenAI's chat completions as a client under load needs: after the
latency, every request is answered with the same JSON object, which is also a valid verdict of a
judge. The first line that it prints is its address.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from benches.workspaces import FEEDBACK

ANSWER = json.dumps({"pass": True, "feedback": FEEDBACK})
"""The answer to every question."""
_BODY = json.dumps(
    {
        "id": "c-1",
        "object": "chat.completion",
        "created": 1,
        "model": "loopback-2026",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": ANSWER},
                "finish_reason": "stop",
            }
        ],
        "usage": {"prompt_tokens": 61, "completion_tokens": 57, "total_tokens": 118},
    }
).encode()
_REPLY = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
    b"content-length: %d\r\nx-request-id: req_1\r\n\r\n%b" % (len(_BODY), _BODY)
)


class Connection(asyncio.Protocol):
    """One connection, kept open; a client sends its next request after the answer."""

    def __init__(self, latency: float) -> None:
        self._latency = latency
        self._read = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport for the answers."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer when the request is complete."""
        self._read += data
        head, separator, body = self._read.partition(b"\r\n\r\n")
        if not separator:
            return
        length = head.lower().partition(b"\r\ncontent-length:")[2].partition(b"\r\n")[0]
        if len(body) < int(length):
            return
        self._read = b""
        if self._latency:
            asyncio.get_running_loop().call_later(self._latency, self._answer)
        else:
            self._answer()

    def _answer(self) -> None:
        if not self._transport.is_closing():
            self._transport.write(_REPLY)


async def serve(latency: float) -> None:
    """Serve on a free port until this process is ended; `latency` is in seconds."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(latency), "127.0.0.1", 0, backlog=4096)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await server.serve_forever()


@contextmanager
def running(latency: float) -> Iterator[str]:
    """The address of an endpoint in a process of its own; `latency` is in seconds."""
    command = [sys.executable, "-m", "benches.endpoint", "--latency", str(1000 * latency)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benches.endpoint", description="Answer.")
    parser.add_argument("--latency", type=float, default=0.0, help="milliseconds")
    asyncio.run(serve(parser.parse_args().latency / 1000))
