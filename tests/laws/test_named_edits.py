"""A file that is named as edited has other bytes on both sides, after any sequence of edits."""

from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path
from random import Random
from typing import TypeVar

import pytest

from evalstore.core.runs import ProgressListener
from evalstore.planning.options import Location, RunOptions, SelectionOptions
from evalstore.results.compare.diff import diff
from evalstore.results.edits.edits import by_subject
from evalstore.results.log.log import log
from evalstore.runs.run import run
from evalstore.runs.status.status import status
from tests.builders import tree

MODEL = "id: scripted/{0}\nprovider: scripted\nresponses: [{{answer: '{1}'}}]\n"
DATA = ("tests/data/a.csv", "tests/data/b.csv")
SCHEMA = "id: {}\ntype: object\nproperties: {{land: {{type: {}}}}}\n"
TOOL = "id: {0}\nname: find\ndescription: Finds by {1}.\nparameters: {{type: object}}\n"
PROMPT = "You know every land of the earth and answer in {} words.\n"
JUDGE = "---\ntags: [_evaluator]\n---\n\nIs it {}?\n\n# 👤\n\n{{{{_actualResponse}}}}\n"
WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
LISTED = re.compile(
    r"(?P<of>rows|cases) of (?P<path>.+)|(?P<kind>system prompt|judge prompt|tool|schema|file) "
    r"(?P<name>.+)|(?P<test>.+\.md)"
)
FOLDERS = {
    "system prompt": "prompts/{}.md",
    "judge prompt": "prompts/{}.md",
    "tool": "tools/{}.yaml",
    "schema": "schemas/{}.yaml",
    "file": "tests/{}",
}
Files = dict[str, str]


class Edits:
    """The files of a workspace, and random edits of them."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.number = 0
        self.uses = {
            name: {
                "dataset": "a",
                "schema": "a",
                "tool": "a",
                "prompt": "a",
                "judge": "a",
                "file": "a",
                "limit": "5",
                "text": "Where",
                "note": "one",
            }
            for name in ("cities", "lands")
        }
        self.files: Files = {
            "evalstore.yaml": "candidates: [scripted/c]\nevaluators: []\n",
            "models/c.yaml": MODEL.format("c", "yes"),
            "models/j.yaml": MODEL.format("j", "yes"),
            **dict.fromkeys(DATA, "city,land,unused\nOslo,Norway,1\nRome,Italy,2\nLima,Peru,3\n"),
        }
        for name in "ab":
            for kind in ("schema", "tool", "prompt", "judge", "file"):
                self.write(kind, name)
        self.write_tests()

    def write(self, kind: str, name: str) -> None:
        """Write something that tests use, so that it is different each time."""
        self.number += 1
        word = f"{WORDS[self.number % 10]} {self.number}"
        kind, path, text = {
            "schema": ("s", f"schemas/{name}.yaml", SCHEMA.format(name, "string")),
            "tool": ("t", f"tools/{name}.yaml", TOOL.format(name, word)),
            "prompt": ("p", f"prompts/{name}.md", PROMPT.format(word)),
            "judge": ("j", f"prompts/judge-{name}.md", JUDGE.format(word)),
            "file": ("f", f"tests/{name}.txt", f"A map of {word}.\n"),
        }[kind]
        self.files[path] = text.replace("land:", f"land{self.number}:") if kind == "s" else text

    def write_tests(self) -> None:
        """Write the test files."""
        for name, uses in self.uses.items():
            of_kind = f"structuredResponseSchema: {uses['schema']}"
            if name == "lands":  # there cannot be both
                of_kind = f"availableTools: [{uses['tool']}]"
            self.files[f"tests/{name}.md"] = (
                f"---\ndataset: {{path: data/{uses['dataset']}.csv, limit: {uses['limit']}}}\n"
                f"{of_kind}\n"
                f"systemPrompts: [{uses['prompt']}]\n---\n\n<!-- {uses['note']} -->\n\n# 👤\n\n"
                f"{uses['text']} is {{{{city}}}}? `{{{{_file:{uses['file']}.txt}}}}`\n\n---\n\n"
                "~~~checks\n- contains: '{{land}}'\n"
                f"- judge: {{prompt: judge-{uses['judge']}, choices: [a, b], pass: [a]}}\n~~~\n"
            )

    def edit(self) -> None:
        """Edit a file, or what a test uses."""
        random = self.random
        if random.random() < 0.45:
            uses = self.uses[random.choice([*self.uses])]
            part = random.choice([*uses])
            if part in ("limit", "text", "note"):
                uses[part] = random.choice([*"23456"]) if part == "limit" else random.choice(WORDS)
            else:
                uses[part] = "b" if uses[part] == "a" else "a"
            self.write_tests()
        elif random.random() < 0.5:
            path = random.choice(DATA)
            lines = self.files[path].splitlines()
            number = random.randrange(1, len(lines))
            city, land, unused = lines[number].split(",")
            self.number += 1
            edited = f"City{self.number},{land},{unused}", f"{city},Land{self.number},{unused}"
            others = f"{city},{land},{self.number}", f"{lines[number]}\nNew{self.number},Land,0"
            lines[number] = random.choice((*edited, *others))
            self.files[path] = "\n".join(lines) + "\n"
        else:
            kind = random.choice(("schema", "tool", "prompt", "judge", "file"))
            self.write(kind, random.choice("ab"))


def paths_named(edit: str) -> list[str]:
    """The paths of the files that an edit names; none for `rows of tests/cities.md`."""
    paths = []
    text = edit.removesuffix(" changed")
    for name in text.replace("system prompts ", "system prompt ").split(", "):
        match = LISTED.fullmatch(name)
        assert match, edit
        if match["kind"]:
            paths.append(FOLDERS[match["kind"]].format(match["name"]))
        elif match["test"]:
            paths.append(match["test"])
        elif not match["path"].endswith(".md"):
            assert match["of"] == "rows"
            paths.append(match["path"])
    return paths


def named_by(edit: str) -> list[str]:
    """What a difference between two cases names as edited."""
    match = re.match(
        r"((?:tool|schema|file) \S+) changed|((?:system|evaluator) prompt [a-z-]+)", edit
    )
    if match is None or " in place of " in edit or edit.endswith((" is new", " is gone")):
        return []
    if match[2]:
        return [] if re.search("changed$|text$|message$", match[2]) else [match[2]]
    return [match[1]]


Thing = TypeVar("Thing")


def some(things: list[Thing], most: int = 4) -> list[Thing]:
    """Some of them at random: comparing all with all takes the time of many histories."""
    return Random(len(things)).sample(things, min(most, len(things)))


@pytest.mark.parametrize(
    "seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, 3, 4, 5))]
)
def test_a_file_that_is_named_as_edited_has_other_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.chdir(tmp_path)
    location = Location(tmp_path)
    edits = Edits(seed)
    runs: list[tuple[str, tuple[Files, ...]]] = []
    """The runs with the files that they judged, newest last: a partial one also those before it."""
    named: set[str] = set()

    def require(edited: str, *sides: Files) -> None:
        for path in paths_named(edited):
            assert any(side[path] != sides[-1][path] for side in sides[:-1]), (edited, path)
            named.add(path)

    for step in range(12):
        for _ in range(edits.random.choice((1, 1, 2, 3)) if step else 0):
            edits.edit()
        tree(tmp_path, edits.files)
        if runs:
            last = runs[-1][1][-1]
            differ = [path for path, text in edits.files.items() if last[path] != text]
            for change in status(location, SelectionOptions()).changes:
                for name in change.edited:
                    require(name, last, edits.files)
                if len(differ) == 1:
                    files = [path for name in change.edited for path in paths_named(name)]
                    assert files == differ
            for item in status(location, SelectionOptions()).items:
                for name in named_by(item.reason):
                    require(name, *(files for _, was in runs for files in was), edits.files)
            for id, was in some(runs):
                found = diff(location, id)
                edited = (str(each) for of_file in found.edits.values() for each in of_file)
                headings = by_subject(found.edits, found.sources)
                for listed in (*found.sources.values(), *map(named_by, edited), [*headings]):
                    for name in listed:
                        require(name, *was, edits.files)
        paths = ("tests/cities.md",) if step and edits.random.random() < 0.3 else ()
        report = run(location, SelectionOptions(paths=paths), RunOptions(), ProgressListener())
        before = runs[-1][1] if runs else ()
        for each in log(location).entries[0].edits:
            require(str(each), *before, edits.files)
        runs.append((report.run, ((*before, edits.files) if paths else (edits.files,))))
        edits.files = dict(edits.files)
    for (older, was), (newer, now) in some([*combinations(runs, 2)], 40):
        for listed in diff(location, older, newer).sources.values():
            for name in listed:
                require(name, *was, now[-1])
    assert len(named) > 2
