"""Reports of small workspaces, and a browser without a window to open them in."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from evalstore.interfaces.cli.main import main
from tests.builders import Files, tree
from tests.interfaces.tui.chromium import PROGRAM, opened, until

T = TypeVar("T")
SETTINGS = "candidates: [first, second]\nevaluators: [judge]\n"
TEST = "---\ntags: [greeting]\n---\n\n# 👤\n\nHello\n\n---\n\nThe answer must be kind.\n"


def scripted(name: str, *responses: Mapping[str, object]) -> str:
    """The file of a scripted model; JSON is YAML, so any text can be an answer."""
    return f"id: {name}\nprovider: scripted\nresponses: {json.dumps(responses)}\n"


def judge(*failing: str) -> str:
    """A judge that fails answers with one of these texts."""
    return scripted(
        "judge",
        *(
            {"when": re.escape(text), "answer": {"pass": False, "feedback": f"It says {text}."}}
            for text in failing
        ),
        {"answer": {"pass": True, "feedback": "Kind."}},
    )


def make_workspace(root: Path, files: Files) -> Path:
    """A workspace with two candidates; `files` replace its own."""
    return tree(
        root,
        {
            "evalstore.yaml": SETTINGS,
            "models/first.yaml": scripted("first", {"answer": "Good morning!"}),
            "models/second.yaml": scripted("second", {"answer": "Go away."}),
            "models/judge.yaml": judge("Go away"),
            "tests/hello.md": TEST,
            **files,
        },
    )


def call(root: Path, *arguments: str) -> int:
    """The exit code of a command in a workspace."""
    return main(["-q", "-C", str(root), *arguments])


def report(root: Path, *arguments: str, name: str = "report.html") -> Path:
    """The report of the newest run of a workspace, or of a revision."""
    is_named = arguments[:1] and not arguments[0].startswith("-")
    assert call(root, "report", *([] if is_named else ["@"]), *arguments, "-o", name) == 0
    return root / name


def data_of(page: str, name: str) -> Any:
    """The JSON of an element of a page."""
    match = re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', page, re.S)
    assert match, name
    return json.loads(match[1])


class Page:
    """A tab of a browser, used without `await`."""

    def __init__(self, loop: asyncio.AbstractEventLoop, tab: Any) -> None:
        self._loop, self._tab = loop, tab

    def call(self, method: str, **parameters: Any) -> Any:
        """The result of a command of the browser."""
        return self._loop.run_until_complete(self._tab.call(method, **parameters))

    def value(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        return self._loop.run_until_complete(self._tab.value(expression))

    def wait(self, expression: str) -> Any:
        """The value of an expression once it is true."""

        async def look() -> Any:
            return await self._tab.value(expression)

        return self._loop.run_until_complete(until(look, expression))

    def open(self, path: Path, anchor: str = "") -> None:
        """Open a report and wait until it can be used."""
        self.go(path.as_uri() + (f"#{anchor}" if anchor else ""))

    def go(self, address: str) -> None:
        """Open an address and wait until the page can be used."""
        self.call("Page.navigate", url="about:blank")
        self._tab.requested.clear()
        self.call("Page.navigate", url=address)
        self.wait("document.documentElement.dataset.ready === 'yes'")

    def press(self, key: str, code: int = 0) -> None:
        """Press a key that has no text."""
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code)

    @property
    def requested(self) -> list[str]:
        """The addresses of everything that the page has asked for."""
        return [address for address in self._tab.requested if not address.startswith("data:")]


@contextmanager
def browsing(profile: Path) -> Iterator[Page]:
    """A browser that ends with the block."""
    if PROGRAM is None:
        pytest.skip("there is no chromium")
    loop = asyncio.new_event_loop()

    def run(step: Coroutine[Any, Any, T]) -> T:
        return loop.run_until_complete(step)

    stack = AsyncExitStack()
    try:
        yield Page(loop, run(stack.enter_async_context(opened(profile))))
    finally:
        run(stack.aclose())
        loop.close()
