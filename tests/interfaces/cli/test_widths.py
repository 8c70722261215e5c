"""No command prints a line that is wider than the terminal, however long the names are."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalstore.checks.parser import known_kinds
from evalstore.interfaces.cli import output
from evalstore.interfaces.cli.main import main
from tests.builders import tree

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.extended

REAL = "scripted/claude-3-5-sonnet-20241022"
LONG = "scripted/" + "meta-llama-4-maverick-" * 3 + "instruct"
WIDE = "scripted/通義千問-長文本對話模型-二〇二五年正式版"
JUDGE = "scripted/judge-that-reads-every-answer-twice-20250414"
FILE = "tests/部門/opening-hours-of-the-shop-and-of-its-workshop-on-holidays.md"
SECOND = "tests/退換貨政策與保固期限以及維修服務的所有問題集合.md"
ROW = "A holiday that falls on a Sunday in the week after Easter"
LABEL = "連續假期之後的第一個星期一早上九點以前是否營業的問題集合"
PROMPT = "a-formal-assistant-who-answers-in-one-sentence"
TAG = "a-tag-of-opening-hours-on-holidays-and-weekends"
REMOTE = "a-remote-of-the-whole-team-with-a-long-name"
CHECK = "tests/a-check-of-the-opening-hours-of-shops.py"
ANOTHER = "team/" + "another-folder-" * 5
NEW = "a-new-test-of-the-opening-hours-of-all-shops-of-the-company"
RESULTS = "results-of-the-opening-hours-of-all-shops-of-the-company"
SPEECH = (
    "The shop is open on every day of the week except for holidays, 春節期間全部門市休息不營業。 "
)


def model(id: str, answer: str) -> str:
    """A model whose call fails when it is asked about 失敗."""
    error = "there is no region of that name near here, and no other one answers either"
    return (
        f"id: {id}\nprovider: scripted\nresponses:\n  - {{when: 失敗, error: {error!r}}}\n"
        f"  - {{answer: {answer!r}}}\ncosts: [{{costPerPromptToken: 0.001, "
        "costPerCompletionToken: 0.01}]\n"
    )


QUESTION = f"""\
---
tags: [{TAG}, 假日營業時間]
systemPrompts: [{PROMPT}, 簡短回答助理]
replacements:
  day: ['{ROW}', {LABEL}, 失敗]
---

# 👤

Is the shop open on {{{{day}}}}?

---

The answer must name the hours of every shop, 並且說明假日是否營業以及原因。

~~~checks
- contains: nine o'clock in the morning until six o'clock in the evening, 早上九點到晚上六點
~~~
"""
JUDGING = f"""\
id: {JUDGE}
provider: scripted
responses:
  - {{answer: {{pass: false, feedback: "{SPEECH * 2}"}}}}
"""
WORKSPACE = {
    "evalstore.yaml": (
        f"candidates: [{REAL}, {LONG}, {WIDE}]\nevaluators: [{JUDGE}]\n"
        f"remotes:\n  {REMOTE}: team/results-of-all-the-models-that-the-shop-uses\n"
    ),
    "team/README": "",
    "models/real.yaml": model(REAL, SPEECH * 3),
    "models/long.yaml": model(LONG, "nine o'clock, " + SPEECH),
    "models/wide.yaml": model(WIDE, "早上九點到晚上六點" * 20),
    "models/judge.yaml": JUDGING,
    f"prompts/{PROMPT}.md": "Answer formally.\n",
    "prompts/簡短回答助理.md": "簡短回答。\n",
    FILE: QUESTION,
    SECOND: "# 👤\n\n保固多久?\n\n---\n\n答案必須說明兩年。\n",
    "tests/checked.md": (
        "# 👤\n\nHi\n\n---\n\n~~~checks\n"
        f"- python: {{file: {Path(CHECK).name}, function: judge}}\n~~~\n"
    ),
    CHECK: "def judge(answer):\n    return True\n",
}


@pytest.fixture
def shop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Path]:
    """A workspace with long names in which much has happened, printing to a terminal."""
    folder = tree(tmp_path / "w", WORKSPACE)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("NO_COLOR", "1")
    yield folder
    main(["trust", "--revoke", CHECK])


COPIED = (
    r"(evalstore|cd) \S+.*",  # a command that is listed
    r"\W*['\"]evalstore .*['\"]\W*",  # a command of a hint
    rf"'?({FILE}|{SECOND}|\S*{CHECK}|tests/{NEW}\.md)'?(:\d+:)?",  # a path of a file
    rf"({LONG}|{ANOTHER}|{RESULTS}\.html)",  # an id of a model, an address, a file that was written
    r"[0-9a-f]{64}",  # a hash
    r"'?/\S*/results-of-all-the-models-that-the-shop-uses'?",  # the address of a remote
)
"""What is copied whole, and so may be wider than the terminal, if nothing else is on its line."""
FOR_PROGRAMS = ("--short", "--name-only")
"""Options whose lines are read by programs: paths, whole."""


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    """The lines that a command prints to both streams."""
    output._warned.clear()
    code = main([*words, "--progress", "none"])
    shown = capsys.readouterr()
    assert code in (0, 1, 3) or (words[0], code) in MAY_FAIL, (words, shown.err)
    return [*shown.out.splitlines(), *shown.err.splitlines()]


MAY_FAIL = (("check", 2), ("run", 2))
"""Commands that are run with a file that has an error."""


def commands() -> Iterator[tuple[str, ...]]:
    """The commands that print, in the order in which they are run."""
    place = f"{FILE}::day={ROW}"
    yield ("check",)
    yield ("doctor",)
    yield ("doctor", "--no-ping")
    yield ("status",)
    yield ("status", "--explain")
    yield ("status", "--short")
    yield ("run", "-n")
    yield ("run", "--yes", "-m", REAL, "--message", "一個很長的說明 " * 20)
    for _ in range(2):
        yield ("run", "--yes")
    yield ("run", "--yes", "--all")
    yield ("run", "--yes", "--refresh", FILE)
    yield ("run", "--yes", "-v")
    yield ("run", "--yes", "--fail-on", "regression")
    yield ("run", "--judge-only", "--yes")
    yield ("label", place, "pass", "-m", "一個很長的說明 " * 20, "--all")
    yield ("label", place, "--remove", "--all")
    yield ("label", SECOND, "pass", "--all")
    yield ("trust", CHECK)
    yield ("trust", "--list")
    yield ("run", "--yes", "-r", "2", SECOND)
    edit(SECOND, "兩年", "三年")
    edit(FILE, "Is the shop", "Will every shop of the company in this part of the town be")
    edit("models/real.yaml", "every day", "no day")
    yield ("status",)
    yield ("status", "--explain")
    yield ("status", "--short")
    yield ("diff",)
    yield ("run", "--yes")
    yield ("run", "--yes")
    yield ("diff", "@~1", "@")
    yield ("diff", "@~9", "@", "-v")
    yield ("diff", "@~9", "@", "--answers")
    yield ("diff", "@~9", "@", "--stat")
    yield ("diff", "@~9", "@", "--name-only")
    yield ("diff", "--model", REAL, "--vs", LONG)
    yield ("diff", "--prompt", PROMPT, "--vs", "簡短回答助理")
    for number in (0, 1, 3, 5, 9):
        yield ("diff", f"@~{number}")
    yield ("log",)
    yield ("log", "--oneline")
    yield ("log", "--graph")
    yield ("log", FILE)
    yield ("log", place)
    yield ("log", "--failures")
    yield ("log", "--failures", "--oneline")
    for revision in ("@", "@~9", "@work", f"@:{FILE}", FILE, place, f"@work:{place}", SECOND):
        yield ("show", revision)
        yield ("show", "-v", revision)
    yield ("show", place, "-m", LONG, "--prompt", PROMPT)
    for kind in ("tests", "cases", "models", "evaluators", "prompts", "tools", "schemas", "tags"):
        yield ("ls", kind)
    for kind in ("labels", "runs", "checks"):
        yield ("ls", kind)
    for by in ("model", "prompt", "tag", "file", "model,prompt,tag,file"):
        yield ("stats", "--by", by)
    for text in ("shop", "失敗", "兩年"):
        yield ("grep", text)
    for name in sorted(known_kinds()):
        yield ("ls", "checks", name)
    yield ("check", "--schema")
    yield ("remote",)
    yield ("push", "-n")
    yield ("push",)
    yield ("remote", "show")
    yield ("pull",)
    yield ("pull", "-n")
    yield ("remote", "gc", "-n")
    yield ("remote", "add", "another-remote-of-the-team", ANOTHER)
    yield ("remote", "remove", "another-remote-of-the-team")
    yield ("push", "results-of-the-opening-hours-of-all-shops.bundle")
    yield ("fsck", "--remote", "results-of-the-opening-hours-of-all-shops.bundle")
    yield ("pull", "results-of-the-opening-hours-of-all-shops.bundle")
    yield ("clone", "team/results-of-all-the-models-that-the-shop-uses", "a-clone-of-the-results")
    yield ("pull", "a-clone-of-the-results/.evalstore/store.db")
    yield ("fsck",)
    yield ("fsck", "--remote", REMOTE)
    yield ("export", "-o", f"{RESULTS}.csv")
    yield ("report", "-o", f"{RESULTS}.html")
    yield ("init", f"tests/{NEW}.md")
    yield ("init", "a-new-workspace-for-the-opening-hours-of-all-shops-of-the-company")
    yield ("trust", "--revoke", CHECK)
    edit("evalstore.yaml", "candidates:", "attempts: 2\ncandidates:")
    yield ("status",)
    edit(FILE, "- contains:", "- contians:")
    yield ("check",)
    yield ("run", "--keep-going", "--yes")


def edit(name: str, old: str, new: str) -> None:
    """Replace a text in a file."""
    path = Path(name)
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.parametrize("width", [60, pytest.param(80, marks=pytest.mark.slow), 120])
def test_no_line_is_wider_than_the_terminal(
    shop: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    width: int,
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    wide: list[str] = []
    for words in commands():
        for line in printed(capsys, *words):
            is_copied = any(re.fullmatch(pattern, line.strip()) for pattern in COPIED)
            if output.shown_columns(line) > width and not is_copied:
                wide.append(f"{' '.join(words)}: {output.shown_columns(line)} columns: {line}")
        if words[-1] in FOR_PROGRAMS:
            wide.clear()
        assert not wide, "\n".join(wide)
