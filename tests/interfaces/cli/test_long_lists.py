"""`ls cases` and `show REV:FILE` of long files: from temporary files they are as from memory."""

from __future__ import annotations

import gc
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from evalstore.core import batches
from evalstore.core.errors import OK
from evalstore.files import temporary_list
from evalstore.interfaces.cli import output
from evalstore.interfaces.cli.main import main
from evalstore.planning.open_project import open_project
from evalstore.planning.options import Location, SelectionOptions
from evalstore.planning.project import VersionReader
from evalstore.results.compare.diff_sides import workspace_side
from evalstore.results.show import shown_item
from evalstore.results.show.show import ShownCases, ShownItem, ShownResults
from evalstore.results.table.list import list_things
from tests.builders import tree
from tests.interfaces.cli.conftest import Evalstore
from tests.interfaces.cli.long_files import CHECK, CHECKED, JUDGE, ONE, ROWS, TWO, treat_as_long

pytestmark = pytest.mark.extended

LANDS = "tests/lands.md"
FILES = {
    "evalstore.yaml": "candidates: [one, two]\nevaluators: [judge]\n",
    "models/one.yaml": ONE,
    "models/two.yaml": TWO.replace("error: 500", "answer: Rome"),  # calls again take long
    "models/judge.yaml": JUDGE,
    "prompts/short.md": "# ⚙️\n\nBe short.\n",
    "prompts/long.md": "# ⚙️\n\nBe long.\n",
    "prompts/strict.md": "---\ntags: [_evaluator]\n---\n\nBe strict. {{_evaluationInstructions}}\n"
    "\n# 👤\n\n{{_actualResponse}}\n",
    "tests/data.jsonl": ROWS.replace("land 6", "land 1"),  # several rows ask the same
    LANDS: CHECKED.replace("tags:", "systemPrompts: [short, long]\ntags:")
    + "~~~checks\n- contains: '{{capital}}'\n- {judge: Is it the capital?, prompt: strict}\n~~~\n",
    "tests/hi.md": "# 👤\n\nHi\n\n---\n\nA greeting.\n",
}
_BATCH = 7


def use_small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read cases in small batches, and write all of them to files."""
    treat_as_long(monkeypatch)
    monkeypatch.setattr(batches, "SIZE", _BATCH)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evalstore: Evalstore) -> Path:
    """A workspace with a long file after a run of all and one of some."""
    use_small_batches(monkeypatch)
    root = tree(tmp_path / "ws", FILES)
    monkeypatch.chdir(root)
    for options in ([], ["--refresh", "-k", "7"]):
        ran = evalstore("run", "--yes", "--fail-on", "none", *options)
        assert "complete" in ran.stdout, ran.stderr
    return root


@pytest.mark.parametrize(
    ("words", "model"),
    [
        ([f"@:{LANDS}"], ()),
        ([f"@work:{LANDS}"], ("-m", "two")),
        ([LANDS], ("-m", "two")),
        (["node"], ()),
    ],
)
def test_a_shown_file_is_the_same_in_one_batch_and_in_several(
    place: Path,
    evalstore: Evalstore,
    monkeypatch: pytest.MonkeyPatch,
    words: list[str],
    model: tuple[str, ...],
) -> None:
    if words == ["node"]:
        whole = shown_item.describe_shown(Location(place), f"@:{LANDS}")
        assert isinstance(whole, ShownItem)
        words, model = [whole.id], ()

    def print_all() -> list[str]:
        shown = ("show", *words, *model)
        return [evalstore(*shown, *options).stdout for options in ((), ("-v",), ("--json",))]

    printed = print_all()
    monkeypatch.setattr(batches, "SIZE", 10_000)
    assert print_all() == printed
    assert printed[1].count("\nrow country=land ") == 75
    assert len(json.loads(printed[2])["cases"]) == 75


def test_ls_lists_cases_alike_in_all_formats(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    formats = ("table", "json", "jsonl", "csv", "md")
    commands = [["ls", "cases", "-o", each] for each in formats]
    commands += [["ls", "cases", "--full", "-o", each] for each in formats]

    def print_all() -> list[str]:
        printed = []
        for command in commands:
            capsys.readouterr()
            assert main(command) == OK
            printed.append(capsys.readouterr().out)
        return printed

    in_files = print_all()
    monkeypatch.setattr(batches, "SIZE", 10_000)
    assert print_all() == in_files
    rows = json.loads(in_files[1])["cases"]
    assert [json.loads(line) for line in in_files[2].splitlines()] == rows
    assert [row["file"] for row in rows] == ["tests/hi.md"] + [LANDS] * 75
    assert len(in_files[0].splitlines()) == len(in_files[3].splitlines()) == 1 + 76
    full = json.loads(in_files[6])["cases"]
    texts = [case["messages"][0][0]["content"] for case in full]
    assert texts[:2] == ["Hi", "Where is land 0?"]
    assert [case["checks"][0]["expected"] for case in full[1:]] == [["Oslo"]] * 75


def test_a_file_without_cases_has_none(capsys: pytest.CaptureFixture[str]) -> None:
    cases = ShownCases((), lambda _kind, _ids: {})
    related = {"tests": {}, "evaluations": {}, "results": ShownResults(())}
    output.document(ShownItem("cases", "1", {"cases": ()}, related, cases=cases))
    assert '"related": {"tests": {}, "evaluations": {}, "results": []}' in (
        printed := capsys.readouterr().out
    )
    assert json.loads(printed)["cases"] == []


@pytest.mark.usefixtures("place")
def test_cells_that_are_cut_for_a_terminal_stay_distinct(
    evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    table = evalstore("ls", "cases", LANDS)
    lines = table.stdout.splitlines()[1:]
    assert max(map(len, lines)) <= 40
    assert len({line.rstrip() for line in lines}) == 75
    assert "long cells are cut" in table.stderr or "left out" in table.stderr


@pytest.mark.usefixtures("place")
def test_few_versions_are_read_at_once(
    evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    load = VersionReader.load

    def count(reader: VersionReader, kind: str, ids: list[str]) -> dict[str, object]:
        contents = load(reader, kind, ids)
        read.append(len(contents))
        return contents

    monkeypatch.setattr(VersionReader, "load", count)
    for command in (["ls", "cases", "--full"], ["show", f"@work:{LANDS}", "--json"]):
        read.clear()
        assert evalstore(*command).exit_code == OK
        assert sum(read) > 75
        assert max(read) <= _BATCH


_Use = Callable[[Path], object]


def _list(place: Path) -> None:
    for row in list_things(Location(place), "cases", SelectionOptions(), full=True).rows:
        assert row["messages"]


def _show(place: Path) -> None:
    item = shown_item.describe_shown(Location(place), f"@work:{LANDS}")
    assert isinstance(item, ShownItem)
    assert item.cases
    assert all(batch.tests for batch in item.cases)


@pytest.mark.parametrize("use", [_list, _show])
def test_memory_does_not_grow_with_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, use: _Use
) -> None:
    use_small_batches(monkeypatch)
    text = "x" * 2_000
    root = tree(tmp_path, {**FILES, LANDS: CHECKED.replace("Where", f"{text} Where") + CHECK})
    peaks = []
    for count in (100, 100, 600):
        rows = (json.dumps({"country": f"a{number}", "capital": "b"}) for number in range(count))
        (root / "tests/data.jsonl").write_text("".join(f"{row}\n" for row in rows))
        list_things(Location(root), "tests", SelectionOptions())  # the files are read
        gc.collect()
        tracemalloc.start()
        use(root)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] - peaks[1] < 500 * len(text) / 2


def test_show_file_needs_little_memory_for_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_small_batches(monkeypatch)
    peaks: list[int] = []
    for number, count in enumerate((100, 100, 500)):
        root = tree(tmp_path / str(number), {**FILES, "evalstore.yaml": "candidates: [one, two]\n"})
        (root / LANDS).write_text(CHECKED + CHECK)
        (root / "tests/hi.md").unlink()
        rows = (json.dumps({"country": f"a{row}", "capital": "Oslo"}) for row in range(count))
        (root / "tests/data.jsonl").write_text("".join(f"{row}\n" for row in rows))
        monkeypatch.chdir(root)
        for options in ([], ["-k", "a1 or a2", "--refresh"]):
            assert main(["run", "--yes", "--quiet", "--fail-on", "none", *options]) == OK
        gc.collect()
        tracemalloc.start()
        item = shown_item.describe_shown(Location(root), LANDS)
        assert isinstance(item, ShownItem)
        results = item.related["results"]
        assert len(results) == 2 * count
        assert {"run" in result for result in results} == {True, False}
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[2] - peaks[1] < 1_600 * 400


@pytest.mark.parametrize("use", ["show", "diff"])
def test_results_of_the_workspace_need_little_memory_for_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, use: str
) -> None:
    use_small_batches(monkeypatch)
    monkeypatch.setattr(temporary_list, "_FEW", 20)
    monkeypatch.setattr(batches, "SMALL_SIZE", 20)
    monkeypatch.setattr(batches, "SIZE", 20)
    peaks: list[int] = []
    for number, count in enumerate((100, 100, 500)):
        root = tree(tmp_path / str(number), {**FILES, "evalstore.yaml": "candidates: [one, two]\n"})
        (root / LANDS).write_text(CHECKED + CHECK)
        rows = (json.dumps({"country": f"a{row}", "capital": "Oslo"}) for row in range(count))
        (root / "tests/data.jsonl").write_text("".join(f"{row}\n" for row in rows))
        monkeypatch.chdir(root)
        assert main(["run", "--yes", "--quiet", "--fail-on", "none", LANDS]) == OK
        with open_project(Location(root)) as project:
            selection = SelectionOptions(paths=(LANDS,))
            gc.collect()
            tracemalloc.start()
            if use == "diff":
                assert len(workspace_side(project, selection).results) == 2 * count
            else:
                item = shown_item.describe_shown(Location(root), f"@work:{LANDS}", model="two")
                assert isinstance(item, ShownItem)
                assert len(item.related["results"]) == count
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    # A peak has the garbage that was not collected then, which is not the same each time.
    assert min(peaks[2:]) - peaks[1] < 1_600 * 400, peaks


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("form", [[], ["--json"], ["-m", "two", "--json"], ["-m", "one", "-v"]])
def test_results_with_former_system_prompts_are_found_in_older_runs(
    evalstore: Evalstore, place: Path, form: list[str]
) -> None:
    tree(place, {"prompts/long.md": "# ⚙️\n\nBe longer.\n"})
    assert evalstore("run", "--yes", "--fail-on", "none", "-k", "3").exit_code == OK
    assert evalstore("show", LANDS, *form).exit_code == OK
    item = shown_item.describe_shown(Location(place), LANDS)
    assert isinstance(item, ShownItem)
    results, run = item.related["results"], item.related["run"]
    assert len(results) == 64 * 2 * 2  # eleven rows are as others
    was = [result for result in results if "run" in result]
    assert run not in {result["run"] for result in was}
    assert len({result["prompt"] for result in results}) == 3
    assert not any("edited" in result for result in was)
    rows = [result["row"] for result in results if "run" not in result]
    assert rows
    assert all("3" in row for row in rows)
