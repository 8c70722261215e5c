"""Generates workspaces: many small test files, one scripted candidate, one scripted judge.

Everything is a function of the numbers, so that two measurements use the same files.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

ROWS = 2
"""Cases of each test file."""
_IN_A_FOLDER = 100
_PAST = 1_700_000_000
"""The modification time of all files: long ago, as in an old checkout."""
_GRAIN_SECONDS = 1.1
"""Seconds: a file that is younger than a second when it is read is read again, by design."""

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
    """Write a workspace with this many test files, and wait until they are old enough."""
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
    """Wait until files that were just written are not read again."""
    time.sleep(_GRAIN_SECONDS)


def forget(root: Path) -> None:
    """Remove the store and the index of a workspace."""
    shutil.rmtree(root / ".evalstore", ignore_errors=True)


def test_path(number: int) -> str:
    """The path of a test file in its workspace."""
    return f"tests/topic-{number // _IN_A_FOLDER:03}/test-{number:05}.md"


def edit_instruction(root: Path, number: int, edition: int) -> None:
    """Change the instructions of one of the cases of a test file."""
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


# --- the report: rows with different answers of two candidates

_REPORTED_ROWS = 20
_REPORTED_PRICE = "costs: [{costPerPromptToken: 0.000001, costPerCompletionToken: 0.00001}]\n"
_REPORTED_TEST = """\
---
tags: [travel, topic-{topic}]
replacements:
{rows}---

# 👤

{question}

---

{instructions}
"""


def make_reported(root: Path, cases: int, edition: int) -> None:
    """Write a workspace of two candidates whose answers to neighbouring cases differ.

    A third of the answers has Markdown. In edition 1 a tenth of the questions is another one.
    """
    names = ("large", "small")
    _write(root, "evalstore.yaml", f"candidates: [{', '.join(names)}]\nevaluators: [judge]\n")
    for name in names:
        entries = [
            {
                "when": f"Oslo [0-9]*{number:02} in {days}",
                "answer": _reported_answer(f"{name}, {number} of {days}"),
            }
            for days in ("three", "four")
            for number in range(100)
        ]
        _write(root, f"models/{name}.yaml", _script(name, entries) + _REPORTED_PRICE)
    verdicts = [
        {"when": "small, [0-9]*7 of", "answer": {"pass": False, "feedback": FEEDBACK}},
        {"answer": {"pass": True, "feedback": FEEDBACK}},
    ]
    _write(root, "models/judge.yaml", _script("judge", verdicts))
    for number in range(cases // _REPORTED_ROWS):
        first = number * _REPORTED_ROWS
        rows = range(first, first + _REPORTED_ROWS)
        is_new = edition and number % 10 == 0
        text = _REPORTED_TEST.format(
            topic=number % 7,
            rows="".join(f"  - {{city: Oslo {row:05}, expected: Harbour}}\n" for row in rows),
            question=_QUESTION.replace("three", "four") if is_new else _QUESTION,
            instructions=_INSTRUCTIONS,
        )
        _write(root, f"tests/topic-{number // _IN_A_FOLDER:03}/test-{number:05}.md", text)
    settle()


def _script(name: str, entries: Sequence[object]) -> str:
    return f"id: {name}\nprovider: scripted\nresponses: {json.dumps(entries)}\n"


def _reported_answer(words: str) -> str:
    """The answer of a candidate; every third has Markdown."""
    if len(words) % 3:
        return f"{ANSWER} It is {words}."
    return f"**Plan** ({words})" + ANSWER.replace(", ", ",\n- ")


# --- load: few files with many rows, a model on loopback, one check

_LOAD_ROWS = 100
_LOOPBACK = "code: loopback\ntype: openai-compatible\nbaseURL: {url}\n"


def make_load(root: Path, questions: int, url: str) -> None:
    """Write a workspace with this many questions, a multiple of 100, to the model at this address.

    Each answer is judged by one check, that it is a JSON object. One question is in a separate
    file, which `write_question` changes.
    """
    _write(root, "providers/loopback.yaml", _LOOPBACK.format(url=url))
    for name in ("candidate", "judge"):
        _write(root, f"models/{name}.yaml", f"id: {name}\nprovider: loopback\n")
    _write(root, "evalstore.yaml", "candidates: [candidate]\nevaluators: [judge]\n")
    for first in range(0, questions, _LOAD_ROWS):
        rows = range(first, min(first + _LOAD_ROWS, questions - 1))
        cities = "".join(f"  - {{city: Oslo {row}}}\n" for row in rows)
        text = f"---\ntags: [_json_mode]\nreplacements:\n{cities}---\n\n# 👤\n\n{_QUESTION}\n"
        _write(root, f"tests/load-{first:05}.md", text)
    write_question(root, "Rome")
    settle()


def make_files(root: Path, files: int, url: str) -> None:
    """Write a workspace with this many files of one question, to the model at this address."""
    _write(root, "providers/loopback.yaml", _LOOPBACK.format(url=url))
    _write(root, "models/candidate.yaml", "id: candidate\nprovider: loopback\n")
    _write(root, "evalstore.yaml", "candidates: [candidate]\n")
    for number in range(files):
        edit_file(root, number, 0)
    settle()


def edit_file(root: Path, number: int, edition: int) -> None:
    """Write one of these files, with another question for each edition."""
    city = f"Oslo {number}" + f", edition {edition}" * bool(edition)
    question = _QUESTION.replace("{{city}}", city)
    text = f"---\ntags: [_json_mode]\n---\n\n# 👤\n\n{question}\n"
    _write(root, f"tests/topic-{number // _IN_A_FOLDER:03}/test-{number:05}.md", text)


def write_question(root: Path, city: str, instructions: str = "") -> None:
    """Write the separate question; with instructions a model judges it, else the check."""
    question = f"# 👤\n\n{_QUESTION.replace('{{city}}', city)}\n"
    head, tail = (
        ("", f"\n---\n\n{instructions}\n")
        if instructions
        else ("---\ntags: [_json_mode]\n---\n\n", "")
    )
    _write(root, "tests/one.md", head + question + tail)


def load_question(number: int) -> str:
    """The question with this number in a workspace of `make_load`."""
    return _QUESTION.replace("{{city}}", f"Oslo {number}")


def _write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def text_of_session() -> int:
    """Bytes of the texts of one judged case: question, instructions, answer and feedback."""
    return sum(len(text.encode()) for text in (_QUESTION, _INSTRUCTIONS, ANSWER, FEEDBACK))
