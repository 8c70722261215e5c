"""What `diff` lists of changes that change no verdict, and how it names system prompts."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from evalstore import Workspace
from tests.builders import tree
from tests.interfaces.cli.conftest import Echo, Evalstore

TEST = """\
---
systemPrompts: [brief]
replacements:
  word: [A, B, C]
---

# 👤

Say {{word}}.

---

```checks
- contains: 'yes'
```
"""


@pytest.fixture
def edited(echo: Echo, evalstore: Evalstore) -> str:
    """Two runs, between which the system prompt was edited: one answer breaks, one is the same."""
    tree(Path.cwd(), {"tests/a.md": TEST})
    for prompt, replies in (
        ("Be brief.", {"Say A.": "yes", "Say B.": "no", "Say C.": "No!"}),
        ("Be very brief.", {"Say A.": "maybe", "Say B.": "no", "Say C.": "Never!"}),
    ):
        tree(Path.cwd(), {"prompts/brief.md": f"{prompt}\n"})
        echo.reply = replies.__getitem__
        ran = evalstore("run")
    return ran.stdout


def test_equal_answers_to_another_system_prompt_are_called_so(
    edited: str, evalstore: Evalstore, documents: Any
) -> None:
    assert edited.startswith("since the last run: 1 broke, 1 changed, 1 with the same answer\n")
    assert [line[line.index("<short>") :] for line in edited.splitlines() if "tests/" in line] == [
        "<short>  (broke)",
        "<short>  (still fails)",
        "<short>  (changed)",
    ]
    numbers = "1 broke, 1 changed, 1 with the same answer\n"
    ran = evalstore("diff", "@~1", "@")
    assert numbers in ran.stdout
    assert numbers in evalstore("report", "--markdown").stdout
    assert ran.stdout.count("(system prompt changed)") == 2
    assert "word=B" not in ran.stdout
    assert "(-v lists those with the same answer)" in ran.stderr
    printed = evalstore("diff", "@~1", "@", "-v").stdout
    assert "Same answer (1):\n" in printed
    assert "[word=B]  scripted/one  fail  (system prompt changed)" in printed
    html = Workspace(Path.cwd()).diff("@~1", "@")._repr_html_()
    assert "1 changed, 0 new, 0 gone, 1 with the same answer, 0 unchanged" in html
    assert "word=B" not in html
    flips = evalstore("diff", "@~1", "@", "--flips").stdout
    assert "Broke (1):" in flips
    assert "Changed" not in flips
    assert numbers in flips
    rows = evalstore("diff", "@~1", "@", "--flips", "-o", "jsonl").stdout.splitlines()
    assert [json.loads(row)["row"] for row in rows] == ["word=A"]
    assert evalstore("diff", "@~1", "@", "--flips", "--name-only").stdout == "tests/a.md\n"
    document = documents("diff", "@~1", "@", "--flips")
    assert [pair.get("sameAnswer") for pair in document["changed"]] == [True, None]
    assert document["sameAnswer"] == 1


def test_a_table_names_the_system_prompt(edited: str, evalstore: Evalstore) -> None:
    table = csv.DictReader(evalstore("diff", "@~1", "@", "-o", "csv").stdout.splitlines())
    assert {row["promptName"] for row in table} == {"brief"}


def test_a_row_alone_is_compared(edited: str, evalstore: Evalstore) -> None:
    assert "3 results in 1 file" in evalstore("diff", "@~1", "@").stdout
    for row in ("tests/a.md::word=A", "tests/a.md [word=A]"):
        shown = evalstore("diff", "@~1", "@", "--", row).stdout
        assert "[word=A]" in shown
        assert "word=B" not in shown
        assert "1 result in 1 file" in shown
    work = evalstore("diff", "--", "tests/a.md::word=A").stdout
    assert "1 unchanged" in work
    missing = evalstore("diff", "@~1", "@", "--", "tests/a.md::word=Z")
    assert missing.exit_code != 0
    assert "no row is called 'tests/a.md::word=Z'" in missing.stderr


def test_a_row_that_only_the_older_run_has_can_be_named(edited: str, evalstore: Evalstore) -> None:
    tree(Path.cwd(), {"tests/a.md": TEST.replace("[A, B, C]", "[B, C]")})
    evalstore("run", "-q")
    assert "Gone (1):" in evalstore("diff", "@~1", "@", "--", "tests/a.md::word=A").stdout
