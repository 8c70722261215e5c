"""What a program may rely on: errors of one class, no output, no questions, any thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import evalstore
from evalstore import EvalstoreError, Workspace
from evalstore.interfaces.api import Progress
from evalstore.interfaces.api.result_reader import RunSettings, SelectionKeywords
from evalstore.interfaces.cli.commands.run import RUN
from evalstore.interfaces.cli.options import SELECTION
from evalstore.planning.options import BOUNDS, RunOptions
from tests.builders import tree

DEAR = """\
id: scripted/parrot
provider: scripted
costs: [{costPerCall: 3}]
responses: [{answer: Hello!}]
"""


@pytest.fixture
def dear(workspace: Workspace) -> Workspace:
    """Each answer costs 3 USD, and more than 1 USD is not spent without asking."""
    settings = workspace.root / "evalstore.yaml"
    text = settings.read_text(encoding="utf-8") + "confirmAbove: 1\n"
    tree(workspace.root, {"models/parrot.yaml": DEAR, "evalstore.yaml": text})
    return workspace


def test_a_dear_run_needs_leave_and_asks_nobody(
    dear: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("it asked on the terminal"))

    assert dear.status().cost == 6.0
    with pytest.raises(EvalstoreError, match="likely to cost") as raised:
        dear.run()
    assert raised.value.hint is not None
    assert dear.runs() == []
    assert dear.run(yes=True, paths=["tests/hello.md::language=English"]).cost == 3.0
    assert dear.run(max_cost=10.0).cost == 3.0


def test_a_bound_on_the_cost_is_kept(dear: Workspace) -> None:
    report = dear.run(max_cost=3.5, concurrency=1)
    assert (report.status, report.cost) == ("over budget", 3.0)


def test_nothing_is_printed(workspace: Workspace, capfd: pytest.CaptureFixture[str]) -> None:
    workspace.status()
    workspace.run()
    workspace.judge(refresh=True)
    workspace.diff("@~1", "@")
    workspace.stats()
    workspace.search("hello")
    workspace.label("tests/hello.md::language=French", "pass", by="Ada")
    workspace.check()
    workspace.fsck()
    assert capfd.readouterr() == ("", "")


def test_progress_is_reported_until_the_end(workspace: Workspace) -> None:
    reports: list[Progress] = []
    workspace.run(on_progress=reports.append)

    assert reports[0] == Progress(asks=2, judgements=2)
    assert (reports[-1].asked, reports[-1].judged, reports[-1].failed) == (2, 2, 0)
    assert [progress.asked + progress.judged for progress in reports] == [0, 1, 2, 3, 4]


def test_an_error_of_the_callback_stops_the_run_and_is_raised(workspace: Workspace) -> None:
    def stop(progress: Progress) -> None:
        if progress.asked:
            raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        workspace.run(on_progress=stop, concurrency=1)
    (run,) = workspace.runs()
    assert run.status == "interrupted"
    assert run.asked + run.judged < 4
    assert workspace.run().status == "complete"


def test_a_run_may_start_inside_of_an_event_loop(workspace: Workspace) -> None:
    async def notebook() -> int:
        return workspace.run().asked

    assert asyncio.run(notebook()) == 2


def test_threads_share_a_workspace_and_ask_each_question_once(workspace: Workspace) -> None:
    tests = {f"tests/{number}.md": f"# 👤\n\nSay hello in English, {number}.\n\n---\n\nThe answer "
             "must be a greeting in English.\n" for number in range(20)}  # fmt: skip
    tree(workspace.root, tests)
    workspace.run(limit=1)
    begin = threading.Barrier(8)

    def use(number: int) -> int:
        begin.wait(60)
        if number % 2:
            report = workspace.run()
            assert report.status == "complete"
            assert len(workspace.results(report.run)) == 22
            return report.asked
        for _ in range(3):
            workspace.status()
            workspace.diff("@")
            workspace.search("hello")
            workspace.answer(workspace.results()[0])
            workspace.stats()
        return 0

    with ThreadPoolExecutor(8) as executor:
        asked = list(executor.map(use, range(8)))
    assert sum(asked) == 21
    assert not workspace.status().is_any
    assert len(workspace.runs()) == 5
    assert workspace.fsck().problems == []


def test_a_closed_workspace_refuses(workspace: Workspace) -> None:
    with workspace:
        workspace.status()
    for call in (workspace.status, workspace.run, workspace.runs, workspace.fsck):
        with pytest.raises(EvalstoreError, match="the workspace is closed"):
            call()


def test_errors_are_of_one_class(workspace: Workspace, tmp_path: Path) -> None:
    with pytest.raises(EvalstoreError):
        Workspace(tmp_path)
    with pytest.raises(EvalstoreError, match="--set attempts"):
        Workspace(workspace.root, settings={"attempts": "many"})
    with pytest.raises(EvalstoreError, match="unknown format 'jest'"):
        evalstore.import_tests("jest", [tmp_path], into=workspace)
    with pytest.raises(EvalstoreError):
        evalstore.init(workspace.root / "evalstore.yaml")
    (workspace.root / ".evalstore/store.db").write_bytes(b"not a database, but long enough" * 99)
    with pytest.raises(evalstore.StoreError):
        workspace.runs()


def test_what_the_system_refuses_is_an_error_of_ours(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(24, "Too many open files", "store.db")

    monkeypatch.setattr("evalstore.exchange.sync.fsck.fsck", refuse)
    with pytest.raises(EvalstoreError, match=r"'store\.db': Too many open files"):
        workspace.fsck()


@pytest.mark.parametrize("name", ["tags", "models", "paths", "evaluators", "exclude_tags"])
def test_one_text_is_not_taken_for_its_letters(workspace: Workspace, name: str) -> None:
    options: Any = {name: "policy"}
    with pytest.raises(EvalstoreError, match=f"'{name}' is one text") as raised:
        workspace.status(**options)
    assert raised.value.hint == f"write {name}=['policy']"


@pytest.mark.parametrize("call", [Workspace.status, Workspace.run, Workspace.judge])
def test_an_option_that_there_is_not_is_a_type_error(
    workspace: Workspace, call: Callable[..., object]
) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'tag'"):
        call(workspace, tag=["policy"])


@pytest.mark.parametrize("name", BOUNDS)
def test_numbers_are_bounded(workspace: Workspace, name: str) -> None:
    wrong: Any = {name: -1}
    with pytest.raises(EvalstoreError, match=f"'{name}' must be"):
        workspace.run(**wrong)


def test_what_fails_the_gate_is_one_of_the_choices(workspace: Workspace) -> None:
    wrong: Any = "failures"
    with pytest.raises(EvalstoreError, match="'fail_on' cannot be 'failures'"):
        workspace.run(fail_on=wrong)


def test_the_options_are_those_of_the_command_line() -> None:
    selection, options = set(SELECTION), set(RUN)
    assert SelectionKeywords.__optional_keys__ == selection
    assert RunSettings.__optional_keys__ == selection | options - {"max_cost", "yes", "judge_only"}
    assert options | {"judge_only", "agreed"} == set(RunOptions.__slots__)
