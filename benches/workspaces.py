"""Generated workspaces: many small test files, one scripted candidate, one scripted judge.

All of it is a function of the number, so that two measurements measure the same files.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

ROWS = 2
"""Cases of each test file."""
_IN_A_FOLDER = 100
_PAST = 1_700_000_000
"""Modification time of all files: long ago, as in a workspace that was checked out."""
_GRAIN_SECONDS = 1.1
"""A file younger than a second when it is read is read again, by design."""

_SETTINGS = """\
candidates:
  - id: candidate
evaluators:
  - id: judge
"""
_QUESTION = (
    "A traveller wants to see {{city}} in three days, walks a lot, does not care for museums, and "
    "eats no meat. Which places should she see on each day, and what should she eat there? Answer "
    "in two sentences."
)
_INSTRUCTIONS = (
    "The answer must name places that exist, in an order that makes sense on foot, and food "
    "without meat. It has at most two sentences, and one of them mentions the place {{expected}}; "
    "another order is fine."
)
ANSWER = (
    "On the first day she should walk along the harbour and through the old town, on the second "
    "day up the hill with its view, and on the third to the market, where soup with beans and "
    "fresh bread is good."
)
FEEDBACK = (
    "The places exist and lie on one way, the food has no meat, and there are not more than two "
    "sentences; the place that was asked for is mentioned in the second half of the first of the "
    "two of them."
)
_CANDIDATE = f"""\
id: candidate
provider: scripted
responses:
  - answer: {ANSWER}
"""
_JUDGE = f"""\
id: judge
provider: scripted
responses:
  - answer: {{pass: true, feedback: "{FEEDBACK}"}}
"""


def make_workspace(root: Path, files: int) -> None:
    """Write a workspace with so many test files; it is settled when this returns."""
    texts = {
        "evalstore.yaml": _SETTINGS,
        "models/candidate.yaml": _CANDIDATE,
        "models/judge.yaml": _JUDGE,
        ".gitignore": ".evalstore/\n",
        **{test_path(number): _test(number) for number in range(files)},
    }
    for name, text in texts.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        os.utime(path, (_PAST, _PAST))
    settle()


def settle() -> None:
    """Wait until the files that were just written are old enough to be trusted."""
    time.sleep(_GRAIN_SECONDS)


def test_path(number: int) -> str:
    """The path of a test file in its workspace."""
    return f"tests/topic-{number // _IN_A_FOLDER:03}/test-{number:05}.md"


def edit_instruction(root: Path, number: int, edition: int) -> None:
    """Change what the evaluator is told about one of the cases of a test file."""
    (root / test_path(number)).write_text(_test(number, f"Bridge {edition}"), encoding="utf-8")


def _test(number: int, first: str = "Harbour") -> str:
    return f"""\
---
tags: [travel]
replacements:
  - {{city: Oslo {number}, expected: {first}}}
  - {{city: Bergen {number}, expected: Market}}
---

# 👤

{_QUESTION}

---

{_INSTRUCTIONS}
"""


def text_of_session() -> int:
    """Bytes of the texts of one answered and judged case: what it is asked, told, said, and why."""
    return sum(len(text.encode()) for text in (_QUESTION, _INSTRUCTIONS, ANSWER, FEEDBACK))
