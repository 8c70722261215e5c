"""The page about coding agents has the tools of the server, and settings that start it."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from evalstore.interfaces.cli.main import commands, hoist
from evalstore.interfaces.mcp.read_tools import PAGE as PAGE_SIZE
from evalstore.interfaces.mcp.read_tools import REST
from tools.mcp_docs import PAGE, page

TEXT = PAGE.read_text(encoding="utf-8")


def test_the_tools_of_the_page_are_those_of_the_server() -> None:
    assert page(TEXT) == TEXT, "run 'make docs'"


def test_the_settings_start_a_command_that_exists() -> None:
    snippets = [json.loads(text) for text in re.findall("```json\n(.*?)```", TEXT, re.DOTALL)]
    snippets += [tomllib.loads(text) for text in re.findall("```toml\n(.*?)```", TEXT, re.DOTALL)]
    servers = [
        each for snippet in snippets for servers in snippet.values() for each in [*servers.values()]
    ]
    assert len(servers) == 4
    group: Any = commands()
    for server in servers:
        assert server["command"] == "evalstore"
        arguments = hoist(server["args"])
        options = arguments[arguments.index("serve") + 1 :]
        assert options[0] == "--mcp", server
        group.commands["serve"].make_context("serve", options)


def test_the_sizes_of_results_are_those_of_the_page() -> None:
    assert f"or before {PAGE_SIZE:,} characters" in TEXT
    assert f"A result has at most {PAGE_SIZE + REST:,} characters" in TEXT


def test_the_page_is_in_the_contents() -> None:
    index = (Path(PAGE.parent) / "README.md").read_text(encoding="utf-8")
    assert "(mcp.md)" in index
