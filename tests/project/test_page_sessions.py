"""The shell sessions of the README, the tutorial and the recipes are real.

`python -m tests.project.test_page_sessions [PAGE …]` writes their output into the pages again.
"""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

from tests.project.page_sessions import BLOCK, FILE, PAGES, ROOT, START, normalised, replay

pytestmark = pytest.mark.extended

BY_NAME = {path.relative_to(ROOT).as_posix(): path for path in PAGES}


@pytest.mark.parametrize("name", BY_NAME)
def test_the_sessions_of_a_page_print_what_it_says(name: str, tmp_path: Path) -> None:
    written = BY_NAME[name].read_text(encoding="utf-8")
    if "| jq" in written and not shutil.which("jq"):
        pytest.skip("this page needs jq")

    assert len(BLOCK.findall(written)) == written.count("<!-- run") > 0
    assert len(FILE.findall(written)) == written.count("<!-- write")
    assert len(START.findall(written)) == written.count("<!-- start")
    assert normalised(replay(written, tmp_path)) == normalised(written)


@pytest.mark.parametrize("name", BY_NAME)
def test_every_session_of_a_page_is_run(name: str) -> None:
    written = BY_NAME[name].read_text(encoding="utf-8")
    assert len(re.findall(r"^```console$", written, re.MULTILINE)) == len(BLOCK.findall(written))


def test_no_page_with_sessions_is_left_out() -> None:
    pages = [path for path in ROOT.glob("docs/**/*.md") if "<!-- run" in path.read_text("utf-8")]
    tested_elsewhere = {ROOT / "docs/python.md"}
    assert set(pages) - set(PAGES) - tested_elsewhere == set()


def test_a_session_that_prints_something_else_is_found(tmp_path: Path) -> None:
    page = "<!-- start -->\n<!-- run -->\n```console\n$ echo hello\nbye\n```\n"
    assert normalised(replay(page, tmp_path)) != normalised(page)


def test_every_file_the_readmes_link_to_is_there() -> None:
    for readme in (ROOT / "README.md", ROOT / "example" / "README.md"):
        links = re.findall(r"\]\(([^)#:]+)\)", readme.read_text(encoding="utf-8"))
        missing = [link for link in links if not (readme.parent / link).exists()]
        assert not missing, f"{readme}: {missing}"


def write_again(paths: list[Path]) -> None:
    """Bring the sessions of pages up to date; a page that differs in ids and times alone stays."""
    for path in paths:
        written = path.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            text = replay(written, Path(folder))
        if normalised(text) != normalised(written):
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_again([Path(name).resolve() for name in sys.argv[1:]] or list(PAGES))
