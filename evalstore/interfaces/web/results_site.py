"""The pages of results: of runs, of the workspace as it is now, and of cases."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from aiohttp import web

from evalstore.core.display import safe
from evalstore.core.errors import EvalstoreError, RevisionError
from evalstore.core.side_names import WORKSPACE
from evalstore.interfaces.html.embedding import content_policy
from evalstore.interfaces.html.templates import read_asset
from evalstore.interfaces.html.waiting import RELOAD
from evalstore.interfaces.web.built_pages import BuiltPage, BuiltPages
from evalstore.interfaces.web.local_server import LocalSite, serve_site
from evalstore.store.revisions import WORK

if TYPE_CHECKING:
    from evalstore.planning.options import Location

P = ParamSpec("P")
T = TypeVar("T")
Say = Callable[[str], None]
_SECONDS = 1.0
"""Between two looks at the store."""
_PATIENCE = 2.0
"""After so many seconds a web browser is shown how far a page has come that is made for it.

It asks again after one second, when the page of the workspace is still new.
"""
_SHARE = 3
"""How many times longer than making a page takes pass at least before it is made again."""


def serve(location: Location, port: int, say: Say) -> None:
    """Serve the results of a workspace until the program is interrupted; port 0 is any free one.

    Says the address once it can be opened. Raises `EvalstoreError`.
    """
    site = ResultsSite(location)
    try:
        site.pages.read_state()  # a store that cannot be read is told before an address
        serve_site(site, port, say)
    finally:
        site.pages.close()


class ResultsSite(LocalSite):
    """The pages of a workspace's results."""

    def __init__(self, location: Location) -> None:
        super().__init__()
        script, style = read_asset("report.js"), read_asset("report.css")
        policy = content_policy(script, style, RELOAD, is_served=True)
        self.policy = f"{policy}; frame-ancestors 'none'"
        self.pages = BuiltPages(location, self.base)
        self._closing = asyncio.Event()
        self._making: dict[str, asyncio.Task[BuiltPage]] = {}
        """The pages that are being made, by run."""
        self._told: set[asyncio.Task[BuiltPage]] = set()
        """Those of which a browser was shown how far they have come."""

    def routes(self) -> list[web.AbstractRouteDef]:
        """Return the pages and the stream of changes."""
        return [
            web.get(f"{self.base}/", self.show_first),
            web.get(f"{self.base}/work", self.show_workspace),
            web.get(f"{self.base}/run/{{revision}}", self.show_run),
            web.get(rf"{self.base}/case/{{case:[\s\S]+}}", self.show_case),
            web.get(f"{self.base}/changes", self.stream_changes),
        ]

    async def close(self, _application: web.Application) -> None:
        """End the streams of changes."""
        self._closing.set()

    async def show_first(self, _request: web.Request) -> web.StreamResponse:
        """Redirect to the workspace: the newest run may be one of a few cases."""
        raise web.HTTPFound(f"{self.base}/work")

    async def show_workspace(self, request: web.Request) -> web.StreamResponse:
        """Return the page of the workspace as it is now; it follows a run in progress."""
        return await self._show(request, WORKSPACE)

    async def show_run(self, request: web.Request) -> web.StreamResponse:
        """Return the page of a run; other names of it than its id are redirected."""
        revision = request.match_info["revision"]
        if revision == WORK:
            raise web.HTTPFound(f"{self.base}/work")
        run = await _call(self.pages.find_run, revision)
        if run != revision:
            raise web.HTTPFound(f"{self.base}/run/{run}")
        return await self._show(request, run)

    async def _show(self, request: web.Request, run: str) -> web.StreamResponse:
        """Return the page of a run, or what is known of it at once to a browser that has none."""
        making = self._making.get(run)
        if making is None:
            making = asyncio.create_task(_call(self.pages.build, run))
            self._making[run] = making
            making.add_done_callback(lambda task: self._forget(run, task))
        is_read_by_person = "text/html" in request.headers.get("Accept", "")
        may_wait = is_read_by_person and self.pages.last(run) is None
        await asyncio.wait({making}, timeout=_PATIENCE if may_wait else None)
        if not making.done():
            self._told.add(making)
            text = await _call(self.pages.waiting, run)
            return web.Response(body=text, content_type="text/html", charset="utf-8")
        self._told.discard(making)
        self._forget(run, making)
        return web.FileResponse(making.result().path)

    def _forget(self, run: str, making: asyncio.Task[BuiltPage]) -> None:
        """Forget what was made, but keep the error for the browser that will ask again."""
        is_made = making.cancelled() or making.exception() is None
        if is_made:
            self._told.discard(making)
        if self._making.get(run) is making and (is_made or making not in self._told):
            del self._making[run]

    async def show_case(self, request: web.Request) -> web.StreamResponse:
        """Redirect to a case in the newest run that has it, or in the run of the query `run`."""
        revision = request.query.get("run")
        run, number = await _call(self.pages.find_case, request.match_info["case"], revision)
        raise web.HTTPFound(f"{self.base}/run/{run}#case-{number + 1}")

    async def stream_changes(self, request: web.Request) -> web.StreamResponse:
        """Send the newest run and the state of the store now, and whenever they change."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        sent = None
        while not self._closing.is_set():
            state = await _call(self.pages.read_state)
            if state != sent:
                sent = state
                data = json.dumps(state._asdict())
                await response.write(f"data: {data}\n\n".encode())
            await self._pause()
        return response

    async def _pause(self) -> None:
        """Wait before the next look; longer where a page takes long to make."""
        page = self.pages.last(WORKSPACE)
        seconds = max(_SECONDS, _SHARE * page.seconds) if page else _SECONDS
        try:
            await asyncio.wait_for(self._closing.wait(), seconds)
        except TimeoutError:
            return


async def _call(function: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
    """Call a function in a thread; its errors are answers."""
    try:
        return await asyncio.to_thread(function, *arguments, **options)
    except EvalstoreError as error:
        hint = f"\nhint: {error.hint}" if error.hint else ""
        text = safe(f"error: {error}{hint}\n", lines=True)
        if isinstance(error, RevisionError):
            raise web.HTTPNotFound(text=text) from error
        raise web.HTTPConflict(text=text) from error
