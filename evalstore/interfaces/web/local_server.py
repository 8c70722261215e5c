"""Serves pages, and the terminal's browser, to web browsers on this machine only, behind a token.

The token is the first part of every address. Requests that name another host, as after DNS
rebinding, and those of other pages are refused.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import secrets
import shlex
import signal
import socket
from asyncio.subprocess import Process
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from evalstore.core.errors import EvalstoreError

_LOCAL = re.compile(r"(?:127\.0\.0\.1|localhost)(?::\d{1,5})?")
_HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class LocalSite:
    """Pages of this machine, all below a random token."""

    policy = "default-src 'none'"
    """The Content-Security-Policy; `{socket}` stands for the address of WebSockets."""

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(24)

    @property
    def base(self) -> str:
        """Return the path of the first page, without a slash at its end."""
        return f"/{self.token}"

    def routes(self) -> Iterable[web.AbstractRouteDef]:
        """Return the routes, whose paths begin with the base."""
        raise NotImplementedError

    async def close(self, _application: web.Application) -> None:
        """End what is still open; the server is about to stop."""

    async def wait(self) -> None:
        """Wait for what ends after the server."""

    def application(self) -> web.Application:
        """Return the pages behind the checks of each request."""

        @web.middleware
        async def guard(request: web.Request, handler: Any) -> web.StreamResponse:
            self.check_request(request)
            try:
                return await handler(request)  # type: ignore[no-any-return]
            except OSError as problem:  # a name that no file can have
                raise web.HTTPNotFound from problem

        application = web.Application(middlewares=[guard])
        application.router.add_get(self.base, self.add_slash)
        application.router.add_routes(self.routes())
        application.on_response_prepare.append(self.add_headers)
        application.on_shutdown.append(self.close)
        return application

    def check_request(self, request: web.Request) -> None:
        """Refuse requests without the token, and those of other pages and machines.

        What changes something must say that it comes from a page of this server.
        """
        if not _LOCAL.fullmatch(request.host):
            raise web.HTTPForbidden(text="only 127.0.0.1 and localhost are served")
        is_reading = request.method in ("GET", "HEAD")
        own = f"http://{request.host}"
        if request.headers.get("Origin") not in ((None, own) if is_reading else (own,)):
            raise web.HTTPForbidden(text="not for other pages")
        token = request.path.removeprefix("/").partition("/")[0]
        if not secrets.compare_digest(token.encode(), self.token.encode()):
            raise web.HTTPNotFound

    async def add_headers(self, request: web.Request, response: web.StreamResponse) -> None:
        """Forbid to keep the page, to frame it, and to load anything from elsewhere."""
        known = _LOCAL.fullmatch(request.host)
        address = f"ws://{request.host}" if known else ""
        policy = self.policy.replace("{socket}", address)
        response.headers["Content-Security-Policy"] = policy
        response.headers.update(_HEADERS)

    async def add_slash(self, request: web.Request) -> web.Response:
        """Redirect to the address with a slash, as the files of the page are beside it."""
        raise web.HTTPFound(f"{request.path}/")


_LOGGER = logging.getLogger(__name__)
# A request that is not HTTP is answered with 400. That is not an error of this program.
_LOGGER.addFilter(
    lambda record: not (record.exc_info and isinstance(record.exc_info[1], HttpProcessingError))
)


def serve_site(site: LocalSite, port: int, say: Callable[[str], None]) -> None:
    """Serve a site until the program is interrupted; port 0 is any free one.

    Says the address once it can be opened. Raises `EvalstoreError` for a port in use.
    """
    listening = bind(port)

    async def serve() -> None:
        ended = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, ended.set)
        await serve_until(ended, site, listening, say)

    asyncio.run(serve())


def bind(port: int) -> socket.socket:
    """Return a socket of this machine; raises `EvalstoreError` for a port in use."""
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(("127.0.0.1", port))
    except OSError as error:
        listening.close()
        raise EvalstoreError(
            f"port {port} cannot be used: {error.strerror}", hint="without --port a free one is"
        ) from error
    return listening


async def serve_until(
    ended: asyncio.Event, site: LocalSite, listening: socket.socket, say: Callable[[str], None]
) -> None:
    """Serve a site until the event is set."""
    runner = web.AppRunner(site.application(), access_log=None, logger=_LOGGER, shutdown_timeout=2)
    await runner.setup()
    try:
        await web.SockSite(runner, listening).start()
        say(f"http://127.0.0.1:{listening.getsockname()[1]}{site.base}/")
        await ended.wait()
    finally:
        await runner.cleanup()
        await site.wait()


_LARGEST = 1 << 20
"""Bytes of one message."""
_WIDEST = 1000
"""Columns and lines."""
_SECONDS_TO_END = 5
"""For a browser that was told to quit; then it is killed."""


def serve_browser(command: Sequence[str], port: int, say: Callable[[str], None]) -> None:
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
    serve_site(BrowserSite(f"exec {shlex.join(command)}"), port, say)


class BrowserSite(LocalSite):
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
