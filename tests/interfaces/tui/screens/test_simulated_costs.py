"""Costs of scripted models, for which nobody is paid: each screen that shows some says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from evalstore.interfaces.cli.main import main
from evalstore.interfaces.tui.text_view import FittedView, TextView
from tests.interfaces.cli.run.test_run import edit
from tests.interfaces.tui.driving import drive, press, screen

NOTE = "costs of scripted models are simulated"


@pytest.fixture
def pending(workspace: Path) -> Path:
    """The workspace with a message that is edited."""
    edit(workspace / "tests/weather.md", "How is", "And how is")
    return workspace


def details(pilot: Pilot[None]) -> str:
    return pilot.app.screen.query_one("#details", TextView).text


def test_pending_work_is_marked_above_the_runs_and_in_its_title(pending: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        line = next(line for line in screen(pilot).splitlines() if line.startswith(" pending "))
        assert line.rstrip().endswith("$0.1200 simulated")
        await press(pilot, "w")
        assert "$0.1200 simulated" in screen(pilot).splitlines()[0]

    drive(scenario, size=(80, 24))


def test_the_details_of_the_runs_say_it(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "home")
        assert f"{NOTE}." in details(pilot)
        await press(pilot, "down")
        assert "cost: $0.1800 simulated (" in details(pilot)

    drive(scenario)


def test_the_list_of_runs_marks_them(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        lines = [" ".join(line.split()) for line in screen(pilot).splitlines()]
        assert "run when passed change of cost verdicts" in " ".join(lines)
        assert sum(" 3/6 $0.1800 simulated " in line for line in lines) == 1

    drive(scenario, size=(120, 30))


def test_statistics_say_it(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "S")
        facts = pilot.app.screen.query_one("#facts", FittedView)
        assert f"when they were made; {NOTE}" in " ".join(facts.text.split())

    drive(scenario)


def test_costs_of_other_models_have_no_mark(workspace: Path) -> None:
    model = workspace / "models/two.yaml"
    edit(model, "provider: scripted", "provider: openai\ncode: two")
    text = model.read_text()
    model.write_text(text[: text.index("responses:")] + text[text.index("costs:") :])
    main(["run", "--quiet", "-m", "scripted/one"])

    async def scenario(pilot: Pilot[None]) -> None:
        line = next(line for line in screen(pilot).splitlines() if line.startswith(" pending "))
        assert "$" in line
        assert "simulated" not in line

    drive(scenario)
