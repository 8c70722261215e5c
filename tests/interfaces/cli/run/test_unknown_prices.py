"""Costs of which a part is not known: the same words wherever they are shown."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from evalstore.core.display import cost_text
from evalstore.core.runs import shared_cost_text
from evalstore.interfaces.api.workspace import Workspace
from evalstore.interfaces.tui.render.run_details import dashboard_lines
from evalstore.interfaces.tui.screens.stats import group_cells
from evalstore.planning import participants
from evalstore.planning.options import Location
from evalstore.results.stats.stats import stats
from evalstore.results.table.cases import list_runs
from evalstore.runs.status.dashboard import read_dashboard
from tests.builders import tree
from tests.interfaces.cli.run.test_run import edit

if TYPE_CHECKING:
    from pathlib import Path

    from tests.interfaces.cli.conftest import Echo, Evalstore

MODEL = """\
id: {id}
code: nobody-lists-{id}
provider: desk
{costs}
"""
DESK = "code: desk\ntype: openai-compatible\nbaseURL: http://127.0.0.1:9/v1\n"
COSTS = "costs: [{costPerPromptToken: 0.001, costPerCompletionToken: 0.001}]"
TEST = """\
# 👤

How are you?

---

It is fine.

~~~checks
- contains: pass
~~~
"""
LEAST = "at least $0.0020"


@dataclass(frozen=True)
class Shown:
    """The cost of a run where it is shown."""

    row: str
    details: str
    table: tuple[str, ...]
    """The columns `answers`, `100 answers` and `judging` of the statistics in the browser."""


@pytest.fixture(autouse=True)
def far_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The servers of these tests count as those of others, whose calls may cost something."""
    monkeypatch.setattr(participants, "is_local", lambda _url: False)


@pytest.fixture
def priced(echo: Echo, tmp_path: Path) -> Path:
    """A workspace whose candidate has a price, and whose judge has none."""
    echo.reply = lambda _text: '{"pass": true, "feedback": ""}'
    return tree(
        tmp_path / "echo",
        {
            "evalstore.yaml": "candidates: [mini]\nevaluators: [maxi]\n",
            "providers/desk.yaml": DESK,
            "models/mini.yaml": MODEL.format(id="mini", costs=COSTS),
            "models/maxi.yaml": MODEL.format(id="maxi", costs=""),
            "tests/a.md": TEST,
        },
    )


def pending_lines(workspace: Path, width: int) -> list[str]:
    """The pending work above the runs of the browser."""
    lines = dashboard_lines(read_dashboard(Location(workspace)), (), width, 4)
    return [line.text.removeprefix("pending     ") for line in lines if "pending" in line.text]


def browser(workspace: Path) -> Shown:
    location = Location(workspace)
    [run] = list_runs(location)
    cells = group_cells(every := stats(location), every.total)
    costs = cost_text(run.cost, run.spending, brief=True), shared_cost_text(run.cost, run.spending)
    return Shown(*costs, tuple(cell.text for cell in cells[7:10]))


def test_a_judge_without_a_price_leaves_a_least_cost_everywhere(
    priced: Path, evalstore: Evalstore
) -> None:
    assert (
        "give 1 verdict by checks and up to 1 by models (1 candidate), "
        "about $0.0600 (if an answer has 40 tokens) plus an unknown price (that of 'maxi')."
    ) in evalstore("status").stdout.replace("\n", " ")
    told = f"{LEAST} (1 call without a price)"
    split = "1 new verdict by checks and 1 by models"
    assert f"{split}, {told}\n" in evalstore("run").stdout
    assert f"2 new verdicts, {told}\n" in evalstore("log").stdout
    assert browser(priced) == Shown(
        LEAST,
        f"{told}: answers $0.0020, judging price unknown",
        ("$0.0020", "$0.2000", "price unknown"),
    )
    cells = re.split(r" {2,}", evalstore("stats", "@").stdout.splitlines()[-1])
    assert cells[-3:] == ["$0.0020", "$0.2000", "price unknown"]
    assert f"The run cost {told}." in evalstore("report", "--markdown").stdout
    [run] = Workspace(priced).runs()
    assert told in run._repr_html_()
    evalstore("report", "@", "-o", "r.html")
    page = (priced / "r.html").read_text()
    assert page.count(LEAST) >= 2
    assert page.count("price unknown") == page.count("judging price unknown") == 1
    assert "100 answers" in page


def test_nothing_is_free_because_its_price_is_not_known(priced: Path, evalstore: Evalstore) -> None:
    edit(priced / "models/mini.yaml", COSTS, "")
    assert "at an unknown price (that of 'mini', 'maxi')" in evalstore("status").stdout
    for width in (60, 78):
        assert pending_lines(priced, width) == ["1 to ask, 2 to judge, price unknown"]
    evalstore("run")
    unknown = "price unknown"
    assert browser(priced) == Shown(unknown, unknown, (unknown,) * 3)
    cells = re.split(r" {2,}", evalstore("stats", "@").stdout.splitlines()[-1])
    assert cells[-3:] == [unknown] * 3
    comment = evalstore("report", "--markdown").stdout
    assert "The price of the run is unknown." in comment


def test_costs_of_candidates_and_judges_are_told_apart(priced: Path, evalstore: Evalstore) -> None:
    edit(priced / "models/maxi.yaml", "provider: desk\n", f"provider: desk\n{COSTS}\n")
    evalstore("run")
    assert browser(priced) == Shown(
        "$0.0040", "$0.0040 (answers $0.0020, judging $0.0020)", ("$0.0020", "$0.2000", "$0.0020")
    )
    page = evalstore("report", "@", "-o", "-").stdout
    assert "$0.2000" in page
    assert "$0.4000" not in page


def test_a_judgement_is_estimated_from_the_newest_of_its_judge(
    priced: Path, evalstore: Evalstore
) -> None:
    edit(priced / "models/maxi.yaml", "provider: desk\n", f"provider: desk\n{COSTS}\n")
    test = priced / "tests/a.md"
    edit(test, "\n~~~checks\n- contains: pass\n~~~\n", "")
    evalstore("run")
    edit(test, "It is fine.", "It is fine, and so on.")
    assert "give 1 verdict (1 candidate), about $0.0020;" in evalstore("status").stdout


def test_an_estimate_with_judgements_that_failed_checks_may_save_is_an_upper_bound(
    priced: Path, evalstore: Evalstore
) -> None:
    edit(priced / "models/maxi.yaml", "provider: desk\n", f"provider: desk\n{COSTS}\n")
    evalstore("run")
    edit(priced / "tests/a.md", "contains: pass", "contains: true")
    assert "give 1 verdict (1 candidate), about $0;" in evalstore("status").stdout
    edit(priced / "tests/a.md", "It is fine.", "It is fine, and so on.")
    expected = "give 1 verdict by checks and up to 1 by models (1 candidate), up to about $0.0020;"
    assert expected in evalstore("status").stdout
