"""The README is short, and the blocks for a local server work as they are."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import endpoint
from tests.builders import tree
from tests.project.page_sessions import FILE, ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
MOST_WORDS = 1_500


def test_the_readme_is_short() -> None:
    assert len(README.split()) <= MOST_WORDS


@pytest.mark.parametrize("name", ["README.md", "docs/local-server.md"])
def test_the_block_for_a_local_server_asks_and_judges(name: str, tmp_path: Path) -> None:
    page = (ROOT / name).read_text(encoding="utf-8")
    match = re.search(r"<!-- endpoint -->\n```sh\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    assert match is not None
    files = {path: text for path, _, text in FILE.findall(README)}
    first = tree(tmp_path / "first", files)
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with endpoint.running() as server:
        server.reply = lambda body: (
            json.dumps({"pass": True, "feedback": "", **code_of(body)})
            if "response_format" in body or "JSON" in str(body["messages"])
            else "Hello!"
        )
        block = re.sub(r"http://localhost:\d+/v1", server.url, match[1])
        assert block != match[1]
        environment = os.environ | {"PATH": programs, "HOME": str(tmp_path)}
        command = ["sh", "-c", "set -e\n" + block]
        ran = subprocess.run(command, cwd=first, env=environment, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "1 model called, all answered" in ran.stdout
    assert "1 pass" in ran.stdout
    assert "gate passed" in ran.stdout


def code_of(body: dict[str, object]) -> dict[str, str]:
    """The code that a judge has to repeat, if it was told one."""
    found = re.search(r'"code"[^"]*"([^"\\]+)', json.dumps(body).replace('\\"', '"'))
    return {"code": found[1]} if found else {}
