"""What is to do, and files that are edited from the browser."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest
from textual.pilot import Pilot

from evalstore.core.errors import EvalstoreError
from evalstore.interfaces.cli.main import main
from evalstore.interfaces.tui.app import Browser
from evalstore.interfaces.tui.grid import Grid
from evalstore.interfaces.tui.screens.actions import editor_command
from evalstore.interfaces.tui.screens.cases import CasesPage
from evalstore.interfaces.tui.screens.run import PlanPage, StatusPage
from evalstore.interfaces.tui.text_view import TextView
from tests.builders import tree
from tests.interfaces.cli.run.test_run import edit
from tests.interfaces.tui.conftest import HOSTILE
from tests.interfaces.tui.driving import drive, press, resized, screen, until
from tests.interfaces.tui.screens.test_actions import notified


def test_the_title_has_the_price_in_a_narrow_terminal(workspace: Path) -> None:
    (workspace / "tests/new.md").write_text("# 👤\n\nHow is Lima?\n\n---\n\nIt must be warm.\n")

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "w")
        title = " pending work › 2 to ask, 2 to judge, about $0.0800 simulated"
        assert screen(pilot).startswith(f"{title} › tests/new.md\n")
        await resized(pilot, 100, 24)
        assert screen(pilot).startswith(f"{title} › tests/new.md › 6 reused\n")
        await resized(pilot, 64, 24)
        assert screen(pilot).startswith(title)

    drive(scenario, size=(80, 24))


def test_each_thing_to_do_has_its_reason(workspace: Path) -> None:
    test = workspace / "tests/weather.md"
    test.write_text(test.read_text().replace("How is", "And how is"))
    (workspace / "tests/new.md").write_text(f"# 👤\n\n{HOSTILE}\n\n---\n\nAn answer.\n")

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "w")
        text = screen(pilot)
        assert "pending work › 6 to ask, 6 to judge, about $" in text
        assert "changed since run ########" in text
        assert "1 case new" in text
        assert "1 case new" in pilot.app.screen.query_one("#details", TextView).text
        assert "enter Open" in text
        await press(pilot, "up", "enter")
        assert screen(pilot).startswith(" pending work")
        assert "enter Open" not in screen(pilot)
        await press(pilot, "down")
        await press(pilot, *["down"] * 6, "y")
        assert pilot.app.clipboard == "tests/weather.md::city=Oslo"
        text = screen(pilot)
        assert "was  " in text
        assert "now  " in text
        await press(pilot, "R")
        assert isinstance(pilot.app.screen, PlanPage)
        await press(pilot, "enter")
        assert "complete: 6 new answers" in screen(pilot)
        await press(pilot, "escape")
        assert "Nothing to do: 8 answers of 2 candidates" in screen(pilot)
        await press(pilot, "escape")

    drive(scenario, size=(140, 30))


def test_a_label_is_pending_work_that_a_run_records(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "down", "p", "enter", "w")
        assert screen(pilot).startswith(" pending work › 1 label added or removed")
        assert "record 1 label added or removed since run ########" in screen(pilot)
        await press(pilot, "R")
        text = " ".join(screen(pilot).split())
        assert (
            "A run would record 1 label added or removed since run ########; that calls no model."
            in text
        )
        await press(pilot, "enter")
        assert "complete: 0 new answers" in screen(pilot)
        await press(pilot, "escape")
        assert "pending work › nothing" in screen(pilot)
        await press(pilot, "escape", "escape")
        assert "2 runs" in screen(pilot)

    drive(scenario)


def test_work_that_waits_for_trust_is_named_in_the_title(workspace: Path) -> None:
    (workspace / "models/app.yaml").write_text(
        "id: app\nprovider: command\ncode: [python3, bot.py]\n"
    )
    (workspace / "bot.py").write_text("print('hello')\n")
    edit(workspace / "evalstore.yaml", "[scripted/one, scripted/two]", "[app]")

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "w")
        text = screen(pilot)
        assert text.startswith(" pending work › 3 answers wait for trust")
        assert "left undone" in text
        assert 'use "evalstore trust models/app.yaml"' in text

    drive(scenario, size=(140, 30))


def test_errors_come_before_warnings(workspace: Path) -> None:
    (workspace / "prompts").mkdir(exist_ok=True)
    (workspace / "prompts/a.md").write_text("Be kind.\n\n# User\n\nHello\n")
    (workspace / "tests/new.md").write_text("---\ntagss: [a]\n---\n\n# 👤\n\nNew?\n")

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "w")
        listed, _, details = screen(pilot).partition("Details")
        words = [line.strip("│ ").split()[0] for line in listed.splitlines() if " line " in line]
        assert words == ["error", "error", "warning"]
        assert "unknown field 'tagss'" in details

    drive(scenario, size=(120, 30))


def test_errors_of_files_are_listed_with_line_and_hint(workspace: Path) -> None:
    (workspace / "tests/new.md").write_text("---\ntagss: [a]\n---\n\n# 👤\n\nNew?\n")

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "w")
        text = screen(pilot)
        assert "nothing, until the files are fixed" in text
        assert "line 2" in text
        assert "hint: " in text
        page = pilot.app.screen
        assert isinstance(page, StatusPage)
        assert page.edited_place == ("tests/new.md", 2, None)
        (workspace / "tests/new.md").unlink()
        await press(pilot, "r")
        assert "Nothing to do" in screen(pilot)
        await press(pilot, "e", "enter", "p", "J", "y", "R")

    drive(scenario)


def test_keys_that_are_about_answers_are_not_offered(workspace: Path) -> None:
    (workspace / "tests/new.md").write_text("# 👤\n\nNew?\n\n---\n\nAn answer.\n")

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "w", "down")
        offered = {
            active.binding.id
            for active in pilot.app.screen.active_bindings.values()
            if active.binding.description
        }
        assert not offered & {"case.pass", "case.fail", "case.unlabel", "case.judge"}
        assert offered >= {"case.edit", "page.run", "page.save"}
        await press(pilot, "ctrl+p", *"label")
        await until(pilot, lambda: "No matches" in screen(pilot))

    drive(scenario)


def test_without_pending_work_no_key_for_it_is_offered(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "w")
        assert "Nothing to do" in screen(pilot)
        assert not {"Run", "Open", "Edit"} & set(screen(pilot).splitlines()[-1].split())
        (workspace / "tests/new.md").write_text("# 👤\n\nNew?\n\n---\n\nAn answer.\n")
        await press(pilot, "r")
        assert {"Run", "Open", "Edit"} <= set(screen(pilot).splitlines()[-1].split())

    drive(scenario)


def test_with_warnings_alone_nothing_to_run_or_edit_is_offered(workspace: Path) -> None:
    edit(workspace / "models/one.yaml", "answer: Warm.", "answer: Warmer.")

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "w")
        text = screen(pilot)
        assert text.startswith(" pending work › nothing")
        assert "warning: " in text
        assert "R does it" not in text
        assert not {"Run", "Open", "Edit"} & set(text.splitlines()[-1].split())
        await press(pilot, "e")
        assert notified(pilot) == ""
        (workspace / "tests/new.md").write_text("# 👤\n\nNew?\n\n---\n\nAn answer.\n")
        await press(pilot, "r", "end")
        assert "R does it" not in screen(pilot), "the cursor is on the warning"
        assert {"Run", "Edit"} <= set(screen(pilot).splitlines()[-1].split())
        await press(pilot, "g")
        assert "R does it, after it has shown the price." in screen(pilot)

    drive(scenario, size=(140, 30))


def test_lines_are_as_wide_as_their_texts_and_differ(workspace: Path) -> None:
    name = "tests/a-folder-with-a-long-name/one-more-folder/new.md"
    (workspace / name).parent.mkdir(parents=True)
    (workspace / name).write_text("# 👤\n\nNew?\n\n---\n\nAn answer.\n")

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "w")
        await resized(pilot, 120, 36)
        assert name in screen(pilot)
        await resized(pilot, 40, 12)
        lines = screen(pilot).splitlines()
        assert "file" not in lines[1].split()  # the title has the only one
        asked = [line.split() for line in lines if line.startswith("  ask")]
        assert {words[1] for words in asked} >= {"one", "two"}
        assert lines[2].startswith(" changed since run ########")
        (workspace / name).with_name("newer.md").write_text("# 👤\n\nNew?\n\n---\n\nYes.\n")
        await press(pilot, "r")
        names = [line.split()[1] for line in screen(pilot).splitlines()[3:5]]
        assert [name[-4:] for name in names] == ["w.md", "r.md"]
        await resized(pilot, 80, 24)
        lines = screen(pilot).splitlines()
        assert lines[2].split() == ["what", "file", "candidate", "by", "why"]
        assert next(line.split()[2:4] for line in lines if "  judge  " in line) == ["one", "judge"]

    drive(scenario)


def test_rows_keep_their_keys_in_80_columns(workspace: Path) -> None:
    edit(workspace / "tests/weather.md", "Oslo, Rome", "Oslo, the far side of Bari")
    text = "How?\n\n---\n\nYes: it is a question that a long reason is about.\n"
    (workspace / "tests/a-longer-name-of-a-file.md").write_text(f"# 👤\n\n{text}")

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "w")
        assert "  city=the far side of Bari  " in screen(pilot)

    drive(scenario, size=(80, 24))


def test_the_pending_work_can_be_saved(workspace: Path) -> None:
    (workspace / "tests/new.md").write_text("# 👤\n\nNew?\n\n---\n\nAn answer.\n")

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "w", "o")
        await press(pilot, *["backspace"] * 60, *"work.csv", "enter")

    drive(scenario)
    lines = (workspace / "work.csv").read_text().splitlines()
    assert lines[0] == "what,file,row,candidate,by,why"
    assert "ask,tests/new.md,,scripted/one,,new test" in lines


@pytest.mark.parametrize("size", [(80, 24), (40, 12), (10, 4)])
def test_it_fits_every_terminal(workspace: Path, size: tuple[int, int]) -> None:
    (workspace / "tests/new.md").write_text("# 👤\n\nNew?\n\n---\n\nAn answer.\n")

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "w", "G", "R")
        await pilot.resize_terminal(30, 8)
        await press(pilot, "escape", "escape")

    drive(scenario, size=size)


# --- editing


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that stands for the user's editor; the terminal is given away for it."""
    monkeypatch.setattr(Browser, "suspend", lambda _self: nullcontext())
    program = tmp_path / "my editor"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@" > "$0.args"\nsh "$0.does" "$2"\n')
    program.chmod(0o755)
    does(program, "true")
    monkeypatch.setenv("EDITOR", f"'{program}' -w")
    return program


def does(editor: Path, script: str) -> None:
    Path(f"{editor}.does").write_text(script)


def test_a_plan_that_a_file_prevents_opens_it(workspace: Path, editor: Path) -> None:
    (workspace / "tests/new.md").write_text("# 👤\n\n{{ town }}\n\n---\n\nIt is kind.\n")
    does(editor, "sed -i 's/{{ town }}/Hello/' \"$1\"")

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "R")
        assert "nothing, until this is fixed" in screen(pilot)
        await press(pilot, "e")
        assert Path(f"{editor}.args").read_text().splitlines()[-1].endswith("tests/new.md")
        assert "2 answers" in screen(pilot)
        await press(pilot, "escape")
        assert "until this is fixed" not in screen(pilot)

    drive(scenario)


def test_an_edit_says_what_it_means_and_offers_to_do_it(workspace: Path, editor: Path) -> None:
    does(editor, "sed -i 's/be warm/be very warm/' \"$1\"")

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "down", "e")
        args = Path(f"{editor}.args").read_text().splitlines()
        assert args == ["-w", str(workspace / "tests/weather.md")]
        text = screen(pilot)
        assert "run tests/weather.md" in text
        assert "a partial run (~): the trend of the runs leaves it out" in text
        assert "R plans all pending work." in text
        assert "give 4 verdicts" in text
        assert "4x  instructions changed" in text
        await press(pilot, "enter")
        assert "complete: 0 new answers, 4 reused, 4 new verdicts" in screen(pilot)
        await press(pilot, "escape")
        does(editor, "true")
        await press(pilot, "e")
        assert "tests/weather.md has not changed." in notified(pilot)

    drive(scenario, size=(100, 40))


ROWS = """\
---
dataset: ../data/cities.csv
systemPrompts: [desk]
---

# 👤

Where is {{ city }}?

---

Names {{ country }}.
"""


def test_a_file_that_decides_a_case_or_pending_work_is_chosen_and_edited(
    workspace: Path, editor: Path
) -> None:
    tree(
        workspace,
        {
            "prompts/desk.md": "Be brief.\n",
            "data/cities.csv": 'city,country\nOslo,"Norway\n(north)"\nLima,Peru\n',
            "tests/rows.md": ROWS,
        },
    )
    main(["run", "--quiet"])

    def opened() -> str:
        return Path(f"{editor}.args").read_text().splitlines()[-1]

    async def scenario(pilot: Pilot[None]) -> None:
        assert pilot.app.screen.query_one("#cases", Grid).row_count == 5
        await press(pilot, "/", *"Lima", "enter", "e")
        assert choices(pilot) == [
            "test file: tests/rows.md",
            "data file: data/cities.csv",
            "system prompt: prompts/desk.md",
        ]
        await press(pilot, "down", "enter")
        assert opened() == str(workspace / "data/cities.csv")
        assert "data/cities.csv has not changed." in notified(pilot)
        (workspace / "prompts/desk.md").write_text("Be very brief.\n")
        await press(pilot, "escape", "w", "down", "down", "e")
        assert choices(pilot)[2] == "system prompt: prompts/desk.md"
        does(editor, "echo 'Be terse.' > \"$1\"")
        await press(pilot, "down", "down", "enter")
        assert opened() == str(workspace / "prompts/desk.md")
        assert "4x  system prompt desk changed" in screen(pilot)

    drive(scenario, revision="@work")


def choices(pilot: Pilot[None]) -> list[str]:
    names = pilot.app.screen.query_one("#names", Grid)
    return [str(names.texts(row)[0]) for row in range(names.row_count)]


def test_an_edit_into_an_error_is_reported_and_can_be_put_right(
    workspace: Path, editor: Path
) -> None:
    good = (workspace / "tests/weather.md").read_text()
    (workspace / "good").write_text(good.replace("be warm", "be hot"))
    does(editor, "printf -- '---\\ntagss: [a]\\n---\\n\\n# 👤\\n\\nHow?\\n' > \"$1\"")

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "down", "e")
        text = screen(pilot)
        assert "error: tests/weather.md:2" in text
        assert "hint: " in text
        does(editor, 'cp good "$1"')
        await press(pilot, "e")
        assert "give 4 verdicts" in screen(pilot)
        await press(pilot, "escape")
        does(editor, 'rm "$1"')
        await press(pilot, "e")
        assert "Nothing to do: 2 answers" in screen(pilot)
        await press(pilot, "escape", "q")

    drive(scenario)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("no-such-editor -w", "EDITOR names 'no-such-editor', which is not found"),
        ("'unclosed", "EDITOR cannot be read as a command"),
        ("false", "'false' ended with exit code 1"),
    ],
)
def test_an_editor_that_fails_is_reported(
    workspace: Path, editor: Path, monkeypatch: pytest.MonkeyPatch, command: str, message: str
) -> None:
    monkeypatch.setenv("EDITOR", command)

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "e")
        assert message in notified(pilot)
        assert isinstance(pilot.app.screen, CasesPage)

    drive(scenario)


def test_without_a_terminal_of_its_own_no_editor_is_opened(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDITOR", "true")

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "enter", "e")
        assert "no editor can be opened here" in notified(pilot)

    drive(scenario)


def test_the_file_of_an_old_run_may_be_gone(workspace: Path) -> None:
    (workspace / "tests/greeting.md").unlink()

    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "e")
        assert "the workspace no longer has a file 'greeting.md'" in notified(pilot)

    drive(scenario, revision="@")


def test_a_line_is_named_as_the_editor_takes_it(tmp_path: Path) -> None:
    for name in ("vi", "code", "odd"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    path, search = Path("/w/t.md"), {"PATH": str(tmp_path)}
    assert editor_command(search, path, 3) == ["vi", "+3", "/w/t.md"]
    assert editor_command({**search, "EDITOR": "code -w"}, path, 3) == [
        *("code", "-w"),
        *("--goto", "/w/t.md:3"),
    ]
    assert editor_command({**search, "VISUAL": "odd", "EDITOR": "vi"}, path, 3) == [
        *("odd", "/w/t.md")
    ]
    with pytest.raises(EvalstoreError, match="'nano', which is not found") as missing:
        editor_command({**search, "VISUAL": "nano"}, path, 3)
    assert missing.value.hint == (
        "set VISUAL to the command of an editor that is installed, for example: export VISUAL=vi"
    )
    with pytest.raises(EvalstoreError) as missing:
        editor_command({"PATH": "", "EDITOR": "nano"}, path, 3)
    assert missing.value.hint == "set EDITOR to the command of an editor that is installed"
    with pytest.raises(EvalstoreError, match="no editor"):
        editor_command({"PATH": ""}, path, None)
