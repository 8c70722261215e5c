"""Runs that are started from the browser."""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import cast
from unittest import mock

import pytest
from textual.pilot import Pilot

from evalstore.core.display import text_lines
from evalstore.core.errors import EvalstoreError, StoreError
from evalstore.core.runs import ProgressListener
from evalstore.core.values import Reply, Request, Usage
from evalstore.interfaces.tui.app import Browser
from evalstore.interfaces.tui.data_source import WorkspaceSource
from evalstore.interfaces.tui.page_lines import TitleLine
from evalstore.interfaces.tui.screens.cases import CasesPage
from evalstore.interfaces.tui.screens.compare import ComparePage
from evalstore.interfaces.tui.screens.run import PlanPage, RunPage
from evalstore.interfaces.tui.screens.runs import RunsPage
from evalstore.interfaces.tui.text_view import TextView
from evalstore.planning.open_project import open_store
from evalstore.planning.options import Location, RunOptions, SelectionOptions
from evalstore.results.flips.verdict_changes import find_verdict_changes
from evalstore.results.table.cases import list_runs
from evalstore.runs.run import (
    ALL,
    PlanPreview,
    RunRequest,
    carry_out_request,
    plan,
    run,
)
from tests import endpoint
from tests.builders import tree
from tests.interfaces.cli.run.test_run import edit
from tests.interfaces.tui.conftest import HOSTILE
from tests.interfaces.tui.driving import drive, press, resized, screen, settled, show_changes, until
from tests.interfaces.tui.screens.test_actions import notified

NEW = "# 👤\n\nHow is Lima?\n\n---\n\nThe answer must be warm.\n"


def slow(folder: Path, seconds: float = 3000.0) -> None:
    """Let both candidates take long, and give them something to do."""
    for name in ("one", "two"):
        model = folder / f"models/{name}.yaml"
        model.write_text(model.read_text().replace("- {", f"- {{latency: {seconds}, "))
    (folder / "tests/new.md").write_text(NEW)


def test_enter_before_the_price_is_shown_says_so_and_runs_nothing(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "tests/new.md").write_text(NEW)
    may_plan = threading.Event()
    plan_now = WorkspaceSource.plan

    def plan_later(source: WorkspaceSource, request: RunRequest) -> PlanPreview:
        may_plan.wait(60)
        return plan_now(source, request)

    monkeypatch.setattr(WorkspaceSource, "plan", plan_later)

    async def scenario(pilot: Pilot[None]) -> None:
        await pilot.press("R")
        await until(pilot, lambda: isinstance(pilot.app.screen, PlanPage))
        await pilot.press("enter")
        await until(pilot, lambda: bool(notified(pilot)))
        assert notified(pilot) == (
            "still reading: press enter again when the plan and its price are shown"
        )
        may_plan.set()
        await settled(pilot)
        assert isinstance(pilot.app.screen, PlanPage)
        assert "new test" in screen(pilot)
        await press(pilot, "enter")
        assert "complete: 2 new answers" in screen(pilot)

    drive(scenario)


class Waiting:
    """A provider that answers when it may; what it says is an answer as well as a judgement."""

    def __init__(self) -> None:
        self.may = threading.Event()

    async def ask(self, _request: Request, *, timeout: float) -> Reply:
        while not self.may.is_set():
            await asyncio.sleep(0.01)
        return Reply('{"pass": true, "feedback": ""}', finish_reason="stop", usage=Usage(1, 1))

    async def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def waiting(workspace: Path) -> Iterator[Waiting]:
    """All models wait, and there is something to do."""
    (workspace / "tests/new.md").write_text(NEW)
    provider = Waiting()
    with mock.patch("evalstore.runs.execution.key_access.open_provider", return_value=provider):
        yield provider


async def shown(pilot: Pilot[None], text: str) -> None:
    """Wait until a text can be seen, or is said in passing."""
    await until(pilot, lambda: text in screen(pilot) or text in notified(pilot))


def test_what_is_missing_is_run_after_its_price_was_shown(workspace: Path) -> None:
    (workspace / "tests/new.md").write_text(NEW)

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "G", "l", "R")
        text = screen(pilot)
        assert "A run would ask for 2 answers and give 2 verdicts (2 candidates), about $" in text
        assert "Would ask (2)  scripted/one 1, scripted/two 1" in text
        assert "Would judge (2)  by scripted/judge 2" in text
        assert "2x  new" in text
        await press(pilot, "enter")
        text = screen(pilot)
        assert "complete: 2 new answers, 6 reused, 2 new verdicts" in text
        assert "tests/new.md" in text
        await press(pilot, "enter")
        page = pilot.app.screen
        assert isinstance(page, CasesPage)
        assert page.revision is not None
        assert [(it.row, it.model) for it in page.selected] == [("city=Rome", "scripted/two")]
        await press(pilot, "escape", "escape")
        assert "evalstore › 2 runs" in screen(pilot)
        await press(pilot, "R")
        assert "Nothing to do: 8 answers of 2 candidates" in screen(pilot)
        await press(pilot, "enter")
        assert isinstance(pilot.app.screen, PlanPage)
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, RunsPage)

    drive(scenario)


def test_a_run_says_what_broke_and_what_was_fixed_since_the_one_before(workspace: Path) -> None:
    model = workspace / "models/one.yaml"
    model.write_text(model.read_text().replace("Cold.", "Warm."))
    test = workspace / "tests/weather.md"
    test.write_text(test.read_text().replace("How is", "And how is"))

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "R", "enter")
        text = screen(pilot)
        assert "since the last run: 1 fixed, 3 with the same answer  (run ########, " in text
        assert "d Compare" in text.splitlines()[-2]
        await shown(pilot, "passing now 66.7% of 6")  # the state above follows, below the window
        await press(pilot, "d")
        assert isinstance(pilot.app.screen, ComparePage)
        text = screen(pilot)
        assert " 1 fixed, 3 with the same answer, 2 unchanged (= shows them)" in text
        assert "same answer  " not in text
        await press(pilot, "=")
        assert screen(pilot).count("same answer  ") == 3
        await press(pilot, "escape")
        (workspace / "tests/new.md").write_text(NEW)
        await press(pilot, "R", "enter")
        assert "since the last run: nothing broke or was fixed, 2 more results" in screen(pilot)

    drive(scenario, size=(80, 24))


def test_a_run_from_the_cases_of_an_older_run_leads_to_those_of_the_new_one(
    workspace: Path,
) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        for number, key in enumerate(("enter", "escape")):
            text = NEW.replace("Lima", f"Lima {number}")
            (workspace / f"tests/new{number}.md").write_text(text)
            await press(pilot, "R", "enter")
            await until(pilot, lambda: isinstance(pilot.app.screen, RunPage))
            await shown(pilot, "complete")
            await press(pilot, key)
            page = pilot.app.screen
            assert isinstance(page, CasesPage)
            assert page.revision == list_runs(Location(workspace))[0].id
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, RunsPage)

    drive(scenario, revision="@")


def test_the_first_run_and_one_that_cannot_be_compared_say_nothing_of_others(
    workspace: Path,
) -> None:
    (workspace / "tests/new.md").write_text(NEW)
    source = WorkspaceSource(Location(workspace))

    def broken(*_arguments: object) -> None:
        raise StoreError("a node is damaged")

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "R", "enter")
        text = screen(pilot)
        assert "complete: 2 new answers" in text
        assert "since the last run:" not in text
        assert "error" not in text
        await press(pilot, "d")
        assert isinstance(pilot.app.screen, RunPage)

    with mock.patch("evalstore.runs.run.find_verdict_changes", broken):
        drive(scenario, source=source)
    (workspace / ".evalstore/store.db").unlink()
    drive(first, source=WorkspaceSource(Location(workspace)))


async def first(pilot: Pilot[None]) -> None:
    await press(pilot, "R", "enter")
    assert "complete: 8 new answers" in screen(pilot)
    assert "since the last run:" not in screen(pilot)


def test_each_case_of_a_run_is_compared_with_the_last_run_that_judged_it(workspace: Path) -> None:
    where = Location(workspace)
    whole = list_runs(where)[0].id
    with open_store(where) as store:
        assert find_verdict_changes(store, "tests", store.load_run(whole)) is None
    run(
        where,
        SelectionOptions(paths=(str(workspace / "tests/weather.md"),)),
        RunOptions(),
        ProgressListener(),
    )
    (workspace / "tests/new.md").write_text(NEW)
    run(where, SelectionOptions(), RunOptions(max_cost=0.0), ProgressListener())
    changes = run(where, SelectionOptions(), RunOptions(), ProgressListener()).changes
    statuses = [line.status for line in list_runs(where)]
    assert statuses == ["complete", "over budget", "complete", "complete"]
    assert changes
    assert changes.since == list_runs(where)[1].id
    assert [*changes.broke, *changes.fixed, *changes.changed] == []


def test_the_marked_cases_are_judged_again_and_nothing_else(workspace: Path) -> None:
    judge = workspace / "models/judge.yaml"
    judge.write_text(judge.read_text().replace("pass: false", "pass: true"))

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "down", "J")
        text = screen(pilot)
        assert "judge 1 result of scripted/one again" in text
        assert "give 1 verdict (1 candidate), about $" in text
        assert "in the workspace the first ones still count" in text
        assert "judged again at your request" in text
        await press(pilot, "enter")
        text = screen(pilot)
        assert "0 new answers, 1 reused, 1 new verdict" in text
        assert "tests/weather.md [city=Oslo]  scripted/one  ✗ fail -> ✓ pass" in text
        await press(pilot, "escape", "enter")
        shown = pilot.app.screen.query_one("#text", TextView)
        assert "✓ pass  by scripted/judge  (judged again, does not count)" in shown.text
        await press(pilot, "escape", "g", "space", "space", "J")
        assert "judge 2 results of scripted/one again" in screen(pilot)
        assert "give 1 verdict by checks and 1 by models (1" in screen(pilot)

    async def of_the_run(pilot: Pilot[None]) -> None:
        await press(pilot, "enter")
        text = screen(pilot)
        assert "✗ fail  by scripted/judge  (the verdict that counts in the work" in text

    drive(scenario)
    drive(of_the_run, revision="@")


def test_a_case_without_a_verdict_has_none_that_goes_on_counting(workspace: Path) -> None:
    edit(workspace / "tests/weather.md", "must be warm", "must be short")

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "down", "J")
        text = screen(pilot)
        assert "give 1 verdict (1 candidate), about $" in text
        assert "still count" not in text

    drive(scenario)


def test_a_dialog_is_as_high_as_its_text_and_leaves_room_above_a_long_one(
    workspace: Path,
) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "R")
        lines = screen(pilot).splitlines()
        first = next(n for n, line in enumerate(lines) if line.startswith("╭"))
        assert "Nothing to do: 6 answers" in lines[first + 2]
        assert "esc Cancel" in lines[-2]
        assert len(lines) - first == 6
        page = pilot.app.screen
        assert isinstance(page, PlanPage)
        page.body.show(text_lines("\n".join(f"line {number}" for number in range(100))))
        await settled(pilot)
        text = screen(pilot)
        assert "workspace" in text
        assert "line 0" in text
        page.body.scroll_end(animate=False)
        await settled(pilot)
        assert "line 99" in screen(pilot)
        assert "esc Cancel" in screen(pilot)
        await resized(pilot, 40, 12)
        page.body.scroll_home(animate=False)
        await settled(pilot)
        assert "line 0" in screen(pilot)
        assert "esc Cancel" in screen(pilot).splitlines()[-1]

    drive(scenario, size=(80, 24))


def test_what_a_person_has_judged_is_not_judged_again(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "p", "enter", "J")
        assert "or a person has: a" in screen(pilot)

    monkeypatch.setenv("USER", "ada")
    drive(scenario)


def test_a_case_that_is_gone_cannot_be_judged_again(workspace: Path) -> None:
    (workspace / "tests/greeting.md").unlink()

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "J")
        assert "error: the workspace no longer has any of these cases" in screen(pilot)
        await press(pilot, "enter", "escape")
        assert isinstance(pilot.app.screen, CasesPage)

    drive(scenario, revision="@")


def test_a_run_can_be_stopped_and_the_next_goes_on(workspace: Path) -> None:
    slow(workspace)

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "R")
        await pilot.press("enter")
        await shown(pilot, "0/2")
        await pilot.press("c")
        await shown(pilot, "once more stops at once")
        await pilot.press("c")
        await shown(pilot, "interrupted: 0 new")
        await settled(pilot)
        assert "interrupted; what was finished is stored, and the next run" in screen(pilot)
        await press(pilot, "escape")
        slow(workspace, 0)
        for name in ("one", "two"):
            model = workspace / f"models/{name}.yaml"
            model.write_text(model.read_text().replace("latency: 3000.0, ", ""))
        await press(pilot, "R", "enter")
        assert "complete: 2 new answers" in screen(pilot)

    drive(scenario)


async def planned(pilot: Pilot[None]) -> None:
    """Wait until a run of the browser has been planned."""
    runs = cast("Browser", pilot.app).runs
    await until(pilot, lambda: runs.runner is not None and runs.runner.is_planned)


def title(pilot: Pilot[None]) -> str:
    return screen(pilot).splitlines()[0]


def test_one_browses_while_a_run_goes_on_and_each_title_says_how_far_it_is(
    workspace: Path,
) -> None:
    slow(workspace)

    async def scenario(pilot: Pilot[None]) -> None:
        app = pilot.app
        assert isinstance(app, Browser)
        await press(pilot, "enter", "R")
        await pilot.press("enter")
        await shown(pilot, "0/2")
        assert "▶" not in screen(pilot).split("─")[1]
        await pilot.press("escape")
        await shown(pilot, "The run continues; R leads back to it.")
        assert isinstance(app.screen, CasesPage)
        await shown(pilot, "▶ 0/4")
        assert title(pilot).rstrip().endswith("  ▶ 0/4")
        await pilot.press("J")
        await shown(pilot, "A run is already in progress: R shows its progress.")
        await pilot.press("question_mark")
        await shown(pilot, "help › Cases")
        await shown(pilot, "▶ 0/4")
        assert title(pilot).rstrip().endswith("  ▶ 0/4")
        await pilot.press("escape", "R")
        await shown(pilot, "0/2")
        assert isinstance(app.screen, RunPage)
        await pilot.resize_terminal(40, 12)
        await shown(pilot, "0/2")
        await pilot.press("b")
        await shown(pilot, "▶ 0/4")
        assert title(pilot).rstrip().endswith("…  ▶ 0/4")
        assert app.runs.runner
        app.runs.runner.interrupt()
        app.runs.runner.interrupt()
        await shown(pilot, "interrupted: 0 new")
        await settled(pilot)
        assert "▶" not in screen(pilot)

    drive(scenario)


def test_quitting_asks_while_a_run_goes_and_waits_until_it_has_stopped(
    waiting: Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalstore.interfaces.tui.screens.base._DRAW_SECONDS", 600)

    async def scenario(pilot: Pilot[None]) -> None:
        app = pilot.app
        await press(pilot, "R")
        await pilot.press("enter")
        await planned(pilot)
        await press(pilot, "r", awaits_runs=False)
        await shown(pilot, "0/2")
        await pilot.press("q")
        await shown(pilot, "A run is in progress: 0 of 4 are done.")
        assert "q again stops it and quits; what was answered is kept." in screen(pilot)
        await pilot.press("escape")
        await shown(pilot, "asking")
        assert isinstance(app, Browser)
        assert app.runs.runner
        assert "stopping" not in screen(pilot)
        await pilot.press("escape", "q", "q")
        await shown(pilot, "The run is being stopped: 0 of 4 are done.")
        assert app.runs.runner.stops == 1
        await settled(pilot, awaits_runs=False)
        titles = [line for line in screen(pilot).splitlines() if "▶ 0/4 stopping" in line]
        assert len(titles) == 2, "that of the question, and that of the page below"
        waiting.may.set()
        while app.is_running:
            await pilot.pause(0.01)
        assert app.runs.runner.end
        assert app.runs.runner.end.report.status == "interrupted"
        assert app.runs.runner.end.report.asked == 2

    drive(scenario)


def test_all_that_is_shown_of_a_run_is_of_one_moment(
    waiting: Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalstore.interfaces.tui.screens.base._DRAW_SECONDS", 600)

    async def scenario(pilot: Pilot[None]) -> None:
        app = cast("Browser", pilot.app)
        await press(pilot, "R")
        await pilot.press("enter")
        await planned(pilot)
        assert app.runs.runner
        for asked in range(3):
            await press(pilot, "r", awaits_runs=False)
            app.runs.runner.advance("asked", 1)  # after all was drawn, before it is painted
            app.screen_stack[1].query_one(TitleLine).refresh()
            await settled(pilot, awaits_runs=False)
            seen = screen(pilot)
            assert f"▶ {asked}/4" in seen.splitlines()[0]
            assert f" running     asking {asked}/2, judging 0/2\n" in seen
            assert re.search(rf"│ asking +[^ ]+  {asked}/2", seen)
        waiting.may.set()
        await settled(pilot)

    drive(scenario)


def test_bars_have_the_width_of_the_terminal_right_after_it_was_resized(
    waiting: Waiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalstore.interfaces.tui.screens.base._DRAW_SECONDS", 600)

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "R")
        await pilot.press("enter")
        await planned(pilot)
        await press(pilot, "r", awaits_runs=False)
        for width in (60, 130, 90):
            await resized(pilot, width, 30, awaits_runs=False)
            bars = re.findall(r"(?:ask|judg)ing +(░+)", screen(pilot))
            assert bars == ["░" * (width - 43)] * 2
        waiting.may.set()
        await settled(pilot)

    drive(scenario)


def test_quitting_a_third_time_does_not_wait(workspace: Path) -> None:
    slow(workspace)

    async def scenario(pilot: Pilot[None]) -> None:
        app = pilot.app
        assert isinstance(app, Browser)
        await press(pilot, "R")
        await pilot.press("enter")
        await shown(pilot, "0/2")
        await pilot.press("q", "q")
        await shown(pilot, "q once more quits")
        await pilot.press("escape")
        await shown(pilot, "stopping …")
        await pilot.press("q", "q")
        assert app.runs.runner
        assert app.runs.runner.stops == 1
        await pilot.press("q")

    drive(scenario)


def test_a_run_that_ends_while_it_is_asked_about_is_reported(waiting: Waiting) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "R")
        await pilot.press("enter")
        await shown(pilot, "0/2")
        await pilot.press("q")
        await shown(pilot, "0 of 4 are done")
        waiting.may.set()
        await shown(pilot, "The run has ended meanwhile. q quits.")
        assert pilot.app.is_running
        await press(pilot, "escape")
        assert "complete: 2 new answers" in screen(pilot)
        await press(pilot, "q")
        assert not pilot.app.is_running

    drive(scenario, size=(40, 12))


def test_a_provider_that_fails_is_reported_with_its_class_and_a_hint(workspace: Path) -> None:
    model = workspace / "models/one.yaml"
    error = f"- {{when: Lima, error: {{status: 429, message: '{HOSTILE[:40]}'}}}}\n  - {{when: Oslo"
    model.write_text(model.read_text().replace("- {when: Oslo", error))
    settings = workspace / "evalstore.yaml"
    settings.write_text(settings.read_text() + "retries: 0\n")
    (workspace / "tests/new.md").write_text(NEW)

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "R", "enter")
        text = screen(pilot)
        assert "incomplete: 1 new answer" in text
        assert "! failed 1x: scripted/one: " in text
        assert "[/] [bold red]no markup[/]" in text
        assert "hint: status 429: too many calls at once" in text
        await press(pilot, "escape", "j", "k")

    drive(scenario)


def test_failures_of_several_kinds_are_reported_each_with_its_own_words(workspace: Path) -> None:
    statuses = {"400": "Invalid value", "503": "Overloaded", "401": "Incorrect API key provided"}
    with endpoint.running() as server:
        tree(
            workspace,
            {
                "evalstore.yaml": "candidates: [one]\nretries: 0\nconcurrency: 1\n",
                "providers/loopback.yaml": "code: loopback\ntype: openai-compatible\n"
                f"baseURL: {server.url}\n",
                "models/one.yaml": "id: one\nprovider: loopback\n",
                "tests/weather.md": questions(
                    f"[[fail={(400, 503)[n % 2]}]] {n}" for n in range(6)
                ),
                "tests/greeting.md": questions(["hello"]),
            },
        )

        async def scenario(pilot: Pilot[None]) -> None:
            await press(pilot, "R", "enter")
            assert "incomplete: 1 new answer" in screen(pilot)
            assert blocks(pilot, statuses) == [("3", "400"), ("3", "503")]
            await press(pilot, "G", "g", "escape")
            # The first 401 ends all calls to the model: what is left was not called, but failed.
            (workspace / "tests/weather.md").write_text(
                questions(f"[[fail=401]] {number}" for number in range(6))
            )
            await press(pilot, "R", "enter")
            assert blocks(pilot, statuses) == [("6", "401")]

        drive(scenario, size=(100, 40))


CHECK = "\n---\n\n~~~checks\n- contains: a\n~~~\n"


def questions(texts: Iterable[str]) -> str:
    rows = "".join(f"  - {{question: '{text}'}}\n" for text in texts)
    return f"---\nreplacements:\n{rows}---\n\n# 👤\n\n{{{{question}}}}\n{CHECK}"


def blocks(pilot: Pilot[None], words: dict[str, str]) -> list[tuple[str, str]]:
    """How often each status is told; below it are its own words."""
    lines = screen(pilot).splitlines()
    failures = []
    for line, below in pairwise(lines):
        failed = re.search(r"! failed (\d+)x: one: the server answered (\d+): (.*?)  ", line)
        if failed:
            assert failed[3] == words[failed[2]]
            assert f"hint: status {failed[2]}" in below
            failures.append((failed[1], failed[2]))
    return sorted(failures)


def test_failures_of_another_run_at_the_same_time_are_not_reported(workspace: Path) -> None:
    where = Location(workspace)
    model = workspace / "models/one.yaml"
    ours, others = (
        model.read_text().replace("- {", f"- {{{fails}}}\n  - {{", 1)
        for fails in ("when: Lima, error: {status: 400}", "when: hello, error: {status: 503}")
    )
    settings = workspace / "evalstore.yaml"
    settings.write_text(settings.read_text() + "retries: 0\n")
    (workspace / "tests/new.md").write_text(NEW)
    model.write_text(ours)

    class _Other(ProgressListener):
        """Lets another run fail before this one is told."""

        def stop(self) -> None:
            model.write_text(others)
            selection = SelectionOptions(
                paths=(str(workspace / "tests/greeting.md"),), refresh=True
            )
            run(where, selection, RunOptions(), ProgressListener())

    ended = carry_out_request(where, ALL, _Other(), plan(where, ALL))
    assert [(failure.calls, failure.kind) for failure in ended.failures] == [(1, "status 400")]


def test_files_with_errors_are_reported_before_anything_is_asked(workspace: Path) -> None:
    (workspace / "tests/new.md").write_text("---\nreplacements: [\n---\n")

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "R")
        text = screen(pilot)
        assert "error: tests/new.md:" in text
        assert "nothing, until this is fixed" in text
        await press(pilot, "enter", "escape")
        assert isinstance(pilot.app.screen, RunsPage)

    drive(scenario)


def test_offline_and_the_bound_on_the_cost_hold(workspace: Path) -> None:
    (workspace / "tests/new.md").write_text(NEW)
    source = WorkspaceSource(Location(workspace), max_cost=0.0)

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "R")
        assert "It stops before it costs more than $0." in screen(pilot)
        await press(pilot, "enter")
        assert "at limit: 0 new answers" in screen(pilot)
        assert "stopped: cost limit reached" in screen(pilot)

    drive(scenario, source=source)
    model = workspace / "models/one.yaml"
    model.write_text("id: scripted/one\nprovider: openai\nproviderModelCode: x\n")

    async def offline(pilot: Pilot[None]) -> None:
        await press(pilot, "R")
        assert "(no model may be called)" in screen(pilot)

    drive(offline, source=WorkspaceSource(Location(workspace), offline=True))


def test_the_keys_of_a_run_do_not_stay_in_the_environment(workspace: Path) -> None:
    (workspace / "tests/new.md").write_text(NEW)
    (workspace / ".env").write_text("SOME_API_KEY=secret\n")

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "R", "enter")
        assert "complete: 2 new answers" in screen(pilot)
        assert "SOME_API_KEY" not in os.environ

    drive(scenario)


class _Stopping(ProgressListener):
    """Stops the run from outside its thread as soon as that is possible."""

    def interruptible(self, stop: object) -> None:
        assert callable(stop)
        self.stop_it = stop
        for _ in range(2):
            threading.Timer(0.05, stop).start()


def test_a_run_outside_of_the_main_thread_can_be_interrupted(workspace: Path) -> None:
    slow(workspace)
    listener = _Stopping()
    statuses: list[str] = []

    def work() -> None:
        report = run(Location(workspace), SelectionOptions(), RunOptions(yes=True), listener)
        statuses.append(report.status)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)
    assert statuses == ["interrupted"]
    listener.stop_it()


def test_more_than_was_shown_is_not_done(workspace: Path) -> None:
    (workspace / "tests/new.md").write_text(NEW)

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "R")
        assert "A run would ask for 2 answers and give 2 verdicts" in screen(pilot)
        (workspace / "tests/newer.md").write_text(NEW.replace("Lima", "Quito"))
        await press(pilot, "enter")
        text = " ".join(screen(pilot).split())
        assert "error: the plan has changed: 4 answers to ask and 4 verdicts to make" in text
        assert "hint: nothing was done; look at the plan again" in text
        await press(pilot, "escape", "R")
        assert "ask for 4 answers" in screen(pilot)
        model = workspace / "models/one.yaml"
        model.write_text(model.read_text().replace("Token: 0.01", "Token: 0.02"))
        await press(pilot, "enter")
        assert "it would cost $" in " ".join(screen(pilot).split())
        await press(pilot, "escape")
        assert "evalstore › 1 run" in screen(pilot)

    drive(scenario)


def test_nothing_is_done_that_cannot_be_seen(workspace: Path) -> None:
    (workspace / "tests/new.md").write_text(NEW)

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "R")
        await resized(pilot, 10, 3)
        await press(pilot, "enter")
        assert "too small" in screen(pilot)
        assert isinstance(pilot.app.screen, PlanPage)
        await press(pilot, "escape", "R")
        assert isinstance(pilot.app.screen, RunsPage)
        await resized(pilot, 100, 30)
        await press(pilot, "R", "enter")
        assert "complete: 2 new answers" in screen(pilot)

    drive(scenario)


def test_that_an_edited_row_counts_as_a_new_one_is_said_wherever_it_is_met(
    workspace: Path,
) -> None:
    """The plan, the pending work and the comparison say it."""
    edit(workspace / "tests/weather.md", "[Oslo, Rome]", "[Oslo, Bern]")
    hint = "(an edited row counts as a new one, unless the field 'rowId' of its file names it)"

    def body(pilot: Pilot[None]) -> str:
        page = pilot.app.screen
        assert isinstance(page, (PlanPage, RunPage))
        return page.body.text

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "w")
        assert hint in screen(pilot)
        await press(pilot, "R")
        assert f"1 row removed from tests/weather.md\n{hint}" in body(pilot)
        await press(pilot, "enter", "escape", "escape", "down", "d")
        assert hint in screen(pilot)

    drive(scenario)


def test_a_plan_follows_the_files(workspace: Path) -> None:
    new = workspace / "tests/new.md"
    new.write_text(NEW.replace("---", "{{ town }}\n\n---", 1))

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "R")
        assert "nothing, until this is fixed" in screen(pilot)
        assert "town" in screen(pilot)
        new.write_text(NEW)
        await show_changes(pilot)
        _, text = screen(pilot).rsplit("╭", 1)  # the list of runs below may be read later
        assert "2 answers" in text
        assert "town" not in text
        assert "until this is fixed" not in text
        new.unlink()
        await show_changes(pilot)
        assert "Nothing to do" in screen(pilot)

    drive(scenario)


def test_the_browser_can_be_left_from_a_plan(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "R", "q")
        assert not pilot.app.is_running

    drive(scenario)


def test_a_long_reason_of_a_plan_stays_beside_its_number(workspace: Path) -> None:
    question = "Tell me in few words what the weather is like this week in the city of"
    edit(workspace / "tests/weather.md", "How is", question)

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "R")
        lines = [line.strip("│") for line in screen(pilot).splitlines()]
        first = next(number for number, line in enumerate(lines) if "test changed" in line)
        start = lines[first].index("test changed")
        assert lines[first + 1][:start].isspace()
        assert not lines[first + 1][start].isspace()
        await press(pilot, "escape")
        await resized(pilot, 110, 30)
        await press(pilot, "R")
        assert f"+ {question} Oslo?" in screen(pilot), "there is room for all of it"

    drive(scenario, size=(50, 30))


def test_other_questions_than_those_shown_are_not_asked(workspace: Path) -> None:
    new = workspace / "tests/new.md"
    new.write_text(NEW)
    where = Location(workspace)
    planned = plan(where, ALL)
    new.write_text(NEW.replace("Lima", "Lima " * 1000))
    with pytest.raises(EvalstoreError, match="4 items of the new plan were not shown before"):
        carry_out_request(where, ALL, ProgressListener(), planned)
    new.write_text(NEW)
    assert carry_out_request(where, ALL, ProgressListener(), planned).report.asked == 2


def test_what_is_planned_in_batches_is_what_was_shown(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalstore.planning.cells.BATCH", 1)
    for name in ("new", "same"):
        (workspace / f"tests/{name}.md").write_text(NEW)
    where = Location(workspace)
    planned = plan(where, ALL)
    assert (planned.status.ask, planned.status.judge) == (2, 2)
    ended = carry_out_request(where, ALL, ProgressListener(), planned)
    report = ended.report
    assert (report.status, report.asked, report.judged) == ("complete", 2, 2)
