"""`schema` prints and writes the JSON Schemas of the files."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from evalstore.workspace.schemas import TITLES, load_schema
from tests.interfaces.cli.conftest import Evalstore, Ran


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # no workspace is needed


@pytest.mark.parametrize("kind", TITLES)
def test_a_schema_is_printed(evalstore: Evalstore, kind: str) -> None:
    ran = evalstore("check", "--schema", kind)
    assert (ran.exit_code, ran.stderr) == (0, "")
    printed = json.loads(ran.stdout)
    assert printed == load_schema(kind)
    jsonschema.Draft202012Validator.check_schema(printed)
    assert printed["$schema"] == "https://json-schema.org/draft/2020-12/schema"


def test_the_kinds_are_listed(evalstore: Evalstore) -> None:
    assert evalstore("check", "--schema") == Ran(
        0,
        "KIND         FILES\n"
        "frontmatter  the frontmatter of test files\n"
        "checks       the block of checks in test files\n"
        "prompt       the frontmatter of prompts\n"
        "settings     evalstore.yaml\n"
        "model        model files\n"
        "provider     provider files\n"
        "currency     currency files\n"
        "tool         tool files\n",
        "'evalstore check --schema KIND' prints one, '--schema --into DIR' writes all.\n",
    )


def test_an_unknown_kind_is_an_error_with_the_nearest_name(evalstore: Evalstore) -> None:
    expected = Ran(2, "", "error: unknown schema 'modle'\nhint: did you mean 'model'?\n")
    assert evalstore("check", "--schema", "modle") == expected
    assert evalstore("check", "--schema", "modle", "--into", "out") == expected
    assert not Path("out").exists()


def test_all_schemas_are_written(evalstore: Evalstore) -> None:
    names = [f"{kind}.schema.json" for kind in TITLES]
    for _ in range(2):  # those of an earlier version are replaced
        ran = evalstore("check", "--schema", "--into", "a/b")
        assert ran == Ran(0, "".join(f"wrote a/b/{name}\n" for name in names), "")
    assert sorted(path.name for path in Path("a/b").iterdir()) == sorted(names)
    assert json.loads(Path("a/b/tool.schema.json").read_text()) == load_schema("tool")


def test_one_schema_is_written(evalstore: Evalstore) -> None:
    assert (
        evalstore("check", "--schema", "tool", "--into", "a").stdout == "wrote a/tool.schema.json\n"
    )
    assert [path.name for path in Path("a").iterdir()] == ["tool.schema.json"]


def test_what_cannot_be_written_is_an_error(evalstore: Evalstore) -> None:
    Path("a").write_text("a file")
    ran = evalstore("check", "--schema", "tool", "--into", "a")
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr == "error: 'a/tool.schema.json' cannot be written: File exists\n"
