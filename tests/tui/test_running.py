"""Runs that are started from the browser."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from textual.pilot import Pilot

from evalstore.operations.orders import Orders, Wanted, Where
from evalstore.operations.run import run
from evalstore.operations.watching import Watcher
from evalstore.tui.app import Browser
from evalstore.tui.cases import CasesPage
from evalstore.tui.history import History
from evalstore.tui.running import PlanPage, RunPage
from evalstore.tui.source import Workspace
from tests.tui.conftest import HOSTILE
from tests.tui.driving import drive, press, screen, settled
from tests.tui.test_labels import notified

NEW = "# 👤\n\nHow is Lima?\n\n---\n\nThe answer must be warm.\n"


def slow(folder: Path, seconds: float = 30.0) -> None:
    """Let both candidates take long, and give them something to do."""
    for name in ("one", "two"):
        model = folder / f"models/{name}.yaml"
        model.write_text(model.read_text().replace("- {", f"- {{latency: {seconds}, "))
    (folder / "tests/new.md").write_text(NEW)


async def shown(pilot: Pilot[None], text: str) -> None:
    """Wait until a text can be seen, or is said in passing."""
    for _ in range(1000):
        if text in screen(pilot) or text in notified(pilot):
            return
        await pilot.pause(0.01)
    pytest.fail(f"never seen: {text}\n{screen(pilot)}")


def test_what_is_missing_is_run_after_its_price_was_shown(workspace: Path) -> None:
    (workspace / "tests/new.md").write_text(NEW)

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "R")
        text = screen(pilot)
        assert "ask 2 answers, make 2 judgements: about $" in text
        assert "ask 2  scripted/one 1, scripted/two 1" in text
        assert "judge 2  by scripted/judge 2" in text
        assert "2 x  new" in text
        await press(pilot, "enter")
        text = screen(pilot)
        assert "complete: 2 asked, 2 judged, 6 reused" in text
        assert "tests/new.md" in text
        await press(pilot, "enter")
        page = pilot.app.screen
        assert isinstance(page, CasesPage)
        assert page.revision is not None
        await press(pilot, "escape", "escape")
        assert "evalstore › 2 runs" in screen(pilot)
        await press(pilot, "R")
        assert "Nothing to do." in screen(pilot)
        await press(pilot, "enter")
        assert isinstance(pilot.app.screen, PlanPage)
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, History)

    drive(scenario)


def test_the_marked_cases_are_judged_again_and_nothing_else(workspace: Path) -> None:
    judge = workspace / "models/judge.yaml"
    judge.write_text(judge.read_text().replace("pass: false", "pass: true"))

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "down", "J")
        text = screen(pilot)
        assert "judge 1 case of scripted/one again" in text
        assert "make 1 judgement: about $" in text
        assert "In the workspace the first verdict" in text
        await press(pilot, "enter")
        text = screen(pilot)
        assert "0 asked, 1 judged, 1 reused" in text
        assert "✗ fail -> ✓ pass  tests/weather.md city=Oslo  scripted/one" in text
        await press(pilot, "escape", "g", "space", "space", "J")
        assert "judge 2 cases of scripted/one again" in screen(pilot)
        assert "make 2 judgements" in screen(pilot)

    drive(scenario)


def test_what_a_person_has_judged_is_not_judged_again(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "p", "enter", "J")
        assert "or a person has: the" in screen(pilot)

    monkeypatch.setenv("USER", "ada")
    drive(scenario)


def test_a_case_that_is_gone_cannot_be_judged_again(workspace: Path) -> None:
    (workspace / "tests/greeting.md").unlink()

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "J")
        assert "error: the workspace has none of these cases any more" in screen(pilot)
        await press(pilot, "enter", "escape")
        assert isinstance(pilot.app.screen, CasesPage)

    drive(scenario, revision="@")


@pytest.mark.parametrize("keys", [("c", "c"), ("escape", "escape")])
def test_a_run_can_be_stopped_and_the_next_goes_on(workspace: Path, keys: tuple[str, ...]) -> None:
    slow(workspace)

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "R")
        await pilot.press("enter")
        await shown(pilot, "0/2")
        await pilot.press(keys[0])
        await shown(pilot, "once more stops at once")
        await pilot.press(keys[1])
        await shown(pilot, "interrupted: 0 asked")
        await settled(pilot)
        assert "R goes on from there" in screen(pilot)
        await press(pilot, "escape")
        slow(workspace, 0)
        for name in ("one", "two"):
            model = workspace / f"models/{name}.yaml"
            model.write_text(model.read_text().replace("latency: 30.0, ", ""))
        await press(pilot, "R", "enter")
        assert "complete: 2 asked" in screen(pilot)

    drive(scenario)


def test_one_browses_while_a_run_goes_on_and_a_second_one_is_refused(workspace: Path) -> None:
    slow(workspace)

    async def scenario(pilot: Pilot[None]) -> None:
        app = pilot.app
        assert isinstance(app, Browser)
        await press(pilot, "enter", "R")
        await pilot.press("enter")
        await shown(pilot, "0/2")
        await pilot.press("b")
        await pilot.press("J")
        await shown(pilot, "A run is under way already")
        await pilot.press("R")
        await shown(pilot, "0/2")
        assert isinstance(app.screen, RunPage)
        await pilot.resize_terminal(40, 12)
        await shown(pilot, "0/2")
        await pilot.press("b")
        await pilot.press("q")
        await shown(pilot, "being stopped")
        assert app.is_running
        await pilot.press("q")

    drive(scenario)


def test_a_provider_that_fails_is_told_with_its_class_and_a_hint(workspace: Path) -> None:
    model = workspace / "models/one.yaml"
    error = f"- {{when: Lima, error: {{status: 429, message: '{HOSTILE[:40]}'}}}}\n  - {{when: Oslo"
    model.write_text(model.read_text().replace("- {when: Oslo", error))
    settings = workspace / "evalstore.yaml"
    settings.write_text(settings.read_text() + "retries: 0\n")
    (workspace / "tests/new.md").write_text(NEW)

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "R", "enter")
        text = screen(pilot)
        assert "incomplete: 1 asked" in text
        assert "! failed 1 x  " in text
        assert "429  scripted/one" in text
        assert "[/] [bold red]no markup[/]" in text
        assert "hint: too many calls at once" in text
        await press(pilot, "escape", "j", "k")

    drive(scenario)


def test_files_with_errors_are_told_before_anything_is_asked(workspace: Path) -> None:
    (workspace / "tests/new.md").write_text("---\nreplacements: [\n---\n")

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "R")
        text = screen(pilot)
        assert "error: tests/new.md:" in text
        assert "nothing, before this is put right" in text
        await press(pilot, "enter", "escape")
        assert isinstance(pilot.app.screen, History)

    drive(scenario)


def test_offline_and_the_bound_on_the_cost_hold(workspace: Path) -> None:
    (workspace / "tests/new.md").write_text(NEW)
    source = Workspace(Where(workspace), max_cost=0.0)

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "R")
        assert "It stops before it costs more than $0." in screen(pilot)
        await press(pilot, "enter")
        assert "over budget: 0 asked" in screen(pilot)
        assert "Stopped at the bound on the cost" in screen(pilot)

    drive(scenario, source=source)
    model = workspace / "models/one.yaml"
    model.write_text("id: scripted/one\nprovider: openai\nproviderModelCode: x\n")

    async def offline(pilot: Pilot[None]) -> None:
        await press(pilot, "R")
        assert "(needs the network)" in screen(pilot)

    drive(offline, source=Workspace(Where(workspace), offline=True))


def test_the_keys_of_a_run_do_not_stay_in_the_environment(workspace: Path) -> None:
    (workspace / "tests/new.md").write_text(NEW)
    (workspace / ".env").write_text("SOME_API_KEY=secret\n")

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "R", "enter")
        assert "complete: 2 asked" in screen(pilot)
        assert "SOME_API_KEY" not in os.environ

    drive(scenario)


class _Stopping(Watcher):
    """Stops the run from outside of its thread as soon as that is possible."""

    def interruptible(self, stop: object) -> None:
        assert callable(stop)
        self.stop_it = stop
        for _ in range(2):
            threading.Timer(0.05, stop).start()


def test_a_run_outside_of_the_main_thread_can_be_interrupted(workspace: Path) -> None:
    slow(workspace)
    watcher = _Stopping()
    found: list[str] = []

    def work() -> None:
        report = run(Where(workspace), Wanted(), Orders(yes=True), watcher)
        found.append(report.status)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(20)
    assert found == ["interrupted"]
    watcher.stop_it()
