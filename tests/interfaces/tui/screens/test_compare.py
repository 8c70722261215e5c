"""Two sides, flips first."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from textual.pilot import Pilot

from evalstore.interfaces.cli.main import main
from evalstore.interfaces.tui.app import Browser
from evalstore.interfaces.tui.grid import Grid
from evalstore.interfaces.tui.screens.cases import CasesPage
from evalstore.interfaces.tui.screens.compare import ComparePage
from evalstore.interfaces.tui.screens.dialogs import Choice
from evalstore.interfaces.tui.text_view import TextView
from tests.builders import tree
from tests.interfaces.cli.run.test_run import edit
from tests.interfaces.tui.conftest import GREETING, HOSTILE
from tests.interfaces.tui.driving import drive, press, screen, settled, until
from tests.interfaces.tui.screens.test_actions import notified
from tests.interfaces.tui.test_dashboard import dashboard_texts

BOTH = ("scripted/one", "scripted/two")


@pytest.fixture
def two_runs(workspace: Path) -> Path:
    """A second run in which Oslo's first candidate is warm, and the second is not."""
    edit(workspace / "models/one.yaml", "answer: Cold.", "answer: It is warm there.")
    edit(workspace / "models/two.yaml", "answer: Not warm.", "answer: Cold. Really Cold.")
    main(["run", "--quiet", "--refresh"])
    return workspace


def listed(page: ComparePage) -> list[tuple[str, str, str]]:
    return [(change, pair.either.row, pair.either.model) for change, pair in page._pairs]


def detail(pilot: Pilot[None]) -> str:
    return pilot.app.screen.query_one("#pair", TextView).text


def page_of(pilot: Pilot[None]) -> ComparePage:
    page = pilot.app.screen
    assert isinstance(page, ComparePage)
    return page


def test_a_run_is_compared_with_the_one_before_it_flips_first(two_runs: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "d")
        lines = screen(pilot).splitlines()
        assert lines[0] == " compare › ######## -> ######## › listed: tests/weather.md"
        assert lines[1] == " 1 broke, 1 fixed, 4 unchanged (= shows them)"
        assert lines[2] == " pass rate 50.0% -> 50.0% (6 results in 2 files, judged on both sides)"
        assert lines[3] == " +0.0 points; too few files changed to test whether it is chance"
        assert lines[6].split() == [
            *("broke", "city=Oslo", "scripted/two"),
            *("✓", "pass", "✗", "fail"),
        ]
        assert detail(pilot).splitlines() == [
            "tests/weather.md [city=Oslo]  scripted/two  ✓ pass -> ✗ fail  (asked again)",
            "now: It is cold there.",
            "user  How is Oslo?",
            *("answer before", "Not warm.", "answer after", "Cold. Really Cold."),
        ]
        assert "Cold. Really Cold." in screen(pilot)
        assert [pair[0] for pair in listed(page_of(pilot))] == ["broke", "fixed"]
        await press(pilot, "=", "j", "j")
        assert [pair[0] for pair in listed(page_of(pilot))[2:]] == ["unchanged"] * 4
        assert "the same answer" in detail(pilot)
        await press(pilot, "escape")
        assert not isinstance(pilot.app.screen, ComparePage)
        await press(pilot, "enter", "d")
        assert [pair[0] for pair in listed(page_of(pilot))] == ["broke", "fixed"]

    drive(scenario)


def test_new_failures_are_listed_before_what_is_new_and_passes(workspace: Path) -> None:
    settings = workspace / "evalstore.yaml"
    both = settings.read_text()
    (workspace / "tests/zoo.md").write_text(GREETING.replace("hello", "zebra"))
    settings.write_text(both.replace(", scripted/two]", "]"))
    main(["run", "--quiet"])
    settings.write_text(both)
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "d")
        grid = pilot.app.screen.query_one(Grid)
        rows = [grid.texts(row) for row in range(grid.row_count)]
        assert [(row[0], row[1]) for row in rows] == [
            ("new", "tests/greeting.md"),
            ("new", "tests/zoo.md"),
            ("new", "tests/weather.md"),
            ("new", "tests/weather.md"),
        ]
        assert "4 new (new candidate scripted/two; 2 failed), 4 unchanged" in screen(pilot)
        await press(pilot, "n")
        assert grid.cursor == 1
        await press(pilot, "escape", "down", "enter", "x")
        alone = "has only the candidate scripted/one: @ opens the newest run"
        assert alone in notified(pilot)
        await press(pilot, "escape", "down", "enter", "d")
        assert "no earlier run to compare with" in notified(pilot)

    drive(scenario)


def test_words_that_differ_have_signs_also_in_what_is_copied(workspace: Path) -> None:
    edit(workspace / "models/one.yaml", "answer: Cold.", "answer: Rather cold in Oslo today.")
    main(["run", "--quiet", "--refresh"])
    edit(workspace / "models/one.yaml", "Rather cold", "Very cold")
    main(["run", "--quiet", "--refresh"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "d", "j", "j", "y")
        assert pilot.app.clipboard == "tests/weather.md::city=Oslo"
        await press(pilot, "tab", "y")
        assert pilot.app.clipboard.startswith("tests/weather.md [city=Oslo]")
        assert "\n[-Rather-]{+Very+} cold in Oslo today." in pilot.app.clipboard

    drive(scenario)


def test_a_label_is_shown_beside_the_verdict_it_was_added_to(two_runs: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "d")
        grid = pilot.app.screen.query_one(Grid)
        assert "✗ fail ✎✓" not in screen(pilot)
        await press(pilot, "p", "enter")
        assert [cell.text for cell in grid._cells(0)][4:6] == ["✓ pass", "✗ fail ✎✓"]
        await press(pilot, "escape")
        older = "tests/weather.md [city=Oslo] scripted/one"  # an older answer counts now
        assert dashboard_texts(pilot)[2] == f"broken      {older} (since the last run)"

    drive(scenario)


def test_flips_are_gone_through_and_sides_are_swapped(two_runs: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "d")
        page = page_of(pilot)
        seen = []
        for key in ("n", "n", "N"):
            await press(pilot, key)
            assert page.highlighted
            seen.append(page.highlighted.change)
        assert seen == ["fixed", "broke", "fixed"]
        await press(pilot, "i")
        assert page._pairs[page.query_one(Grid).cursor].change == "broke"
        assert " run ######## against run ########: +0.0 points" in screen(pilot)
        assert [(pair[0], pair[2]) for pair in listed(page)[:2]] == [
            ("broke", "scripted/one"),
            ("fixed", "scripted/two"),
        ]

    drive(scenario)


def test_the_workspace_is_compared_with_the_newest_run(workspace: Path) -> None:
    edit(workspace / "tests/weather.md", "How is", "And how is")

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "d")
        text = screen(pilot)
        assert "######## -> workspace" in text
        assert " 4 changed (all now pending), 2 unchanged (= shows them)" in text
        assert "test changed" in detail(pilot)
        edit_line = "message 1, line 1: How is Oslo? -> And how is Oslo?"
        assert detail(pilot).index("Cold.") < detail(pilot).index(edit_line)
        assert "✗ fail -> … pending  (test changed)" in detail(pilot)
        # The store does not have the other one yet.
        assert "\nuser  How is Oslo?\n" in detail(pilot)
        page = page_of(pilot)
        assert page.query_one(Grid).row_count == 4
        await press(pilot, "=")
        assert page.query_one(Grid).row_count == 6
        assert listed(page)[-1] == ("unchanged", "", "scripted/two")
        await press(pilot, "G")
        assert "the same answer\nWarm." in detail(pilot)

    drive(scenario)


def test_two_marked_runs_are_compared_the_older_one_first(two_runs: Path) -> None:
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "down", "space", "space", "d")
        assert "1 broke, 1 fixed" in screen(pilot)
        await press(pilot, "escape", "g", "space", "down", "space", "space", "d")
        assert not isinstance(pilot.app.screen, ComparePage)
        assert "3 lines are marked" in notified(pilot)

    drive(scenario)


def test_a_marked_run_is_compared_with_the_one_under_the_cursor(two_runs: Path) -> None:
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "G", "space", "d")
        assert screen(pilot).startswith(" evalstore › 3 runs › 1 marked")
        assert "the cursor is on the marked line" in notified(pilot)
        await press(pilot, "up", "up", "d")
        assert " 6 unchanged" in screen(pilot)  # of the newest run and the one before, two differ
        await press(pilot, "escape")
        assert "marked" not in screen(pilot).splitlines()[0]
        await press(pilot, "d")
        assert " 1 broke, 1 fixed" in screen(pilot)
        await press(pilot, "escape")
        await press(pilot, "G", "d")
        assert "no earlier run to compare with" in notified(pilot)

    drive(scenario)


def test_two_candidates_are_compared(workspace: Path) -> None:
    main(["run", "--quiet", "--refresh"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "x")
        text = screen(pilot)
        assert " compare › run ######## › one -> two" in text
        assert " scripted/two: 1 better, 2 equal" in text
        assert text.splitlines()[6].split()[:4] == ["change", "row", "one", "two"]
        assert text.splitlines()[7].split()[0] == "better"
        assert detail(pilot).splitlines()[1:] == [
            "scripted/one: It is cold there.",
            "user  How is Oslo?",
            *("answer of scripted/one", "Cold.", "answer of scripted/two", "Not warm."),
        ]
        assert "Not warm." in screen(pilot)
        assert " scripted/two against scripted/one: +33.3 points (" in text
        await press(pilot, "i")
        assert " scripted/one: 1 worse, 2 equal" in screen(pilot)
        assert " scripted/one against scripted/two: -33.3 points (" in screen(pilot)
        await press(pilot, "i")
        for word in ("broke", "fixed", "was", "now", "before", "after"):
            assert not re.search(rf"\b{word}\b", f"{screen(pilot)}{detail(pilot)}")
        assert detail(pilot).startswith("tests/weather.md [city=Oslo]  ✗ fail -> ✓ pass\n")

    drive(scenario, revision="@")


def test_the_candidate_to_compare_with_is_chosen(workspace: Path) -> None:
    both = "[scripted/one, scripted/two]"
    edit(workspace / "evalstore.yaml", both, "[scripted/one, scripted/two, scripted/six]")
    script = (workspace / "models/two.yaml").read_text().replace("scripted/two", "scripted/six")
    tree(workspace, {"models/six.yaml": script})
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "x")
        assert isinstance(pilot.app.screen, Choice)
        assert "Compare scripted/one with" in screen(pilot)
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, CasesPage)
        await press(pilot, "x", "j", "enter")
        assert "› one -> six" in screen(pilot)
        assert isinstance(pilot.app, Browser)
        pilot.app.open("compare", None, None, BOTH)
        await settled(pilot)
        assert screen(pilot).startswith(" compare › workspace › one -> two")

    drive(scenario, revision="@")


def test_two_system_prompts_are_compared_with_each_candidate(workspace: Path) -> None:
    kind = 'responses:\n  - {when: "kind.*Oslo", answer: Not warm.}\n'
    edit(workspace / "models/one.yaml", "responses:\n", kind)
    tree(workspace, {"prompts/brief.md": "Be brief.", "prompts/kind.md": "Be kind."})
    edit(workspace / "tests/weather.md", "tags:", "systemPrompts: [brief, kind]\ntags:")
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "slash", *"oslo", "enter", "x")
        assert isinstance(pilot.app.screen, Choice)
        text = screen(pilot)
        assert "scripted/one with scripted/two" in text
        assert "system prompt brief with kind" in text
        await press(pilot, "j", "enter")
        text = screen(pilot)
        assert text.startswith(
            " compare › run ######## › brief -> kind › filtered by oslo › tests/"
        )
        assert "kind: 1 better, 1 equal" in text
        assert "all cases are compared" not in notified(pilot)
        assert detail(pilot).startswith("tests/weather.md [city=Oslo]  scripted/one  ✗ fail -> ✓ ")
        await press(pilot, "i")
        assert "brief: 1 worse, 1 equal" in screen(pilot)
        await press(pilot, "enter")
        assert "› brief › scripted/one" in screen(pilot)

    drive(scenario, size=(120, 40), revision="@")


def test_candidates_are_compared_in_the_lines_that_a_filter_lists(workspace: Path) -> None:
    tree(workspace, {"prompts/brief.md": "Be brief.", "prompts/kind.md": "Be kind."})
    edit(workspace / "tests/weather.md", "tags:", "systemPrompts: [brief, kind]\ntags:")
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "x")
        assert "scripted/two: 2 results better (1 case), 3 equal" in screen(pilot)
        await press(pilot, "escape", "slash", *"oslo prompt:kind", "enter", "x", "enter")
        text = screen(pilot)
        assert "filtered by oslo prompt:kind" in text
        assert "scripted/two: 1 better, 0 equal" in text
        assert "pass rate" not in text  # the words chose the cases
        await press(pilot, "r", "i")
        assert "scripted/one: 1 worse, 0 equal" in screen(pilot)

    drive(scenario, size=(140, 40), revision="@")


def test_what_opens_is_the_session_of_the_newer_side(
    two_runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        opened = []
        await press(pilot, "down", "d")
        monkeypatch.setattr(
            pilot.app,
            "open",
            lambda _name, place: opened.append(
                (place.cases.run, [pair.row for pair in place.listed], place.case.row, place.model)
            ),
        )
        diff = page_of(pilot)._diff
        assert diff
        await press(pilot, "enter", "i", "enter")
        rows = ["city=Oslo"]
        assert opened == [
            (diff.now, rows, "city=Oslo", "scripted/two"),
            (diff.was, rows, "city=Oslo", "scripted/two"),
        ]

    drive(scenario)


def test_sides_without_a_difference_say_so(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "d", "n")
        assert "No verdict differs." in screen(pilot)
        labels = ("Label", "Edit", "Judge", "Change", "Open")
        await until(pilot, lambda: not any(it in screen(pilot).splitlines()[-1] for it in labels))
        assert "6 unchanged (= shows them)" in screen(pilot)
        assert "To compare the last two runs, d on the newest run in the list" in screen(pilot)
        await press(pilot, "=")
        assert page_of(pilot).query_one(Grid).row_count == 6

    drive(scenario)


def test_edits_that_change_no_verdict_are_shown(workspace: Path) -> None:
    edit(workspace / "tests/weather.md", "The answer must", "Each answer must")
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "d")
        assert " 6 unchanged (= shows them)" in screen(pilot)
        assert "also edited: tests/weather.md" in screen(pilot)
        assert "= lists the unchanged cases, edited test files first." in screen(pilot)
        await press(pilot, "i", "=")
        assert "Each answer must be warm. -> The answer must be warm." in detail(pilot)
        assert page_of(pilot).query_one(Grid).row_count == 6

    drive(scenario)


def test_what_was_edited_is_named_where_no_verdict_changed(workspace: Path) -> None:
    tree(
        workspace,
        {
            "prompts/brief.md": "Be brief.\n",
            "tests/named.md": GREETING.replace("tags:", "systemPrompts: [brief]\ntags:"),
            "tests/letters.md": "---\ndataset: letters.csv\n---\n\n# 👤\n\n{{letter}}?\n\n---\n\n"
            "The answer must be a {{letter}}.\n",
            "tests/letters.csv": "letter,kind\nA,a\nB,b\n",
        },
    )
    main(["run", "--quiet"])
    (workspace / "prompts/brief.md").write_text("Be short.\n")
    (workspace / "tests/letters.csv").write_text("letter,kind\nB,b\n")
    edit(workspace / "tests/greeting.md", "contains: hello", "contains: arm")
    edit(workspace / "tests/weather.md", "The answer must", "Each answer must")
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "d")
        text = " ".join(screen(pilot).split())
        assert "also edited: system prompt brief, tests/weather.md" in text
        assert "named.md" not in text.partition("also edited")[2].partition("gone")[0]

    drive(scenario, size=(200, 40))


def test_a_prompt_of_listed_cases_was_not_also_edited(workspace: Path) -> None:
    shared = GREETING.replace("tags:", "systemPrompts: [brief]\ntags:")
    tree(
        workspace,
        {
            "prompts/brief.md": "Be brief.\n",
            "tests/greeting.md": shared,
            "tests/named.md": shared,
        },
    )
    main(["run", "--quiet"])
    (workspace / "prompts/brief.md").write_text("Be short.\n")
    edit(workspace / "tests/greeting.md", "contains: hello", "contains: arm")
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "d")
        assert "greeting" in screen(pilot)
        assert "also edited" not in screen(pilot)

    drive(scenario, size=(200, 40))


def test_edits_of_files_without_a_changed_verdict_are_named(workspace: Path) -> None:
    edit(workspace / "tests/weather.md", "The answer must", "Each answer must")
    edit(workspace / "tests/greeting.md", "contains: hello", "contains: arm")
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "d")
        assert "also edited: tests/weather.md" in screen(pilot)
        await press(pilot, "=")
        assert "also edited" not in screen(pilot)

    drive(scenario)


def test_without_a_run_there_is_nothing_to_compare(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tree(tmp_path, {"evalstore.yaml": ""}))
    main(["init", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "d")
        assert not isinstance(pilot.app.screen, ComparePage)

    drive(scenario)


def test_what_models_say_is_text(workspace: Path) -> None:
    hostile = HOSTILE.replace("\x1b", "\\e").replace("\u202e", "\\u202e")
    edit(workspace / "models/one.yaml", "answer: Cold.", f'answer: "Cold. {hostile}"')
    edit(workspace / "models/judge.yaml", "It is cold there.", "'[/] [bold]cold [0]'")
    main(["run", "--quiet", "--refresh"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "d")
        for _ in range(6):
            if "[unclosed" in detail(pilot):
                break
            await press(pilot, "j")
        assert "[bold red]no markup[/] [0] [unclosed" in detail(pilot)
        assert "[/] [bold]cold [0]" in detail(pilot)
        assert "\\x1b[31m" in detail(pilot)

    drive(scenario)


@pytest.mark.parametrize("size", [(80, 24), (40, 12), (10, 4)])
def test_every_size_of_the_terminal_will_do(two_runs: Path, size: tuple[int, int]) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "d", "n", "=", "G", "i", "tab", "j")
        if size == (40, 12):
            lines = screen(pilot).splitlines()
            assert lines[1].startswith(" 1 broke, 1 fixed")
            assert "✓ pass  ✗ fail" in "\n".join(lines)
        await pilot.resize_terminal(30, 8)

    drive(scenario, size=size)


def test_a_narrow_comparison_has_the_ends_of_names(two_runs: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "d")
        lines = screen(pilot).splitlines()
        assert lines[4].split()[:2] == ["city=Oslo", "scri…ed/two"]
        assert lines[5].split()[:2] == ["city=Oslo", "scri…ed/one"]

    drive(scenario, size=(40, 12))


def test_a_wide_comparison_has_its_answers_at_the_right(two_runs: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "d")
        pairs, pair = (pilot.app.screen.query_one(f"#{id}") for id in ("pairs", "pair"))
        assert pairs.region.y == pair.region.y
        assert pairs.region.right < pair.region.x

    drive(scenario, size=(160, 40))
