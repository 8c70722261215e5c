"""A real web browser without a window, driven over its debugging protocol."""

from __future__ import annotations

import asyncio
import itertools
import json
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser")
_SECONDS = 60


async def until(
    look: Callable[[], Awaitable[Any]],
    description: str,
    every: float = 0.05,
    seconds: float = _SECONDS,
) -> Any:
    """What is looked for, once it is there."""
    for _ in range(int(seconds / every)):
        if result := await look():
            return result
        await asyncio.sleep(every)
    raise AssertionError(f"{description} did not come")


class Tab:
    """An open page."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self.requested: list[str] = []
        """The address of everything that the page has asked for."""

    async def call(self, method: str, **parameters: Any) -> Any:
        """The result of a command."""
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        while True:
            message = json.loads((await self._socket.receive(timeout=_SECONDS)).data)
            if message.get("method") == "Network.requestWillBeSent":
                self.requested.append(message["params"]["request"]["url"])
            if message.get("method") == "Network.webSocketCreated":
                self.requested.append(message["params"]["url"])
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]

    async def value(self, expression: str) -> Any:
        """What a line of JavaScript gives."""
        reply = await self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return reply["result"].get("value")

    async def press(self, key: str) -> None:
        """Type a character."""
        await self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=key)
        await self.call("Input.dispatchKeyEvent", type="keyUp", key=key)


@asynccontextmanager
async def opened(profile: Path) -> AsyncIterator[Tab]:
    """A tab of a browser that ends with it."""
    assert PROGRAM
    process = await asyncio.create_subprocess_exec(
        PROGRAM,
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-extensions",
        # One process draws all pages: to start another for each takes as long as the page.
        "--disable-site-isolation-trials",
        "--disable-features=SpareRendererForSitePerProcess",
        "--renderer-process-limit=1",
        "--remote-debugging-port=0",
        f"--user-data-dir={profile}",
        "about:blank",
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        file = profile / "DevToolsActivePort"

        async def port() -> str | None:
            text = file.read_text() if file.exists() else ""
            return text.split("\n")[0] if "\n" in text else None

        base = f"http://127.0.0.1:{await until(port, 'the debugging port')}"
        async with aiohttp.ClientSession(trust_env=False) as session:
            async with session.get(f"{base}/json/list") as answer:
                pages = [page for page in await answer.json() if page["type"] == "page"]
            async with session.ws_connect(pages[0]["webSocketDebuggerUrl"]) as socket:
                tab = Tab(socket)
                for domain in ("Page", "Runtime", "Network"):
                    await tab.call(f"{domain}.enable")
                yield tab
    finally:
        process.terminate()
        await process.wait()
