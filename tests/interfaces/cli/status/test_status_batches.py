"""The status of long files, added up batch by batch, is that of the whole plan after any edits."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from evalstore.planning import cells
from evalstore.planning.options import Location, SelectionOptions
from evalstore.planning.project import Project
from evalstore.planning.status_report import Status
from evalstore.runs.status import status as plan_status
from tests.builders import tree
from tests.interfaces.cli.conftest import Evalstore
from tests.interfaces.cli.long_files import JUDGE, ONE, PRICE, TWO, treat_as_long

pytestmark = pytest.mark.extended

Files = dict[str, str]
Edit = Callable[[Files, random.Random], None]
_ROWS = 45
_SETTINGS = "evalstore.yaml"
_TEST = "tests/rows.md"
_ANSWERS = "answer: '{{capital}}'\n"
_TURNS = "# ▶ same\n\n# 👤\n\nHi\n\n# ▶ own ×2\n\n# 👤\n\nHo\n\n# ▶ row\n\n# 👤"
_FILES = {
    _SETTINGS: "candidates: [one]\nremotes: {r: shared}\n",
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


def _edit_model(files: Files, choice: random.Random) -> None:
    """Replace a model by another version, at another price."""
    text = files["models/one.yaml"].partition("costs:")[0]
    text = re.sub("providerModelCode: .*\n", "", text)
    files["models/one.yaml"] = (
        f"{text}providerModelCode: m{choice.random()}\n"
        f"costs: [{{costPerCall: {choice.randrange(1, 9) / 10_000}}}]\n"
    )


def _toggle_turns(files: Files, _random: random.Random) -> None:
    """Add conversations that all rows share, or remove them: that of another file, and its own."""
    name = _TEST if _TEST in files else "tests/moved.md"
    text = files[name].replace(_ANSWERS, "")
    files[name] = (
        text.replace(_TURNS, "# 👤") if _TURNS in text else text.replace("# 👤", _TURNS, 1)
    )


def _toggle_answers(files: Files, choice: random.Random) -> None:
    """Add recorded answers, unless there are several conversations, or remove them."""
    if _TURNS not in files.get(_TEST, ""):
        _toggled(_TEST, "tags:", _ANSWERS)(files, choice)


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
    "answers": _toggle_answers,
    "attempts": _toggled(_TEST, "tags:", "attempts: 2\n"),
    "all attempts": _toggled(_SETTINGS, "remotes:", "attempts: 2\n"),
    "candidates": _replaced(_SETTINGS, ("[one]", "[one, two]")),
    "judge": _toggled(_SETTINGS, "remotes:", "evaluators: [judge]\n"),
    "votes": _toggled(_SETTINGS, "remotes:", "evaluationsPerEvaluator: 2\n"),
    "model": _toggled("models/one.yaml", "provider:", "candidateOverrides: {temperature: 0.3}\n"),
    "rows": _edit_rows,
    "shared": _share,
    "name": _rename,
    "turns": _toggle_turns,
    "version": _edit_model,
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
        self.unpriced: set[str] = set()
        """The models without a known price."""
        self.batches = 0
        """How many statuses were added up in several batches."""

    def write(self) -> None:
        """Write the files as they are now."""
        shutil.rmtree(self.root / "tests", ignore_errors=True)
        tree(self.root, self.files)

    def compare(self, selection: SelectionOptions) -> Status:
        """Compare the status of several batches with that of one, and return it."""
        location, price_of = Location(self.root), Project.price_of
        with self._patch.context() as patch:
            patch.setattr(
                *(Project, "price_of"),
                lambda project, id: None if id in self.unpriced else price_of(project, id),
            )
            several = plan_status.status(location, selection)
            bare = plan_status.status(location, selection, whole=False)
            patch.setattr(cells, "BATCH", 10**9)
            one = plan_status.status(location, selection)
        self.batches += not cells.is_short(several.cells)
        assert [*several.items] == one.items
        assert len(several.items) == len(one.items)
        assert replace(several, items=[]) == replace(one, items=[]) == bare
        return one

    def compare_output(self, *command: str) -> None:
        """Compare what a command prints in both ways."""
        several = self.evalstore(*command)
        with self._patch.context() as patch:
            patch.setattr(cells, "BATCH", 10**9)
            assert self.evalstore(*command) == several
        if "--judge-only" not in command:
            assert "land 7" in several.stdout or "-v lists all" in several.stdout


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evalstore: Evalstore) -> Place:
    return Place(tmp_path, monkeypatch, evalstore)


@pytest.mark.parametrize("name", EDITS)
def test_an_edit_after_a_run_and_undone(place: Place, name: str) -> None:
    place.evalstore("run", "--yes", "--fail-on", "none")
    choice = random.Random(name)
    for _ in range(2):
        EDITS[name](place.files, random.Random(1))
        place.write()
        place.compare(SelectionOptions())
        for selection in choice.sample(SELECTIONS[4:], 1):
            place.compare(selection)
        place.evalstore("run", "--yes", "--fail-on", "none", "--limit", "40")
        place.compare(SelectionOptions())
    assert place.batches


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (0, 2, 3, 4))]
)
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
            place.evalstore("pull", "-n", "r")
            for path in (place.root / ".evalstore").glob("store.db*"):
                path.unlink()
    assert place.batches


@pytest.mark.parametrize(
    "seed", [2, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 5))]
)
def test_a_mean_price_and_what_conversations_share_are_those_of_all_batches(
    place: Place, seed: int
) -> None:
    choice = random.Random(seed)
    place.unpriced = {"one"}
    if seed % 2:
        EDITS["turns"](place.files, choice)
    if seed > 2:
        place.files["models/old.yaml"] = "id: old\nprovider: recorded\n"
        EDITS["candidates"](place.files, choice)
        place.files[_SETTINGS] = place.files[_SETTINGS].replace("one, two", "one, two, old")
    compared = 0
    for _ in range(4):
        place.write()
        for limits in (("--limit", str(choice.randrange(10, 30))), ("-m", "one,two")):
            place.evalstore("run", "--yes", "--fail-on", "none", *limits)
            for name in ("version", choice.choice(("judge", "turns", "criteria", "all attempts"))):
                EDITS[name](place.files, choice)
            place.write()
            for selection in (SelectionOptions(), SelectionOptions(offline=True)):
                place.compare(selection)
                compared += 1
        place.evalstore("push", "r")
        if choice.random() < 0.5:
            place.evalstore("pull", "-n", "r")
            for path in (place.root / ".evalstore").glob("store.db*"):
                path.unlink()
            place.compare(SelectionOptions())
            compared += 1
    assert place.batches == compared


@pytest.mark.parametrize(
    "seed", [3, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (0, 4))]
)
def test_what_a_remote_has_judged_counts_once_for_all_batches(place: Place, seed: int) -> None:
    choice = random.Random(seed)
    if seed % 2:
        EDITS["turns"](place.files, choice)
    if seed > 3:
        EDITS["all attempts"](place.files, choice)
    EDITS["criteria"](place.files, choice)
    text = place.files[_TEST]
    for number in range(3):
        place.files[f"tests/same{number}.md"] = text.replace("Is it a city", f"Is it {number % 2}")
    place.write()
    run = "run", "--yes", "--fail-on", "none"
    place.evalstore(*run)
    stores = [*(place.root / ".evalstore").glob("store.db*")]
    before = {path: path.read_bytes() for path in stores}
    EDITS["judge"](place.files, choice)
    place.write()
    place.evalstore(*run, "tests/same1.md", "--sample", "60")
    place.evalstore(*run, "--limit", "20")
    pushed = place.evalstore("push", "r")
    assert pushed.exit_code == 0, pushed.stderr
    for path in (place.root / ".evalstore").glob("store.db*"):
        path.unlink()
    for path, content in before.items():
        path.write_bytes(content)
    for name in (None, "votes", "check"):
        if name:
            EDITS[name](place.files, choice)
            place.write()
        for selection in (SelectionOptions(), SelectionOptions(tags=("b",))):
            assert place.compare(selection).remote_judgements
    assert place.batches == 6


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
        ("run", "--judge-only", "-n", "--json"),
    ):
        place.compare_output(*command)
