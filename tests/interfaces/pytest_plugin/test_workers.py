"""With pytest-xdist the controller makes one run, and the workers only read the store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalstore import Workspace
from evalstore.interfaces.pytest_plugin.session import CaseSession, read_current
from evalstore.planning.options import Location, SelectionOptions
from tests.builders import tree
from tests.interfaces.pytest_plugin.conftest import Run

pytestmark = pytest.mark.extended

pytest_plugins = ["pytester"]
OWN = """\
import evalstore, pytest

@pytest.mark.parametrize("text", ["Dear.", "Dear!", "Dear?", "Hey"])
def test_own(text):
    evalstore.check(text, checks=[{"contains": "Dear"}])
"""


def test_workers_share_one_run(run: Run, evals: Path) -> None:
    tree(evals.parent, {"test_own.py": OWN})
    result = run("--evalstore", "-p", "xdist", "-n", "2", "-k", "own or French")

    result.assert_outcomes(passed=4, failed=2)
    (recorded,) = Workspace(evals).runs()
    assert (recorded.asked, recorded.judged) == (2, 2)
    assert recorded.selection == {"paths": ["tests/hello.md::language=French"]}
    assert [line for line in result.outlines if line.startswith("evalstore")] == [
        "evalstore: 2 answers to ask, 2 verdicts to make",
        f"evalstore: run {recorded.id[:8]} complete: "
        "2 new answers, 2 new verdicts, $1.00 simulated",
        "evalstore.check: 4 calls, 4 new verdicts, $0",
    ]
    result.stdout.fnmatch_lines(["fail: expected one of 'Hello', 'Bonjour' in 'Hallo!'"])


class Node:
    """A worker, as its controller sees it."""

    def __init__(self) -> None:
        self.workerinput: dict[str, Any] = {}


@pytest.fixture
def controller(run: Run, evals: Path, pytester: pytest.Pytester) -> CaseSession:
    session = CaseSession(pytester.parseconfig("-p", "evalstore.interfaces.pytest_plugin"), evals)
    session.pytest_sessionstart()
    return session


IDS = ["evals/tests/hello.md::language=French[good]", "test_own.py::test_own"]


def test_the_controller_runs_what_its_first_worker_has_collected(
    controller: CaseSession, evals: Path
) -> None:
    nodes = [Node(), Node()]
    for node in nodes:
        controller.pytest_configure_node(node)
    for _ in nodes:
        controller.pytest_xdist_node_collection_finished(IDS)

    assert [run.asked for run in Workspace(evals).runs()] == [1]
    assert [node.workerinput["evalstore"] for node in nodes] == [{"whole": True}] * 2


def test_a_worker_reads_again_what_was_missing_when_it_collected(
    run: Run, evals: Path, pytester: pytest.Pytester
) -> None:
    config = pytester.parseconfig("-p", "evalstore.interfaces.pytest_plugin")
    config.workerinput = {"evalstore": {"whole": True}}  # type: ignore[attr-defined]
    session = CaseSession(config, evals)
    cases = [*session.current]
    Workspace(evals).run(fail_on="none")
    asked = len(Workspace(evals).runs())

    assert session.settled(cases[0]).word == "pass"
    assert len(Workspace(evals).runs()) == asked


def test_an_error_of_collection_keeps_the_controller_from_asking(
    controller: CaseSession, evals: Path
) -> None:
    report = pytest.CollectReport("test_own.py", "failed", None, [])
    controller.pytest_collectreport(report)
    controller.pytest_xdist_node_collection_finished(IDS)
    assert not Workspace(evals).runs()


def test_reading_the_cases_asks_nothing(evals: Path) -> None:
    current = read_current(Location(evals), SelectionOptions(keep_going=True))
    assert [case.word for case in current] == ["pending"] * 4
    assert not Workspace(evals).runs()
