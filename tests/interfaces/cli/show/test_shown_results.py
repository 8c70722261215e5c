"""What `show` lists of a run and of the workspace is the same from a file as from memory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalstore.core.errors import OK
from evalstore.core.values import URGENCY
from evalstore.interfaces.cli import output
from evalstore.interfaces.cli.main import main
from evalstore.planning.options import Location
from evalstore.results.show import shown_item
from evalstore.results.show.show import ShownItem
from evalstore.results.show.shown_results import ShownResults
from tests.builders import tree
from tests.interfaces.cli.conftest import Evalstore
from tests.interfaces.cli.long_files import CHECK, CHECKED, JUDGE, ONE, ROWS, TWO

FILES = {
    "evalstore.yaml": "candidates: [one, two]\nevaluators: [judge]\n",
    "models/one.yaml": ONE,
    "models/two.yaml": TWO,
    "models/judge.yaml": JUDGE,
    "prompts/short.md": "# ⚙️\n\nBe short.\n",
    "prompts/long.md": "# ⚙️\n\nBe long.\n",
    "tests/data.jsonl": "".join(ROWS.splitlines(keepends=True)[:30]),
    "tests/rows.md": CHECKED + "Is it a city?\n\n" + CHECK,
    "tests/some.md": "---\nsystemPrompts: [short, long]\n---\n\n# 👤\n\nHi\n\n---\n\nA greeting.\n",
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evalstore: Evalstore) -> Path:
    root = tree(tmp_path / "ws", FILES)
    monkeypatch.chdir(root)
    evalstore("run", "--yes", "--fail-on", "none")
    return root


@pytest.mark.parametrize("revision", ["@", "@work"])
def test_json_is_that_of_the_document_in_memory(
    place: Path, capsys: pytest.CaptureFixture[str], revision: str
) -> None:
    capsys.readouterr()
    assert main(["show", revision, "--json"]) == OK
    streamed = capsys.readouterr().out
    output.document(shown_item.describe_shown(Location(place), revision))
    assert streamed == capsys.readouterr().out
    assert len(json.loads(streamed)["related"]["results"]) == 2 * (30 + 2)


def test_a_run_without_results_has_an_empty_list(
    place: Path, evalstore: Evalstore, capsys: pytest.CaptureFixture[str]
) -> None:
    results = ShownResults(iter(()))
    output.document(ShownItem("run", "1", {}, {"results": results, "more": [1]}))
    assert '"related": {"results": [], "more": [1]}' in capsys.readouterr().out
    assert (len(results), list(results), list(results.by_urgency())) == (0, [], [])


@pytest.mark.parametrize("revision", ["@", "@work"])
@pytest.mark.parametrize("options", [(), ("-v",)])
def test_what_is_printed_is_that_of_the_list_in_memory(
    place: Path,
    evalstore: Evalstore,
    monkeypatch: pytest.MonkeyPatch,
    revision: str,
    options: tuple[str, ...],
) -> None:
    streamed = evalstore("show", revision, *options)
    document = shown_item.describe_shown(Location(place), revision)
    monkeypatch.setattr(shown_item, "show_to_people", lambda *_args, **_options: document)
    assert evalstore("show", revision, *options) == streamed
    words = [line.split()[0] for line in streamed.stdout.splitlines() if "tests/" in line]
    assert len(words) == (64 if options else 40)
    assert words == sorted(words, key=URGENCY.index)
    assert not options or len({*words}) > 1
