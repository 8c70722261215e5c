"""The status of long files, added up batch by batch, is that of the whole plan after any edits."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from evalstore.operations import plan_status
from evalstore.operations import run as run_operation
from evalstore.planning.options import Location, RunOptions, SelectionOptions
from evalstore.planning.plan_items import FiledItems
from tests.builders import tree
from tests.cli.conftest import Evalstore
from tests.cli.long_files import JUDGE, ONE, PRICE, TWO, treat_as_long

pytestmark = pytest.mark.extended

Files = dict[str, str]
Edit = Callable[[Files, random.Random], None]
_ROWS = 90
_SETTINGS = "evalstore.yaml"
_TEST = "tests/rows.md"
_FILES = {
    _SETTINGS: "candidates: [one]\nremotes: {r: ../remote}\n",
    "models/one.yaml": ONE + PRICE,
    "models/two.yaml": TWO,
    "models/judge.yaml": JUDGE + PRICE,
    "prompts/short.md": "# ⚙️\n\nBe short.\n",
    "prompts/long.md": "# ⚙️\n\nBe long.\n",
    "tests/data.jsonl": "".join(
        json.dumps({"country": f"land {number}", "capital": "Oslo"}) + "\n"
        for number in range(_ROWS)
    ),
    _TEST: (
        "---\ndataset: data.jsonl\ntags: [a, b]\n---\n\n# 👤\n\nWhere is {{country}}?\n\n"
        "---\n\n~~~checks\n- contains: '{{capital}}'\n~~~\n"
    ),
    "tests/other.md": "# 👤\n\nHi\n\n---\n\n~~~checks\n- contains: Oslo\n~~~\n",
}


def _replaced(file: str, *pairs: tuple[str, str]) -> Edit:
    """An edit to and fro between texts of a file."""

    def edit(files: Files, _random: random.Random) -> None:
        for was, now in pairs:
            if was in files.get(file, "") and now not in files[file]:
                files[file] = files[file].replace(was, now, 1)
            elif now in files.get(file, ""):
                files[file] = files[file].replace(now, was, 1)

    return edit


def _toggled(file: str, before: str, line: str) -> Edit:
    """An edit that adds a line before a text, or removes it."""

    def edit(files: Files, _random: random.Random) -> None:
        text = files.get(file)
        if text is None:
            return
        files[file] = (
            text.replace(line, "") if line in text else text.replace(before, line + before)
        )

    return edit


def _edit_rows(files: Files, choice: random.Random) -> None:
    rows = [json.loads(line) for line in files["tests/data.jsonl"].splitlines()]
    for row in choice.sample(rows, 3):
        row["country"] += "x"
    del rows[choice.randrange(len(rows))]
    rows.insert(choice.randrange(len(rows)), {"country": f"isle {choice.random()}", "capital": "A"})
    choice.choice(rows)["capital"] = "Rome"
    files["tests/data.jsonl"] = "".join(json.dumps(row) + "\n" for row in rows)


def _share(files: Files, choice: random.Random) -> None:
    if files.pop("tests/same.md", None) is None:
        files["tests/same.md"] = files.get(_TEST, files.get("tests/moved.md", "")).replace(
            *choice.choice(
                (("contains", "startsWith"), ("Oslo", "Rome"), ("tags: [a, b]", "id: s"))
            )
        )


def _rename(files: Files, _random: random.Random) -> None:
    was, now = (_TEST, "tests/moved.md") if _TEST in files else ("tests/moved.md", _TEST)
    files[now] = files.pop(was)


EDITS: dict[str, Edit] = {
    "test": _replaced(_TEST, ("Where is", "Where on earth is")),
    "check": _replaced(_TEST, ("- contains", "- startsWith")),
    "criteria": _replaced(_TEST, ("---\n\n~~~checks", "---\n\nIs it a city?\n\n~~~checks")),
    "both": _replaced(_TEST, ("Where is", "So where is"), ("contains", "startsWith")),
    "prompts": _toggled(_TEST, "tags:", "systemPrompts: [short, long]\n"),
    "prompt": _replaced("prompts/short.md", ("Be short.", "Be very short.")),
    "answers": _toggled(_TEST, "tags:", "answer: '{{capital}}'\n"),
    "attempts": _toggled(_TEST, "tags:", "attempts: 2\n"),
    "all attempts": _toggled(_SETTINGS, "remotes:", "attempts: 2\n"),
    "candidates": _replaced(_SETTINGS, ("[one]", "[one, two]")),
    "judge": _toggled(_SETTINGS, "remotes:", "evaluators: [judge]\n"),
    "votes": _toggled(_SETTINGS, "remotes:", "evaluationsPerEvaluator: 2\n"),
    "model": _toggled("models/one.yaml", "provider:", "candidateOverrides: {temperature: 0.3}\n"),
    "rows": _edit_rows,
    "shared": _share,
    "name": _rename,
}
SELECTIONS = (
    *(SelectionOptions(),) * 4,
    SelectionOptions(tags=("b",)),
    SelectionOptions(models=("one",)),
    SelectionOptions(models=("two",), attempts=3),
    SelectionOptions(refresh=True),
    SelectionOptions(offline=True),
    SelectionOptions(max_age="1d"),
    SelectionOptions(paths=("tests/other.md",)),
)


class Place:
    """A workspace that is edited, and whose status is found in two ways."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, evalstore: Evalstore) -> None:
        treat_as_long(monkeypatch)
        self.root, self.evalstore, self._patch = folder / "ws", evalstore, monkeypatch
        self.files = dict(_FILES)
        self.write()
        monkeypatch.chdir(self.root)
        self.batches = 0
        """How many statuses were added up in several batches."""

    def write(self) -> None:
        """Write the files as they are now."""
        shutil.rmtree(self.root / "tests", ignore_errors=True)
        tree(self.root, self.files)

    def compare(self, selection: SelectionOptions) -> None:
        """Compare the status of several batches with that of one."""
        location = Location(self.root)
        several = plan_status.compute_status(location, selection)
        bare = plan_status.compute_status(location, selection, whole=False)
        with self._patch.context() as patch:
            patch.setattr(plan_status, "FEW", 10**9)
            one = plan_status.compute_status(location, selection)
        self.batches += isinstance(several.items, FiledItems)
        assert [*several.items] == one.items
        assert len(several.items) == len(one.items)
        assert replace(several, items=[]) == replace(one, items=[]) == bare

    def compare_output(self, *command: str) -> None:
        """Compare what a command prints in both ways."""
        cache = self.root / ".evalstore/quiet.json"
        cache.unlink(missing_ok=True)
        several = self.evalstore(*command)
        cache.unlink(missing_ok=True)
        with self._patch.context() as patch:
            patch.setattr(plan_status, "FEW", 10**9)
            assert self.evalstore(*command) == several
        if command[0] != "judge":
            assert "land 7" in several.stdout or "-v lists all" in several.stdout


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evalstore: Evalstore) -> Place:
    return Place(tmp_path, monkeypatch, evalstore)


def test_an_approved_plan_has_nothing_of_one_that_was_given_up(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    describe = plan_status.describe_scope

    def describe_twice(
        project: Any, scope: Any, selection: Any, items: Any, note: Any
    ) -> tuple[Any, bool]:
        """Begin batch by batch, and give it up."""
        items()
        note(mock.Mock(todo=lambda: ["given up"]))
        return describe(project, scope, selection, items, note)

    monkeypatch.setattr("evalstore.operations.run.describe_scope", describe_twice)
    offered = run_operation.offer_run(Location(place.root), SelectionOptions(), RunOptions())
    assert offered.agreed.asks == _ROWS + 1
    assert "given up" not in offered.agreed.todo
    assert offered.reasons["ask"].total == _ROWS + 1


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_after_a_run_and_undone(place: Place, name: str) -> None:
    place.evalstore("run", "--yes", "--fail-on", "none")
    for _ in range(2):
        EDITS[name](place.files, random.Random(1))
        place.write()
        for selection in SELECTIONS[3:]:
            place.compare(selection)
        place.evalstore("run", "--yes", "--fail-on", "none", "--limit", "40")
        place.compare(SelectionOptions())
    assert place.batches


@pytest.mark.parametrize("seed", range(12))
def test_any_edits_and_runs(place: Place, seed: int) -> None:
    choice = random.Random(seed)
    for _ in range(8):
        for name in choice.sample([*EDITS], choice.randint(0, 2)):
            EDITS[name](place.files, choice)
        place.write()
        place.compare(choice.choice(SELECTIONS))
        place.compare(SelectionOptions())
        done = choice.choice(("run", "part", "fail", "label", "push", "lose", "nothing"))
        if done in ("run", "part", "fail"):
            limits = {"part": ("--limit", "50"), "fail": ("-m", "two")}.get(done, ())
            place.evalstore("run", "--yes", "--fail-on", "none", *limits)
        elif done == "label":
            file = _TEST if _TEST in place.files else "tests/moved.md"
            place.evalstore("label", f"{file}::land {choice.randrange(_ROWS)}", "pass", "--as", "A")
        elif done == "push":
            place.evalstore("push", "r")
        elif done == "lose":
            place.evalstore("fetch", "r")
            for path in (place.root / ".evalstore").glob("store.db*"):
                path.unlink()
    assert place.batches


@pytest.mark.parametrize("name", ["both", "attempts", "shared", "prompts"])
def test_what_is_printed_is_the_same(place: Place, name: str) -> None:
    place.evalstore("run", "--yes", "--fail-on", "none")
    EDITS[name](place.files, random.Random(1))
    place.write()
    for command in (
        ("status", "--explain"),
        ("status", "--explain", "-v"),
        ("status", "--json"),
        ("run", "-n"),
        ("run", "-n", "-v"),
        ("run", "-n", "--json"),
        ("judge", "-n", "--json"),
    ):
        place.compare_output(*command)
