"""The plan of a run after an edit: of one file, or of all pending work."""

from __future__ import annotations

from pathlib import Path

from textual.pilot import Pilot

from evalstore.interfaces.cli.main import main
from evalstore.interfaces.tui.screens.run import PlanPage, StatusPage
from evalstore.planning.options import Location
from evalstore.results.table.cases import list_runs
from tests.interfaces.cli.run.test_run import edit
from tests.interfaces.tui.driving import drive, press, screen
from tests.interfaces.tui.screens.test_status import does, editor

__all__ = ["editor"]
NEW = "# 👤\n\nNew?\n\n---\n\nAn answer.\n"


def test_all_pending_work_is_planned_from_the_plan_of_one_file(
    workspace: Path, editor: Path
) -> None:
    (workspace / "tests/new.md").write_text(NEW)
    does(editor, "sed -i 's/be warm/be very warm/' \"$1\"")

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "slash", *"oslo", "enter", "e")
        text = screen(pilot)
        assert "run tests/weather.md" in text
        assert "give 4 verdicts" in text
        await press(pilot, "R")
        text = screen(pilot)
        assert isinstance(pilot.app.screen, PlanPage)
        assert "run pending work" in text
        assert "ask for 2 answers" in text
        assert "partial run" not in text
        await press(pilot, "R", "enter")
        assert not list_runs(Location(workspace))[0].is_partial

    drive(scenario, size=(100, 40))


def test_the_plan_of_the_only_test_file_is_not_partial(workspace: Path, editor: Path) -> None:
    (workspace / "tests/greeting.md").unlink()
    main(["run", "--quiet"])
    does(editor, "sed -i 's/be warm/be very warm/' \"$1\"")

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "slash", *"oslo", "enter", "e")
        text = screen(pilot)
        assert "run tests/weather.md" in text
        assert "partial run" not in text
        await press(pilot, "enter")
        assert not list_runs(Location(workspace))[0].is_partial

    drive(scenario, size=(100, 40))


def test_it_says_that_a_model_need_not_judge_again_when_only_a_check_changed(
    workspace: Path,
) -> None:
    checks = "\n~~~checks\n- length: {max: 90}\n~~~\n"
    weather = workspace / "tests/weather.md"
    weather.write_text(weather.read_text() + checks)
    main(["run", "--quiet"])
    edit(weather, "max: 90", "max: 80")
    edit(workspace / "tests/greeting.md", "contains: hello", "contains: hallo")

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "R")
        lines = screen(pilot).splitlines()
        of_both = [line for line in lines if "check 1 changed: max" in line]
        assert len(of_both) == 1
        assert " -> 80; if the checks pass, the verdict by scripted/judge " in of_both[0]
        by_checks_alone = next(line for line in lines if "hallo" in line)
        assert "reused" not in by_checks_alone

    drive(scenario, size=(140, 40))


def test_the_reasons_that_the_plan_leaves_out_are_listed_in_the_pending_work(
    workspace: Path,
) -> None:
    rows = ", ".join(f"c{number}" for number in range(20))
    test = workspace / "tests/many.md"
    text = f"---\nreplacements: {{city: [{rows}]}}\n---\n\n# 👤\n\nHow is {{{{city}}}}?\n"
    test.write_text(f"{text}\n---\n\nWell.\n")
    main(["run", "--quiet", "tests/many.md"])
    edit(test, "How is", "And how is")

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "R")
        assert "more reasons (w lists all)" in screen(pilot)
        await press(pilot, "w")
        assert isinstance(pilot.app.screen, StatusPage)
        assert "city=c19" in screen(pilot)
        await press(pilot, "R", "w", "escape")  # one list of the pending work is enough
        assert screen(pilot).startswith(" evalstore › ")

    drive(scenario, size=(140, 70))


def test_the_text_of_a_row_under_a_reason_of_several_is_named_as_an_example(
    workspace: Path,
) -> None:
    long = "and tell me in one sentence what I should put on for a walk along the river today"
    weather = workspace / "tests/weather.md"
    edit(weather, "How is {{city}}?", f"How is {{{{city}}}}, {long}?")
    main(["run", "--quiet"])
    edit(weather, "How is", "How, then, is")

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "R")
        lines = [line.strip(" │▅") for line in screen(pilot).splitlines()]
        at = lines.index("one of the 4, tests/weather.md [city=Oslo]:")
        assert lines[at - 1].startswith("4x  ")
        assert lines[at + 1].startswith("- How is Oslo")
        assert lines[at + 2].startswith("+ How, then, is Oslo")
        edit(weather, "city: [Oslo, Rome]", "city: [Oslo]")
        await press(pilot, "escape", "R")
        text = screen(pilot)
        assert "How, then, is Oslo" in text
        assert "one of the" not in text, "both candidates are asked the same"

    drive(scenario, size=(100, 50))


def test_verdicts_that_change_without_a_call_are_recorded(workspace: Path) -> None:
    weather = workspace / "tests/weather.md"
    before = weather.read_text()
    edit(weather, "How is", "And how is")
    main(["run", "--quiet"])
    main(["label", "tests/weather.md::city=Oslo", "pass", "--model", "scripted/one"])
    main(["run", "--quiet"])
    weather.write_text(before)

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "R")
        text = screen(pilot)
        assert (
            "A run would record the verdicts that stored answers give; it calls no model." in text
        )
        assert "Since the last run, without new calls: 1 result broke." in text
        await press(pilot, "enter")
        last = list_runs(Location(workspace))[0]
        assert (last.asked, last.judged) == (0, 0)
        await press(pilot, "escape", "R")
        assert "Nothing to do" in screen(pilot)

    drive(scenario)
