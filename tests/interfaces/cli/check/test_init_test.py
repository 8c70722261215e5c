"""`init FILE.md` writes a test file that works, and `init` ends with commands that work."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import jsonschema
import pytest

from evalstore.exchange.init import _NEW_TEST
from evalstore.providers.base import EXAMPLE
from evalstore.workspace.testfiles.parser import TEST_FIELDS, parse_test, read_test
from tests.builders import tree
from tests.interfaces.cli.conftest import Evalstore, Ran
from tests.interfaces.cli.test_documents import schema_of

TEMPLATE = _NEW_TEST.read_text("utf-8")


def test_a_new_test_says_how_to_run_it(workspace: Path, evalstore: Evalstore) -> None:
    assert evalstore("init", "tests/shop/hello.md") == Ran(
        0,
        "wrote tests/shop/hello.md\n",
        "Next: edit it, then run it:\n  evalstore run tests/shop/hello.md\n",
    )
    assert (workspace / "tests/shop/hello.md").read_text(encoding="utf-8") == TEMPLATE


def test_a_new_test_has_the_headings_of_the_documentation() -> None:
    assert "\n# User\n" in TEMPLATE
    assert "\n# 👤\n" not in TEMPLATE


def test_a_new_test_passes_check(workspace: Path, evalstore: Evalstore) -> None:
    evalstore("init", "tests/hello.md")
    assert evalstore("check", "tests/hello.md") == Ran(0, "1 test file, 1 case: no errors\n", "")


def test_the_document_of_a_new_test_has_its_shape(workspace: Path, documents: object) -> None:
    assert callable(documents)
    document = documents("init", "tests/hello.md")
    jsonschema.Draft202012Validator(schema_of(["init", "tests/hello.md"])).validate(document)
    assert document["next"] == "evalstore run tests/hello.md"


@pytest.mark.parametrize(
    ("typed", "written"),
    [("tests/v1.5.md", "v1.5.md"), ("tests/x/../a b.md", "a b.md")],
)
def test_the_place_may_be_written_in_any_form(
    workspace: Path, evalstore: Evalstore, typed: str, written: str
) -> None:
    ran = evalstore("init", typed)
    assert (ran.exit_code, ran.stdout) == (0, f"wrote tests/{written}\n")
    assert shlex.split(ran.stderr.splitlines()[-1]) == ["evalstore", "run", typed]
    assert (workspace / "tests" / written).exists()


def test_a_new_test_counts_from_the_current_folder(
    workspace: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace / "tests")
    ran = evalstore("init", "hello.md")
    assert (ran.stdout, ran.stderr.splitlines()[-1]) == (
        "wrote tests/hello.md\n",
        "  evalstore run hello.md",
    )


def test_the_next_command_names_models_when_the_settings_name_none(
    workspace: Path, evalstore: Evalstore
) -> None:
    tree(workspace, {"evalstore.yaml": ""})
    assert evalstore("init", "tests/hello.md").stderr.splitlines()[-1] == (
        "  evalstore run tests/hello.md -m openai/gpt-5.4-mini -J openai/gpt-5.4-mini"
    )


@pytest.mark.parametrize("existing", ["a file", None])
def test_a_new_test_overwrites_nothing(
    workspace: Path, evalstore: Evalstore, tmp_path: Path, existing: str | None
) -> None:
    file = workspace / "tests/hello.md"
    if existing:
        file.write_text(existing)
    else:
        file.symlink_to(tmp_path / "elsewhere.md")
    assert evalstore("init", "tests/hello.md") == Ran(
        2,
        "",
        "error: 'tests/hello.md' exists already\n"
        "hint: choose another name; files are never overwritten\n",
    )
    assert not (tmp_path / "elsewhere.md").exists()
    assert existing is None or file.read_text() == existing


@pytest.mark.parametrize("place", ["hello.md", "prompts/hello.md", "../hello.md", "/tmp/hello.md"])
def test_a_new_test_is_in_the_folder_of_tests(
    workspace: Path, evalstore: Evalstore, place: str
) -> None:
    assert evalstore("init", place) == Ran(
        2,
        "",
        f"error: '{place}' is not in the folder of tests, 'tests'\n"
        "hint: write 'evalstore init tests/hello.md'\n",
    )


def test_the_folder_of_tests_is_that_of_the_settings(workspace: Path, evalstore: Evalstore) -> None:
    tree(workspace, {"evalstore.yaml": "paths: {tests: cases}\n"})
    assert "hint: write 'evalstore init cases/a.md'\n" in evalstore("init", "tests/a.md").stderr
    assert evalstore("init", "cases/a.md").exit_code == 0


@pytest.mark.parametrize("name", ["tests/.hidden.md", "tests/.x/a.md", "tests/README.md"])
def test_a_new_test_is_not_a_file_that_is_ignored(
    workspace: Path, evalstore: Evalstore, name: str
) -> None:
    ran = evalstore("init", name)
    assert ran.exit_code == 2
    assert "would not be read as a test\n" in ran.stderr
    assert not (workspace / name).exists()


def test_a_new_test_is_not_in_a_linked_folder(
    workspace: Path, evalstore: Evalstore, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (workspace / "tests/linked").symlink_to(tmp_path / "elsewhere")
    ran = evalstore("init", "tests/linked/a.md")
    assert ran.exit_code == 2
    assert "would not be read as a test" in ran.stderr
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_name_with_a_row_is_refused(workspace: Path, evalstore: Evalstore) -> None:
    assert evalstore("init", "tests/a::b.md").exit_code == 2


@pytest.mark.parametrize("name", ["tests/" + "a" * 300 + ".md", "tests/weather.md/a.md"])
def test_what_cannot_be_written_is_an_error(
    workspace: Path, evalstore: Evalstore, name: str
) -> None:
    ran = evalstore("init", name)
    assert ran.exit_code == 2
    assert ran.stderr.startswith("error: ")
    assert "cannot be written: " in ran.stderr


def test_the_fields_of_the_template_can_be_used() -> None:
    used = re.sub(r"^# (?=\w+: )", "", TEMPLATE, flags=re.MULTILINE)
    test, collector = read_test("tests/a.md", used)
    assert collector.problems == []
    assert collector.warnings == []
    assert (test.attempts, test.threshold, test.options.temperature) == (3, 0.8, 0.5)
    names = re.findall(r"^# (\w+): ", TEMPLATE, flags=re.MULTILINE)
    assert len(names) == 5
    assert set(names) <= set(TEST_FIELDS)


def test_the_comments_of_the_template_are_not_sent() -> None:
    test = parse_test("tests/a.md", TEMPLATE)
    assert [turn.section.text for turn in test.turns] == [
        "What is the capital of France? Answer in one sentence."
    ]
    assert test.instructions is not None
    assert "<!--" not in test.instructions.text
    assert len(test.checks.entries if test.checks else ()) == 2


# --- a new workspace


def test_new_settings_name_the_same_model_as_other_messages(
    tmp_path: Path, evalstore: Evalstore
) -> None:
    evalstore("init", str(tmp_path / "new"))
    assert f"such as {EXAMPLE}\n" in (tmp_path / "new/evalstore.yaml").read_text("utf-8")


# --- the commands with which `init` ends


def next_commands(ran: Ran) -> list[list[str]]:
    """The commands that a message lists under `Next:`."""
    listed = ran.stderr.partition("Next:\n")[2].splitlines()
    return [shlex.split(line) for line in listed]


@pytest.mark.parametrize(
    "options", [(), ("--example",), ("new place",), ("--example", "new place")], ids=" ".join
)
def test_the_commands_of_init_work(
    evalstore: Evalstore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: tuple[str, ...],
) -> None:
    monkeypatch.chdir(tmp_path)
    commands = next_commands(evalstore("init", *options))
    if commands[0][0] == "cd":
        monkeypatch.chdir(commands.pop(0)[1])
    *new, run, view = commands
    assert [run[1], view] == ["run", ["evalstore", "view"]]
    assert [command[1] for command in new] == ([] if "--example" in options else ["init"])
    assert all(evalstore(*command[1:]).exit_code == 0 for command in new)
    ran = evalstore(*run[1:], "--fail-on", "none")
    assert (ran.exit_code, "pending" in ran.stdout) == (0, False), ran.stderr


def test_the_first_test_of_a_new_workspace_passes(
    evalstore: Evalstore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    evalstore("init")
    ran = evalstore("init", "tests/first.md")
    run = next(iter(ran.stderr.splitlines()[1:])).split()
    assert evalstore(*run[1:]).stdout.startswith("1 pass (100.0%")


def test_init_names_models_where_the_settings_name_none(
    evalstore: Evalstore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tree(tmp_path, {"evalstore.yaml": "paths: {tests: cases}\n"}))
    assert next_commands(evalstore("init")) == [
        ["evalstore", "init", "cases/hello.md"],
        ["evalstore", "run", "-m", "openai/gpt-5.4-mini", "-J", "openai/gpt-5.4-mini"],
        ["evalstore", "view"],
    ]


def test_init_names_a_test_that_is_not_there_yet(
    evalstore: Evalstore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = ("hello", "first", "second", "third", "test1")
    files = {f"tests/{name}.md": "# 👤\n\nHi\n\n---\n\nx\n" for name in taken}
    monkeypatch.chdir(tree(tmp_path, {"evalstore.yaml": "", **files}))
    assert next_commands(evalstore("init"))[0] == ["evalstore", "init", "tests/test2.md"]


def test_printed_commands_repeat_the_folder_that_was_named(
    workspace: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace.parent)
    name = workspace.name
    ran = evalstore("-C", name, "init", "tests/hello.md")
    assert ran.stderr.endswith(f"\n  evalstore -C {name} run tests/hello.md\n")
    assert evalstore(*shlex.split(ran.stderr.splitlines()[-1])[1:-1], "-n").exit_code == 0
    made = evalstore("init", "-C", name).stderr
    assert f"  evalstore -C {name} init tests/" in made
    assert f"  evalstore -C {name} view\n" in made
    other = evalstore("-C", name, "init", "inner one").stderr
    assert f"  cd '{name}/inner one'\n  evalstore init tests/" in other
