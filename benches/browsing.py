"""`python -m benches.browsing ROOT STARTED [STORE]`: drives the browser and measures it.

It runs in a process of its own, so that its memory can be measured, and prints one JSON
document. STARTED is the value of `time.perf_counter` when the process was started. With `-` as
ROOT it measures an application that shows two lines and counts keys: the floor.

The terminal is Textual's own for tests; a paint counts when the screen has been composed.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from evalstore.interfaces.tui.grid import Grid
    from evalstore.results.table.cases import CaseWindow

_SIZE = (120, 40)
_KEYS = 60
_SECONDS = 120.0
"""The timeout of every wait."""
_LOOK_SECONDS = 0.005
_COLLECTED_SECONDS = 1.5
"""After a large page was left, what is garbage has been collected."""
_TYPED = "question number 77 verdict:pass file:cap"


class Painted:
    """Records when the screen was painted."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._display = app._display
        self._event = asyncio.Event()
        self.at = 0.0
        self.first = 0.0

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Record every paint."""

        def display(screen: Any, renderable: Any) -> None:
            self._display(screen, renderable)
            self.at = time.perf_counter()
            self.first = self.first or self.at
            self._event.set()

        self._app._display = display
        yield

    async def until(self, holds: Callable[[], bool]) -> float:
        """Wait for the first paint after which this holds; returns when it was."""
        async with asyncio.timeout(_SECONDS):
            while True:
                await self._event.wait()
                self._event.clear()
                if holds():
                    return self.at

    async def press(self, key: str, holds: Callable[[], bool], text: str = "") -> float:
        """Milliseconds from a key to the paint after which this holds."""
        from textual import events

        self._event.clear()
        event = events.Key(key, text or (key if len(key) == 1 else None))
        event.set_sender(self._app)
        started = time.perf_counter()
        self._app._driver.send_message(event)
        return 1000 * (await self.until(holds) - started)


def _is(thing: object, name: str, value: object) -> bool:
    return bool(getattr(thing, name) == value)


def _is_not(thing: object, name: str, value: object) -> bool:
    return not _is(thing, name, value)


def _percentiles(name: str, milliseconds: list[float]) -> dict[str, float]:
    return {name: median(milliseconds), f"{name} 95": quantiles(milliseconds, n=20)[-1]}


async def empty(started: float) -> dict[str, float]:
    """The floor: how long Textual takes to start, and from a key to a paint."""
    from textual.app import App, ComposeResult
    from textual.binding import Binding
    from textual.widgets import Static

    class Empty(App[None]):
        """Two lines, one of which counts keys."""

        BINDINGS = [Binding("down", "count")]  # noqa: RUF012
        pressed = 0

        def compose(self) -> ComposeResult:
            yield Static("nothing")
            yield Static("", id="count")

        def action_count(self) -> None:
            self.pressed += 1
            self.query_one("#count", Static).update(str(self.pressed))

    app = Empty()
    painted = Painted(app)
    with painted.watching():
        async with app.run_test(size=_SIZE):
            await painted.until(lambda: True)
            times = []
            for number in range(1, _KEYS + 1):
                times.append(await painted.press("down", partial(_is, app, "pressed", number)))
    return {"frame": 1000 * (painted.first - started), **_percentiles("key", times)}


async def browse(root: Path, started: float, store: str | None = None) -> dict[str, float]:
    """What the browser takes, by the name of the figure."""
    from evalstore.interfaces.tui.app import Browser
    from evalstore.interfaces.tui.data_source import WorkspaceSource
    from evalstore.planning.options import Location

    read = {"runs": 0.0, "cases": 0.0}

    class Timed(WorkspaceSource):
        """Records when reading ended."""

        def runs(self) -> Any:
            try:
                return super().runs()
            finally:
                read["runs"] = time.perf_counter()

        def cases(self, revision: str | None, window: CaseWindow | None = None) -> Any:
            try:
                return super().cases(revision, window)
            finally:
                read["cases"] = time.perf_counter()

    app = Browser(Timed(Location(root, store=store)))
    painted = Painted(app)
    session = _Session(app, painted, read)
    with painted.watching(), _collections() as collections:
        async with app.run_test(size=_SIZE):
            await session.start(started)
            await session.open_cases()
            await session.press_keys()
            await session.sort()
            await session.search()
            await session.leave()
            await session.plan()
    return session.figures | {"collection": max(collections)}


class _Session:
    """A session in the browser, whose steps add their figures; they follow each other."""

    def __init__(self, app: Any, painted: Painted, read: dict[str, float]) -> None:
        """`read` has the times at which runs and cases were read."""
        self._app = app
        self._painted = painted
        self._read = read
        self.figures: dict[str, float] = {}

    def _grid(self) -> Grid:
        from evalstore.interfaces.tui.grid import Grid

        return cast("Grid", self._app.screen.query(Grid).first())

    def _has_rows(self) -> bool:
        from evalstore.interfaces.tui.grid import Grid

        return bool(self._app.screen.query(Grid)) and self._grid().row_count > 1

    async def start(self, started: float) -> None:
        """Wait for the runs."""
        at = await self._painted.until(self._has_rows)
        self.figures["frame"] = 1000 * (self._painted.first - started)
        self.figures["history"] = 1000 * (at - started)
        self.figures["runs read"] = 1000 * (at - self._read["runs"])
        await self._painted.press("down", lambda: self._grid().cursor == 1)

    async def open_cases(self) -> None:
        """Open a run, and type while its cases are read."""
        from textual.widgets import Input

        from evalstore.interfaces.tui.screens.cases import CasesPage

        painted = self._painted
        begun = time.perf_counter()
        await painted.press("enter", lambda: isinstance(self._app.screen, CasesPage))
        self._page = page = self._app.screen
        self._typed = typed = page.query_one(Input)
        times = []
        if page.listing.cases is None:
            await painted.press("slash", lambda: typed.display)
        for text in "x" * _KEYS:
            if page.listing.cases is not None:
                break
            whole = typed.value + text
            times.append(await painted.press(text, partial(_is, typed, "value", whole)))
        if page.listing.cases is None:
            await painted.until(lambda: page.listing.cases is not None)
        self.figures["table"] = 1000 * (painted.at - begun)
        self.figures["cases read"] = 1000 * (painted.at - self._read["cases"])
        if len(times) > 2:
            self.figures |= _percentiles("key while reading", times)
        if typed.display:
            await painted.press("escape", lambda: not typed.value and not typed.display)
        await _idle(painted, page)
        self.figures["rows"] = self._grid().row_count

    async def press_keys(self) -> None:
        """Move the cursor by rows, by pages, and to both ends."""
        for name, keys in (("move", ("down",)), ("page", ("pagedown", "pagedown", "pageup"))):
            times = []
            for number in range(_KEYS):
                key = keys[number % len(keys)]
                moved = partial(_is_not, self._grid(), "cursor", self._grid().cursor)
                times.append(await self._painted.press(key, moved))
            self.figures |= _percentiles(name, times)
        times = []
        for _ in range(_KEYS // 2):
            at_end = partial(_is, self._grid(), "cursor", self._grid().row_count - 1)
            times.append(await self._painted.press("G", at_end))
            times.append(await self._painted.press("g", lambda: self._grid().cursor == 0))
        self.figures |= _percentiles("jump", times)

    async def sort(self) -> None:
        """Change the order of the cases."""
        times = [
            await self._painted.press("s", partial(_is, self._page.listing, "order", order))
            for order in ("verdict", "row", "file")
        ]
        self.figures["sort"] = max(times)

    async def search(self) -> None:
        """Filter the cases by what is typed, and search their texts."""
        from evalstore.interfaces.tui.case_filter import read_query

        painted, page, typed = self._painted, self._page, self._typed
        await painted.press("slash", lambda: typed.display)
        begun = time.perf_counter()
        async with _pauses() as index_pauses:
            # No name contains it, so texts are searched.
            await painted.press("§", lambda: page.filter_query.words == ("§",), "§")
            self.figures["index"] = 1000 * (await _idle(painted, page) - begun)
        self.figures["index pause"] = max(index_pauses)
        await painted.press("backspace", lambda: not typed.value)
        times = []
        for text in _TYPED:
            key = {" ": "space", ":": "colon"}.get(text, text)
            whole = typed.value + text
            await asyncio.sleep(0.02)

            def holds(whole: str = whole) -> bool:
                return bool(typed.value == whole and page.filter_query == read_query(whole))

            times.append(await painted.press(key, holds, text))
        self.figures |= _percentiles("filter", times)
        begun = time.perf_counter()
        async with _pauses() as search_pauses:
            self.figures["search"] = 1000 * (await _idle(painted, page) - begun)
        self.figures["search pause"] = max(search_pauses)
        self.figures["matches"] = self._grid().row_count

    async def leave(self) -> None:
        """Leave the cases, which are freed."""
        painted = self._painted
        await painted.press("escape", lambda: not self._typed.value)
        await painted.press("escape", lambda: self._app.screen is not self._page)
        del self._page
        await asyncio.sleep(_COLLECTED_SECONDS)

    async def plan(self) -> None:
        """Plan all pending work, and leave the plan, which is freed."""
        from evalstore.interfaces.tui.screens.run import PlanPage

        painted = self._painted
        await painted.press("R", lambda: isinstance(self._app.screen, PlanPage))
        plan = self._app.screen
        async with _pauses() as pauses:
            while plan.is_planning:
                await asyncio.sleep(_LOOK_SECONDS)
            await asyncio.sleep(_COLLECTED_SECONDS)
        self.figures["plan pause"] = max(pauses)
        await painted.press("escape", lambda: self._app.screen is not plan)


@contextmanager
def _collections() -> Iterator[list[float]]:
    """Collect the milliseconds of processor time of collections of garbage: nothing else runs."""
    taken, begun = [0.0], 0.0

    def look(phase: str, _info: object) -> None:
        nonlocal begun
        if phase == "start":
            begun = time.thread_time()
        else:
            taken.append(1000 * (time.thread_time() - begun))

    gc.callbacks.append(look)
    yield taken
    gc.callbacks.remove(look)


@asynccontextmanager
async def _pauses() -> AsyncIterator[list[float]]:
    """Collect the milliseconds for which a key would have had to wait."""
    pauses = [0.0]

    async def look() -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(_LOOK_SECONDS)
            pauses.append(1000 * (time.perf_counter() - before - _LOOK_SECONDS))

    task = asyncio.create_task(look())
    yield pauses
    task.cancel()


async def _idle(painted: Painted, page: Any) -> float:
    """Wait until all reading and searching has ended."""
    while any(worker.is_running for worker in page.app.workers) or page.filter_progress:
        await asyncio.sleep(0.005)
    await asyncio.sleep(0.05)
    return painted.at


def main(root: str, started: str, store: str = "") -> None:
    """Measure, and print the figures."""
    if root == "-":
        print(json.dumps(asyncio.run(empty(float(started)))))
        return
    from evalstore.__main__ import _GARBAGE

    gc.set_threshold(*_GARBAGE)
    print(json.dumps(asyncio.run(browse(Path(root), float(started), store or None))))


if __name__ == "__main__":
    main(*sys.argv[1:])
