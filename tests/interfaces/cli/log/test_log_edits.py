"""`log` says which tests, system prompts, candidates and evaluators changed before a run."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from evalstore.planning.options import Location
from evalstore.results.edits import edited_files
from evalstore.results.log.log import log
from tests.builders import tree
from tests.interfaces.cli.conftest import WEATHER, Evalstore
from tests.interfaces.cli.run.test_run import edit

PROMPTED = WEATHER.replace("tags:", "systemPrompts: [brief, kind]\ntags:")
CHANGED = ["tests/weather.md changed"]
ASKED = "# 👤\n\nIs {} a letter?\n\n---\n\nIt is.\n"


def edits(evalstore: Evalstore, *arguments: str) -> list[str]:
    """The edits of the newest run."""
    entry = evalstore("log", "-n", "1", *arguments).stdout
    return [line.partition("edit: ")[2] for line in entry.splitlines() if "    edit: " in line]


def test_an_edit_belongs_to_the_first_run_that_judged_it(
    workspace: Path, evalstore: Evalstore
) -> None:
    tree(workspace, {"tests/other.md": WEATHER.replace("How is", "Where is")})
    evalstore("run")
    assert edits(evalstore) == []
    edit(workspace / "tests/weather.md", "How is", "Tell me how is")
    evalstore("run", "tests/other.md")
    assert edits(evalstore) == []
    evalstore("run", "tests/weather.md", "--message", "only these")
    assert edits(evalstore) == ["tests/weather.md changed"]
    line = evalstore("log", "--oneline").stdout.splitlines()[0]
    assert "  tests/weather.md changed  only these" in line
    evalstore("run")
    assert edits(evalstore) == []
    edit(workspace / "tests/weather.md", "Tell me how is", "How is")
    evalstore("run", "tests/other.md")
    edit(workspace / "tests/weather.md", "How is", "Tell me how is")
    evalstore("run")
    assert edits(evalstore) == []  # what no run judged was no edit
    named = [[str(each) for each in entry.edits] for entry in log(Location(workspace)).entries]
    assert named == [[], [], [], ["tests/weather.md changed"], [], []]


def test_new_removed_and_renamed_files_are_named_and_many_are_counted(
    workspace: Path, evalstore: Evalstore
) -> None:
    names = ("a", "b", "c", "d")
    tree(workspace, {f"tests/{name}.md": ASKED.format(name) for name in names})
    evalstore("run")
    (workspace / "tests/d.md").rename(workspace / "tests/delta.md")
    (workspace / "tests/weather.md").unlink()
    tree(workspace, {"tests/new.md": "# 👤\n\nWhat is new?\n\n---\n\nAll.\n"})
    evalstore("run")
    assert edits(evalstore) == [
        "tests/d.md renamed to tests/delta.md",
        "tests/new.md new",
        "tests/weather.md removed",
    ]
    (workspace / "tests/new.md").rename(workspace / "tests/newer.md")
    (workspace / "tests/a.md").unlink()
    evalstore("run", "tests/b.md")
    assert edits(evalstore) == []  # it does not tell what became of these
    evalstore("run", "tests/newer.md")
    assert edits(evalstore) == ["tests/new.md renamed to tests/newer.md"]
    evalstore("run")
    assert edits(evalstore) == ["tests/a.md removed"]
    edit((workspace / "tests/newer.md").rename(workspace / "tests/newest.md"), "All.", "Much.")
    evalstore("run")
    assert edits(evalstore) == ["tests/newer.md renamed to tests/newest.md and changed"]
    tree(workspace, {"tests/a.md": ASKED.format("a")})
    evalstore("run")
    assert edits(evalstore) == ["tests/a.md new"]
    for name in ("a", "b", "c"):
        edit(workspace / f"tests/{name}.md", "letter", "word")
    evalstore("run")
    assert edits(evalstore) == ["tests/a.md, tests/b.md, tests/c.md changed"]
    for name in ("a", "b", "c", "delta"):
        edit(workspace / f"tests/{name}.md", "?", "")
    evalstore("run")
    assert edits(evalstore) == ["tests/a.md, tests/b.md and 2 more changed"]


@pytest.mark.parametrize(
    ("edited", "expected"),
    [
        ({"prompts/brief.md": "Be very brief."}, ["system prompt brief changed"]),
        (
            {"prompts/brief.md": "One word.", "prompts/kind.md": "Smile."},
            ["system prompts brief, kind changed"],
        ),
        (
            {"prompts/kind.md": "Smile.", "tests/weather.md": f"{PROMPTED}And short.\n"},
            ["system prompt kind changed", *CHANGED],
        ),
        ({"tests/weather.md": PROMPTED.replace("brief, kind", "kind, brief")}, CHANGED),
        ({"tests/weather.md": PROMPTED.replace("brief,", "plain,")}, CHANGED),
        ({"tests/weather.md": PROMPTED.replace("brief,", "plain, brief,")}, CHANGED),
    ],
)
def test_an_edited_system_prompt_is_named_not_the_tests_that_use_it(
    workspace: Path, evalstore: Evalstore, edited: dict[str, str], expected: list[str]
) -> None:
    texts = {"brief": "Be brief.", "kind": "Be kind.", "plain": "Use plain words."}
    prompts = {f"prompts/{name}.md": text for name, text in texts.items()}
    tree(workspace, {"tests/weather.md": PROMPTED, **prompts})
    evalstore("run")
    tree(workspace, edited)
    evalstore("run")
    assert edits(evalstore) == expected


def test_author_and_commit_are_cut_before_what_changed(
    workspace: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    author = "Nu with a name that is rather long"
    configure = (["config", "user.name", author], ["config", "user.email", "nu@example.org"])
    for argv in (["init", "-q"], *configure, ["add", "."], ["commit", "-qm", "Begin"]):
        subprocess.run(["git", *argv], check=True)
    evalstore("run")
    edit(workspace / "tests/weather.md", "How is", "Tell me how is")
    evalstore("run")
    whole = evalstore("log", "--oneline").stdout.splitlines()[0]
    order = ["  tests/weather.md changed", f"  by {author}", "  git "]
    assert [part for part in sorted(order, key=whole.index) if part in whole] == order
    monkeypatch.setenv("COLUMNS", "80")
    cut = evalstore("log", "--oneline").stdout.splitlines()[0]
    assert "tests/weather.md changed" in cut
    assert len(cut) <= 80
    assert "  git " not in cut


USES = {
    "prompts/brief.md": "systemPrompts: [brief]",
    "tests/rows.csv": "dataset: rows.csv",
    "tools/get.yaml": "availableTools: [get]",
    "schemas/s.json": "structuredResponseSchema: s",
}
USED = {
    "prompts/brief.md": ("Be brief.\n", "Be very brief.\n", "system prompt brief"),
    "tests/rows.csv": ("city\nRome\n", "city\nOslo\n", "rows of tests/rows.csv"),
    "tools/get.yaml": (
        "id: get\nname: get\ndescription: a\nparameters: {type: object}\n",
        "id: get\nname: get\ndescription: b\nparameters: {type: object}\n",
        "tool get",
    ),
    "schemas/s.json": ('{"type": "object"}', '{"type": "array"}', "schema s"),
}


@pytest.mark.parametrize("path", USES)
def test_what_many_test_files_use_is_named_also_when_its_edit_is_undone(
    workspace: Path, evalstore: Evalstore, documents: Any, path: str
) -> None:
    before, after, name = USED[path]
    test = f"---\n{USES[path]}\n---\n{ASKED}"
    word = "{{city}} " if path == "tests/rows.csv" else ""
    files = {f"tests/many{number}.md": test.format(f"{word}{number}") for number in range(12)}
    tree(workspace, {**files, path: before})
    evalstore("run")
    for text in (after, before):
        tree(workspace, {path: text})
        evalstore("run")
        assert edits(evalstore) == [f"{name} changed"]
        assert f"  {name} changed\n" in evalstore("log", "--oneline", "-n", "1").stdout
        (run,) = documents("log", "-n", "1")["runs"]
        assert [each["what"] for each in run["edits"]] == [f"{name} changed"]


def test_of_what_is_not_looked_up_less_is_said(
    workspace: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    test = f"---\nsystemPrompts: [brief]\n---\n{ASKED}"
    files = {f"tests/many{number:02}.md": test.format(number) for number in range(12)}
    tree(workspace, {**files, "prompts/brief.md": "Be brief.\n"})
    evalstore("run")
    tree(workspace, {"prompts/brief.md": "Be kind.\n"})
    evalstore("run")
    monkeypatch.setattr(edited_files, "compare_sources", lambda *_: None)
    assert edits(evalstore) == ["cases of tests/many00.md, tests/many01.md and 10 more changed"]


def test_the_log_of_a_file_names_the_runs_since_which_it_was_gone_and_is_back(
    workspace: Path, evalstore: Evalstore, documents: Any
) -> None:
    tree(workspace, {"tests/other.md": WEATHER.replace("How is", "Where is")})
    evalstore("run")
    (workspace / "tests/weather.md").unlink()
    evalstore("run")
    evalstore("run")
    listed = documents("log", "tests/weather.md")["runs"]
    assert [[each["what"] for each in run["edits"]] for run in listed] == [["removed"], ["new"]]
    shown = evalstore("show", "tests/weather.md")
    assert shown.stderr == (
        "error: run <short> has no test file 'tests/weather.md': it was removed\n"
        "hint: 'evalstore show <short>:tests/weather.md' shows its last version\n"
    )
    tree(workspace, {"tests/weather.md": WEATHER.replace("How is", "How warm is")})
    evalstore("run")
    listed = documents("log", "tests/weather.md")["runs"]
    assert [[each["what"] for each in run["edits"]] for run in listed] == [
        *(["restored", "message 1, line 1 in [city=Oslo] and 1 other row"], ["removed"], ["new"]),
    ]
    assert "    edit: restored\n" in evalstore("log", "tests/weather.md::city=Oslo").stdout
