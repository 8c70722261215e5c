"""The life of one test."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from textual.pilot import Pilot

from evalstore.core.errors import EvalstoreError
from evalstore.interfaces.cli.main import main
from evalstore.interfaces.tui.app import Browser
from evalstore.interfaces.tui.grid import Grid
from evalstore.interfaces.tui.page_lines import Appearance
from evalstore.interfaces.tui.screens.cases import CasesPage
from evalstore.interfaces.tui.screens.test_history import TestHistoryPage
from evalstore.interfaces.tui.text_view import TextView
from evalstore.planning.options import Location
from evalstore.results.log.log import edits_between, versions_of
from evalstore.results.table import cases
from tests.builders import tree
from tests.interfaces.cli.conftest import WEATHER
from tests.interfaces.tui.conftest import GREETING, HOSTILE
from tests.interfaces.tui.driving import drive, press, resized, screen, settled, show_changes

BOTH = ("scripted/one", "scripted/two")


def edit(path: Path, was: str, now: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert was in text
    path.write_text(text.replace(was, now), encoding="utf-8")


def test_each_kind_of_edit_is_a_version_with_its_verdicts(workspace: Path) -> None:
    test = workspace / "tests/weather.md"
    tree(workspace, {"prompts/brief.md": "Be brief.\n"})
    edits = (
        ("How is", "How warm is"),
        ("must be warm", "must be very warm"),
        ("tags: [weather]", "tags: [weather]\nsystemPrompts: [brief]"),
        ("very warm.", "very warm.\n\n~~~checks\n- contains: Cold\n  not: true\n~~~"),
        ("[Oslo, Rome]", "[Oslo, Rome, Lima]"),
    )
    for was, now in edits:
        edit(test, was, now)
        main(["run", "--quiet"])
    main(["run", "--quiet"])  # changes nothing
    edit(workspace / "evalstore.yaml", ", scripted/two]", "]\ncandidatesTemperature: 0.5")
    main(["run", "--quiet"])
    edit(test, "How warm", "How cold")
    versions = versions_of(Location(workspace), "tests/weather.md", "city=Oslo")
    assert [version.edits for version in versions] == [
        ("test",),
        ("temperature of scripted/one", "candidate scripted/two removed"),
        ("checks",),
        ("system prompt",),
        ("instructions",),
        ("test",),
        ("new",),
    ]
    assert versions[0].run is None
    assert versions[0].verdicts == {"scripted/one": ("pending",)}
    assert versions[1].parts["checks"] == "- contains: Cold\n  not: true"
    assert versions[1].candidates == ("temperature of scripted/one: none -> 0.5",)
    assert versions[-1].verdicts == {"scripted/one": ("fail",), "scripted/two": ("pass",)}
    assert all(version.run for version in versions[1:])


def test_an_edit_of_a_judge_begins_a_version_alone_or_with_others(workspace: Path) -> None:
    main(["run", "--quiet"])
    edit(workspace / "evalstore.yaml", "candidates:", "evaluatorsTemperature: 0.5\ncandidates:")
    edit(workspace / "tests/weather.md", "How is", "How warm is")
    main(["run", "--quiet"])
    newest, _ = versions_of(Location(workspace), "tests/weather.md", "city=Oslo")
    assert newest.edits == ("test", "judge temperature none -> 0.5")
    main(["run", "--quiet", "--refresh", "--evaluator", "judge"])
    edit(workspace / "evalstore.yaml", "Temperature: 0.5", "Temperature: 0.7")
    main(["run", "--quiet"])
    versions = versions_of(Location(workspace), "tests/weather.md", "city=Oslo")
    assert [version.edits for version in versions] == [
        ("judge temperature 0.5 -> 0.7",),
        newest.edits,
        ("new",),
    ]


@pytest.mark.parametrize(("width", "has_age"), [(80, False), (100, True)])
def test_the_age_gives_way_to_an_edit_that_would_be_cut(
    workspace: Path, width: int, has_age: bool
) -> None:
    main(["run", "--quiet"])
    edit(workspace / "evalstore.yaml", "candidates:", "evaluatorsTemperature: 0.55\ncandidates:")
    edit(workspace / "tests/weather.md", "How is", "How warm is")
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "v")
        lines = screen(pilot).splitlines()[2:4]
        assert ("when" in lines[0]) == has_age
        assert "test, judge temperature none -> 0.55" in lines[1]

    drive(scenario, revision="@", size=(width, 24))


def test_a_case_that_was_away_is_gone_and_new(workspace: Path) -> None:
    test = workspace / "tests/weather.md"
    for text in ("[Rome]", "[Rome, Oslo]"):
        test.write_text(WEATHER.replace("[Oslo, Rome]", text))
        main(["run", "--quiet"])
    test.unlink()
    versions = versions_of(Location(workspace), "tests/weather.md", "city=Oslo")
    assert [(version.edits, bool(version.parts)) for version in versions] == [
        (("gone",), False),
        (("new",), True),
        (("gone",), False),
        (("new",), True),
    ]
    assert [edit.part for edit in edits_between(versions[1], versions[0])] == [
        "test",
        "instructions",
    ]


def test_an_edited_system_prompt_of_several_has_its_name(workspace: Path) -> None:
    tree(workspace, {"prompts/brief.md": "Be brief.", "prompts/kind.md": "Be kind."})
    edit(workspace / "tests/weather.md", "---\n", "---\nsystemPrompts: [brief, kind]\n")
    main(["run", "--quiet"])
    edit(workspace / "prompts/kind.md", "kind", "very kind")
    main(["run", "--quiet"])
    now, was, _ = versions_of(Location(workspace), "tests/weather.md", "city=Oslo")
    assert [edit.part for edit in edits_between(was, now)] == ["system prompt kind"]


def test_a_version_has_the_newest_verdict_on_each_candidate(workspace: Path) -> None:
    where = Location(workspace)
    edit(workspace / "tests/weather.md", "How is", "How warm is")
    (workspace / "tests/other.md").write_text("# 👤\n\nHi\n\n---\n\nE\n", encoding="utf-8")
    main(["run", "--quiet", "tests/other.md"])
    main(["run", "--quiet", "-m", "scripted/one", "tests/weather.md"])
    (newest, _) = versions_of(where, "tests/weather.md", "city=Oslo")
    assert newest.verdicts == {"scripted/one": ("fail",)}
    main(["label", "tests/weather.md::Oslo", "pass", "--as", "Ada", "-m", "x", "--model", BOTH[0]])
    main(["run", "--quiet", "-m", "scripted/one", "tests/weather.md"])
    main(["run", "--quiet", "-m", "scripted/two", "tests/weather.md"])
    main(["run", "--quiet", "-m", "scripted/one", "tests/weather.md"])  # with the same results
    newest, oldest = versions_of(where, "tests/weather.md", "city=Oslo")
    one, two, _, _, other, _ = (run.id for run in cases.list_runs(where))
    assert newest.edits == ("test",)
    assert (newest.run, newest.judged_in, newest.last_run) == (
        *(other, {"scripted/one": one, "scripted/two": two}),
        one,
    )
    assert newest.verdicts == dict.fromkeys(BOTH, ("pass",))
    assert oldest.verdicts == dict(zip(BOTH, [("fail",), ("pass",)], strict=True))

    async def scenario(pilot: Pilot[None]) -> None:
        assert isinstance(pilot.app, Browser)
        pilot.app.open("versions", "tests/weather.md", "city=Oslo", "")
        await settled(pilot)
        text = pilot.app.screen.query_one(TextView).text
        assert f"\nscripted/one  ✓ pass  in run {one[:8]}\n" in text
        assert f"\nscripted/two  ✓ pass  in run {two[:8]}\n" in text
        assert "\nscripted/one  last runs: ✗✗✓✓ 2 fail, then 2 pass\n" in text

    drive(scenario, revision="@")


def test_a_candidate_of_a_late_run_is_not_new(workspace: Path) -> None:
    (workspace / "tests/late.md").write_text(GREETING, encoding="utf-8")
    for models in (["-m", "scripted/one"], ["-m", "scripted/two"], []):
        main(["run", "--quiet", *models, "tests/late.md"])
        (only,) = versions_of(Location(workspace), "tests/late.md", "")
    assert [*only.verdicts] == [*BOTH]


def test_a_workspace_that_cannot_be_read_leaves_the_runs(workspace: Path) -> None:
    (workspace / "evalstore.yaml").write_text("candidates: [", encoding="utf-8")
    (workspace / "tests/weather.md").write_text("no test", encoding="utf-8")
    with pytest.raises(EvalstoreError, match="evalstore"):
        versions_of(Location(workspace), "tests/weather.md", "city=Oslo")
    (workspace / "evalstore.yaml").write_text("", encoding="utf-8")
    (only,) = versions_of(Location(workspace), "tests/weather.md", "city=Oslo")
    assert only.edits == ("new",)


def test_the_page_shows_the_difference_and_opens_the_run(workspace: Path) -> None:
    edit(workspace / "tests/weather.md", "How is {{city}}?", "How is {{city}} today?")
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "v")
        page = pilot.app.screen
        assert isinstance(page, TestHistoryPage)
        text = screen(pilot)
        assert "versions › 2 versions › tests/weather.md › city=Oslo" in text
        assert "test" in text.splitlines()[3]
        spans = [
            (span.text, span.colour)
            for line in page.query_one(TextView)._lines
            for span in line.spans
            if span.colour in ("old", "new")
        ]
        assert spans == [("- ", "old"), ("+ ", "new"), (" today", "new")]
        await press(pilot, "down", "y")
        assert pilot.app.clipboard == page._versions[1].run
        assert "+ How is Oslo?" in screen(pilot)
        await press(pilot, "z")
        assert not page.query_one(Grid).region
        await press(pilot, "escape", "enter")
        cases = pilot.app.screen
        assert isinstance(cases, CasesPage)
        assert cases.revision == page._versions[1].run
        assert cases.case
        assert (cases.case.file, cases.case.row) == ("tests/weather.md", "city=Oslo")
        await press(pilot, "escape")
        edit(workspace / "tests/weather.md", "[Oslo, Rome]", "[Oslo, Rome, Lima]")
        await show_changes(pilot)
        assert "versions › 2 versions › tests/weather.md" in screen(pilot), "another row is new"

    drive(scenario, revision="@")


def test_the_title_counts_versions_and_lines_apart(workspace: Path) -> None:
    test, settings = workspace / "tests/weather.md", workspace / "evalstore.yaml"
    titles = []

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "v")
        titles.append(screen(pilot).splitlines()[0].split(" › ")[1])

    edit(test, "How is {{city}}?", "How is {{city}} today?")
    main(["run", "--quiet"])
    edit(settings, "scripted/two]", "{id: scripted/two, temperature: 1}]")  # of the candidate
    main(["run", "--quiet"])
    drive(scenario, revision="@")
    edit(test, "How is {{city}} today?", "How is {{city}}?")  # the first version again
    main(["run", "--quiet"])
    drive(scenario, revision="@")
    assert titles == ["2 versions, 1 other change", "2 versions, 2 other changes"]


def test_a_long_edited_line_stays_right_of_its_sign_and_its_indent(workspace: Path) -> None:
    words = "a very long word " * 4
    edit(workspace / "tests/weather.md", "must be warm.", f"must be warm.\n\n    - {words}")

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "v")
        lines = screen(pilot).splitlines()
        first = next(n for n, line in enumerate(lines) if "+     - a very" in line)
        assert lines[first + 1].startswith("       ")  # a blank, the sign and the indent
        assert lines[first + 1].strip().startswith(("a", "very", "long", "word"))

    drive(scenario, revision="@work", size=(60, 24))


def test_verdicts_on_several_system_prompts_say_which_is_which(workspace: Path) -> None:
    tree(workspace, {"prompts/brief.md": "Be brief.\n", "prompts/polite.md": "Say hello.\n"})
    test = workspace / "tests/greeting.md"
    edit(test, "tags: [manners]", "systemPrompts: [brief, polite]")
    model_file = workspace / "models/one.yaml"
    edit(
        model_file, "{when: Oslo", "{when: 'Say hello.*Say hello', answer: hello}\n  - {when: Oslo"
    )
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "v")
        text = screen(pilot)
        assert "✗ fail 1/2   ✗ fail" in text
        assert "\nscripted/one  ✗ fail (brief)  ✓ pass (polite)\n" in (
            pilot.app.screen.query_one(TextView).text
        )

    drive(scenario, revision="@")
    edit(test, "contains: hello", "contains: Hello")
    main(["run", "--quiet", "tests/weather.md"])

    async def without_verdicts(pilot: Pilot[None]) -> None:
        await press(pilot, "v")
        text = pilot.app.screen.query_one(TextView).text
        assert "\nscripted/one (brief)  last runs" in text
        assert "\nscripted/one  last runs" not in text

    drive(without_verdicts, revision="@~1")


def test_the_candidate_stays_chosen_in_the_cases_of_a_version(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "l")
        for keys in (("v",), ("enter", "v")):  # from the cases, and from an answer of them
            await press(pilot, *keys, "enter")
            page = pilot.app.screen
            assert isinstance(page, CasesPage)
            assert [result.model for result in page.selected] == ["scripted/two"]
            assert page.case
            assert page.case.row == "city=Oslo"
        await press(pilot, "v")
        await resized(pilot, 34, 24)  # with room for one candidate
        assert "‹ two" in screen(pilot).splitlines()[2]
        await press(pilot, "h", "enter")
        assert isinstance(pilot.app.screen, CasesPage)
        assert [result.model for result in pilot.app.screen.selected] == ["scripted/one"]

    drive(scenario, revision="@")


def test_it_is_opened_from_an_answer_and_follows_the_store(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "enter", "v")
        page = pilot.app.screen
        assert isinstance(page, TestHistoryPage)
        assert page.query_one(Grid).row_count == 1
        edit(workspace / "tests/weather.md", "How is", "How warm is")
        await asyncio.to_thread(main, ["run", "--quiet"])
        await show_changes(pilot)
        assert page.query_one(Grid).row_count == 2
        assert page.query_one(Grid).cursor == 1

    drive(scenario, revision="@")


@pytest.mark.parametrize("key", ["R", "f8"])
def test_a_test_that_no_run_knows_says_which_key_helps(workspace: Path, key: str) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        pilot.app.open("versions", "tests/none.md", "")  # type: ignore[attr-defined]
        await settled(pilot)
        assert f"{key} makes one." in screen(pilot)
        await press(pilot, "enter", "z", "down")

    drive(scenario, appearance=Appearance(keys={"page.run": key}))


@pytest.mark.parametrize("size", [(100, 30), (40, 12), (10, 4)])
def test_what_a_file_says_is_text(workspace: Path, size: tuple[int, int]) -> None:
    edit(workspace / "tests/greeting.md", "Say hello.", HOSTILE)

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "v", "z")
        page = pilot.app.screen
        view = page.query_one(TextView)
        assert "+ [/] [bold red]no markup[/] [0] [unclosed \\x1b[31mred" in view.text
        if size[0] > 10:
            assert view.region.height > 3
        await press(pilot, "z", "down", "enter")

    drive(scenario, size=size)
