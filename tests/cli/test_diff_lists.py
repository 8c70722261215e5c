"""What `diff` lists of changes that change no verdict, and how it names system prompts."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import tree
from tests.cli.conftest import Echo, Evalstore

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
def edited(echo: Echo, evalstore: Evalstore) -> None:
    """Two runs, between which the system prompt was edited: one answer breaks, one is the same."""
    tree(Path.cwd(), {"tests/a.md": TEST})
    for prompt, replies in (
        ("Be brief.", {"Say A.": "yes", "Say B.": "no", "Say C.": "No!"}),
        ("Be very brief.", {"Say A.": "maybe", "Say B.": "no", "Say C.": "Never!"}),
    ):
        tree(Path.cwd(), {"prompts/brief.md": f"{prompt}\n"})
        echo.reply = replies.__getitem__
        evalstore("run", "-q")


def test_equal_answers_to_another_system_prompt_are_called_so(
    edited: None, evalstore: Evalstore, documents: Any
) -> None:
    printed = evalstore("diff", "@~1", "@").stdout
    assert printed.count("(system prompt changed") == 3
    assert printed.count("(system prompt changed, the same answer)") == 1
    assert "[word=B]  scripted/one  fail  (system prompt changed, the same answer)" in printed
    flips = evalstore("diff", "@~1", "@", "--flips").stdout
    assert "Broke (1):" in flips
    assert "Changed" not in flips
    assert "1 broke, 2 changed, 0 unchanged" in flips
    rows = evalstore("diff", "@~1", "@", "--flips", "-o", "jsonl").stdout.splitlines()
    assert [json.loads(row)["row"] for row in rows] == ["word=A"]
    assert evalstore("diff", "@~1", "@", "--flips", "--name-only").stdout == "tests/a.md\n"
    assert len(documents("diff", "@~1", "@", "--flips")["changed"]) == 2


def test_a_table_names_the_system_prompt(edited: None, evalstore: Evalstore) -> None:
    table = csv.DictReader(evalstore("diff", "@~1", "@", "-o", "csv").stdout.splitlines())
    assert {row["promptName"] for row in table} == {"brief"}
