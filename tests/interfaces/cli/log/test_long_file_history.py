"""Commands about past runs print the same, whether files are read part by part or as a whole."""

from __future__ import annotations

import json
import random
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from evalstore.core.values import Json
from tests.builders import tree
from tests.interfaces.cli.conftest import Evalstore
from tests.interfaces.cli.long_files import treat_as_long

pytestmark = pytest.mark.extended

MODEL = (
    "id: {id}\nprovider: scripted\n"
    "responses: [{{when: ' 1.?[?]', answer: Rome}}, {{answer: {answer}}}]\n"
)
CHECK = "---\n\n~~~checks\n- {type}: '{{{{capital}}}}'\n~~~\n"
LABEL = "country that has a very long name and so a label that is cut in the middle"


def text_of(head: str, check: str) -> str:
    start = f"---\ndataset: data.jsonl\n{head}---\n\n# 👤\n\n"
    return f"{start}What is the capital of {{{{country}}}}?\n\n" + CHECK.format(type=check)


class Workspace:
    """A workspace that is edited at random, in two places."""

    def __init__(self, roots: tuple[Path, Path], chance: random.Random) -> None:
        self.roots, self.chance = roots, chance
        self.files: dict[str, list[Json]] = {
            "tests/a/rows.md": [self._row(number) for number in range(chance.randrange(65, 100))]
        }
        if chance.random() < 0.5:
            self.files["tests/b/rows.md"] = [self._row(number + 500) for number in range(50)]
        self.heads = dict.fromkeys(
            self.files, chance.choice(["", "", "systemPrompts: [one, two]\n"])
        )
        self.checks = dict.fromkeys(self.files, "contains")
        self.candidates = chance.choice([["uno"], ["uno", "due"]])
        self.library = {
            "models/uno.yaml": MODEL.format(id="uno", answer="Oslo 1"),
            "models/due.yaml": MODEL.format(id="due", answer="Oslo"),
            "prompts/one.md": "Be brief.\n",
            "prompts/two.md": "Be very brief, and answer with one word.\n",
        }
        self.write()

    def _row(self, number: int) -> Json:
        """A row; some have the same label but for the number that is added to it."""
        country = f"country {number}"
        if number % 9 == 0:
            country = f"{LABEL} {number} {LABEL}"
        return {"country": country, "capital": "Oslo 1" if number % 3 else "Oslo"}

    def write(self) -> None:
        for root in self.roots:
            shutil.rmtree(root / "tests", ignore_errors=True)
            tree(root, {"evalstore.yaml": f"candidates: {json.dumps(self.candidates)}\n"})
            tree(root, self.library)
            for path, rows in self.files.items():
                lines = "".join(json.dumps(row) + "\n" for row in rows)
                text = text_of(self.heads[path], self.checks[path])
                tree(root, {path: text, str(Path(path).with_name("data.jsonl")): lines})

    def edit(self) -> None:
        """Make one or two edits."""
        for _ in range(self.chance.randrange(1, 3)):
            self.chance.choice(EDITS)(self)
        self.write()

    def rows(self) -> list[Json]:
        return self.files[self.chance.choice(sorted(self.files))]

    def edit_row(self) -> None:
        rows = self.rows()
        number = self.chance.randrange(len(rows))
        rows[number] = {**rows[number], "country": self.chance.choice(["x", LABEL, "country 7"])}

    def edit_row_check(self) -> None:
        rows = self.rows()
        number = self.chance.randrange(len(rows))
        rows[number] = {**rows[number], "capital": self.chance.choice(["Oslo", "Bern", "Rome"])}

    def add_row(self) -> None:
        rows = self.rows()
        rows.insert(self.chance.randrange(len(rows)), self._row(self.chance.randrange(300, 400)))

    def remove_row(self) -> None:
        rows = self.rows()
        del rows[self.chance.randrange(len(rows))]

    def repeat_row(self) -> None:
        rows = self.rows()
        rows.insert(self.chance.randrange(len(rows)), self.chance.choice(rows))

    def move_row(self) -> None:
        rows = self.rows()
        rows.insert(self.chance.randrange(len(rows)), rows.pop(self.chance.randrange(len(rows))))

    def copy_rows(self) -> None:
        """Give a file the rows of another one."""
        source = self.rows()
        self.files[self.chance.choice(sorted(self.files))] = [*source]

    def rename_file(self) -> None:
        path = self.chance.choice(sorted(self.files))
        new = f"tests/c{self.chance.randrange(9)}/rows.md"
        if new not in self.files:
            self.files[new] = self.files.pop(path)
            self.heads[new] = self.heads.pop(path)
            self.checks[new] = self.checks.pop(path)

    def edit_check(self) -> None:
        path = self.chance.choice(sorted(self.files))
        self.checks[path] = self.chance.choice(["contains", "startsWith"])

    def edit_prompts(self) -> None:
        path = self.chance.choice(sorted(self.files))
        self.heads[path] = self.chance.choice(
            ["", "systemPrompts: [one, two]\n", "systemPrompts: [two]\n", "attempts: 2\n"]
        )

    def edit_prompt(self) -> None:
        self.library["prompts/two.md"] += "Please.\n"

    def edit_candidates(self) -> None:
        self.candidates = self.chance.choice([["uno"], ["uno", "due"], ["due"]])

    def edit_model(self) -> None:
        answer = self.chance.choice(["Oslo 1", "Oslo", "Bern"])
        self.library["models/uno.yaml"] = MODEL.format(id="uno", answer=answer)


EDITS: tuple[Callable[[Workspace], None], ...] = (
    *(Workspace.edit_row, Workspace.edit_row, Workspace.edit_row_check, Workspace.add_row),
    *(Workspace.remove_row, Workspace.repeat_row, Workspace.repeat_row, Workspace.move_row),
    *(Workspace.copy_rows, Workspace.rename_file, Workspace.edit_check, Workspace.edit_prompts),
    *(Workspace.edit_prompt, Workspace.edit_candidates, Workspace.edit_model),
)


@contextmanager
def long_files() -> Iterator[None]:
    """Read files of hundreds of rows part by part."""
    with pytest.MonkeyPatch.context() as patch:
        treat_as_long(patch)
        yield


def same_ids(text: str) -> str:
    """The text with a number in place of each id, as two stores have different ones."""
    seen: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        return seen.setdefault(match[0][:8], f"<{len(seen)}>")

    text = re.sub(r"\b[0-9a-f]{32}\b|\b[0-9a-f]{8}\b", number, text)
    text = re.sub(r"<when>|\d+ (second|minute)s? ago|just now", "then", text)
    return re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "then", text)


class Both:
    """Runs each command in both places, and compares what it prints."""

    def __init__(self, evalstore: Evalstore, roots: tuple[Path, Path]) -> None:
        self._evalstore, self._roots = evalstore, roots

    def __call__(self, *command: str) -> None:
        printed = []
        for root in self._roots:
            with pytest.MonkeyPatch.context() as patch:
                patch.chdir(root)
                if root is self._roots[0]:
                    with long_files():
                        ran = self._evalstore(*command)
                else:
                    ran = self._evalstore(*command)
            assert ran.exit_code in (0, 1, 2, 5), ran
            printed.append((ran.exit_code, same_ids(ran.stdout), same_ids(ran.stderr)))
        assert printed[0] == printed[1], command


@contextmanager
def without_cache(root: Path) -> Iterator[None]:
    """Hide what the last run has noted, as on a machine that has not run the workspace."""
    cache = root / ".evalstore/settled"
    hidden = cache.rename(cache.with_suffix(".hidden"))
    yield
    hidden.rename(cache)


def compare(both: Both, workspace: Workspace) -> None:
    """Compare what all commands about the history print."""
    for command in (
        ("diff",),
        ("diff", "--json"),
        ("diff", "@~1", "@", "--json"),
        ("diff", "@", "@~1"),
        ("diff", "@~2", "@"),
        ("diff", "@~1", "@", "-m", "uno"),
    ):
        both(*command)
    for path in workspace.files:
        rows = workspace.files[path]
        both("diff", "@~1", "@", path)
        both("log", path)
        both("log", path, "--json")
        both("log", f"{path}::{workspace.chance.choice(rows)['country']}")
    with without_cache(workspace.roots[0]):
        both("diff", "@~1", "@", "--json")
        both("diff", "@~2", "@")
    both("show", "@")
    both("show", "@", "-v")


def flips_of_newest_run(evalstore: Evalstore, root: Path, *file: str) -> tuple[int, int]:
    """Return how many results broke and were fixed in the newest run, in all files or in one."""
    newest, *_ = json.loads(evalstore("-C", str(root), "log", "-n", "1", "--json").stdout)["runs"]
    listed = json.loads(evalstore("-C", str(root), "log", *file, "--json").stdout)["runs"]
    entry: Json = next((entry for entry in listed if entry["run"] == newest["run"]), {})
    return entry.get("broke", 0), entry.get("fixed", 0)


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 4))]
)
def test_histories_of_long_files_are_those_of_short_ones(
    tmp_path: Path, evalstore: Evalstore, seed: int
) -> None:
    chance = random.Random(seed)
    roots = tmp_path / "long/ws", tmp_path / "short/ws"
    workspace = Workspace(roots, chance)
    both = Both(evalstore, roots)
    run = ("run", "--yes", "--quiet", "--fail-on", "none")
    both(*run)
    assert [(root / ".evalstore/settled").exists() for root in roots] == [True, False]
    for _ in range(4):
        workspace.edit()
        both("diff")
        both(*run, *chance.choice([(), (), (), ("-k", "country"), ("-m", "uno"), ("--limit", "9")]))
        if chance.random() < 0.3:
            row = chance.choice(workspace.rows())["country"]
            both("label", f"{chance.choice(sorted(workspace.files))}::{row}", "fail")
        compare(both, workspace)
        of_files = [flips_of_newest_run(evalstore, roots[1], path) for path in workspace.files]
        summed = tuple(map(sum, zip(*of_files, strict=True)))
        assert summed == flips_of_newest_run(evalstore, roots[1])
