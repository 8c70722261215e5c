"""Serves pages to web browsers on this machine only, behind a random token.

The token is the first part of every address. Requests that name another host, as after DNS
rebinding, and those of other pages are refused.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import signal
import socket
from collections.abc import Callable, Iterable
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
