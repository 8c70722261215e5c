"""The order of verdicts is said once, and every list has it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import evalstore
from evalstore.core.display import FAILING, SIGNS
from evalstore.core.runs import describe_run
from evalstore.core.values import RESULT_WORDS, URGENCY, VERDICTS, order_counts
from evalstore.interfaces.cli.render.show import print_shown
from evalstore.results.show.show import ShownItem, ShownResult, ShownResults
from tests.store.sessions import a_run


def test_what_a_result_can_say_is_in_the_order() -> None:
    assert {*RESULT_WORDS, "no reply", "answered"} == set(URGENCY)
    assert SIGNS.keys() == {*URGENCY, "none"}
    assert set(FAILING) == {*VERDICTS, "no reply"} - {"pass"}


def test_counts_come_in_one_order() -> None:
    counts = {"pending": 1, "error": 2, "pass": 3, "undecided": 4, "fail": 5}
    assert list(order_counts(counts).items()) == [
        ("pass", 3),
        ("fail", 5),
        ("undecided", 4),
        ("error", 2),
        ("pending", 1),
    ]


def test_show_lists_what_is_urgent_first(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("pass", None, "fail", "pending", "error", "undecided")
    place: dict[str, Any] = {"file": "t.md", "row": "", "prompt": None, "model": "m"}
    results = ShownResults(
        ShownResult({**place, "sessions": [], "verdict": word}, False) for word in words
    )
    print_shown(ShownItem("run", "f" * 32, describe_run(a_run(1)), {"results": results}))
    listed = re.findall(r"^(\w+) +t\.md", capsys.readouterr().out, re.MULTILINE)
    assert listed == ["error", "fail", "undecided", "pending", "answered", "pass"]


def test_no_other_module_orders_verdicts() -> None:
    ordered = re.compile(
        r"""^\w+(?:: [^=\n]+)? = \((?=[^)]*"fail")(?=[^)]*"error")""", re.MULTILINE
    )
    root = Path(evalstore.__file__).parent
    listed = {
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if ordered.search(path.read_text(encoding="utf-8"))
    }
    assert listed - {"remotes/packs.py"} == {"core/values.py"}  # that has JSON, sorted
