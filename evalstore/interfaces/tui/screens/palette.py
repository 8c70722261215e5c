"""The command palette: actions by name, and runs, files, cases, models and tags to go to.

Textual reads plain texts as markup there, so all that is shown is `Content`.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from heapq import nsmallest
from typing import cast

from textual import work
from textual.command import Command as ListedCommand
from textual.command import (
    CommandInput,
    CommandList,
    CommandPalette,
    DiscoveryHit,
    Hit,
    Hits,
    Provider,
)
from textual.content import Content
from textual.css.query import NoMatches
from textual.theme import BUILTIN_THEMES
from textual.worker import get_current_worker

from evalstore.core.display import case_name, clip, pad, safe, widest
from evalstore.core.errors import EvalstoreError
from evalstore.interfaces.tui.case_listing import CasePlace
from evalstore.interfaces.tui.page_lines import own_actions, owners_of
from evalstore.interfaces.tui.render.verdicts import when
from evalstore.interfaces.tui.screens.answer import AnswerPage
from evalstore.interfaces.tui.screens.base import BrowserApp
from evalstore.interfaces.tui.screens.cases import CasesPage
from evalstore.results.table.cases import CaseRow, Cases, CaseWindow
from evalstore.store.driver import while_wanted

_WIDTH = 200
"""Longer names are cut."""
_LISTED = 50
"""How many hits are shown at most."""
_FRAME = 6
"""The columns around a name with its hint."""
_FIRST = ("case.pass", "case.fail", "case.unlabel", "case.edit", "page.run", "case.judge")
"""The actions that are listed first."""
_AT_ONCE = 5_000
"""Names that are looked at before keys and paints have their turn."""


@dataclass(frozen=True, slots=True)
class Command:
    """Something to choose."""

    name: str
    """May hold anything."""
    hint: str
    """A word about it; ours."""
    run: Callable[[], Awaitable[object] | None]
    kind: str = ""
    """The first word of the name, such as `File`, when it is not a part of what is named."""

    @property
    def plain(self) -> str:
        """Return as much of the name as is shown."""
        return clip(self.name, _WIDTH)

    def match(self, words: Sequence[re.Pattern[str]]) -> tuple[float, list[re.Match[str]]] | None:
        """Return where each word is in the name, and how good that is; None: one is not in it.

        Names that begin with the first word, perhaps behind their kind, are best, then those in
        which each begins a word, then short ones. The number is from 0 to 1.
        """
        name, found = self.plain, []
        for word in words:
            places = sorted(word.finditer(name), key=lambda it: name[: it.start()][-1:].isalnum())
            if not places:
                return None
            found.append(places[0])
        starts = [it.start() for it in found]
        begins = starts[0] in (0, len(self.kind) + 1 if self.kind else 0)
        are_words = not any(name[:start][-1:].isalnum() for start in starts)
        return (2 * begins + are_words + 0.5 / len(name)) / 4, found


class _ListedCommands(Provider):
    """Commands that are known before anything is typed."""

    commands: list[Command]
    shown_first: int = _LISTED
    """How many are listed before anything is typed."""
    room: int = 0
    """The least columns of a name, so that hints are below each other."""
    bonus: float = 0.0
    """What is added to scores, so that of equal matches these come first."""

    @property
    def browser(self) -> BrowserApp:
        """Return the program."""
        return cast("BrowserApp", self.app)

    async def discover(self) -> Hits:
        """Yield the commands that are listed before anything is typed."""
        for command in self.commands[: self.shown_first]:
            shown = self._with_hint(Content(command.plain), command)
            yield DiscoveryHit(shown, command.run, command.plain)

    async def search(self, query: str) -> Hits:
        """Yield the commands whose names have all words that are typed, the best first."""
        words = [re.compile(re.escape(word), re.IGNORECASE) for word in query.split()]
        rated: list[tuple[float, int, list[re.Match[str]]]] = []
        for number, command in enumerate(self.commands):
            if not number % _AT_ONCE:
                await asyncio.sleep(0)
            if match := command.match(words):
                rated.append((-match[0], number, match[1]))
        style = self.matcher(query).match_style
        for score, number, places in nsmallest(_LISTED, rated, key=lambda it: it[:2]):
            command = self.commands[number]
            shown = Content(command.plain)
            for place in places:
                shown = shown.stylize(style, *place.span())
            yield Hit(
                self.bonus - score, self._with_hint(shown, command), command.run, command.plain
            )

    def _with_hint(self, shown: Content, command: Command) -> Content:
        """Return a name in a line with its key, or another hint, behind it."""
        blank = pad("", self.room - shown.cell_length) + "  "
        line = Content.assemble(shown, blank, (command.hint, "$faint"))
        return line.truncate(max(1, self.app.size.width - _FRAME), ellipsis=True, pad=False)


class ActionCommands(_ListedCommands):
    """What the keys of the screen and of the program do."""

    bonus = 0.1

    async def startup(self) -> None:
        """Find the actions, also those whose keys the focused input takes."""
        by_id: dict[str, Command] = {}
        known = {"commands"}
        for node in (self.screen, self.app):
            owners = reversed(owners_of(type(node)))
            for action in (action for owner in owners for action in own_actions(owner)):
                if action.id in known:
                    continue
                if self.app._check_action_state(action.action, node):
                    known.add(action.id)
                    run = partial(self.app.run_action, action.action, node)
                    key = self.browser.key_of(action.id)
                    by_id[action.id] = Command(action.description, key, run)
        first = (by_id.pop(id) for id in _FIRST if id in by_id)
        self.commands = [*first, *by_id.values()]
        self.room = widest(it.name for it in self.commands)


class PlaceCommands(_ListedCommands):
    """Runs, test files, cases, models, tags and themes."""

    shown_first = 0

    async def startup(self) -> None:
        """Begin to read them in the background; what has been read can be found."""
        choose = partial(setattr, self.app, "theme")
        self.commands = [
            Command(f"Theme {name}", "until you quit", partial(choose, name), "Theme")
            for name in BUILTIN_THEMES
        ]
        self._reading = self.screen.run_worker(
            self._read, thread=True, group="commands", exit_on_error=False
        )

    async def shutdown(self) -> None:
        """End the reading."""
        self._reading.cancel()

    def _read(self) -> None:
        """Read in a thread until the palette is closed; a bug there is reported by the page."""
        worker, found = get_current_worker(), self.commands
        for read in (self._runs, self._files, self._cases):
            with (
                suppress(EvalstoreError),  # the page below shows what is wrong
                while_wanted(lambda: not worker.is_cancelled),
            ):
                found = [*found, *read()]
                self.app.call_later(self._take, found)

    def _take(self, found: list[Command]) -> None:
        self.commands = found
        if isinstance(self.app.screen, Palette):
            self.app.screen.search_again()

    def _runs(self) -> list[Command]:
        browser, runs = self.browser, self.browser.source.runs()
        names = (f"Run {run.id[:8]} {run.message or ''}".strip() for run in runs)
        return [
            Command(name, when(run.started), partial(browser.open, "cases", run.id), "Run")
            for name, run in zip(names, runs, strict=True)
        ]

    def _files(self) -> list[Command]:
        return [self._filter("File", "file", file) for file in self.browser.source.files()]

    def _cases(self) -> list[Command]:
        """Return the cases of the page, else those of the workspace, with their models and tags."""
        cases = self.screen.listing.cases if isinstance(self.screen, CasesPage) else None
        if isinstance(self.screen, AnswerPage):
            cases = self.screen.navigator.cases
        cases = cases or self.browser.source.cases(None, CaseWindow())
        tags = dict.fromkeys(tag for case in cases.rows for tag in case.tags)
        found = [self._filter("Model", "model", model) for model in cases.models]
        found += [self._filter("Tag", "tag", tag) for tag in tags]
        for case in cases.rows:
            name = f"Case {case_name(case.file, case.row, case.prompt)}"
            show = partial(self._show_case, cases, case)
            found.append(Command(name, "go to its line", show, "Case"))
        return found

    def _filter(self, title: str, field: str, value: str) -> Command:
        show = partial(self._show_filtered, field, value)
        return Command(f"{title} {value}", "show cases", show, title)

    def _show_filtered(self, field: str, value: str) -> None:
        """Filter the cases of the page, else show those of the workspace."""
        typed = f'{field}:"{safe(value)}"'
        if isinstance(self.screen, CasesPage):
            self.screen.set_filter(typed)
        else:
            self.browser.open("cases", None, typed)

    def _show_case(self, cases: Cases, case: CaseRow) -> None:
        """Move the cursor of the page to a case; a filter that hides it is removed."""
        page = self.screen
        if not isinstance(page, CasesPage):
            place = CasePlace(case.file, case.row, prompt=case.prompt)
            self.browser.open("cases", cases.run, place=place)
            return
        if page.listing.line_of(case) is None:
            page.remove_filter()
            page.change_filter("")
        page.highlight(case, "")


class Palette(CommandPalette):
    """The palette; it searches again what was typed when more commands have been read."""

    DEFAULT_CSS = """
    Palette {
        background: $background 30%;
        &:ansi, &:nocolor { background: transparent; }
        & > Vertical { min-width: 20; background: $surface; &:dark { background: $surface; } }
        & #--input { border: hkey $faint; }
        & SearchIcon { display: none; }
        & Input > .input--placeholder { color: $faint; }
        & CommandList { border-bottom: hkey $faint; color: $foreground; }
        & CommandList > .option-list--option-highlighted {
            color: $foreground;
            background: $cursor-line;
        }
        &:nocolor CommandList > .option-list--option-highlighted { text-style: reverse; }
        & CommandList > .option-list--option-disabled { color: $faint; }
    }
    """

    def __init__(self) -> None:
        super().__init__(providers=(ActionCommands, PlaceCommands))

    def search_again(self) -> None:
        """Search what is typed; called when there are more commands to be found.

        A palette that is not laid out yet searches when it is, and one being closed no more.
        """
        for typed in self.query(CommandInput):
            self._gather_commands(typed.value.strip())

    @work(exclusive=True, group=CommandPalette._GATHER_COMMANDS_GROUP)
    async def _gather_commands(self, search_value: str) -> None:
        """Search; a palette that is being closed has lost its list, and stops."""
        gather = CommandPalette._gather_commands.__wrapped__  # type: ignore[attr-defined]
        try:
            await gather(self, search_value)
        except NoMatches:
            if self.query(CommandList):
                raise

    def _refresh_command_list(
        self, command_list: CommandList, commands: list[ListedCommand], clear_current: bool
    ) -> None:
        """Show the commands; the one that was highlighted stays so."""
        number = command_list.highlighted
        prompt = None if number is None else str(command_list.get_option_at_index(number).prompt)
        super()._refresh_command_list(command_list, commands, clear_current)
        if number:
            prompts = [str(option.prompt) for option in command_list.options]
            command_list.highlighted = prompts.index(prompt) if prompt in prompts else 0
