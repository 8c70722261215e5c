"""Drives the browser as a person does, and reads the screen."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterable
from itertools import zip_longest
from pathlib import Path
from typing import Any, cast
from unittest import mock
from weakref import WeakSet

from textual._compositor import Compositor
from textual._context import visible_screen_stack
from textual.app import App
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.notifications import Notification
from textual.pilot import Pilot
from textual.screen import Screen
from textual.strip import Strip
from textual.widgets import Input

from evalstore.interfaces.tui.app import Browser
from evalstore.interfaces.tui.data_source import WorkspaceSource
from evalstore.interfaces.tui.page_lines import Appearance
from evalstore.interfaces.tui.screens.base import Page
from evalstore.interfaces.tui.screens.cases import CasesPage
from evalstore.planning.options import Location

Scenario = Callable[[Pilot[None]], Awaitable[None]]
_SECONDS = 60
"""Until something that does not come is given up; a busy machine is slow."""
_MOMENT = 0.01
"""Seconds between two looks, and from the last letter of a filter to its search."""
_NEVER = 3600.0
"""Seconds until the browser looks for changes by itself; tests say when it does."""
_QUIET_ROUNDS = 4
"""In each round all waiting messages are handled; what these set off is handled in the next."""


_PARSED: dict[tuple[object, ...], list[RuleSet]] = {}
_parse_rules = Stylesheet._parse_rules
_render_update = Compositor.render_update
_UNPAINTED: WeakSet[Compositor] = WeakSet()


def _parse_once(sheet: Stylesheet, css: str, *place: Any, **more: Any) -> list[RuleSet]:
    """The rules of a style sheet, which every browser and every theme would parse again."""
    variables = frozenset(sheet._variables.items())
    key = css, variables, place, *sorted(more.items())
    if key not in _PARSED:
        _PARSED[key] = _parse_rules(sheet, css, *place, **more)
    return _PARSED[key]


def _leave_unpainted(compositor: Compositor, *, full: bool = False, **settings: Any) -> Any:
    """Paint no frame that nobody sees: what is there when a screen has settled, and pictures."""
    if full:
        return _render_update(compositor, full=full, **settings)
    compositor._dirty_regions.clear()
    _UNPAINTED.add(compositor)
    return None


def _paint_changes(app: App[Any]) -> bool:
    """Paint what is unpainted, and return whether anything was."""
    is_unpainted = app.screen._compositor in _UNPAINTED
    if is_unpainted:
        _UNPAINTED.discard(app.screen._compositor)
        painted_lines(app)
    return is_unpainted


def painted_lines(app: App[Any]) -> list[Strip]:
    """Return the lines of the screen, with those of the page below where that can be seen."""
    visible_screen_stack.set(app._background_screens)
    return app.screen._compositor.render_strips(app.size)


async def settled(pilot: Pilot[None], *, awaits_runs: bool = True, is_seen: bool = True) -> None:
    """Wait until no worker runs, no message waits and all is painted.

    Without `awaits_runs`, a run that the browser has started may go on. What is not seen is not
    painted. A browser that has ended paints no more.
    """
    end = time.monotonic() + _SECONDS
    quiet = 0
    while quiet < _QUIET_ROUNDS:
        assert time.monotonic() < end, f"it is never still:\n{screen(pilot)}"
        seen = _seen_screens(pilot.app)
        will_search = any(map(_will_search, seen))
        await pilot.pause(_MOMENT if will_search else 0)
        busy = [
            worker
            for worker in pilot.app.workers
            if not worker.is_finished and (awaits_runs or worker.group != "run")
        ]
        await asyncio.gather(*(worker.wait() for worker in busy), return_exceptions=True)
        is_painted = all(map(_is_painted, _seen_screens(pilot.app))) or not pilot.app.is_running
        is_pressing = pilot.app.is_running and bool(getattr(pilot.app, "_typed", None))
        is_still = is_painted and not (busy or will_search or is_pressing)
        quiet = quiet + 1 if is_still else 0
        if is_seen and quiet == _QUIET_ROUNDS and _paint_changes(pilot.app):
            quiet = 0


async def look(pilot: Pilot[None]) -> None:
    """Let the browser look for what others have written, and wait until it is shown."""
    cast("Browser", pilot.app).check_store()
    await settled(pilot)


async def show_changes(pilot: Pilot[None]) -> None:
    """Let the page be read again, when no reading that the browser began by itself is under way."""
    await settled(pilot)
    cast("Browser", pilot.app).show_changes()
    await settled(pilot)


def _seen_screens(app: App[Any]) -> list[Screen[Any]]:
    """The screen, and those below it that can be seen around a dialog."""
    below = app._background_screens if app.screen.styles.background.a < 1 else []
    return [*below, app.screen]


def _is_painted(shown: Screen[Any]) -> bool:
    """Whether nothing of a screen waits for its timer, which on a busy machine comes late."""
    waiting: list[object] = [shown._layout_required, shown._scroll_required]
    waiting += [shown._dirty_widgets, shown._callbacks]
    if shown.app.screen is shown:  # one below a dialog only passes on what is to be painted
        waiting.append(shown._repaint_required)
    return not any(waiting)


def _will_search(shown: Screen[Any]) -> bool:
    """Whether a search or a reading begins when nothing more is typed."""
    is_searching = isinstance(shown, CasesPage) and bool(shown.filter_progress)
    return is_searching or (isinstance(shown, Page) and bool(shown.pauses))


class _NoCache:
    """Forgets everything: a strip makes seven caches, and nearly all strips are drawn once."""

    def get(self, _key: object) -> None:
        return None

    def __setitem__(self, _key: object, _value: object) -> None:
        pass


_NO_CACHE = _NoCache()


def _make_no_cache(_size: int) -> _NoCache:
    return _NO_CACHE


async def _handle_all(pilot: Pilot[None], timeout: float = _SECONDS) -> bool:
    """Wait until the event loop has nothing to do, and return whether the browser is well.

    What waits for a thread, a timer or a connection is waited for by `settled` and `until`. Textual
    sends every widget a message and waits for all of them, which takes a fifth of a test's time.
    """
    loop = cast("Any", asyncio.get_running_loop())
    end = time.monotonic() + timeout
    quiet = 0
    while quiet < 2:
        await asyncio.sleep(0)
        quiet = 0 if loop._ready else quiet + 1
        assert time.monotonic() < end, "it never comes to rest"
    return not pilot.app._exception_event.is_set()


async def _soon(_least: float = 0, _most: float = 1) -> None:
    """Let others go on: what a key sets off is waited for by `settled`, once."""
    for _ in range(4):
        await asyncio.sleep(0)


async def until(pilot: Pilot[None], holds: Callable[[], bool]) -> None:
    """Wait for what comes when something else has ended, and fail when it does not."""
    end = time.monotonic() + _SECONDS
    while not holds():
        assert time.monotonic() < end, f"it never came:\n{screen(pilot)}"
        await pilot.pause(_MOMENT)


async def resized(pilot: Pilot[None], width: int, height: int, *, awaits_runs: bool = True) -> None:
    """Make the terminal another size, and wait until the screen has it."""
    await pilot.resize_terminal(width, height)
    while pilot.app.screen.size != (width, height):
        await pilot.pause()
    await settled(pilot, awaits_runs=awaits_runs)


async def press(pilot: Pilot[None], *keys: str, awaits_runs: bool = True) -> None:
    """Press keys, each when what the one before has set off is done; a text is typed in one go."""
    for key, after in zip_longest(keys, keys[1:], fillvalue=""):
        await pilot.press(key)
        is_typing = len(key) == len(after) == 1 and isinstance(pilot.app.focused, Input)
        if not is_typing:
            await settled(pilot, awaits_runs=awaits_runs, is_seen=not after)


def drive(
    scenario: Scenario,
    *,
    source: WorkspaceSource | None = None,
    revision: str | None = None,
    size: tuple[int, int] = (100, 30),
    appearance: Appearance | None = None,
    messages: bool = False,
) -> Any:
    """Open the browser on the workspace in the current folder and do what the scenario says.

    With `messages`, those that go away by themselves are on the screen, too. They stay, however
    long the machine takes to look at them.
    """

    async def run() -> None:
        app = Browser(source or WorkspaceSource(Location(Path.cwd())), revision, appearance)
        with (
            mock.patch("textual.app.wait_for_idle", _soon),
            mock.patch.object(Pilot, "_wait_for_screen", _handle_all),
            mock.patch.object(Stylesheet, "_parse_rules", _parse_once),
            mock.patch.object(Compositor, "render_update", _leave_unpainted),
            mock.patch("textual.strip.FIFOCache", _make_no_cache),
            mock.patch.object(Notification, "has_expired", False),
            mock.patch("evalstore.interfaces.tui.app._CHECK_SECONDS", _NEVER),
            mock.patch("evalstore.runs.watch._REST", 0),
            mock.patch("evalstore.interfaces.tui.screens.cases._SEARCH_SECONDS", _MOMENT),
            mock.patch("evalstore.interfaces.tui.screens.cases._LONG_SEARCH_SECONDS", _MOMENT),
            mock.patch("evalstore.interfaces.tui.screens.search._PAUSE_SECONDS", _MOMENT),
            mock.patch("evalstore.interfaces.tui.screens.runs._PAUSE_SECONDS", _MOMENT),
            mock.patch("evalstore.interfaces.tui.screens.runs._REST", 0),
            mock.patch("evalstore.interfaces.tui.screens.cases._HISTORY_SECONDS", _MOMENT),
            mock.patch("evalstore.interfaces.tui.screens.case_panels._READING_PAUSE", _MOMENT),
        ):
            await opened(app)

    async def opened(app: Browser) -> None:
        async with app.run_test(size=size, notifications=messages) as pilot:
            await settled(pilot, is_seen=False)
            await scenario(pilot)

    return asyncio.run(run())


def screen(pilot: Pilot[None]) -> str:
    """What can be seen, with ids and times as words of the same length."""
    return screen_text(painted_lines(pilot.app))


def screen_text(lines: Iterable[Strip]) -> str:
    """What can be seen in the lines of a screen, as `screen` returns it."""
    text = "\n".join(strip.text.rstrip() for strip in lines)
    text = re.sub(r"\b[0-9a-f]{8}\b", "########", text)
    return re.sub(r"just now     |\d+ seconds ago", "some time ago", text)
