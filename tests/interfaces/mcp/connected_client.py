"""The SDK's own client, called without `await`; the SDK is loaded when it is used."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyio.from_thread import BlockingPortal, start_blocking_portal

if TYPE_CHECKING:
    from mcp import Client
    from mcp_types import Tool

_RESULT = re.compile(r"(?P<notice>.*)\n<data-(?P<code>\w+)>\n(?P<json>.*)\n</data-(?P=code)>")


@dataclass(frozen=True)
class Called:
    """The result of a tool."""

    is_error: bool
    text: str

    @property
    def data(self) -> Any:
        """The JSON between the marks, which is all but the notice before it."""
        result = _RESULT.fullmatch(self.text)
        assert result, self.text
        return json.loads(result["json"])


class ConnectedClient:
    """A client that is connected to a server."""

    def __init__(self, client: Client, portal: BlockingPortal) -> None:
        self._client = client
        self._portal = portal

    @property
    def instructions(self) -> str:
        """What the server says about itself."""
        return self._client.instructions or ""

    def tools(self) -> dict[str, Tool]:
        """The tools that the server offers, by name."""
        return {tool.name: tool for tool in self._portal.call(self._client.list_tools).tools}

    def call(self, name: str, /, **arguments: Any) -> Called:
        """Call a tool, and wait for its result."""
        return self.watch(name, lambda _done, _total: None, **arguments)

    def watch(
        self, name: str, report: Callable[[float, float | None], object], /, **arguments: Any
    ) -> Called:
        """Call a tool, and report its progress."""

        async def receive(progress: float, total: float | None, message: str | None) -> None:
            report(progress, total)

        async def call() -> Any:
            return await self._client.call_tool(name, arguments, progress_callback=receive)

        result = self._portal.call(call)
        (content,) = result.content
        assert content.type == "text"
        assert result.structured_content is None
        return Called(bool(result.is_error), content.text)


@contextmanager
def connected(target: Any) -> Iterator[ConnectedClient]:
    """Connect to a server in this process, or through a transport."""
    from mcp import Client

    with start_blocking_portal() as portal:
        connection = portal.wrap_async_context_manager(Client(target))
        client = connection.__enter__()
        try:
            yield ConnectedClient(client, portal)
        finally:  # a group of tasks would wrap the error of a test
            connection.__exit__(None, None, None)


@contextmanager
def connected_process(
    arguments: list[str], folder: Path, environment: dict[str, str]
) -> Iterator[ConnectedClient]:
    """Connect to a server that Python starts in a folder with these arguments."""
    from mcp.client.stdio import StdioServerParameters, stdio_client

    server = StdioServerParameters(
        command=sys.executable, args=arguments, env=environment, cwd=folder
    )
    with connected(stdio_client(server)) as client:
        yield client
