"""Labels, what is copied, and what is saved."""

from __future__ import annotations

import csv
import json
import re
import threading
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from evalstore.core.errors import StoreError
from evalstore.interfaces.api import Workspace
from evalstore.interfaces.cli.main import main
from evalstore.interfaces.tui.app import Browser
from evalstore.interfaces.tui.data_source import WorkspaceSource
from evalstore.interfaces.tui.grid import Grid
from evalstore.interfaces.tui.render.answer import table_files
from evalstore.interfaces.tui.screens.case_panels import CaseReader
from evalstore.interfaces.tui.screens.cases import CasesPage
from evalstore.interfaces.tui.screens.dialogs import PromptDialog
from evalstore.interfaces.tui.text_view import TextView
from evalstore.planning.options import Location
from evalstore.results.labels import LabelReport
from tests.builders import tree
from tests.interfaces.cli.run.test_run import edit
from tests.interfaces.tui.conftest import HOSTILE
from tests.interfaces.tui.driving import drive, press, resized, screen, settled, until


@pytest.fixture(autouse=True)
def _somebody() -> None:
    (Path.home() / ".gitconfig").write_text("[user]\n\tname = Ada\n", encoding="utf-8")


def words(pilot: Pilot[None]) -> list[str]:
    """The verdicts of the highlighted case."""
    page = pilot.app.screen
    assert isinstance(page, CasesPage)
    assert page.case
    return [result.word or "" for result in page.case.results if result]


def notified(pilot: Pilot[None]) -> str:
    return "\n".join(str(notification.message) for notification in pilot.app._notifications)


def test_a_label_decides_in_the_workspace_at_once(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "down")
        assert words(pilot) == ["fail", "pass"]
        await press(pilot, "p", *"cold", "enter")
        assert words(pilot) == ["pass", "pass"]
        assert re.search(r"✓ pass  by Ada \(a person\)[^✓✗]*\n *cold", screen(pilot))
        assert "✓ pass ✎  " in screen(pilot)
        assert "pass: 1 answer, by Ada" in notified(pilot)
        await resized(pilot, 80, 24)
        await press(pilot, "f")
        asked, answer = (screen(pilot).index(text) for text in ("Escape to cancel", "▌ answer"))
        assert asked < answer, "the answer that is labelled is not covered"
        await press(pilot, "escape")
        assert words(pilot) == ["pass", "pass"]

    drive(scenario)


def test_of_marked_cases_what_the_picked_candidate_answered_is_labelled(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        def listed() -> list[list[str | None]]:
            page = pilot.app.screen
            assert isinstance(page, CasesPage)
            return [[result.word for result in row.results if result] for row in page.listing.rows]

        await press(pilot, "enter", "right", "space", "space", "f")
        assert "fail: 2 answers of scripted/two" in screen(pilot)
        await press(pilot, "enter")
        assert listed() == [["fail", "fail"], ["fail", "fail"], ["pass", "pass"]]
        await press(pilot, "left", "p", "enter")
        assert "pass: 2 answers, by Ada" in notified(pilot)
        assert listed() == [["pass", "fail"], ["pass", "fail"], ["pass", "pass"]]
        await press(pilot, "u")
        assert listed() == [["fail", "fail"], ["fail", "fail"], ["pass", "pass"]]
        await press(pilot, "J")
        assert "judge 2 results of scripted/one again" in screen(pilot)

    drive(scenario)


def test_marked_cases_without_an_answer_in_the_column_are_left_out(workspace: Path) -> None:
    (workspace / "tests/new.md").write_text("# 👤\n\nNew?\n\n---\n\nAn answer.\n")

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "space", "space", "p")
        assert "pass: tests/greeting.md scripted/one" in screen(pilot)

    drive(scenario)


def test_the_note_of_a_label_stands_in_the_prompt_when_it_is_given_again(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "p", *"cold", "enter", "p")
        assert pilot.app.screen.query_one(Input).value == "cold"
        await press(pilot, "enter")
        assert re.search(r"✓ pass  by Ada \(a person\)[^✓✗]*\n *cold", screen(pilot))
        await pilot.press("f")
        await until(pilot, lambda: isinstance(pilot.app.screen, PromptDialog))
        await pilot.press("enter")  # waits until the note has been read
        again = re.compile(r"✗ fail  by Ada \(a person\)[^✓✗]*\n *cold")
        await until(pilot, lambda: again.search(screen(pilot)) is not None)
        await press(pilot, "u", "p")
        assert pilot.app.screen.query_one(Input).value == ""

    drive(scenario, revision="@")


def test_prompts_and_texts_name_the_system_prompt_of_a_case_that_has_several(
    workspace: Path,
) -> None:
    tree(
        workspace,
        {
            "prompts/short.md": "Be short.\n",
            "prompts/kind.md": "Be kind.\n",
            "tests/weather.md": "---\nsystemPrompts: [short, kind]\n"
            + (workspace / "tests/weather.md").read_text().removeprefix("---\n"),
        },
    )
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "down", "p")
        page = pilot.app.screen_stack[-2]
        assert isinstance(page, CasesPage)
        assert page.case
        assert page.case.prompt
        name = f"[city=Oslo] ({page.case.prompt})"
        assert f"pass: tests/weather.md {name} scripted/one" in screen(pilot)
        await press(pilot, "enter")
        assert pilot.app.screen.query_one("#feedback", TextView).text.startswith(
            f"tests/weather.md {name}"
        )
        await press(pilot, "enter", "p")
        assert f"pass: tests/weather.md {name} scripted/one" in screen(pilot)
        await press(pilot, "escape", "escape", "x", "enter", "p")
        assert re.search(r"pass: tests/weather.md \[city=Oslo\] \(\w+\) scripted", screen(pilot))

    drive(scenario)


def test_labels_of_other_candidates_are_listed_below_their_verdicts(workspace: Path) -> None:
    def answer(pilot: Pilot[None]) -> str:
        return pilot.app.screen.query_one(CaseReader).text

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "p", *"cold", "enter", "right")
        assert re.search(r"✗ fail ✎✓  scripted/one[^✓]*✎ pass by Ada: cold", answer(pilot))
        await press(pilot, "left", "u", "right")
        assert "✎" not in answer(pilot)

    drive(scenario, revision="@", size=(120, 40))


def test_a_run_keeps_its_verdict_and_shows_later_labels(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "p", "enter")
        text = screen(pilot)
        assert "✗ fail ✎✓" in text
        columns = pilot.app.screen.query_one("#cases", Grid)._columns
        assert [column.width for column in columns if column.picks] == [9, 9]
        assert re.search(r"✓ pass  by Ada \(a person\)  \(after this run", text)
        assert words(pilot) == ["fail", "pass"]
        await press(pilot, "enter")
        heading = pilot.app.screen.query_one("#text", TextView).text.split("\n")[1]
        assert heading.startswith("✗ fail ✎✓  scripted/one")

    drive(scenario, revision="@")


def test_a_label_of_a_case_that_was_edited_since_says_that_it_does_not_count(
    workspace: Path,
) -> None:
    test = workspace / "tests/weather.md"
    test.write_text(test.read_text().replace("be warm", "be very warm"))

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "p", "enter")
        assert "1 case changed since: its label does not count in the workspace." in notified(pilot)

    drive(scenario, revision="@")


def test_a_label_is_taken_back(workspace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "down", "u")
        assert "You have no label here" in notified(pilot)
        await press(pilot, "p", *"cold", "enter")
        assert words(pilot) == ["pass", "pass"]
        await press(pilot, "u")
        assert "label removed: 1 answer, by Ada\nnow: ✗ fail" in notified(pilot)
        assert words(pilot) == ["fail", "pass"]
        assert "✎" not in screen(pilot)
        await press(pilot, "enter")
        text = screen(pilot)
        assert "– label removed  by Ada" in text
        assert "✓ pass  by Ada (a person)  (removed later)" in text
        lines = pilot.app.screen.query_one("#text", TextView).text.split("\n")
        assert lines[2] == "✗ scripted/judge: It is cold there."

    drive(scenario)
    main(["label", "tests/weather.md::city=Oslo", "pass", "--model", "scripted/one", "--as", "Bob"])
    capsys.readouterr()

    async def with_bob(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "down", "f")
        await press(pilot, "enter")
        assert words(pilot) == ["undecided", "pass"]
        assert "fail: 1 answer, by Ada\nnow: ? undecided" in notified(pilot)
        await press(pilot, "enter", "u")
        assert "now: ✓ pass" in notified(pilot)
        await press(pilot, "escape")
        assert words(pilot) == ["pass", "pass"]

    drive(with_bob)


def test_a_label_that_counted_and_was_removed_is_shown_beside_its_verdict(
    workspace: Path,
) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "p", "enter")
        assert words(pilot) == ["fail", "pass"]
        await press(pilot, "u")
        assert "✎" not in screen(pilot)
        await press(pilot, "p", "enter")

    drive(scenario, revision="@")
    main(["run", "--quiet"])

    async def after_the_run(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "u")
        assert words(pilot) == ["pass", "pass"]
        text = screen(pilot)
        assert re.search(r"– label removed  by Ada  \(after this run", text)
        await press(pilot, "enter")
        text = pilot.app.screen.query_one("#other", TextView).text
        assert "(after this run)" in text
        assert "✓ pass  by Ada (a person)" in text

    drive(after_the_run, revision="@", size=(120, 40))


def test_what_nothing_else_has_judged_is_pending_when_the_label_is_taken_back(
    workspace: Path,
) -> None:
    test = workspace / "tests/weather.md"
    test.write_text(test.read_text().replace("be warm", "be very warm"))

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "down", "p", "enter", "u")
        assert words(pilot) == ["pending", "pending"]
        assert "now: … pending\nR runs pending work." in notified(pilot)

    drive(scenario)


def test_a_hostile_note_is_text(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "p")
        pilot.app.screen.query_one("Input").value = HOSTILE  # type: ignore[attr-defined]
        await press(pilot, "enter")
        assert "[/] [bold red]no markup[/]" in screen(pilot)

    drive(scenario, size=(120, 30))


def test_what_cannot_be_labelled_says_why(workspace: Path) -> None:
    (workspace / "tests/new.md").write_text("# 👤\n\nNew?\n\n---\n\nAn answer.\n")

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "down", "p")
        assert "Nothing here can be labelled" in notified(pilot)

    drive(scenario)


def test_without_colours_a_warning_begins_with_that_word(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "y", "u")
        copied, warning = notified(pilot).splitlines()
        assert copied.startswith("copied ")
        assert warning.startswith("warning: You have no label here")
        (workspace / "tests/greeting.md").unlink()
        await press(pilot, "e")
        assert "\nerror: the workspace no longer has a file" in notified(pilot)

    monkeypatch.setenv("NO_COLOR", "1")
    drive(scenario, revision="@")


def test_a_damaged_store_is_reported_when_something_is_labelled(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "p")
        store = workspace / ".evalstore/store.db"
        assert store.exists()
        store.write_bytes(b"no database at all, " * 100)
        await press(pilot, "enter")
        said = "not stored: pass: tests/greeting.md scripted/one\nerror: "
        await until(pilot, lambda: said in notified(pilot))
        await press(pilot, "j", "k")

    drive(scenario)


def test_the_cases_fit_a_small_terminal(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "p")
        assert "Enter to label" in screen(pilot)
        await pilot.resize_terminal(20, 6)
        await press(pilot, "enter", "o", "escape", "y")

    drive(scenario, size=(40, 12))


# --- copied and saved


def test_ids_answers_and_texts_are_copied(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        app = pilot.app
        assert isinstance(app, Browser)
        await press(pilot, "down", "y")
        assert app.clipboard == app.source.runs()[0].id
        await press(pilot, "enter", "down", "y")
        page = app.screen
        assert isinstance(page, CasesPage)
        assert page.result
        assert app.clipboard == page.result.sessions[0]
        assert f"copied the id of the answer: {app.clipboard}" in notified(pilot)
        await press(pilot, "Y")
        assert app.clipboard == "Cold."
        assert "copied the answer: Cold." in notified(pilot)
        await press(pilot, "tab", "y")
        assert app.clipboard.startswith("tests/weather.md [city=Oslo]")

    drive(scenario)


def test_what_is_shown_is_saved_and_nothing_is_overwritten(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "o", "enter")
        (markdown,) = workspace.glob("evalstore-cases-*.md")
        assert "| file | row | scripted/one | scripted/two |\n" in markdown.read_text()
        assert "written: " in notified(pilot)
        for name in ("a.csv", "a.json", "a.csv"):
            await press(pilot, "o")
            pilot.app.screen.query_one("Input").value = name  # type: ignore[attr-defined]
            await press(pilot, "enter")
        assert "there is a 'a.csv' already" in screen(pilot)
        assert "Escape to cancel" in screen(pilot)
        line = pilot.app.screen.query_one(Input)
        assert line.value == "a.csv"
        line.value = "a.html"
        await press(pilot, "enter")
        assert "'a.html' ends in none of .md, .csv, .json" in screen(pilot)
        assert line.value == "a.html"
        await press(pilot, "escape")
        assert not list(workspace.glob("a.html"))
        assert json.loads((workspace / "a.json").read_text())[1]["row"] == "city=Oslo"
        table = list(csv.reader((workspace / "a.csv").read_text().splitlines()))
        assert table[0] == ["file", "row", "scripted/one", "scripted/two"]
        assert table[2][2:] == ["fail", "pass"]
        await press(pilot, "o")
        pilot.app.screen.query_one("Input").value = "no/such/folder.md"  # type: ignore[attr-defined]
        await press(pilot, "enter")
        assert "cannot be written: No such file or directory" in screen(pilot)
        await press(pilot, "escape", "tab", "o", "enter")
        assert list(workspace.glob("evalstore-cases-*.txt"))

    drive(scenario)


def test_a_message_does_not_cover_what_is_asked(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "y", "o")
        assert not notified(pilot)
        pilot.app.notify("copied the answer")
        await settled(pilot)
        lines = screen(pilot).splitlines()
        assert any("copied the" in line for line in lines[:5])
        assert pilot.app.screen.query_one("ToastRack").styles.dock == "top"
        assert pilot.app.screen.query_one("Toast").region.width == 60  # all of the title below
        assert "Enter to save, Escape to cancel" in lines[-2]

    drive(scenario, size=(60, 16), messages=True)


def test_a_cell_is_not_a_formula_in_a_spreadsheet_nor_markup_in_markdown() -> None:
    files = table_files(["a", "b"], [["=1+1", "5%"], ["@x", "a|b <i>\n*c*"]])
    assert files[".csv"]().splitlines()[1] == "'=1+1,5%"
    assert files[".csv"]().splitlines()[2].startswith("'@x,")
    assert files[".md"]().splitlines()[3] == r"| `@x` | `a\|b <i> *c*` |"


def test_every_attempt_of_a_case_is_labelled(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = workspace / "evalstore.yaml"
    settings.write_text(settings.read_text() + "attempts: 2\n")
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "down", "p", "enter")
        assert words(pilot) == ["pass", "pass"]
        assert "pass: 2 answers, by Ada" in notified(pilot)
        assert "✓ pass  by Ada (a person)  " in screen(pilot)
        assert pilot.app.screen.query_one("#cases", Grid).cursor == 1

    drive(scenario)


def test_the_answer_that_is_read_is_labelled_alone(workspace: Path) -> None:
    settings = workspace / "evalstore.yaml"
    settings.write_text(settings.read_text() + "attempts: 2\n")
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "down", "enter", "p", *"cold", "enter")
        assert "pass: 1 answer, by Ada" in notified(pilot)
        text = screen(pilot)
        assert "Ada" in text
        assert "cold" in text
        await press(pilot, "a", "p", "enter", "y", "Y")
        assert pilot.app.clipboard == "Cold."
        await press(pilot, "J")
        assert "a person's" in screen(pilot)
        await press(pilot, "escape", "escape")
        assert words(pilot) == ["pass", "pass"]

    drive(scenario)


def test_a_label_on_an_answer_of_a_run_is_reported_beside_its_verdict(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "enter", "p", "enter")
        text = screen(pilot)
        assert text.startswith(
            " run ######## › case 2 of 3 › tests/weather.md › city=Oslo › scripted/one"
        )
        assert "✗ fail ✎✓   scripted/one" in text
        after = "(after this run)"
        assert f"✓ pass  by Ada (a person)  {after}" in text
        await press(pilot, "escape")
        assert "✗ fail ✎✓" in screen(pilot)

    drive(scenario, revision="@")


class Locked(Workspace):
    """Cannot be written to at first."""

    refusals = 1

    def label(self, *arguments: Any, **options: Any) -> list[LabelReport]:
        if self.refusals:
            self.refusals -= 1
            raise StoreError("the store is locked by another program", hint="try again")
        return super().label(*arguments, **options)


def source_of(kind: type[Workspace], folder: Path) -> WorkspaceSource:
    source = WorkspaceSource(Location(folder))
    source.workspace = kind.at(Location(folder))
    return source


def test_a_label_that_could_not_be_stored_is_asked_again_with_its_note(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "f", *"cold", "enter")
        assert "not stored: fail: tests/greeting.md scripted/one" in notified(pilot)
        assert "the store is locked by another program\nhint: try again" in notified(pilot)
        assert pilot.app.screen.query_one(Input).value == "cold"
        await press(pilot, "enter")
        assert re.search(r"✗ fail  by Ada \(a person\)[^✓✗]*\n *cold", screen(pilot))
        assert isinstance(pilot.app, Browser)
        assert pilot.app.unsaved_labels == []

    drive(scenario, source=source_of(Locked, workspace))


def test_a_label_that_is_lost_when_the_browser_ends_is_known(workspace: Path) -> None:
    class Ends(Locked):
        def label(self, *arguments: Any, **options: Any) -> list[LabelReport]:
            begun.set()
            app = apps[0]
            app.call_from_thread(app.exit)
            while app.is_running:
                threading.Event().wait(0.01)
            return super().label(*arguments, **options)

    apps: list[Browser] = []
    begun = threading.Event()

    async def scenario(pilot: Pilot[None]) -> None:
        assert isinstance(pilot.app, Browser)
        apps.append(pilot.app)
        await press(pilot, "enter", "f")
        await pilot.press("x", "enter")
        await until(pilot, begun.is_set)

    drive(scenario, source=source_of(Ends, workspace))
    assert apps[0].unsaved_labels == [
        "not stored: fail: tests/greeting.md scripted/one: the store is locked by another program"
    ]


def test_marks_stay_with_their_cases_whatever_is_listed(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        page = pilot.app.screen
        assert isinstance(page, CasesPage)
        await press(pilot, "down", "space", "space", "slash", *"greeting", "enter")
        assert page.query_one(Grid).marked == set()
        await press(pilot, "escape")
        assert page.query_one(Grid).marked == {1, 2}
        await press(pilot, "t", "t")  # by tag
        assert [result.row for result in page.selected] == ["city=Oslo", "city=Rome"]

    drive(scenario, revision="@")


def test_a_mark_is_of_the_case_in_all_its_groups(workspace: Path) -> None:
    weather = workspace / "tests/weather.md"
    weather.write_text(weather.read_text().replace("tags: [weather]", "tags: [weather, cold]"))

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter")
        page = pilot.app.screen
        assert isinstance(page, CasesPage)
        await press(pilot, "down", "space", "t", "t")
        assert [result.row for result in page.selected] == ["city=Oslo"]
        grid = page.query_one(Grid)
        assert len(grid.marked) == 2
        first, second = sorted(grid.marked)
        for line in (first, second):  # a case is opened from its group, and the next one is there
            grid.move_to(line)
            await press(pilot, "enter", "escape")
            assert grid.cursor == line
            await press(pilot, "enter", "right_square_bracket", "escape")
            assert grid.cursor == line + 1
        grid.move_to(first)
        await press(pilot, "space")
        assert grid.marked == set()
        await press(pilot, "t")
        assert grid.marked == set()

    drive(scenario)


def test_the_cursor_stays_in_its_group_when_the_cases_are_read_again(workspace: Path) -> None:
    edit(workspace / "tests/weather.md", "tags: [weather]", "tags: [weather, cold]")

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "t", "t", "G")
        page = pilot.app.screen
        assert isinstance(page, CasesPage)
        last = page.grid.cursor
        for keys in (("r",), ("up", "p", "enter", "down")):
            await press(pilot, *keys)
            assert page.grid.cursor == last

    drive(scenario, revision="@work")
