"""Both reports say which run has a verdict, and how many attempts fail."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests import work_sizes
from tests.builders import tree
from tests.interfaces.cli.conftest import WEATHER
from tests.interfaces.cli.run.test_run import edit
from tests.interfaces.cli.status.test_explained_cases import flipping, write
from tests.interfaces.html.pages import data_of
from tests.interfaces.html.test_report import summary_of

if TYPE_CHECKING:
    from tests.interfaces.cli.conftest import Echo, Evalstore


def changed_lines(evalstore: Evalstore, *arguments: str) -> tuple[str, str]:
    """The line on what broke in the comment for a pull request, and in the HTML summary."""
    comment = evalstore("report", "--markdown", *arguments).stdout.splitlines()
    assert evalstore("report", "@", "-o", "r.html", *arguments).exit_code == 0
    summary = summary_of(Path("r.html"))
    (line,) = [line for line in comment if line.startswith("- **")]
    return line, summary[summary.index("Broke (1 case)") + 1]


def cells() -> list[dict[str, Any]]:
    """What the page shows of each candidate of the first case."""
    page = Path("r.html").read_text(encoding="utf-8")
    shown: list[dict[str, Any]] = data_of(page, "block-0")["cases"][0]["cells"]
    return shown


def test_a_verdict_of_an_earlier_run_has_its_id(
    echo: Echo, evalstore: Evalstore, documents: Any
) -> None:
    write("How?", "How")
    tree(Path.cwd(), {"tests/z.md": Path("tests/t.md").read_text(encoding="utf-8")})
    first = documents("run")["run"][:8]
    evalstore("run", "--refresh", "tests/z.md")
    edit(Path("tests/t.md"), "contains: How", "contains: Why")
    evalstore("run")
    comment, summary = changed_lines(evalstore)
    edited = "(checks changed)"
    assert f"`scripted/one`: pass (run `<short>`) -> fail {edited}" in comment
    assert f"✓ pass (run #) → ✗ fail {edited}" in summary
    note = "is partial: `tests/z.md --refresh (1 result)`; the other one comes from the last"
    report = evalstore("report", "--markdown").stdout
    assert note in report
    assert (
        ", compared with `<short>`, and with earlier runs for results that it left out.\n" in report
    )
    evalstore("report", "-o", "full.html")
    filled = "compared with run [0-9a-f]{8}, and with earlier runs for results that it left out<"
    assert re.search(filled, Path("full.html").read_text(encoding="utf-8"))
    (cell,) = cells()
    assert (cell["was"]["word"], cell["was"]["run"]) == ("pass", first)
    assert "attempts" not in cell


def test_a_result_of_several_attempts_says_how_many_fail(echo: Echo, evalstore: Evalstore) -> None:
    write("How?", "warm")
    edit(Path("tests/t.md"), "# 👤", "---\nattempts: 3\n---\n\n# 👤")
    flipping(echo, "warm", "warm", "warm", "cold", "warm", "cold")
    evalstore("run")
    evalstore("run", "--refresh")
    comment, summary = changed_lines(evalstore)
    assert "pass -> fail, 2 of 3 attempts fail (asked again)" in comment
    assert "✗ fail , 2 of 3 attempts fail (asked again)" in summary
    (cell,) = cells()
    assert cell["attempts"] == "2 of 3 attempts fail"
    assert [session[3] for session in cell["sessions"]] == ["fail", "pass", "fail"]
    assert "run" not in cell["was"]
    noise = [
        line
        for line in evalstore("report", "--markdown").stdout.splitlines()
        if line.startswith("- flakiness")
    ]
    assert noise == ["- flakiness: 66.7% of pairs of attempts disagree"]


def test_failing_cases_have_one_order_however_many_are_read_together(
    workspace: Path, evalstore: Evalstore
) -> None:
    cities = json.dumps([f"Oslo {number}" for number in range(9, 0, -1)])
    (workspace / "tests/weather.md").write_text(WEATHER.replace("[Oslo, Rome]", cities))
    with work_sizes.changed(
        {"store.trees.case_chunks.MAX_PART": 2, "store.trees.case_chunks.MAX_UNDIVIDED": 2}
        | {"store.trees.case_chunks._MIN_PART": 2}
    ):
        assert evalstore("run").exit_code == 1
        usual = evalstore("report", "--markdown").stdout
        with work_sizes.changed({"core.batches.SMALL_SIZE": 1}):
            assert evalstore("report", "--markdown").stdout == usual
    assert usual.index("Oslo 1") < usual.index("Oslo 9")
