"""The examples of docs/formats.md are files that can be used."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from evalstore.cli.main import main

PAGE = (Path(__file__).parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")
EXAMPLE = re.compile(r"^<!-- file: (\S+) -->\n(`{3,})\w+\n(.*?)^\2$", re.DOTALL | re.MULTILINE)
HELLO = "# 👤\n\nHello\n\n---\n\nExpect a greeting.\n"


def sections() -> dict[str, dict[str, str]]:
    """The files of each section, by its heading."""
    parts = re.split(r"^## (.*)\n", PAGE, flags=re.MULTILINE)[1:]
    found = {
        heading: {path: text for path, _, text in EXAMPLE.findall(body)}
        for heading, body in zip(parts[::2], parts[1::2], strict=True)
    }
    return {heading: files for heading, files in found.items() if files}


@pytest.mark.parametrize("heading", sections())
def test_check_finds_nothing_wrong_with_the_examples(
    heading: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {"evalstore.yaml": "", **sections()[heading]}
    if not any(path.endswith(".md") and not path.startswith("prompts/") for path in files):
        files["tests/hello.md"] = HELLO
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")

    if code_files := [path for path in files if path.endswith(".py")]:
        assert main(["-C", str(tmp_path), "trust", *code_files]) == 0
        capsys.readouterr()

    code = main(["-C", str(tmp_path), "check", "--json"])

    printed, said = capsys.readouterr()
    assert (code, said) == (0, "")
    assert json.loads(printed)["problems"] == []


def test_every_example_is_marked() -> None:
    fenced = re.findall(r"^(?:<!-- file: \S+ -->\n)?```(?:yaml|markdown)$", PAGE, re.MULTILINE)

    assert fenced
    assert [one for one in fenced if not one.startswith("<!--")] == []


def test_every_setting_is_described() -> None:
    from evalstore.settings import SETTING_NAMES

    settings = PAGE.partition("\n## Settings\n")[2].partition("\n## ")[0]
    missing = [name for name in SETTING_NAMES if f"`{name}`" not in settings]
    assert missing == []


def test_every_field_of_a_test_is_described() -> None:
    from evalstore.parse import TEST_FIELDS

    tests = PAGE.partition("\n## Test files\n")[2].partition("\n## ")[0]
    assert [name for name in TEST_FIELDS if f"`{name}`" not in tests] == []


def test_every_check_is_described() -> None:
    from evalstore.checks import known_kinds

    checks = PAGE.partition("\n## Checks\n")[2].partition("\n## ")[0]
    assert [name for name in known_kinds() if f"`{name}`" not in checks] == []


def test_every_field_of_a_dataset_is_described() -> None:
    from evalstore.dataset.spec import FIELDS

    datasets = PAGE.partition("\n## Datasets\n")[2].partition("\n## ")[0]
    assert [name for name in FIELDS if f"`{name}`" not in datasets] == []
