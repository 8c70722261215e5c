"""The browser in a web browser, on this machine only and behind a random token.

The page, its files and its socket are behind the checks of `LocalSite`.
"""

from __future__ import annotations

import asyncio
import json
import shlex
from asyncio.subprocess import Process
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from aiohttp import web

from evalstore.core.errors import EvalstoreError
from evalstore.interfaces.web.local_server import LocalSite, serve_site

_LARGEST = 1 << 20
"""Bytes of one message."""
_WIDEST = 1000
"""Columns and lines."""
_SECONDS_TO_END = 5
"""For a browser that was told to quit; then it is killed."""


def serve(command: Sequence[str], port: int, say: Callable[[str], None]) -> None:
    """Serve the program that `command` starts until it is interrupted; port 0 is any free one.

    Says the address once it can be opened.
    """
    try:
        import textual_serve.app_service  # noqa: F401
    except ImportError as error:
        raise EvalstoreError(
            "'view --web' needs textual-serve, which is not installed",
            hint="install the extra: pip install 'evalstore[web]'",
        ) from error
    # `exec`: the browser is this process's own child, and knows when it has gone.
    serve_site(Site(f"exec {shlex.join(command)}"), port, say)


class Site(LocalSite):
    """The page, its files and its socket."""

    policy = (
        "default-src 'none'; script-src 'self'; font-src 'self'; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data:; connect-src 'self' {socket}; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )

    def __init__(self, command: str) -> None:
        super().__init__()
        self.command = command
        self._sockets: set[web.WebSocketResponse] = set()
        self._processes: set[Process] = set()

    def routes(self) -> list[web.AbstractRouteDef]:
        """Return the page, its files and its socket."""
        import textual_serve

        return [
            web.get(f"{self.base}/", self.page),
            web.get(f"{self.base}/web.js", self.script),
            web.get(f"{self.base}/ws", self.websocket),
            web.static(f"{self.base}/static", Path(str(textual_serve.__file__)).parent / "static"),
        ]

    async def page(self, request: web.Request) -> web.Response:
        """Return the page with the terminal in it."""
        text = Path(__file__).with_name("web.html").read_text(encoding="utf-8")
        address = f"ws://{request.host}{self.base}/ws"
        return web.Response(text=text.replace("{socket}", address), content_type="text/html")

    async def script(self, _request: web.Request) -> web.FileResponse:
        """Return the page's own script."""
        return web.FileResponse(Path(__file__).with_name("web.js"))

    async def websocket(self, request: web.Request) -> web.WebSocketResponse:
        """Connect one browser to a process of its own, as long as the socket is open."""
        from textual_serve.app_service import AppService
        from textual_serve.download_manager import DownloadManager

        if "Origin" not in request.headers:
            raise web.HTTPForbidden(text="only for the page")
        websocket = web.WebSocketResponse(heartbeat=15, max_msg_size=_LARGEST)
        await websocket.prepare(request)
        self._sockets.add(websocket)

        async def close() -> None:
            await websocket.close()

        service = AppService(
            self.command,
            write_bytes=websocket.send_bytes,
            write_str=websocket.send_str,
            close=close,
            download_manager=DownloadManager(),
        )
        try:
            width, height = (_size(request.query.get(name)) for name in ("width", "height"))
            await service.start(width, height)
            if service._process:
                self._processes.add(service._process)
            if service._task:  # a program that cannot start does not close it
                service._task.add_done_callback(lambda _: asyncio.ensure_future(websocket.close()))
            async for message in websocket:
                if message.type is web.WSMsgType.TEXT:
                    await _pass_on(message.data, service, websocket)
        finally:
            self._sockets.discard(websocket)
            await service.stop()
            self._processes = {process for process in self._processes if process.returncode is None}
        return websocket

    async def close(self, _application: web.Application) -> None:
        """End all browsers."""
        for websocket in list(self._sockets):
            await websocket.close()

    async def wait(self) -> None:
        """Wait until all processes have ended: they may take a moment after their last output."""
        for process in self._processes:
            try:
                await asyncio.wait_for(process.wait(), _SECONDS_TO_END)
            except TimeoutError:
                process.kill()
                await process.wait()


async def _pass_on(text: str, service: Any, websocket: web.WebSocketResponse) -> None:
    """Handle a message of the page; ignore anything else."""
    try:
        kind, *rest = json.loads(text)
        if kind == "stdin" and isinstance(rest[0], str):
            await service.send_bytes(rest[0].encode("utf-8", "replace"))
        elif kind == "resize":
            await service.set_terminal_size(_size(rest[0]["width"]), _size(rest[0]["height"]))
        elif kind == "ping" and isinstance(rest[0], str | int | float):
            await websocket.send_json(["pong", rest[0]])
        elif kind == "blur":
            await service.blur()
        elif kind == "focus":
            await service.focus()
    except (ValueError, TypeError, LookupError, RecursionError):
        return


def _size(value: Any) -> int:
    """Convert a number of columns or lines that the page sends."""
    try:
        return max(1, min(int(value), _WIDEST))
    except (TypeError, ValueError, OverflowError):
        return 24
