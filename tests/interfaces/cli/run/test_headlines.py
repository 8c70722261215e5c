"""A run of some cases is never taken for the state of the workspace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.builders import tree
from tests.interfaces.cli.conftest import Echo, Evalstore
from tests.interfaces.cli.status.test_explained_cases import write
from tests.interfaces.html.test_report import summary_of

TWO = "candidates: [scripted/one, scripted/two]\n"


@pytest.fixture
def partly(echo: Echo, evalstore: Evalstore) -> Evalstore:
    """Two whole runs of three cases, of which one fails, then a run of that one alone."""
    tree(Path(), {"evalstore.yaml": TWO})
    tree(Path(), {"models/two.yaml": "id: scripted/two\nprovider: scripted\nresponses: []\n"})
    write("20 euros")
    for name in ("u", "v"):
        write(file=f"tests/{name}.md")
    for _ in range(2):
        evalstore("run", "-q")
    evalstore("run", "-q", "tests/t.md")
    return evalstore


def test_without_a_revision_the_statistics_are_of_the_workspace(
    partly: Evalstore, documents: Any
) -> None:
    assert partly("stats").stdout.startswith("workspace, all cases as they are now\n")
    assert documents("stats")["total"]["results"] == 6
    assert documents("stats", "@")["total"]["results"] == 2


def test_without_a_revision_candidates_are_compared_in_the_workspace(partly: Evalstore) -> None:
    compared = partly("diff", "--model", "scripted/one", "--vs", "scripted/two").stdout
    assert "(3 results in 3 files" in compared
    of_run = partly("diff", "@", "--model", "scripted/one", "--vs", "scripted/two").stdout
    assert "(1 result in 1 file" in of_run


def test_without_a_revision_the_report_is_of_the_workspace(partly: Evalstore) -> None:
    assert partly("report", "-o", "r.html").exit_code == 0
    assert "scripted/one 66.7% 2 of 3 20.8% to 93.9% 0 $0" in summary_of(Path("r.html"))


def test_the_report_of_a_partial_run_counts_and_is_not_in_the_trend(partly: Evalstore) -> None:
    partly("report", "@", "-o", "r.html")
    page = Path("r.html").read_text(encoding="utf-8")
    assert "<title>echo: 1 of 3 cases, 2 results: 2 fail</title>" in page
    assert "1 of 3 cases, 2 results: 2 fail" in summary_of(Path("r.html"))
    assert "0.0% passed" not in page
    assert "Pass rates of 2 candidates in 3 runs" in page
    assert page.count('<circle class="hollow"') == 2


def test_the_report_of_the_workspace_says_what_the_last_whole_run_changed(
    echo: Echo, evalstore: Evalstore
) -> None:
    write()
    evalstore("run", "-q")
    write("20 euros")
    evalstore("run", "-q")
    evalstore("report", "-o", "r.html")
    assert "one got worse, 100% to 0% (may be chance); 1 result broke, none fixed." in summary_of(
        Path("r.html")
    )


def test_a_run_of_what_failed_has_counts_and_no_interval(partly: Evalstore, documents: Any) -> None:
    assert "\n2 fail\n" in partly("run", "-q", "--lf").stdout.replace("0 pass, ", "")
    coloured = partly("--color", "always", "run", "-q", "--lf").stdout
    assert "\x1b[31m2 fail" in coloured
    assert "\n0 pass, " in coloured, "only what there is has a colour"
    total = documents("stats", "@")["total"]
    assert (total["passed"], total["judged"]) == (0, 2)
    assert (total["low"], total["high"]) == (None, None)
    markdown = partly("report", "--markdown").stdout
    assert "| candidate | passed | 100 answers" in markdown
    assert "| 0 of 1 |" in markdown
    assert "%" not in markdown
