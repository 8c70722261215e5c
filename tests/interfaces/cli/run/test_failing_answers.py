"""Of answers that are judged together, `show` says which fails, and where."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.builders import tree
from tests.interfaces.cli.conftest import Echo, Evalstore

CONVERSATIONS = """\
# Run a x1

# User

one

# Run b x1

# User

two

---

~~~checks
{checks}
~~~
"""
REPEATED = """\
---
repetitions: 3
---

# User

Say something.

---

~~~checks
{checks}
~~~
"""
ROWS = """\
---
replacements:
  city: [Oslo, Rome, Lima]
---

# User

How is {{{{city}}}}?

---

~~~checks
{checks}
~~~
"""


def show(evalstore: Evalstore, text: str, *checks: str) -> str:
    tree(Path(), {"tests/g.md": text.format(checks="\n".join(f"- {check}" for check in checks))})
    evalstore("run", "-q", "--yes")
    return evalstore("show", "tests/g.md").stdout


def differences(shown: str) -> str:
    found = re.search(r"^where it differs:\n((?:    .*\n)+)", shown, re.MULTILINE)
    return found[1] if found else ""


def test_the_place_is_in_the_conversation_that_fails(echo: Echo, evalstore: Evalstore) -> None:
    echo.reply = lambda text: "Bonjour 7" if "one" in text else "42"
    shown = show(evalstore, CONVERSATIONS, '{regex: "^[A-Z]"}', "{number: 7}")
    assert differences(shown) == (
        "    regex  at answer 2  (no match in 2 characters)\n"
        "      expected  a match of '^[A-Z]'\n"
        "    number  at answer 2, line 1, column 1  (difference +35)\n"
        "      expected  7\n"
        "      found     42\n"
    )
    assert "\nuser: two\nanswer: 42\njudged together:\n" in shown
    assert "  ▸ 2  <short>  42\n" in shown


def test_a_reason_that_is_below_the_verdict_is_not_repeated_where_it_differs(
    echo: Echo, evalstore: Evalstore
) -> None:
    echo.reply = lambda _text: '{"a": "x"}'
    schema = "{jsonSchema: {type: object, properties: {a: {type: integer}}}}"
    shown = show(evalstore, CONVERSATIONS, schema)
    assert "is not of type 'integer'" in shown
    assert "integer'\n" in differences(shown)
    assert "is not of type" not in differences(shown)


def test_the_place_is_in_the_repetition_that_fails(echo: Echo, evalstore: Evalstore) -> None:
    replies = iter(["Bonjour", "bonjour", "Salut"])
    echo.reply = lambda _text: next(replies)
    shown = show(evalstore, REPEATED, '{regex: "^[A-Z]"}')
    at = shown.index("answer: bonjour\n")
    assert at < shown.index("judged together:")
    number = re.search(r"▸ (\d)  <short>  bonjour\n", shown)
    assert number
    assert f"answer {number[1]} of 3" in shown
    assert differences(shown).startswith(f"    regex  at answer {number[1]}  (no match")


def test_an_answer_that_is_named_is_shown_even_if_it_passes(
    echo: Echo, evalstore: Evalstore, documents: Callable[..., Any]
) -> None:
    echo.reply = lambda text: "7" if "one" in text else "42"
    show(evalstore, CONVERSATIONS, "{number: 7}")
    document = documents("show", "tests/g.md")
    assert document["answer"] == "42"
    passing = document["together"][0]["session"]
    assert "\nanswer: 7\n" in evalstore("show", passing).stdout


@pytest.mark.parametrize(
    ("check", "answers", "difference"),
    [
        (
            "{allEqual: , scope: group, ignoreCase: true}",
            ["It is Cold", "it is cold", "It is Warm"],
            "    allEqual  at answer 3, line 1, column 7  (compared with answer 1)\n"
            "      expected  It is Cold\n"
            "      found     It is Warm\n",
        ),
        (
            "{allSame: score, scope: group}",
            ['{"score": 1}', 'Well:\n{"why": {"score": 2}, "score": 3}', '{"score": 1}'],
            "    allSame  at answer 2, score  (compared with answer 1)\n"
            "      expected  1\n"
            "      found     3\n",
        ),
        (
            "{allSame: score, max: 2, scope: group}",
            ['{"score": 2}', '{"score": 1}', '{"score": 4}'],
            "    allSame  at answer 3, score  (compared with answer 2)\n"
            "      expected  1 ± 2\n"
            "      found     4\n",
        ),
        (
            "{monotonic: increasing, scope: group}",
            ["1 of 5", "about 7", "or 6"],
            "    monotonic  at answer 3, line 1, column 4  (compared with answer 2)\n"
            "      expected  >= 7\n"
            "      found     6\n",
        ),
    ],
)
def test_of_compared_answers_the_one_that_differs_is_named(
    echo: Echo, evalstore: Evalstore, check: str, answers: list[str], difference: str
) -> None:
    of_city = dict(zip(["Oslo", "Rome", "Lima"], answers, strict=True))
    echo.reply = lambda text: next(of_city[city] for city in of_city if city in text)
    shown = show(evalstore, ROWS, check)
    assert differences(shown) == difference
    assert "\nuser: How is Oslo?\nanswer:" in shown
