"""Runs of a store: in which order they come, and how far back they are searched."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import evalstore
from evalstore.core.errors import StoreError
from evalstore.store import Store
from evalstore.store.events import RUNS_SEARCHED
from tests.store.sessions import a_run


def test_recent_runs_come_newest_first_and_no_more_than_are_searched(store: Store) -> None:
    for number in range(RUNS_SEARCHED + 5):
        store.record_run(a_run(number))
    recent = list(store.find_recent_runs())
    assert recent == store.find_runs(limit=RUNS_SEARCHED)
    assert [run.started for run in recent[:2]] == [RUNS_SEARCHED + 4, RUNS_SEARCHED + 3]


@pytest.mark.parametrize("count", [0, 1, 9, 10, 11, 25])
def test_recent_runs_are_all_when_there_are_few(store: Store, count: int) -> None:
    for number in range(count):
        store.record_run(a_run(number // 2, nonce=str(number)))
    assert list(store.find_recent_runs()) == store.find_runs()


def test_the_runs_before_a_run_are_those_that_come_after_it_in_the_list(store: Store) -> None:
    for number in range(30):
        store.record_run(a_run(number // 3, nonce=str(number)))
    every = store.find_runs()
    for number, run in enumerate(every):
        assert list(store.find_recent_runs(before=run)) == every[number + 1 :]
        assert list(store.find_recent_runs(run, 4)) == every[number + 1 : number + 5]


def test_a_run_is_loaded_by_its_id(store: Store) -> None:
    run = store.record_run(a_run(7, message="m"))
    assert store.load_run(run.id) == run
    with pytest.raises(StoreError, match="it has no run"):
        store.load_run("f" * 32)


def test_how_far_back_runs_are_searched_is_reported_once() -> None:
    root = Path(evalstore.__file__).parent
    limited = re.compile(r"find_runs\(limit=(?!1\b|limit\b|1,)")
    named = re.compile(r"^_?\w*RUNS(?:_BACK|_SEARCHED)? = \d+", re.MULTILINE)
    listed = {
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if (text := path.read_text(encoding="utf-8"))
        and (limited.search(text) or named.search(text))
    }
    # What is asked again is counted in more runs, as docs/statistics.md says; the browser's first
    # screen, the last verdicts of a case and its newer results look at fewer, as docs/browser.md
    # says, and so do the trend and the earlier verdicts of a report, as docs/reports.md says.
    browser = {
        "core/display.py",
        "results/flips/result_history.py",
    }
    log = {"results/log/log.py"}  # it marks what broke in the newest runs, as its help says
    report = {
        "interfaces/html/case_data.py",
        "interfaces/web/routes.py",
        "results/report_overview.py",
    }
    assert listed == {"store/events.py", "results/stats/stats.py"} | browser | log | report
