"""Drives the browser as a person does, and reads the screen."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from evalstore.operations.orders import Where
from evalstore.tui.app import Browser
from evalstore.tui.keymap import Look
from evalstore.tui.source import Source, Workspace

Scenario = Callable[[Pilot[None]], Awaitable[None]]


async def settled(pilot: Pilot[None]) -> None:
    """Wait until no worker runs and no message waits."""
    while True:
        await pilot.pause()
        if not any(worker.is_running for worker in pilot.app.workers):
            await pilot.pause()
            return


async def press(pilot: Pilot[None], *keys: str) -> None:
    """Press keys, each when what the one before has set off is done."""
    for key in keys:
        await pilot.press(key)
        await settled(pilot)


def drive(
    scenario: Scenario,
    *,
    source: Source | None = None,
    revision: str | None = None,
    size: tuple[int, int] = (100, 30),
    look: Look | None = None,
) -> Any:
    """Open the browser on the workspace in the current folder and do what the scenario says."""

    async def run() -> None:
        app = Browser(source or Workspace(Where(Path.cwd())), revision, look)
        async with app.run_test(size=size) as pilot:
            await settled(pilot)
            await scenario(pilot)

    return asyncio.run(run())


def screen(pilot: Pilot[None]) -> str:
    """What can be seen, with ids and times as words of the same length."""
    app = pilot.app
    strips = app.screen._compositor.render_strips(app.size)
    text = "\n".join(strip.text.rstrip() for strip in strips)
    text = re.sub(r"\b(?=[0-9a-f]*[0-9])[0-9a-f]{8}\b", "########", text)
    return re.sub(r"just now     |\d+ seconds ago", "some time ago", text)
