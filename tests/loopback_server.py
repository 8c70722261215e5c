"""What the servers of tests share: one on loopback, in a thread of this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from socketserver import BaseRequestHandler, ThreadingTCPServer


class LoopbackServer(ThreadingTCPServer):
    """A server on a free port, with the address of its API."""

    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 512

    def __init__(self, handler: type[BaseRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"


@contextmanager
def serving(server: LoopbackServer, release: Callable[[], None]) -> Iterator[None]:
    """Serve until the block ends; then `release` ends the answers that are still being sent."""
    with server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            release()
            server.shutdown()
            thread.join()
