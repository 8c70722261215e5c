"""No key in the store, in a file beside it, or in what a command prints, whatever a server says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import endpoint
from tests.builders import tree
from tests.interfaces.cli.conftest import Evalstore

KEY = "sk-one-very-secret-key"
PLACES = ("refused", "broken", "text", "tool", "name", "model", "header", "refusal")


@pytest.fixture
def server() -> Iterator[endpoint.Endpoint]:
    """An endpoint that repeats the key it was asked with, wherever the question says."""
    with endpoint.running() as server:

        def reply(body: dict[str, Any]) -> endpoint.Answer:
            header = server.received[-1].headers["authorization"]
            key = header.removeprefix("Bearer ")
            if "verdict" in json.dumps(body):
                verdict = {"reasoning": header, "feedback": header, "pass": True}
                return endpoint.completion({"content": json.dumps(verdict)}, model=key)
            place = endpoint.echo(body)
            call = {"name": "look", "arguments": json.dumps({"at": [header], key: 1})}
            named = {"name": key, "arguments": header}
            answers = {
                "refused": endpoint.failure(401, f"wrong key {header}", key),
                "broken": endpoint.Answer(body=f"<html>{header}</html>".encode()),
                "text": endpoint.completion({"content": f"I was sent {header}"}),
                "tool": endpoint.completion(
                    {"tool_calls": [{"id": "1", "type": "function", "function": call}]}
                ),
                "name": endpoint.completion(
                    {"tool_calls": [{"id": "1", "type": "function", "function": named}]}
                ),
                "model": endpoint.completion({"content": "Hi"}, model=key, id=key),
                "refusal": endpoint.completion({"content": None, "refusal": f"no {header}"}),
            }
            if place == "header":
                return endpoint.Answer(200, endpoint.ANSWERED.body, {"x-request-id": key})
            return answers[place]

        server.reply = reply
        yield server


@pytest.mark.parametrize("kind", ["openai-compatible", "together_ai"])
@pytest.mark.parametrize("place", PLACES)
def test_a_key_that_a_server_repeats_is_nowhere(
    place: str,
    kind: str,
    server: endpoint.Endpoint,
    tmp_path: Path,
    evalstore: Evalstore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ECHO_CREDENTIAL", KEY)
    monkeypatch.setenv("EVALSTORE_ALLOW_ENV", "ECHO_CREDENTIAL=127.0.0.1")
    workspace = tree(
        tmp_path / "w",
        {
            "evalstore.yaml": "candidates: [echo]\nevaluators: [echo]\nretries: 0\n",
            "providers/echo.yaml": (
                f"code: echo\ntype: {kind}\nbaseURL: {server.url}\napiKeyEnvVar: ECHO_CREDENTIAL\n"
            ),
            "models/echo.yaml": "id: echo\nprovider: echo\n",
            "tests/one.md": f"# 👤\n\n{place}\n\n---\n\nSay a verdict.\n",
        },
    )
    monkeypatch.chdir(workspace)

    ran = [
        evalstore("run", "--verbose"),
        evalstore("run", "--json"),
        evalstore("log", "--json"),
        evalstore("show", "--json"),
        evalstore("--verbose", "show"),
        evalstore("--verbose", "log", "--failures"),
        evalstore("log", "--failures", "--json"),
    ]

    assert {request.headers["authorization"] for request in server.received} == {f"Bearer {KEY}"}
    assert [item for item in ran if KEY in item.stdout + item.stderr] == []
    files = [path for path in workspace.rglob("*") if path.is_file()]
    assert workspace / ".evalstore/store.db" in files
    assert [path.name for path in files if KEY.encode() in path.read_bytes()] == []
    if place in ("refused", "text", "tool", "name", "refusal"):
        stored = b"".join(path.read_bytes() for path in files if path.name.startswith("store.db"))
        assert b"***" in stored
