"""One answer, and the ways from it to others."""

from __future__ import annotations

import asyncio
import json
import re
import time
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest
from textual.pilot import Pilot

from evalstore.core.errors import EvalstoreError
from evalstore.core.values import Result
from evalstore.interfaces.cli.main import main
from evalstore.interfaces.tui.data_source import WorkspaceSource
from evalstore.interfaces.tui.screens.answer import AnswerPage
from evalstore.interfaces.tui.screens.cases import CasesPage
from evalstore.interfaces.tui.text_view import TextView
from evalstore.planning.options import Location
from evalstore.results.answer import answer, verdict_explanation
from evalstore.results.answer.answer import AnswerView
from evalstore.results.table import cases
from tests.builders import tree
from tests.interfaces.tui.conftest import HOSTILE
from tests.interfaces.tui.driving import drive, press, resized, screen, settled, show_changes, until


def page_of(pilot: Pilot[None]) -> AnswerPage:
    assert isinstance(pilot.app.screen, AnswerPage)
    return pilot.app.screen


def text_of(pilot: Pilot[None], id: str = "#text") -> str:
    return page_of(pilot).query_one(id, TextView).text


def answering(text: str) -> str:
    """A model file that answers with this."""
    return f"id: scripted/one\nprovider: scripted\nresponses: [{{answer: {json.dumps(text)}}}]\n"


def test_an_answer_is_shown_with_its_verdict_and_what_it_was_judged_by(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "n", "n", "enter")
        text = text_of(pilot)
        lines = text.split("\n")
        assert lines[:2] == [
            "tests/weather.md [city=Oslo]  weather",
            "✗ fail  scripted/one",
        ]
        assert lines[2:9] == [
            "✗ scripted/judge: It is cold there.",
            *("", "user", "How is Oslo?", "", "▌ answer", "Cold."),
        ]
        assert lines[10:13] == ["instructions", "The answer must be warm.", ""]
        assert lines[13].startswith("✗ fail  by scripted/judge  ")
        assert lines[14] == "It is cold there."
        shown = "\n".join(lines[15:])
        assert shown.startswith("\nhistory\n")
        assert "$0.0300 simulated, 10 in + 2 out tokens, finish reason stop" in shown
        assert "\nanswer " in shown
        assert (
            " run ######## › case 2 of 3 › tests/weather.md › city=Oslo › scripted/one"
            in screen(pilot)
        )

    drive(scenario, revision="@")


def test_below_the_verdict_stands_since_when_it_fails_and_why(
    workspace: Path,
) -> None:
    test = workspace / "tests/weather.md"
    test.write_text(test.read_text("utf-8").replace("must be warm", "may be cold"), "utf-8")
    main(["-C", str(workspace), "run", "-q"])
    test.write_text(test.read_text("utf-8").replace("may be cold", "must be warm"), "utf-8")
    main(["-C", str(workspace), "run", "-q"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "n", "n", "enter")
        text = text_of(pilot)
        history = text[text.index("\nhistory\n") :]
        assert history.startswith("\nhistory\nbroken since run ")
        assert "\nwhat changed in between:\ninstructions changed\n" in history
        assert (
            "\n- The answer [-may-] be [-cold-].\n+ The answer {+must+} be {+warm+}.\n" in history
        )
        parts = ("\nuser\n", "\ninstructions\n", "\nIt is cold there.", "\nhistory\n")
        places = [*map(text.index, parts)]
        assert places == sorted(places)
        others = text.index("\nverdicts with other instructions, checks or judges\n")
        assert places[-1] < others < text.index("pass  by scripted/judge")
        assert text.count("by scripted/judge", 0, others) == 1
        await press(pilot, "b")
        assert "\nhistory\n" not in text_of(pilot)

    drive(scenario, revision="@")


def test_a_verdict_that_only_the_workspace_has_is_not_since_a_run(workspace: Path) -> None:
    text = (workspace / "tests/greeting.md").read_text(encoding="utf-8")
    tree(workspace, {"tests/a.md": text.replace("hello\n~~~", "bye\n~~~")})

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "p", "enter", "enter")
        lines = "passing now, in the workspace; no run judged it before\n"
        assert f"\nhistory\n{lines}" in text_of(pilot)
        await press(pilot, "escape", "down", "p", "enter", "enter")
        lines = "passing now, in the workspace\nlast failed in run "
        assert f"\nhistory\n{lines}" in text_of(pilot)

    drive(scenario, revision="@work")


def test_what_the_explanation_of_an_answer_cannot_read_hides_nothing(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: object, **_options: object) -> None:
        raise EvalstoreError("the disk is on fire")

    monkeypatch.setattr(verdict_explanation, "explain_result", fail)

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "n", "n", "enter")
        assert "It is cold there." in text_of(pilot)
        assert "\nhistory\n" not in text_of(pilot)
        assert "fire" not in screen(pilot)

    drive(scenario, revision="@")


def test_the_reader_goes_from_case_to_case_and_the_table_follows(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter")
        seen = []
        for key in ("l", "l", "]", "]", "]", "[", "n", "n", "right", "n", "N", "right"):
            await press(pilot, key)
            seen.append((page_of(pilot).navigator.case.row, page_of(pilot).navigator.model[-3:]))
        assert seen == [
            ("", "two"),
            ("", "one"),
            ("city=Oslo", "one"),
            ("city=Rome", "one"),
            ("city=Rome", "one"),
            ("city=Oslo", "one"),
            ("", "one"),
            ("", "two"),
            ("", "one"),
            ("", "two"),  # which fails, too
            ("", "one"),
            ("", "two"),
        ]
        await press(pilot, "]", "]", "escape")
        table = pilot.app.screen
        assert isinstance(table, CasesPage)
        assert table.case
        assert (table.case.row, table.result and table.result.model) == (
            "city=Rome",
            "scripted/two",
        )

    drive(scenario, revision="@")


def test_checks_are_listed_one_by_one_after_people(workspace: Path) -> None:
    main(
        [
            "label",
            "tests/greeting.md",
            "pass",
            "--as",
            "Ada",
            "--model",
            "scripted/one",
            "-m",
            "Yes.",
        ]
    )

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "enter")
        lines = text_of(pilot).split("\n")
        assert lines[1] == "✓ pass ✎  scripted/one"
        assert lines[2].startswith("✓ Ada: Yes.  ✗ checks: contains: 'hello' is not in")
        lines = lines[lines.index("- contains: hello") :]
        assert lines[3].startswith("✓ pass  by Ada (a person)")
        assert lines[4] == "Yes."
        assert lines[6].startswith("✗ fail  by checks")
        assert lines[7].startswith("✗ fail  contains: 'hello' is not in")
        assert "\nchecks\n- contains: hello\n# ✗ fail: 'hello' is not in " in text_of(pilot)
        await resized(pilot, 30, 50)
        comment = [line.strip() for line in screen(pilot).splitlines() if " # " in line]
        assert comment[0].startswith("# ✗ fail: 'hello' is")
        assert comment[1].startswith("# ")

    drive(scenario)


def test_judgements_under_earlier_instructions_are_marked(workspace: Path) -> None:
    test = workspace / "tests/weather.md"
    test.write_text(test.read_text().replace("must be warm", "must be warm and short"))
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "n", "n", "enter")
        text = text_of(pilot)
        assert "(other instructions or checks)" in text
        assert text.rindex("The answer must be warm and short.") < text.rindex(
            "The answer must be warm.\n"
        )
        assert "\ninstructions of another version (" in text

    drive(scenario, revision="@")


def without_ages(text: str) -> str:
    return re.sub(r"just now|\d+ (?:second|minute)s? ago", "some time ago", text)


def test_a_wide_terminal_has_the_verdicts_at_the_right_of_the_conversation(
    workspace: Path,
) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "n", "enter")
        page = page_of(pilot)
        left, right = (page.query_one(id, TextView) for id in ("#text", "#other"))
        whole, saved = without_ages(left.text), page.exported[".txt"]()
        assert not right.display
        await resized(pilot, 120, 40)
        assert left.text.split("\n")[2].startswith("✗ checks: contains: ")
        assert right.text.startswith("✗ fail  by checks")
        assert "history" in right.text
        assert without_ages(f"{left.text}\n\n{right.text}") == whole
        assert without_ages(page.exported[".txt"]()) == without_ages(saved), "nothing changes"
        assert (left.region.y, left.region.right) == (right.region.y, right.region.x - 1)
        await press(pilot, "tab")
        assert right.has_focus
        await press(pilot, "right")
        assert "✗ fail  scripted/one" in left.text, "the keys of the page hold for both columns"
        await press(pilot, "left")
        await resized(pilot, 119, 40)
        assert left.has_focus
        assert (without_ages(left.text), right.display) == (whole, False)

    drive(scenario, revision="@", size=(100, 30))


@pytest.mark.parametrize("width", [160, 120, 80])
def test_another_candidate_is_shown_beside_or_below(workspace: Path, width: int) -> None:
    tree(workspace, {"models/one.yaml": answering("Very cold, I must say.")})
    two = (workspace / "models/two.yaml").read_text()
    (workspace / "models/two.yaml").write_text(
        two.replace("Not warm.", "'Quite cold, I must say.'")
    )
    main(["run", "--quiet", "--refresh"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "enter", "b")
        assert "{+Quite+} cold" in screen(pilot)
        left, right = (page_of(pilot).query_one(id, TextView) for id in ("#text", "#other"))
        assert (left.region.y == right.region.y) == (width >= 120)
        words = [
            [(span.text, span.colour) for line in view._lines for span in line.spans]
            for view in (left, right)
        ]
        assert ("[-Very-]", "old") in words[0]
        assert ("{+Quite+}", "new") in words[1]
        await press(pilot, "y")
        assert (
            "\n\n[-words-] only in the answer of scripted/one\n[-Very-] cold, I must say.\n"
        ) in pilot.app.clipboard
        asked = text_of(pilot, "#asked")
        assert asked.split("\n")[1:] == [
            "user  How is Oslo?",
            "instructions  The answer must be warm.",
        ]
        assert "How is Oslo?" not in f"{left.text}{right.text}"
        assert pilot.app.screen.query_one("#asked").display
        assert "\n{+words+} only in the answer of scripted/two\n" in right.text
        await press(pilot, "b")
        assert right.display == (width >= 120), "the verdicts are there"
        await press(pilot, "l", "b")  # now the other one is first
        assert "\n[-words-] only in the answer of scripted/two\n" in left.text
        assert "\n{+words+} only in the answer of scripted/one\n" in right.text

    drive(scenario, revision="@", size=(width, 30))


def test_answers_that_have_little_in_common_are_not_marked(workspace: Path) -> None:
    test = workspace / "tests/weather.md"
    test.write_text(
        f"{test.read_text()}\n~~~checks\nevaluator: on_pass\nchecks: [{{contains: Warm}}]\n~~~\n"
    )
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "n", "n", "enter", "b")
        assert "\n\nCold.\n" in text_of(pilot)
        assert "\n\nNot warm.\n" in text_of(pilot, "#other")
        for side in ("#text", "#other"):
            assert "\nNo model was called, because the checks failed." in text_of(pilot, side)

    drive(scenario, revision="@")


def test_several_answers_are_gone_through_and_judged_together(workspace: Path) -> None:
    text = (
        "# ▶ north ×2\n\n# 👤\n\nHow is Oslo?\n\n# ▶ south\n\n# 👤\n\nHow is Rome?\n\n---\n\n"
        "~~~checks\n- {expr: 'north[0] == south[0]', scope: case, name: steady}\n~~~\n"
    )
    tree(workspace, {"tests/greeting.md": text})
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter")
        assert "answer 1 of 3" in text_of(pilot)
        await press(pilot, "m", "a", "a")
        assert "answer 3 of 3" in screen(pilot)
        assert "steady: expected" in screen(pilot)
        await press(pilot, "a", "m")
        assert "3 judged together" in text_of(pilot)
        assert "✗ fail  steady: expected" in text_of(pilot)
        together = text_of(pilot).split("\njudged together\n")[1].split("\n")
        members = [line[:4] for line in together if not line.startswith("How is ")]
        assert members[:3] == ["▸ 1 ", "  2 ", "  3 "]
        await press(pilot, "a", "a")
        assert "▸ 3 " in text_of(pilot)
        assert "How is Rome?" in text_of(pilot)
        await press(pilot, "a")
        assert "▸ 1 " in text_of(pilot)

    drive(scenario, revision="@")


def test_every_turn_files_and_the_system_prompt_are_shown(workspace: Path) -> None:
    text = (
        "---\nsystemPrompts: [brief]\n---\n\n# 👤\n\nLook: {{_file:a.txt}}\n\n# 🤖 @first\n\n"
        "# 👤\n\nAnd Rome?\n\n---\n\nThe answer must be warm, unlike {{first}}\n"
    )
    tree(
        workspace,
        {
            "tests/greeting.md": text,
            "tests/a.txt": "A file.",
            "prompts/brief.md": "Be brief.\n",
            "models/one.yaml": answering('{"a": [1, {"b": "c"}], "d": {}}'),
        },
    )
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter")
        text = text_of(pilot)
        assert "\nsystem\nBe brief.\n" in text
        assert "[file a.txt, text/plain, 7 bytes]" in text
        laid = '{\n  "a": [\n    1,\n    {\n      "b": "c"\n    }\n  ],\n  "d": {}\n}\n'
        assert f"▌ answer 1 of 2\n{laid}" in text
        assert f"▌ answer 2 of 2\n{laid}" in text
        assert "unlike [answer 1]" in text

    drive(scenario, revision="@")


def test_a_case_without_an_answer_says_what_is_missing(workspace: Path) -> None:
    test = workspace / "tests/weather.md"
    test.write_text(test.read_text().replace("How is", "How warm is"))

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "down", "enter")
        text = text_of(pilot)
        assert "… pending  scripted/one" in text
        assert "No answer yet.\nR gets what is missing, and shows the price first." in text
        assert "\nuser\nHow warm is Oslo?\n" in text
        assert "\ninstructions\nThe answer must be warm.\n" in text
        assert "\nhistory\npending; last failed in run " in text
        assert "\nother results of this case\n… pending  scripted/two" in text
        await asyncio.to_thread(main, ["run", "--quiet"])
        await show_changes(pilot)
        assert "✗ fail  scripted/one" in text_of(pilot)

    drive(scenario)


def test_the_answer_of_a_row_that_is_gone_says_so_and_keeps_its_history(workspace: Path) -> None:
    test = workspace / "tests/weather.md"
    edited = test.read_text().replace("[Oslo, Rome]", "[Bern, Rome]")
    gone = "this case is no longer in the workspace"

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "down", "enter")
        assert text_of(pilot).startswith("tests/weather.md [city=Oslo]")
        test.write_text(edited)
        await asyncio.to_thread(main, ["run", "--quiet"])
        await show_changes(pilot)
        after = text_of(pilot)
        assert after.splitlines()[2] == gone
        assert "\nhistory\nfailing since run" in after
        assert "\nother results of this case\n✓ pass  scripted/two" in after
        await press(pilot, "]")
        assert "is no longer" not in text_of(pilot)
        await press(pilot, "[")
        assert gone in text_of(pilot)
        test.write_text(edited.replace("Bern", "Oslo"))
        await show_changes(pilot)
        assert "is no longer" not in text_of(pilot)

    drive(scenario)


def test_why_a_call_failed_is_reported(workspace: Path) -> None:
    failing = "responses: [{error: {status: 401, message: no such key}}]\n"
    tree(workspace, {"models/one.yaml": f"id: scripted/one\nprovider: scripted\n{failing}"})
    test = workspace / "tests/weather.md"
    test.write_text(test.read_text().replace("How is", "How warm is"))
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        if not isinstance(pilot.app.screen, CasesPage):
            await press(pilot, "enter")
        await press(pilot, "down", "enter")
        failed = "The call failed: scripted/one: the server answered 401: no such key\nhint: check"
        assert failed in text_of(pilot)

    drive(scenario)
    drive(scenario, revision="@")


def test_recorded_answers_are_shown_when_their_case_is_gone(workspace: Path) -> None:
    test = workspace / "tests/greeting.md"
    test.write_text("---\nanswer: Moin!\n---\n" + test.read_text().split("---\n", 2)[2])
    main(["run", "--quiet"])
    test.unlink()

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter")
        assert "▌ answer\nMoin!\n" in text_of(pilot)
        assert "\nrecorded, " in text_of(pilot)

    drive(scenario, revision="@")


def test_a_session_that_the_store_lacks_is_reported(workspace: Path) -> None:
    class Poor(WorkspaceSource):
        def session(self, id: str, result: Result) -> AnswerView:
            raise EvalstoreError("it is gone", hint="look elsewhere")

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "l", "]", "b")
        assert "hint: look elsewhere" in screen(pilot)
        assert "reading …" not in screen(pilot).splitlines()[0]

    drive(scenario, source=Poor(Location(workspace)), revision="@")


def test_without_a_place_the_newest_run_that_knows_a_session_gives_it(workspace: Path) -> None:
    where = Location(workspace)
    result = cases.cases(where, "@").rows[1].results[0]
    assert result
    with_place = answer.session_of(where, result.sessions[0], result)
    without = answer.session_of(where, result.sessions[0])
    assert replace(without, ids=()) == replace(with_place, ids=())


def test_what_a_model_says_is_text(workspace: Path) -> None:
    tree(workspace, {"models/one.yaml": answering(HOSTILE)})
    test = workspace / "tests/weather.md"
    test.write_text(test.read_text().replace("How is", "How warm is"))
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "enter", "b", "b")
        shown = "[/] [bold red]no markup[/] [0] [unclosed \\x1b[31mred\\x1b[0m 漢字 שלום \\u202e"
        assert shown in text_of(pilot)
        assert "[bold red]no markup[/]" in screen(pilot)
        await press(pilot, "m")
        assert "\x1b" not in screen(pilot)
        await press(pilot, "l", "m")

    drive(scenario, revision="@")


def test_markdown_is_rendered_until_the_source_is_asked_for(workspace: Path) -> None:
    written = "# Title\n\nSome **bold** words &amp; &#x202e;evil.\n"
    tree(workspace, {"models/one.yaml": answering(written)})
    test = workspace / "tests/weather.md"
    test.write_text(test.read_text().replace("How is", "How warm is"))
    main(["run", "--quiet"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "enter")
        assert (
            "▌ answer  as Markdown\n   Title\n\n   Some bold words &amp; &#x202e;evil."
            in screen(pilot)
        )
        await press(pilot, "y")
        assert written in pilot.app.clipboard
        await press(pilot, "m")
        assert "▌ answer\n   # Title\n\n   Some **bold** words &amp;" in screen(pilot)
        await press(pilot, "]", "j", "k", "G", "m")
        assert "Some bold words" in screen(pilot)

    drive(scenario, revision="@")


def test_plain_answers_have_nothing_to_be_rendered(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "n", "n", "enter", "m")
        assert "the answer is not Markdown" in screen(pilot)
        await press(pilot, "b", "m")
        (*_, last) = pilot.app._notifications
        assert last.message == "answers side by side are shown as they are written"

    drive(scenario, revision="@", messages=True)


def test_an_answer_is_saved_as_it_is_written(workspace: Path) -> None:
    tree(workspace, {"models/one.yaml": answering(f"# Steps\n\n    cold  [here]\n\n{HOSTILE}")})
    main(["run", "--quiet", "--refresh"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "enter", "o", "enter")
        (path,) = workspace.glob("evalstore-answer-*.txt")
        text = path.read_text()
        assert text.startswith("tests/weather.md [city=Oslo]  weather\n✓ pass  scripted/one\n")
        assert "\nuser\n  How is Oslo?\n\n▌ answer\n  # Steps\n\n      cold  [here]\n\n" in text
        assert "\\x1b[31mred" in text
        path.unlink()
        await press(pilot, "b", "o", "enter")
        (path,) = workspace.glob("evalstore-answer-*.txt")
        assert "✓ pass  scripted/one" in path.read_text()
        assert "✓ pass  scripted/two" in path.read_text()

    drive(scenario, revision="@")


def test_the_scrollbar_covers_no_character(workspace: Path) -> None:
    words = "wörd " * 60
    tree(workspace, {"models/one.yaml": answering(words)})
    main(["run", "--quiet", "--refresh"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter")
        reader = page_of(pilot).query_one("#text", TextView)
        assert reader.show_vertical_scrollbar
        rows = ["".join(span.text for span in spans) for spans in reader._wrapped]
        assert max(map(len, rows)) <= reader.scrollable_content_region.width
        assert any("wörd wörd" in row for row in rows)

    drive(scenario, revision="@", size=(40, 12))


@pytest.mark.parametrize("width", [120, 80, 160])
def test_of_two_answers_side_by_side_that_with_the_focus_has_a_sign(
    workspace: Path, width: int
) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "n", "n", "enter")
        assert ("▸" in screen(pilot)) == (width >= 120), "one answer has two columns there"
        await press(pilot, "b")
        assert re.search("[━─] +▸ scripted/one +[━─]", screen(pilot))
        assert re.search("─ +scripted/two +─", screen(pilot))
        title = " case 2 of 3 › one beside two › run ######## › tests/weather.md"
        assert screen(pilot).startswith(title)
        await press(pilot, "tab")
        assert re.search("─ +scripted/one +─", screen(pilot))
        assert re.search("[━─] +▸ scripted/two +[━─]", screen(pilot))
        await press(pilot, "shift+tab", "tab", "b")
        assert page_of(pilot).focused is page_of(pilot).query_one("#text")
        assert ("▸" in screen(pilot)) == (width >= 120)

    drive(scenario, revision="@", size=(width, 30))


@pytest.mark.parametrize("size", [(40, 12), (10, 4), (200, 60)])
def test_every_size_of_the_terminal_will_do(workspace: Path, size: tuple[int, int]) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "n", "n", "enter", "b", "l", "G", "g", "m", "m", "v", "escape", "b")
        await resized(pilot, 30, 8)
        if size == (40, 12):
            assert " ✓ pass   scripted/two" in screen(pilot)

    drive(scenario, revision="@", size=size)


ENDLESS = {
    "words": "word and word " * 75_000,
    "one word": "x" * 1_000_000,
    "lines": "some words in a line\n" * 50_000,
    "json": "[" + "1," * 500_000 + "1]",
    "wide": "漢字" * 170_000,
}


def test_an_answer_of_a_megabyte_opens_nearly_as_quickly_as_a_short_one(workspace: Path) -> None:
    """The bounds are multiples of what a short answer takes on this machine."""
    where = Location(workspace)
    result = cases.cases(where, "@").rows[1].results[0]
    assert result
    small = answer.session_of(where, result.sessions[0], result)

    def view_of(text: str) -> AnswerView:
        turns = (*small.conversation[:-1], replace(small.conversation[-1], text=text))
        return replace(small, conversation=turns, answer=text)

    view = {"now": view_of("some words in a line\n" * 200)}

    class Given(WorkspaceSource):
        def session(self, id: str, result: Result) -> AnswerView:
            return view["now"]

    async def scenario(pilot: Pilot[None]) -> None:
        async def seconds_to_open() -> float:
            begun = time.process_time()
            page_of(pilot).reload()
            await settled(pilot)
            return time.process_time() - begun

        async def seconds_to_scroll() -> float:
            reader = page_of(pilot).query_one("#text", TextView)
            begun = time.process_time()
            for part in range(20):
                y = reader.virtual_size.height * part // 20
                reader.scroll_to(y=y, animate=False, immediate=True)
                await pilot.pause()
            return time.process_time() - begun

        await press(pilot, "n", "n", "enter")
        opened = max([await seconds_to_open() for _ in range(3)])
        scrolled = await seconds_to_scroll()
        for name, text in ENDLESS.items():
            view["now"] = view_of(text)
            assert await seconds_to_open() < 100 * opened + 1, name
            assert await seconds_to_scroll() < 3 * scrolled + 0.1, name
            with mock.patch.object(pilot.app.screen, "notify") as notify:
                await press(pilot, "m")
                await until(pilot, lambda: notify.called)
            assert "too long to be rendered" in notify.call_args.args[0], name

    drive(scenario, source=Given(where), revision="@")


def test_escape_leads_from_two_answers_to_one_and_then_to_the_list(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "down", "enter", "b")
        assert "› one beside two" in screen(pilot)
        await press(pilot, "escape")
        assert pilot.app.screen.TITLE == AnswerPage.TITLE
        assert "beside" not in screen(pilot).splitlines()[0]
        await press(pilot, "escape")
        assert pilot.app.screen.TITLE == CasesPage.TITLE

    drive(scenario, revision="@")


def test_a_judgement_that_is_used_again_names_the_one_it_is_taken_from(workspace: Path) -> None:
    test = workspace / "tests/weather.md"
    with test.open("a", encoding="utf-8") as file:
        file.write("\n~~~checks\n- contains: .\n~~~\n")
    main(["-C", str(workspace), "run", "-q"])

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "n", "n", "enter")
        text = text_of(pilot)
        found = re.search(r"✗ fail  by scripted/judge  reused from (\w{8})\b", text)
        assert found
        assert re.search(
            rf"✗ fail  by scripted/judge  \(other instructions or checks\).*  {found[1]}\b", text
        )
        assert "✓ pass  contains" in text

    drive(scenario, revision="@")
