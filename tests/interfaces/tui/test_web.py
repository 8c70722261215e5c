"""The browser in a web browser: who is let in, and whether it works there."""

from __future__ import annotations

import asyncio
import base64
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest

from evalstore.interfaces.cli.main import main
from tests.interfaces.tui import chromium

pytestmark = pytest.mark.extended

PROJECT = Path(__file__).parents[3]
SECONDS = 60


@contextmanager
def started(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A process that serves the workspace of the current folder."""
    pytest.importorskip("textual_serve")
    process = subprocess.Popen(
        [sys.executable, "-m", "evalstore", "view", "--web", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(PROJECT), *sys.path[1:]])},
    )
    try:
        yield process
    finally:
        process.kill()


@contextmanager
def served(*arguments: str) -> Iterator[str]:
    """The address at which a process serves the workspace of the current folder."""
    with started(*arguments) as process:
        try:
            assert process.stdout
            yield process.stdout.readline().strip()
        finally:
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, out) == (0, "")
    assert err == "Anybody with this address can do everything the browser can. Ctrl-C stops it.\n"


async def status(
    session: aiohttp.ClientSession, address: str, headers: dict[str, str] | None = None
) -> int:
    async with session.get(address, headers=headers, allow_redirects=False) as answer:
        return answer.status


def test_only_who_knows_the_token_is_let_in(workspace: Path) -> None:
    async def scenario(address: str) -> None:
        parts = urlsplit(address)
        base, token = f"{parts.scheme}://{parts.netloc}", parts.path.strip("/")
        assert parts.hostname == "127.0.0.1"
        assert len(token) == 32
        guess = token[:-1] + ("a" if token[-1] != "a" else "b")
        files = ("", "ws", "web.js", "static/js/textual.js", "static/css/xterm.css")
        async with aiohttp.ClientSession(trust_env=False) as session:
            for path in files:
                assert await status(session, f"{base}/{path}") == 404
                assert await status(session, f"{base}/{guess}/{path}") == 404
            origin = {"Origin": base}
            assert [await status(session, address + path) for path in files] == [
                200,
                403,
                200,
                200,
                200,
            ]
            assert await status(session, address, origin) == 200
            assert await status(session, f"{address}static/{'x' * 5000}") == 404
            assert await status(session, address.rstrip("/")) == 302
            for strange in ("evil.example", f"evil.example:{parts.port}", "127.0.0.1.evil.example"):
                assert await status(session, address, {"Host": strange}) == 403
            for page in ("http://evil.example", "null", "http://127.0.0.1:1"):
                assert await status(session, f"{address}ws", {"Origin": page}) == 403
            async with session.get(address) as answer:
                text = await answer.text()
                policy = answer.headers["Content-Security-Policy"]
        assert "https://" not in text
        assert policy.startswith("default-src 'none'; script-src 'self'; ")

    with served() as address:
        asyncio.run(scenario(address))


def test_a_socket_is_a_browser_of_its_own(workspace: Path) -> None:
    async def scenario(address: str) -> None:
        base = f"http://{urlsplit(address).netloc}"
        async with (
            aiohttp.ClientSession(trust_env=False) as session,
            session.ws_connect(
                f"{address}ws?width=100&height=30", headers={"Origin": base}
            ) as first,
        ):
            for odd in ("no JSON", "[" * 10_000, '{"a":' * 10_000, "[]", "7", "{}", '[["ping"]]'):
                await first.send_str(odd)
            await first.send_str('["stdin", ' + "[" * 10_000)
            await first.send_str('["ping", ' + "9" * 5_000 + "]")
            await first.send_str('["ping", ' + "[" * 980 + "]" * 981)
            await first.send_json(["resize", {"width": "wide"}])
            await first.send_str('["resize", {"width": 1e999, "height": -1e999}]')
            await first.send_json(["ping", 7])
            drawn, text = b"", ""
            while "workspace" not in drawn.decode("utf-8", "replace") or not text:
                message = await first.receive(timeout=SECONDS)
                if message.type is aiohttp.WSMsgType.BINARY:
                    drawn += message.data
                else:
                    assert message.type is aiohttp.WSMsgType.TEXT, drawn
                    text = message.data
            assert text == '["pong", 7]'
            await first.send_json(["stdin", "q"])
            while (await first.receive(timeout=SECONDS)).type is aiohttp.WSMsgType.BINARY:
                pass
            assert first.closed

    with served() as address:
        asyncio.run(scenario(address))


@pytest.mark.skipif(sys.platform != "linux", reason="the children of a process are in /proc")
def test_when_the_server_is_killed_its_browsers_end(workspace: Path) -> None:
    async def scenario(server: subprocess.Popen[str], address: str) -> None:
        base = f"http://{urlsplit(address).netloc}"
        async with (
            aiohttp.ClientSession(trust_env=False) as session,
            session.ws_connect(
                f"{address}ws?width=80&height=24", headers={"Origin": base}
            ) as first,
        ):
            while (await first.receive(timeout=SECONDS)).type is not aiohttp.WSMsgType.BINARY:
                pass
            own = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
            assert len(own) == 1
            browser = os.pidfd_open(int(own[0]))
            server.kill()
            ended, _, _ = select.select([browser], [], [], SECONDS)
            os.close(browser)
            assert ended

    with started() as server:
        assert server.stdout
        asyncio.run(scenario(server, server.stdout.readline().strip()))
        server.communicate(timeout=SECONDS)


async def _picture(tab: chromium.Tab) -> bytes:
    """What the page shows, as PNG."""
    screenshot = await tab.call("Page.captureScreenshot", format="png")
    return base64.b64decode(screenshot["data"])


@pytest.mark.skipif(not chromium.PROGRAM, reason="there is no chromium")
def test_a_real_page_shows_it_and_asks_nobody_else(workspace: Path, tmp_path: Path) -> None:
    async def scenario(address: str) -> None:
        async with chromium.opened(tmp_path / "profile") as tab:
            pictures = [await _picture(tab)]
            await tab.call("Page.navigate", url=address)

            async def drawn() -> bool:
                return bool(await tab.value("document.body.classList.contains('-first-byte')"))

            await chromium.until(drawn, "the first screen")

            async def shown() -> bool:
                """Whether there is something else than before, and all of it."""
                pictures.append(await _picture(tab))
                return pictures[-1] == pictures[-2] != pictures[0]

            await chromium.until(shown, "something to see", every=0.2)
            pictures = pictures[-1:]
            await tab.press("?")
            await chromium.until(shown, "the help", every=0.2)

            async def ended() -> bool:
                return bool(await tab.value("document.body.classList.contains('-closed')"))

            async def quit_again() -> bool:
                await tab.press("q")
                return await ended()

            await chromium.until(quit_again, "the end", every=0.5)
            own = (address, f"ws{address.removeprefix('http')}", "data:")
            assert [address for address in tab.requested if not address.startswith(own)] == []
            assert f"ws{address.removeprefix('http')}ws" in {
                address.partition("?")[0] for address in tab.requested
            }

    with served() as address:
        asyncio.run(scenario(address))


def test_without_the_extra_the_error_names_the_package(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "textual_serve", None)
    monkeypatch.setitem(sys.modules, "textual_serve.app_service", None)
    assert main(["view", "--web"]) == 2
    assert "hint: install the extra: pip install 'evalstore[web]'" in capsys.readouterr().err


def test_a_port_that_is_taken_is_reported(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert main(["view", "--web", "--port", port]) == 2
        assert f"error: port {port} cannot be used: " in capsys.readouterr().err


SLOW_TO_END = """
import threading
from evalstore.interfaces.web.local_server import serve_browser

browser = "echo __GANGLION__; exec >&- 2>&-; sleep 0.3"
serve_browser(["sh", "-c", browser], 0, lambda address: print(address, flush=True))
for thread in threading.enumerate():
    if thread is not threading.main_thread():
        thread.join()
"""
"""Serves a program whose output ends a moment before it does, and then waits for its end."""


def test_a_browser_that_ends_slowly_is_waited_for(workspace: Path) -> None:
    pytest.importorskip("textual_serve")
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_TO_END],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(PROJECT), *sys.path[1:]])},
    )
    assert process.stdout
    address = process.stdout.readline().strip()

    async def scenario() -> None:
        async with aiohttp.ClientSession(trust_env=False) as session:
            origin = address.rsplit("/", 2)[0]
            async with session.ws_connect(f"{address}ws", headers={"Origin": origin}) as socket:
                while not (await socket.receive(timeout=SECONDS)).type.name.startswith("CLOS"):
                    pass

    asyncio.run(scenario())
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=SECONDS)
    assert (process.returncode, errors) == (0, "")
