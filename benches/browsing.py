"""`python -m benches.browsing ROOT STARTED`: the browser on a workspace, driven and measured.

It runs in a process of its own, so that the memory it needs is known, and prints one JSON
document. STARTED is what `time.perf_counter` said when the process was started. Without a ROOT
(`-`) it does the same to an application that shows two lines and counts keys: the floor.

The terminal is Textual's own for tests; a paint counts when the screen has been put together.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median, quantiles
from typing import Any

_SIZE = (120, 40)
_KEYS = 60
_SECONDS = 120.0
"""How long is waited for anything."""
_TYPED = "question number 77 verdict:pass file:cap"


class Painted:
    """Knows when the screen was painted."""

    def __init__(self, app: Any) -> None:
        self._app = app
        self._display = app._display
        self._event = asyncio.Event()
        self.at = 0.0
        self.first = 0.0

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Take note of every paint."""

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
    """The floor: what Textual takes to start, and from a key to a paint."""
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


async def browse(root: Path, started: float) -> dict[str, float]:
    """What the browser takes."""
    from textual.widgets import Input

    from evalstore.planning.options import Location
    from evalstore.tui.app import Browser
    from evalstore.tui.screens.cases import CasesPage
    from evalstore.tui.state.case_query import read_query
    from evalstore.tui.state.data_source import WorkspaceSource
    from evalstore.tui.widgets.grid import Grid

    read = {"runs": 0.0, "cases": 0.0}

    class Timed(WorkspaceSource):
        """Knows when it was done."""

        def runs(self) -> Any:
            try:
                return super().runs()
            finally:
                read["runs"] = time.perf_counter()

        def cases(self, revision: str | None) -> Any:
            try:
                return super().cases(revision)
            finally:
                read["cases"] = time.perf_counter()

    app = Browser(Timed(Location(root)))
    painted = Painted(app)
    figures: dict[str, float] = {}

    def grid() -> Grid:
        return app.screen.query(Grid).first()

    with painted.watching():
        async with app.run_test(size=_SIZE):
            at = await painted.until(lambda: bool(app.screen.query(Grid)) and grid().row_count > 1)
            figures["frame"] = 1000 * (painted.first - started)
            figures["history"] = 1000 * (at - started)
            figures["runs read"] = 1000 * (at - read["runs"])
            await painted.press("down", lambda: grid().cursor == 1)

            begun = time.perf_counter()
            await painted.press("enter", lambda: isinstance(app.screen, CasesPage))
            page = app.screen
            assert isinstance(page, CasesPage)
            typed = page.query_one(Input)
            while_reading = []
            if page.listing.cases is None:
                await painted.press("slash", lambda: typed.display)
            for text in "x" * _KEYS:
                if page.listing.cases is not None:
                    break
                whole = typed.value + text
                while_reading.append(await painted.press(text, partial(_is, typed, "value", whole)))
            if page.listing.cases is None:
                await painted.until(lambda: page.listing.cases is not None)
            figures["table"] = 1000 * (painted.at - begun)
            figures["cases read"] = 1000 * (painted.at - read["cases"])
            if len(while_reading) > 2:
                figures |= _percentiles("key while reading", while_reading)
            if typed.display:
                await painted.press("escape", lambda: not typed.value and not typed.display)
            await _idle(painted, page)
            figures["rows"] = grid().row_count

            for name, keys in (("move", ("down",)), ("page", ("pagedown", "pagedown", "pageup"))):
                times = []
                for number in range(_KEYS):
                    key = keys[number % len(keys)]
                    before = grid().cursor
                    times.append(
                        await painted.press(key, partial(_is_not, grid(), "cursor", before))
                    )
                figures |= _percentiles(name, times)
            times = []
            for _ in range(_KEYS // 2):
                last = grid().row_count - 1
                times.append(await painted.press("G", partial(_is, grid(), "cursor", last)))
                times.append(await painted.press("g", lambda: grid().cursor == 0))
            figures |= _percentiles("jump", times)

            sorted_by = []
            for order in ("verdict", "row", "file"):
                sorted_by.append(
                    await painted.press("s", partial(_is, page.listing, "order", order))
                )
            figures["sort"] = max(sorted_by)

            await painted.press("slash", lambda: typed.display)
            begun = time.perf_counter()
            # No name has it, so that texts are searched.
            await painted.press("§", lambda: page.filter.query.words == ("§",), "§")
            figures["index"] = 1000 * (await _idle(painted, page) - begun)
            await painted.press("backspace", lambda: not typed.value)
            times = []
            for text in _TYPED:
                key = {" ": "space", ":": "colon"}.get(text, text)
                whole = typed.value + text
                await asyncio.sleep(0.02)

                def holds(whole: str = whole) -> bool:
                    return typed.value == whole and page.filter.query == read_query(whole)

                times.append(await painted.press(key, holds, text))
            figures |= _percentiles("filter", times)
            begun = time.perf_counter()
            figures["search"] = 1000 * (await _idle(painted, page) - begun)
            figures["matches"] = grid().row_count
    return figures


async def _idle(painted: Painted, page: Any) -> float:
    """Wait until nothing is read or searched any more."""
    while any(worker.is_running for worker in page.app.workers) or page.filter.progress:
        await asyncio.sleep(0.005)
    await asyncio.sleep(0.05)
    return painted.at


def main(root: str, started: str) -> None:
    """Measure, and print what was found."""
    if root == "-":
        print(json.dumps(asyncio.run(empty(float(started)))))
        return
    from evalstore.cli.main import _GARBAGE

    gc.set_threshold(*_GARBAGE)
    print(json.dumps(asyncio.run(browse(Path(root), float(started)))))


if __name__ == "__main__":
    main(*sys.argv[1:])
