"""Help and commands say what the keys do, whatever the keys are."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

import pytest
from textual.binding import Binding
from textual.command import CommandPalette
from textual.events import Mount
from textual.pilot import Pilot
from textual.widgets import Input, OptionList

from evalstore.core import hashing
from evalstore.core.display import MEANINGS, SIGNS
from evalstore.interfaces.cli.main import main
from evalstore.interfaces.tui.app import PAGES, REGISTRY, Browser, Palette
from evalstore.interfaces.tui.case_filter import EXAMPLES
from evalstore.interfaces.tui.data_source import WorkspaceSource
from evalstore.interfaces.tui.page_lines import Appearance, own_actions
from evalstore.interfaces.tui.screens.base import Page
from evalstore.interfaces.tui.screens.cases import CasesPage
from evalstore.interfaces.tui.screens.dialogs import HelpPage
from evalstore.interfaces.tui.screens.runs import RunsPage
from evalstore.interfaces.tui.text_view import TextView
from evalstore.planning.options import Location
from evalstore.store.driver import UnwantedError, note_reached
from tests.interfaces.tui.conftest import HOSTILE
from tests.interfaces.tui.driving import drive, press, resized, screen, settled, until

TASKS = ("Read", "Judge and label", "Compare", "Go", "Copy and save", "Run", "Move")


def text_of(pilot: Pilot[None]) -> str:
    assert isinstance(pilot.app.screen, HelpPage)
    return pilot.app.screen.query_one(TextView).text


def test_help_lists_what_every_key_does_and_the_way_to_every_screen(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "question_mark")
        text = text_of(pilot)
        assert "help › Runs" in screen(pilot)
        for owner in (RunsPage, Browser):
            for action in own_actions(owner):
                assert action.description in text
        assert "  d              Compare" in text
        assert "↓, j           Down" in text
        for page in PAGES:
            assert f"\n{page.TITLE} " in text, page
        assert "Quit during a run  q during a run" in text
        assert "enter on a line of the runs" in text
        assert "candidate          a model that is asked" in text
        assert text.startswith(
            "The state of the workspace, and below it all runs, the newest first."
        )
        assert "space marks runs: d compares two marked ones, or a marked one with" in text
        for word in SIGNS:
            assert MEANINGS[word] in text
        await press(pilot, "end")
        await until(pilot, lambda: " The signs of verdicts\n" in screen(pilot))
        signs = screen(pilot).partition(" The signs of verdicts\n")[2].splitlines()[:-1]
        starts = {len(line) - len(line.lstrip()) for line in signs}
        assert starts == {3, 22}  # of entries, and of their wrapped rows
        assert "q Close" in screen(pilot).splitlines()[-1], "the key that quits elsewhere"
        for key in ("escape", "question_mark", "q", "f1"):
            await press(pilot, key)
            assert isinstance(pilot.app.screen, RunsPage)
            await press(pilot, "f1")
            assert isinstance(pilot.app.screen, HelpPage)

    drive(scenario)


def test_help_follows_the_screen_and_its_focus(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "question_mark")
        text = text_of(pilot)
        assert "Next failure" in text
        assert "/ filters as you type" in text
        for typed, meaning in EXAMPLES.items():
            assert f"\n{typed} " in text
            assert meaning in " ".join(text.split())
        assert [text.index(f"\n{task}\n") for task in TASKS] == sorted(
            text.index(f"\n{task}\n") for task in TASKS
        )
        of_task = {task: text.partition(f"\n{task}\n")[2].partition("\n\n")[0] for task in TASKS}
        assert "S              Statistics" in of_task["Read"]
        assert "y              Copy\n" in of_task["Copy and save"]
        await press(pilot, "escape", "slash", "f1")
        text = text_of(pilot)
        assert "In the line" in text
        assert "enter          Take what is typed" in text
        assert "cursor" not in text.casefold().split("more about")[0].split("in the line")[1]
        assert "Page left" not in text
        assert "\nMove\n" not in text

    drive(scenario, revision="@", size=(40, 12))


def test_help_is_there_while_a_question_is_answered(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "p", "a", "?", "f1")
        text = text_of(pilot)
        assert "esc            Cancel" in text
        assert "enter          Take what is typed" in text
        await press(pilot, "escape", "b")
        assert pilot.app.screen.query_one(Input).value == "a?b"
        await press(pilot, "escape", "o", "f1")
        assert isinstance(pilot.app.screen, HelpPage)

    drive(scenario, revision="@")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.__name__)
def test_every_screen_says_what_it_shows_and_how_one_gets_there(page: type[Page]) -> None:
    assert page.HELP
    assert page is RunsPage or page.WAY


def test_changed_keys_are_listed(workspace: Path) -> None:
    keys = {"list.open": "o", "help": "H", "cases.filter": "f5"}

    async def scenario(pilot: Pilot[None]) -> None:
        assert "H Help" in screen(pilot)
        await press(pilot, "question_mark")
        assert isinstance(pilot.app.screen, RunsPage)
        await press(pilot, "H")
        assert "o on a line of the runs" in text_of(pilot)
        assert "o              Open" in text_of(pilot)
        await press(pilot, "H", "down", "o", "H")
        assert "f5 filters as you type" in text_of(pilot)

    drive(scenario, appearance=Appearance(keys=keys))


def test_the_keys_are_in_two_columns_by_task(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "question_mark")
        lines = screen(pilot).splitlines()
        head = next(line for line in lines if line.startswith(" Read "))
        assert head.split() == ["Read", "Go"]
        for task in ("Judge and label", "Compare", "Run"):
            assert any(task in line for line in lines), "all but the movements are on the screen"
        await resized(pilot, 60, 24)
        assert " Read" in screen(pilot).splitlines()

    drive(scenario, revision="@", size=(80, 24))


def test_the_palette_has_a_line_for_each_command_with_its_key(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        for width in (80, 120):
            await resized(pilot, width, 36)
            await press(pilot, "ctrl+p")
            lines = [line.split() for line in screen(pilot).splitlines()]
            first = lines.index(["Label", "pass", "p"])
            assert lines[first : first + 5] == [
                ["Label", "pass", "p"],
                ["Label", "fail", "f"],
                ["Remove", "label", "u"],
                ["Edit", "the", "file", "e"],
                ["Run", "pending", "work", "R"],
            ]
            columns = {line.rindex(" ") for line in screen(pilot).splitlines()[first : first + 5]}
            assert len(columns) == 1, "keys are below each other"
            await press(pilot, *"greeting.md")
            line = next(it for it in screen(pilot).splitlines() if "File tests/greeting" in it)
            assert len(line.rstrip()) < 80, "so is what else is said of a name"
            await press(pilot, "escape")
            await press(pilot, *["escape"] * isinstance(pilot.app.screen, Palette))

    drive(scenario, revision="@")


async def choose(pilot: Pilot[None], typed: str) -> str:
    """Type into the palette, choose the first hit, and return the hits."""
    await pilot.press("ctrl+p")
    await pilot.pause()
    palette = pilot.app.screen
    assert isinstance(palette, CommandPalette)
    for letter in typed:
        await pilot.press(letter)
        await pilot.pause()
    for _ in range(200):
        await pilot.pause(0.02)
        hits = palette.query_one(OptionList)
        if hits.option_count and not hits.get_option_at_index(0).disabled:
            break
    shown = "\n".join(str(option.prompt) for option in hits.options)
    await pilot.press("enter")
    await settled(pilot)
    if isinstance(pilot.app.screen, CommandPalette):
        await press(pilot, "enter")
    return shown


def test_commands_are_found_by_their_names(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        assert (await choose(pilot, "next fail")).startswith("Next failure")
        page = pilot.app.screen
        assert isinstance(page, CasesPage)
        assert page.grid.picked == 1
        await choose(pilot, "file weather")
        assert len(page.listing.rows) == 2
        await choose(pilot, "theme nord")
        assert pilot.app.theme == "nord"
        assert (await choose(pilot, "sta")).startswith("Statistics")
        await press(pilot, "escape")
        await choose(pilot, "help")
        assert isinstance(pilot.app.screen, HelpPage)

    drive(scenario, revision="@")


class _SlowFiles(WorkspaceSource):
    """A workspace whose test files are read when a test says so."""

    def __init__(self) -> None:
        super().__init__(Location(Path.cwd()))
        self.asked, self.may_read = threading.Event(), threading.Event()

    @contextmanager
    def reading_in_the_end(self) -> Iterator[None]:
        """Let them be read after the block, whatever comes of it."""
        try:
            yield
        finally:
            self.may_read.set()

    def files(self) -> list[str]:
        self.asked.set()
        self.may_read.wait()
        return super().files()


@pytest.mark.parametrize("typed", ["w", "weather"])
def test_what_is_typed_before_the_files_are_read_finds_them(workspace: Path, typed: str) -> None:
    source = _SlowFiles()

    def hits(pilot: Pilot[None]) -> list[str]:
        return [str(option.prompt) for option in pilot.app.screen.query_one(OptionList).options]

    async def scenario(pilot: Pilot[None]) -> None:
        with source.reading_in_the_end():
            await pilot.press("ctrl+p")
            await until(pilot, source.asked.is_set)
            for letter in typed:
                await pilot.press(letter)
                await pilot.pause()
        await until(pilot, lambda: "File tests/weather.md" in str(hits(pilot)))

    drive(scenario, source=source)


def test_reading_for_the_commands_stops_when_they_are_left(workspace: Path) -> None:
    ended: list[bool] = []

    class LongFiles(_SlowFiles):
        def files(self) -> list[str]:
            files = super().files()
            try:
                note_reached("files", 1)
            except UnwantedError:
                ended.append(True)
                raise
            return files

    source = LongFiles()

    async def scenario(pilot: Pilot[None]) -> None:
        with source.reading_in_the_end():
            await pilot.press("ctrl+p")
            await until(pilot, source.asked.is_set)
            await pilot.press("escape")
            await until(pilot, lambda: isinstance(pilot.app.screen, RunsPage))
        await until(pilot, lambda: bool(ended))
        assert ended == [True]

    drive(scenario, source=source)


def test_commands_of_keys_are_found_while_files_are_read(workspace: Path) -> None:
    source = _SlowFiles()

    async def scenario(pilot: Pilot[None]) -> None:
        with source.reading_in_the_end():
            await pilot.press("ctrl+p")
            await until(pilot, source.asked.is_set)
            await until(pilot, lambda: bool(pilot.app.screen.query(OptionList)))
            shown = pilot.app.screen.query_one(OptionList)
            for letter in "reload":
                await pilot.press(letter)
            await until(
                pilot, lambda: "Reload" in str([option.prompt for option in shown.options[:1]])
            )

    drive(scenario, source=source)


def test_what_is_typed_before_the_palette_is_ready_is_searched(workspace: Path) -> None:
    class Early(Palette):
        def _on_mount(self, event: Mount) -> None:
            with self.prevent(Input.Changed):
                self.query_one(Input).value = "reload"
            super()._on_mount(event)

    async def scenario(pilot: Pilot[None]) -> None:
        pilot.app.push_screen(Early())
        await pilot.pause()
        shown = pilot.app.screen.query_one(OptionList)
        await until(pilot, lambda: bool(shown.option_count))
        assert "Reload" in str(shown.get_option_at_index(0).prompt)

    drive(scenario)


def test_a_palette_that_is_closed_while_it_searches_ends_nothing(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        await press(pilot, "ctrl+p")
        palette = pilot.app.screen
        assert isinstance(palette, Palette)
        palette.search_again()
        await palette.query(OptionList).remove()
        palette.search_again()
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, CasesPage)

    drive(scenario, revision="@")


def test_cases_models_and_tags_are_found(workspace: Path) -> None:
    async def scenario(pilot: Pilot[None]) -> None:
        page = pilot.app.screen
        assert isinstance(page, CasesPage)
        assert "Case tests/weather.md [city=Rome]" in await choose(pilot, "case rome")
        assert page.case
        assert page.case.row == "city=Rome"
        assert "Tag manners" in await choose(pilot, "tag manners")
        assert [row.file for row in page.listing.rows] == ["tests/greeting.md"]
        await choose(pilot, "case oslo")  # which the filter hides
        assert page.case.row == "city=Oslo"
        assert "Model scripted/two" in await choose(pilot, "model two")
        assert page.filter_query.conditions
        await press(pilot, "enter")
        await choose(pilot, "case rome")
        assert isinstance(pilot.app.screen, CasesPage)
        assert pilot.app.screen is not page
        assert pilot.app.screen.revision == page.listing.cases.run if page.listing.cases else None
        assert pilot.app.screen.case
        assert pilot.app.screen.case.row == "city=Rome"

    drive(scenario, revision="@")


def test_a_command_stays_highlighted_when_more_are_found(workspace: Path) -> None:
    source = _SlowFiles()

    async def scenario(pilot: Pilot[None]) -> None:
        with source.reading_in_the_end():
            await pilot.press("ctrl+p")
            await until(pilot, source.asked.is_set)
            for letter in "th":
                await pilot.press(letter)
            shown = pilot.app.screen.query_one(OptionList)
            await until(pilot, lambda: "Theme" in str([option.prompt for option in shown.options]))
            await pilot.press("down")
            await until(pilot, lambda: shown.highlighted == 1)
            chosen = str(shown.get_option_at_index(1).prompt)
        await until(
            pilot,
            lambda: "File tests/weather.md" in str([option.prompt for option in shown.options]),
        )
        assert shown.highlighted is not None
        assert str(shown.get_option_at_index(shown.highlighted).prompt) == chosen

    drive(scenario, source=source)


def test_hostile_names_of_runs_and_files_are_only_text(workspace: Path) -> None:
    (workspace / "tests/[bold]x[0] [.md").write_text(
        (workspace / "tests/greeting.md").read_text(encoding="utf-8"), encoding="utf-8"
    )
    main(["run", "--quiet", "-m", "scripted/one"])
    path = workspace / ".evalstore/store.db"
    with sqlite3.connect(path) as store:
        rows = store.execute("select id, content from runs").fetchall()
        for id, content in rows:
            changed = json.loads(content) | {"message": f"note {HOSTILE}"}
            new, text = hashing.identify(changed)
            values = (bytes.fromhex(new), text, id)
            store.execute("update runs set id = ?, content = ? where id = ?", values)
    store.close()

    async def scenario(pilot: Pilot[None]) -> None:
        shown = await choose(pilot, "note [/]")
        assert "[/] [bold red]no markup[/] [0] [unclosed \\x1b[31mred" in shown
        assert isinstance(pilot.app.screen, CasesPage)
        await press(pilot, "escape")
        assert "File tests/[bold]x[0] [.md" in await choose(pilot, "bold]x")
        page = pilot.app.screen
        assert isinstance(page, CasesPage)
        assert {row.file for row in page.listing.rows} == {"tests/[bold]x[0] [.md"}
        await press(pilot, "question_mark", "escape")

    drive(scenario)


def test_an_id_stands_for_one_action_with_the_same_keys_wherever_it_is_bound() -> None:
    meanings: dict[str, set[tuple[tuple[str, ...], str]]] = {}
    for owner in REGISTRY.owners:
        bound = Binding.make_bindings(owner.__dict__.get("BINDINGS", ()))
        for id, of_id in groupby(sorted(bound, key=id_of), id_of):
            same = list(of_id)
            (action,) = {binding.action.removeprefix("app.") for binding in same}
            keys = tuple(sorted(binding.key for binding in same))
            meanings.setdefault(id, set()).add((keys, action))
    assert (
        {"quit", "help", "list.open", "cases.filter"} <= meanings.keys() == REGISTRY.actions.keys()
    )
    assert {id: bindings for id, bindings in meanings.items() if len(bindings) > 1} == {}


def id_of(binding: Binding) -> str:
    assert binding.id
    return binding.id
