"""The comparison of two versions of the program, on a small workspace."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

from tools.oracle import corpus
from tools.oracle import programs as places
from tools.oracle.__main__ import main
from tools.oracle.builder import Builder
from tools.oracle.corpus import Programs
from tools.oracle.histories import checks, scripted, settings, written_test

ROOT = Path(__file__).parents[2]
WANTED = re.compile(r"^(status --json|log \(in 80.*|diff @~1 @ -o md|export @ --format csv .*)$")
"""Few commands: each takes a tenth of a second."""


def program(path: Path, package: Path = ROOT) -> Path:
    """A program that starts evalstore from a folder."""
    path.write_text(
        f"#!{sys.executable}\nimport sys\n\nsys.path.insert(0, {str(package)!r})\n"
        "from evalstore.__main__ import run\n\nsys.exit(run())\n"
    )
    return path


def with_word(folder: Path, module: str, old: str, new: str) -> Path:
    """A folder with the package, in which one word of a module is another."""
    package = folder / "evalstore"
    shutil.copytree(ROOT / "evalstore", package)
    text = (package / module).read_text()
    assert old in text
    (package / module).write_text(text.replace(old, new))
    (folder / "migrations").symlink_to(ROOT / "migrations")
    return folder


def build(b: Builder) -> None:
    """A workspace with two runs, and an edit between them."""
    b.write(settings(candidates=["model"]) | scripted("model", {"answer": "Oslo"}))
    b.write({"tests/a.md": written_test("Where?", checks("contains: Oslo"))})
    b.run()
    b.edit("tests/a.md", "contains: Oslo", "contains: Riga")
    b.run()


def test_the_same_program_says_the_same_and_another_word_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "_LONG", 200)  # the folders of tests have longer paths
    path, same = tmp_path / "corpus/small.zip", program(tmp_path / "same")
    path.parent.mkdir()
    with Programs(same, tmp_path, 1) as programs:
        count = corpus.make(programs, path, build, tmp_path, WANTED)
        again = list(corpus.compare(programs, path, tmp_path, WANTED))
    assert count == 4
    assert again == [None] * count

    package = with_word(tmp_path / "other", "core/display.py", ' ago"', ' before"')
    other = program(tmp_path / "program", package)
    assert main(["check", str(other), str(path.parent), "--jobs", "1"]) == 1
    said = capsys.readouterr().out
    assert "* small: evalstore log (in 80 columns)\n" in said
    assert re.search(r"^    -.* 6 hours ago$\n^    \+.* 6 hours before$", said, re.MULTILINE)
    assert re.search(r"\n1 of 4 comparisons differ\n$", said)


def test_a_corpus_that_is_not_there_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", str(program(tmp_path / "same")), str(tmp_path), "--only", "a"]) == 2
    assert capsys.readouterr().err.startswith(f"error: {tmp_path}/a.zip: not found\nhint: ")
