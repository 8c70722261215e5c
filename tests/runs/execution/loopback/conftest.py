"""A workspace whose models are behind a loopback server, run by the program's own command line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evalstore.exchange.sync.fsck import fsck
from evalstore.interfaces.cli.main import main
from evalstore.planning.options import Location
from evalstore.store import Store
from tests import endpoint
from tests.builders import tree
from tests.stored_rows import locate, read_contents


@dataclass(frozen=True)
class Ran:
    """What a run came to."""

    exit_code: int
    report: Any
    stderr: str

    @property
    def counts(self) -> tuple[int, int, int]:
        """How many were asked, judged, and failed."""
        return self.report["asked"], self.report["judged"], self.report["failed"]

    @property
    def verdicts(self) -> dict[str, int]:
        """Only those there are."""
        return {word: count for word, count in self.report["verdicts"].items() if count}


class Place:
    """The workspace, its server, and what is in its store."""

    def __init__(
        self,
        root: Path,
        server: endpoint.Endpoint,
        capsys: pytest.CaptureFixture[str],
        store_url: str | None,
    ) -> None:
        self.root = root
        self.store = locate(root, store_url)
        self.server = server
        self._capsys = capsys
        self.write(
            {
                "evalstore.yaml": "candidates: [one]\nevaluators: [judge]\n",
                "providers/loopback.yaml": "code: loopback\ntype: openai-compatible\n"
                f"baseURL: {server.url}\n",
                "models/one.yaml": "id: one\nprovider: loopback\n",
                "models/judge.yaml": "id: judge\nprovider: loopback\n",
            }
        )

    def write(self, files: Mapping[str, str]) -> None:
        """Write files of the workspace."""
        tree(self.root, files)

    def ask(self, *questions: str) -> None:
        """Have a test file with these questions; an answer passes when it is a JSON object."""
        rows = "".join(f"  - {{question: {json.dumps(question)}}}\n" for question in questions)
        head = f"---\ntags: [_json_mode]\nreplacements:\n{rows}---\n\n"
        self.write({"tests/questions.md": f"{head}# 👤\n\n{{{{question}}}}\n"})

    def run(self, *options: str) -> Ran:
        """Run as the program does, one call after the other unless the options say more."""
        exit_code = main(["-C", str(self.root), "run", "--json", "-j", "1", *options])
        printed = self._capsys.readouterr()
        return Ran(exit_code, json.loads(printed.out), printed.err)

    def stored(self, table: str) -> list[Any]:
        """The contents of a table, in the order they were stored."""
        with closing(Store.open(self.store)) as store:
            return read_contents(store, table)

    def answers(self) -> list[str]:
        """The texts of all stored sessions."""
        return [session["turns"][0]["text"] for session in self.stored("sessions")]


@pytest.fixture
def place(
    folder: Path, capsys: pytest.CaptureFixture[str], store_url: str | None
) -> Iterator[Place]:
    """A workspace with one candidate and one judge; what it leaves behind must be sound."""
    with endpoint.running() as server:
        server.reply = lambda request: json.dumps(
            {"pass": True, "feedback": endpoint.echo(request)}
        )
        yield Place(folder, server, capsys, store_url)
    assert fsck(Location(folder, store=store_url)).problems == []
