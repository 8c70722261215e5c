"""What `show` lists of a run and of the workspace, in JSON and on a terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalstore.core.errors import OK
from evalstore.core.values import URGENCY
from evalstore.interfaces.cli import output
from evalstore.interfaces.cli.main import main
from evalstore.planning.open_project import open_store
from evalstore.planning.options import Location
from evalstore.results.show.show import ShownItem, ShownResults, result_to_json
from evalstore.store.results import read_results
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
def test_json_has_the_results_in_their_order(
    place: Path, capsys: pytest.CaptureFixture[str], revision: str
) -> None:
    capsys.readouterr()
    assert main(["show", revision, "--json"]) == OK
    listed = json.loads(capsys.readouterr().out)["related"]["results"]
    with open_store(Location(place)) as store:
        stored = read_results(store, store.find_runs()[0])
    assert listed == [result_to_json(result) for result in stored]
    assert len(listed) == 2 * (30 + 2)


def test_a_run_without_results_has_an_empty_list(
    place: Path, evalstore: Evalstore, capsys: pytest.CaptureFixture[str]
) -> None:
    results = ShownResults(iter(()))
    output.document(ShownItem("run", "1", {}, {"results": results, "more": [1]}))
    assert '"related": {"results": [], "more": [1]}' in capsys.readouterr().out
    assert (len(results), list(results), list(results.by_urgency())) == (0, [], [])


@pytest.mark.parametrize("revision", ["@", "@work"])
@pytest.mark.parametrize("options", [(), ("-v",)])
def test_the_most_urgent_results_are_printed_first(
    place: Path, evalstore: Evalstore, revision: str, options: tuple[str, ...]
) -> None:
    streamed = evalstore("show", revision, *options)
    words = [line.split()[0] for line in streamed.stdout.splitlines() if "tests/" in line]
    assert len(words) == (64 if options else 40)
    assert words == sorted(words, key=URGENCY.index)
    assert not options or len({*words}) > 1


def test_many_cases_of_a_file_are_a_line_each_unless_verbose(
    place: Path, evalstore: Evalstore
) -> None:
    short, whole = (evalstore("show", "tests/rows.md", *more).stdout for more in ((), ("-v",)))
    assert len([line for line in short.splitlines() if "tests/rows.md [" in line]) == 40
    assert "user: " not in short
    assert "-v shows the messages" in evalstore("show", "tests/rows.md").stderr
    assert whole.count("    user: ") == 30
    assert whole.count(", judging version ") == 30
    few = "---\nreplacements: {name: [Ann, Bo]}\n---\n# User\n\nHi {{name}}\n\n---\n\nA greeting.\n"
    tree(place, {"tests/few.md": few})
    assert "    user: Hi Bo\n" in evalstore("show", "@work:tests/few.md").stdout
