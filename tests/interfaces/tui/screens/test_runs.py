"""The runs and their cases."""

from __future__ import annotations

import re
import threading
from dataclasses import replace
from pathlib import Path
from typing import cast
from unittest import mock

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from evalstore.interfaces.cli.main import main
from evalstore.interfaces.tui.app import Browser
from evalstore.interfaces.tui.data_source import WorkspaceSource
from evalstore.interfaces.tui.grid import Grid
from evalstore.interfaces.tui.screens.cases import CasesPage
from evalstore.interfaces.tui.screens.runs import RunsPage
from evalstore.interfaces.tui.screens.stats import StatsPage
from evalstore.interfaces.tui.text_view import TextView
from evalstore.planning.options import Location
from evalstore.results.table.cases import Cases, CaseWindow, RunLine, list_runs
from evalstore.runs.watch import ChangeNotifier
from tests.builders import tree
from tests.interfaces.tui.driving import (
    drive,
    look,
    painted_lines,
    press,
    resized,
    screen,
    settled,
    until,
)


def test_the_runs_are_listed_below_the_workspace(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        lines = screen(pilot).splitlines()
        assert lines[0] == " evalstore › 1 run"
        assert lines[7].split()[:2] == ["workspace", "now"]
        assert lines[8].split()[0] == "########"
        assert "50.0%" in lines[8]
        await press(pilot, "down")
        assert "3 ✓ pass, 3 ✗ fail: 50.0% of 6" in screen(pilot)

    drive(scenario)


class HeldRuns(WorkspaceSource):
    """Reads the runs, and holds them back while it is told to."""

    def __init__(self, location: Location) -> None:
        super().__init__(location)
        self.has_begun, self.goes_on = threading.Event(), threading.Event()
        self.goes_on.set()

    def runs(self) -> list[RunLine]:
        runs = super().runs()
        self.has_begun.set()
        assert self.goes_on.wait(60)
        return runs


def test_the_cursor_stays_where_it_was_moved_to_while_the_runs_were_read(workspace: Path) -> None:
    source = HeldRuns(Location(workspace))

    async def scenario(pilot: Pilot[None]) -> None:
        page = pilot.app.screen
        assert isinstance(page, RunsPage)
        with mock.patch.object(page, "show_runs", side_effect=page.show_runs) as show:
            source.has_begun.clear()
            source.goes_on.clear()
            page.reload()
            await until(pilot, source.has_begun.is_set)
            await pilot.press("down")
            assert page.query_one(Grid).cursor == 1
            source.goes_on.set()
            await until(pilot, lambda: show.called)
        assert page.query_one(Grid).cursor == 1

    drive(scenario, source=source)


def test_an_enter_that_was_pressed_before_the_browser_began_opens_a_run(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "ctrl+j")  # as a terminal sends it in lines
        assert screen(pilot).startswith(" run ########")

    drive(scenario)


def test_the_state_of_a_run_is_never_cut_and_the_run_can_be_opened(workspace: Path) -> None:
    (workspace / "tests/new.md").write_text("# 👤\n\nHow is Lima?\n\n---\n\nWarm.\n")
    main(["run", "--quiet", "--max-cost", "0", "--message", "as far as nothing goes"])

    async def scenario(pilot: Pilot[None]) -> None:
        for width, height in ((80, 24), (100, 30), (160, 40)):
            await resized(pilot, width, height)
            header, _, stopped, complete = screen(pilot).splitlines()[6:10]
            assert header.strip("│ ").split()[:3] == ["run", "when", "state"]
            assert "$  at limit  " in stopped
            assert "complete" not in complete
            assert "as far as nothing go" in stopped
        await resized(pilot, 40, 12)
        assert "  $   50.0%" in screen(pilot)
        await resized(pilot, 80, 24)
        await press(pilot, "down")
        assert "It was stopped at the cost or time limit" in screen(pilot)
        await press(pilot, "question_mark")
        assert "$ at limit" in pilot.app.screen.query_one(TextView).text
        await press(pilot, "escape", "enter")
        page = pilot.app.screen
        assert isinstance(page, CasesPage)
        assert "2 … pending" in screen(pilot)

    drive(scenario, size=(80, 24))


def test_ages_are_drawn_again_each_minute_on_every_screen_that_has_them(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def now_is(age: str) -> None:
        for module in ("interfaces.tui.render.verdicts", "results.answer.answer_text"):
            monkeypatch.setattr(f"evalstore.{module}.ago", lambda *_: age)

    async def minutes_pass(pilot: Pilot[None]) -> None:
        now_is("1 minute ago")
        (workspace / "tests/weather.md").write_text("# 👤\n\nHi\n\n---\n\nE\n", "utf-8")
        await look(pilot)
        assert "1 minute ago" in screen(pilot)
        await press(pilot, "question_mark")
        now_is("2 minutes ago")
        await press(pilot, "escape")
        assert "2 minutes ago" in screen(pilot)
        for keys in (("down", "enter"), ("enter",), ("v",)):
            now_is("1 minute ago")
            await press(pilot, *keys)
            before = screen(pilot).split()
            assert "1 minute ago" in screen(pilot)
            now_is("7 minutes ago")
            cast("Browser", pilot.app).refresh_ages()
            await settled(pilot)
            expected = " ".join(before).replace("1 minute ago", "7 minutes ago")
            assert " ".join(screen(pilot).split()) == expected

    async def wait(pilot: Pilot[None]) -> None:
        now_is("8 minutes ago")
        await until(pilot, lambda: "8 minutes ago" in screen(pilot))

    drive(minutes_pass, size=(119, 50))
    monkeypatch.setattr("evalstore.interfaces.tui.app._AGE_SECONDS", 0.5)
    drive(wait)


@pytest.mark.parametrize("keys", [("enter",), ("w",), ("down", "S"), ("down", "enter", "v")])
def test_the_text_below_a_list_grows_with_the_terminal(
    workspace: Path, keys: tuple[str, ...]
) -> None:
    (workspace / "tests/new.md").write_text("# 👤\n\nHow is Lima?\n\n---\n\nWarm.\n")
    heights: list[int] = []

    async def scenario(pilot: Pilot[None]) -> None:
        for opened in ((), keys):
            await press(pilot, *opened)
            for height in (24, 60):
                await resized(pilot, 100, height)
                heights.append(pilot.app.screen.query_one(".detail").size.height)

    drive(scenario)
    assert all(tall >= low + 8 for low, tall in zip(heights[::2], heights[1::2], strict=True)), (
        heights
    )


def test_statistics_have_the_same_key_on_the_runs_and_on_the_cases(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        for keys in (("S",), ("down", "enter", "S")):
            await press(pilot, *keys)
            assert isinstance(pilot.app.screen, StatsPage)
            await press(pilot, "escape")

    drive(scenario)


def test_an_empty_store_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree(tmp_path, {"evalstore.yaml": ""}))
    main(["init", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        assert "hint: write a test into 'tests/', such as 'tests/hello.md'" in screen(pilot)

    drive(scenario)


def test_a_folder_without_a_store_is_reported_with_its_hint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    async def scenario(pilot: Pilot[None]) -> None:
        assert "hint: run 'evalstore init'" in screen(pilot)

    drive(scenario)


@pytest.mark.parametrize("keys", [("enter",), ("down", "enter")])
def test_the_cases_of_a_run_and_of_the_workspace_are_a_table(
    workspace: Path, keys: tuple[str, ...]
) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, *keys)
        text = screen(pilot)
        assert "3 cases › 3 ✓ pass, 3 ✗ fail" in text
        assert [line.split()[1:] for line in text.splitlines()[4:6]] == [
            ["✗", "fail", "✗", "fail"],
            ["city=Oslo", "✗", "fail", "✓", "pass"],
        ]

    drive(scenario)


def test_the_feedback_follows_the_cursor(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "enter", "down")
        assert "  It is cold there." in screen(pilot)

    drive(scenario)


def test_failures_are_gone_through(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        page = pilot.app.screen
        assert isinstance(page, CasesPage)
        seen = []
        for key in ("n", "n", "n", "N"):
            await press(pilot, key)
            assert page.case
            seen.append((page.case.row, page.grid.picked))
        assert seen == [("", 1), ("city=Oslo", 0), ("", 0), ("city=Oslo", 0)]
        await press(pilot, "l")  # to the candidate that passes
        for key, place in (("N", ("city=Oslo", 0)), ("N", ("", 1))):
            await press(pilot, key)
            assert page.case
            assert (page.case.row, page.grid.picked) == place

    drive(scenario, revision="@")


FILTERS = {
    "oslo": ["city=Oslo"],
    "verdict:pass": ["city=Oslo", "city=Rome"],
    "verdict:pass model:one": ["city=Rome"],
    "tag:manners": [""],
    "file:weather verdict:fail": ["city=Oslo"],
    "verdict:error,fail model:two": [""],
    "-verdict:fail": ["city=Rome"],
    "-verdict:pass model:one": ["", "city=Oslo"],
    "-tag:manners": ["city=Oslo", "city=Rome"],
    "tag:manners,weather -file:greet,x": ["city=Oslo", "city=Rome"],
    "-model:one": [],
    "verdict:": ["", "city=Oslo", "city=Rome"],
    "-": ["", "city=Oslo", "city=Rome"],
    "nothing": [],
}
MISTAKES = {
    "verdict:failed": "no verdict is called 'failed': "
    "pass, fail, undecided, error, no reply, pending, answered, broke\n",
    "verdicts:fail": "unknown filter 'verdicts:': verdict:, tag:, model:, file:",
    "tag:nosuch": "no tag contains 'nosuch': manners, weather",
    "model:gpt": "no candidate contains 'gpt': scripted/one, scripted/two",
    "file:nosuch": "no file contains 'nosuch': tests/greeting.md, tests/weather.md",
}


def test_cases_are_filtered_as_it_is_typed(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        page = pilot.app.screen
        assert isinstance(page, CasesPage)
        await press(pilot, "slash", "r", "o", "m")
        assert [row.row for row in page.listing.rows] == ["city=Rome"]
        for text, rows in FILTERS.items():
            page.query_one("#filter", Input).value = text
            await settled(pilot)
            assert [row.row for row in page.listing.rows] == rows
            assert ("No case matches the filter." in screen(pilot)) == (not rows)
        await press(pilot, "escape")
        assert len(page.listing.rows) == 3

    drive(scenario, revision="@")


def test_a_filter_that_cannot_match_says_what_there_is(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        line = pilot.app.screen.query_one("#filter", Input)
        for text, message in MISTAKES.items():
            line.value = text
            await settled(pilot)
            assert message in screen(pilot)
        line.value = "-tag:nosuch"
        await settled(pilot)
        assert "3 cases › no tag contains 'nosuch'" in screen(pilot)

    drive(scenario, revision="@")


def test_the_verdicts_of_what_is_listed_are_counted(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        assert "3 cases › 3 ✓ pass, 3 ✗ fail" in screen(pilot)
        pilot.app.screen.query_one("#filter", Input).value = "rome"
        await settled(pilot)
        assert "1 of 3 cases › 2 ✓ pass" in screen(pilot).splitlines()[0]

    drive(scenario, revision="@")


def test_a_store_that_another_process_writes_to_is_followed(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        pilot.app.check_store()  # type: ignore[attr-defined]
        await settled(pilot)
        main(["run", "--quiet"])
        pilot.app.check_store()  # type: ignore[attr-defined]
        await settled(pilot)
        assert pilot.app.screen.query_one(Grid).row_count == 3

    drive(scenario)


def test_files_that_are_edited_outside_of_the_browser_are_followed(workspace: Path) -> None:
    question = "---\ndataset: ../names.csv\n---\n\n# 👤\n\nSay {{ name }}.\n\n---\n\nNames it.\n"
    tree(workspace, {"names.csv": "name\nAda\n", "tests/names.md": question})
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        await look(pilot)
        assert "nothing to do" in screen(pilot)
        (workspace / "names.csv").write_text("name\nAda\nIda\n")
        await look(pilot)
        assert "pending     2 to ask" in screen(pilot)
        await press(pilot, "enter")
        settings = workspace / "evalstore.yaml"
        assert "scripted/two" not in settings.read_text().replace("scripted/two]", "")
        settings.write_text(settings.read_text().replace(", scripted/two]", "]"))
        await look(pilot)
        assert "two" not in screen(pilot)
        await press(pilot, "escape")
        assert "pending     1 to ask, " in screen(pilot)
        (workspace / "names.csv").rename(workspace / "later.csv")
        await look(pilot)
        assert "'../names.csv' cannot be read" in screen(pilot)
        await look(pilot)
        (workspace / "later.csv").rename(workspace / "names.csv")
        await look(pilot)
        assert "pending     1 to ask, " in screen(pilot)
        (workspace / "tests/names.md").write_text(question.replace("names.csv", "new.csv"))
        await look(pilot)
        assert "'../new.csv' cannot be read" in screen(pilot)
        await look(pilot)
        (workspace / "new.csv").write_text("name\nEve\n")
        await look(pilot)
        assert "the workspace cannot be read" not in screen(pilot)

    drive(scenario)


def test_files_are_not_looked_at_more_often_than_that_costs_little(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = iter([0.0, 1.0, 2.0, 20.9, 21.1, 21.2])
    monkeypatch.setattr("evalstore.runs.watch.time.monotonic", lambda: next(seconds))
    notifier = ChangeNotifier(lambda: Location(workspace))
    assert not notifier.has_changed()
    (workspace / "tests/greeting.md").unlink()
    assert [notifier.has_changed() for _ in range(3)] == [False, False, True]


def test_columns_are_as_wide_as_what_is_in_them_and_a_verdict_is_seen_at_any_size(
    workspace: Path,
) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        words, signs = "3 ✓ pass, 3 ✗ fail", "3 ✓ 3 ✗"
        named = f"run {list_runs(Location(workspace))[0].id[:8]} (@)"
        for size, run, counts, line in (
            ((200, 60), named, words, f"  tests/weather.md   city=Oslo  {'✗ fail':<8}  ✓ pass"),
            ((100, 30), named, words, f"  tests/weather.md   city=Oslo  {'✗ fail':<8}  ✓ pass"),
            ((40, 12), "run @", signs, "  tests/weather.md   city=Oslo  ✗ fail"),
            ((30, 8), "run @", signs, "  tes…r.md  cit…Oslo  ✗ fail"),
        ):
            await resized(pilot, *size)
            shown = [line.text.rstrip() for line in painted_lines(pilot.app)]
            assert shown[0] == f" {run} › 3 cases › {counts}"
            assert any(text.lstrip("│").startswith(line) for text in shown), line

    drive(scenario, revision="@")


@pytest.mark.parametrize("size", [(80, 24), (40, 12), (10, 4), (200, 60)])
def test_every_size_of_the_terminal_will_do(workspace: Path, size: tuple[int, int]) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "enter", "n", "G", "g")
        await resized(pilot, 30, 8)

    drive(scenario, size=size)


def test_a_system_prompt_has_the_name_that_commands_print(workspace: Path) -> None:
    weather = (workspace / "tests/weather.md").read_text(encoding="utf-8")
    tree(
        workspace,
        {
            "prompts/kind.md": "Be kind.\n",
            "tests/weather.md": weather.replace("---\n", "---\nsystemPrompts: [kind, null]\n", 1),
        },
    )
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        assert "city=Oslo (kind) " in screen(pilot)
        assert "city=Oslo (no prompt) " in screen(pilot)
        await press(pilot, "down", "enter")
        assert "city=Oslo › kind › " in screen(pilot)
        await press(pilot, "escape", "slash", *"kind", "enter")
        assert pilot.app.screen.query_one(Grid).row_count == 2

    drive(scenario, revision="@")


FAILING = "provider: scripted\nresponses: [{error: {status: 400, message: no}}]\n"


@pytest.mark.parametrize("which", ["one", "judge"])
def test_a_failed_call_is_not_a_pending_case(workspace: Path, which: str) -> None:
    tree(workspace, {f"models/{which}.yaml": f"id: scripted/{which}\n{FAILING}"})
    test = workspace / "tests/weather.md"
    test.write_text(test.read_text(encoding="utf-8").replace("How is", "How warm is"))
    main(["run", "--quiet"])
    mine = {"one": 2, "judge": 4}[which]

    async def scenario(pilot: Pilot[None]) -> None:
        text = screen(pilot)
        assert f"{mine} ! no reply" in text.splitlines()[0]
        assert "pending" not in text
        await press(pilot, "n", "slash", *"verdict:no", "enter")
        assert f"2 of 3 cases › {'2 ✓ pass, ' * (which == 'one')}{mine} ! no" in screen(pilot)
        assert re.search("! no reply +scripted/one", screen(pilot))
        await press(pilot, "slash", *",pending")
        assert "verdict:no,pending" in screen(pilot)

    async def in_the_workspace(pilot: Pilot[None]) -> None:
        await press(pilot, "enter")
        await scenario(pilot)

    async def after_an_edit(pilot: Pilot[None]) -> None:
        await press(pilot, "enter")
        assert ("no reply" in screen(pilot)) == (which == "one")  # what is judged now was not tried

    drive(scenario, revision="@")
    drive(in_the_workspace)
    test.write_text(test.read_text(encoding="utf-8").replace("must be warm", "must be short"))
    drive(after_an_edit)


def test_groups_count_their_verdicts_and_are_folded(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        page = pilot.app.screen
        assert isinstance(page, CasesPage)
        await press(pilot, "t", "g")
        lines = screen(pilot).splitlines()
        assert lines[2].split() == ["case", "one", "two"]
        assert lines[3].split() == ["33%", "6-79", "67%", "10-97"]
        assert lines[4] == " ▾ tests/greeting.md: 1 case, 2 ✗ fail"
        assert lines[5].split() == ["greeting.md", "✗", "fail", "✗", "fail"]
        assert lines[6] == " ▾ tests/weather.md: 2 cases, 3 ✓ pass, 1 ✗ fail"
        assert lines[7].split() == ["city=Oslo", "✗", "fail", "✓", "pass"]
        await press(pilot, "j", "j", "enter")
        assert screen(pilot).splitlines()[6] == " ▸ tests/weather.md: 2 cases, 3 ✓ pass, 1 ✗ fail"
        assert page.listing.rows == [page.listing.lines[1]]
        assert "3 cases › 3 ✓ pass, 3 ✗ fail" in screen(pilot)
        await press(pilot, "r", "n")  # it goes round: from the folded one to the other case
        assert page.case is page.listing.lines[1]
        await press(pilot, "n", "n")
        assert page.query_one(Grid).cursor == 2
        await resized(pilot, 40, 12)
        assert "▸ tests/weather.md: 2 cases, 3 ✓ 1 ✗" in screen(pilot)
        await press(pilot, "enter")
        assert len(page.listing.rows) == 3

    drive(scenario, revision="@")


def test_a_grouped_table_is_saved_without_signs_and_lines_of_groups(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "t", "o")
        pilot.app.screen.query_one(Input).value = "cases.csv"
        await press(pilot, "enter")

    drive(scenario, revision="@")
    assert (workspace / "cases.csv").read_text(encoding="utf-8").splitlines() == [
        "file,row,scripted/one,scripted/two",
        "tests/greeting.md,,fail,fail",
        "tests/weather.md,city=Oslo,fail,pass",
        "tests/weather.md,city=Rome,pass,pass",
    ]


def test_sorted_by_verdict_failures_are_on_the_screen(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        page = pilot.app.screen
        assert isinstance(page, CasesPage)
        await press(pilot, "G", "s")
        assert page.query_one(Grid).cursor == 0
        assert page.case is page.listing.rows[0]
        assert page.case.file == "tests/greeting.md"

    drive(scenario, revision="@", source=Many(Location(workspace)))


def test_candidates_that_share_cases_are_offered_first(workspace: Path) -> None:
    answered = "---\nanswer: Moin!\n---\n"
    three = (workspace / "models/one.yaml").read_text(encoding="utf-8").replace("/one", "/three")
    settings = (workspace / "evalstore.yaml").read_text(encoding="utf-8")
    tree(
        workspace,
        {
            "models/three.yaml": three,
            "evalstore.yaml": settings.replace("scripted/two]", "scripted/two, scripted/three]"),
            "tests/moin.md": f"{answered}\n# 👤\n\nMoin\n\n---\n\nExpect a greeting.\n",
        },
    )
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "l", "l", "x")
        names = pilot.app.screen.query_one("#names", Grid)
        assert [names.texts(row) for row in range(3)] == [
            ["scripted/one"], ["scripted/two"], ["recorded"],
        ]  # fmt: skip

    drive(scenario, revision="@")


class Many(WorkspaceSource):
    """Has each case twenty times."""

    def cases(self, revision: str | None, window: CaseWindow | None = None) -> Cases:
        listed = super().cases(revision, window)
        return replace(listed, rows=[replace(row) for row in listed.rows for _ in range(20)])


def test_the_columns_end_where_the_scrollbar_begins(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        grid = pilot.app.screen.query_one(Grid)
        for size, typed in (((100, 30), ""), ((100, 30), "file:weather"), ((90, 28), "")):
            await resized(pilot, *size)
            pilot.app.screen.query_one("#filter", Input).value = typed
            await settled(pilot)
            assert grid.show_vertical_scrollbar
            assert screen(pilot).splitlines()[2].split()[-1] in ("two", "│")
            assert "67% 10-97" in screen(pilot) or typed

    drive(scenario, revision="@", source=Many(Location(workspace)))


def test_marked_runs_stay_marked_when_another_one_comes(workspace: Path) -> None:
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        grid = pilot.app.screen.query_one(Grid)
        await press(pilot, "space", "down", "space")
        assert grid.marked == {0, 2}
        main(["run", "--quiet"])
        await press(pilot, "r")
        assert grid.marked == {0, 3}

    drive(scenario)


def test_lists_and_texts_move_by_pages_and_halves(workspace: Path) -> None:
    rows = "\n".join(f"  - {{city: Oslo {number}}}" for number in range(60))
    test = workspace / "tests/weather.md"
    test.write_text(test.read_text().replace("  city: [Oslo, Rome]", rows))

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter")
        grid = pilot.app.screen.query_one(Grid)
        at = [grid.cursor]
        for key in ("pagedown", "ctrl+f", "ctrl+d", "ctrl+u", "ctrl+b", "pageup"):
            await press(pilot, key)
            at.append(grid.cursor)
        page, half = at[1], at[3] - at[2]
        assert page > half > 1
        assert at == [0, page, 2 * page, 2 * page + half, 2 * page, page, 0]
        await press(pilot, "question_mark")
        await press(pilot, "pagedown")
        text = pilot.app.screen.query_one(TextView)
        await until(pilot, lambda: text.scroll_offset.y > 0)
        await press(pilot, "pageup")
        await until(pilot, lambda: text.scroll_offset.y == 0)

    drive(scenario)


def test_the_names_of_a_run_are_in_the_list_and_in_its_details(workspace: Path) -> None:
    main(["run", "--quiet", "--message", "first"])
    main(["tag", "baseline"])
    main(["tag", "v1.0"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down")
        page = pilot.app.screen
        assert isinstance(page, RunsPage)
        assert page._cells(1)[-1].text == "(baseline, v1.0) first"
        text = page.query_one("#details", TextView).text
        assert text.splitlines()[0].endswith("  (baseline, v1.0) first")

    drive(scenario)


def test_a_change_leaves_out_results_without_an_earlier_verdict_and_its_star_is_explained(
    workspace: Path,
) -> None:
    main(["run", "--quiet"])
    greeting = (workspace / "tests/greeting.md").read_text()
    (workspace / "tests/new.md").write_text(greeting.replace("hello", "arm"))
    main(["label", "tests/weather.md::Rome", "fail", "--model", "scripted/one"])
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        page = pilot.app.screen
        assert isinstance(page, RunsPage)
        assert page._cells(1)[5].text == "-16.7*", "1 of 6 results broke, and 2 are new"
        assert (
            "* More differs than the change shows: the d"
            in page.query_one("#details", TextView).text
        )
        await press(pilot, "down")
        text = page.query_one("#details", TextView).text
        assert "* 2 of 8 results had no verdict before: the change leaves them out" in text

    drive(scenario)


def test_a_rate_is_compared_with_the_run_before_in_points_and_colour(workspace: Path) -> None:
    file = workspace / "tests/greeting.md"
    file.write_text(file.read_text().replace("hello", "arm"))
    main(["run", "--quiet"])
    main(["run", "--quiet", "tests/greeting.md"])
    main(["run", "--quiet", "--message", "the same"])
    settings = workspace / "evalstore.yaml"
    settings.write_text(settings.read_text().replace(", scripted/two", ""))
    main(["run", "--quiet"])
    main(["label", "tests/weather.md::Oslo", "pass"])
    main(["label", "tests/weather.md::Rome", "fail"])
    (workspace / "tests/weather.md").rename(workspace / "tests/forecast.md")
    main(["run", "--quiet", "--message", "as many pass, but others"])

    async def scenario(pilot: Pilot[None]) -> None:
        lines = screen(pilot).splitlines()
        assert lines[6].split()[:5] == ["run", "when", "passed", "change", "of"]
        page = pilot.app.screen
        assert isinstance(page, RunsPage)
        cells = [page._cells(row)[5] for row in range(1, 7)]
        changes = ["0.0*", "0.0", "0.0", "partial", "+33.3", ""]
        assert [cell.text for cell in cells] == changes, lines
        assert [cell.colour for cell in cells] == ["faint", "faint", "faint", "faint", "pass", ""]
        assert [page._cells(row)[2].text for row in range(1, 7)] == ["", "", "", "~", "", ""]
        rates = [page._cells(row)[4].text for row in range(1, 7)]
        assert [not rate for rate in rates] == [row == 4 for row in range(1, 7)], "some: no rate"
        assert {page._cells(row)[4].colour for row in range(1, 7)} == {""}
        await press(pilot, "down")
        text = page.query_one("#details", TextView).text
        assert "\n* since the run before: 1 broke, 1 fixed (by labels)\n" in text
        assert "\nbroke  tests/forecast.md [city=Rome] scripted/" in text
        assert "\nfixed  tests/forecast.md [city=Oslo] scripted/" in text
        await press(pilot, "down")
        details = page.query_one("#details", TextView)
        assert "\nbroke  " not in details.text
        await press(pilot, "down", "down")
        assert re.search(r": \d of \d passed\n", details.text), "a rate would be taken for all"

    drive(scenario)


def test_a_run_without_a_message_says_what_was_edited(workspace: Path) -> None:
    weather = workspace / "tests/weather.md"
    for message in ((), ("--message", "again")):
        weather.write_text(
            weather.read_text("utf-8").replace("How is", "Tell me how is", 1), "utf-8"
        )
        main(["run", "--quiet", *message])

    async def scenario(pilot: Pilot[None]) -> None:
        _, again, edited, first = (line.rstrip(" │") for line in screen(pilot).splitlines()[7:11])
        assert again.endswith("again")
        assert edited.endswith("tests/weather.md changed")
        assert not first.endswith("changed")
        await press(pilot, "down", "down")
        assert "edits: tests/weather.md changed" in screen(pilot)

    drive(scenario, size=(140, 40))
