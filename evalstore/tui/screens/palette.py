"""The command palette: actions by name, and runs and test files to go to.

Textual reads plain texts as markup there, so all that is shown is `Content`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.theme import BUILTIN_THEMES

from evalstore.display import clip
from evalstore.errors import EvalstoreError
from evalstore.tui.keys.registry import own_actions, owners_of
from evalstore.tui.render.verdicts import when

if TYPE_CHECKING:
    from evalstore.tui.screens.base import BrowserApp

_WIDTH = 200
"""Longer names are cut."""
_LISTED = 50
"""How many hits are shown at most."""


@dataclass(frozen=True, slots=True)
class Command:
    """Something to choose."""

    name: str
    """May hold anything."""
    hint: str
    """A word about it; ours."""
    run: Callable[[], Awaitable[object] | None]


class _ListedCommands(Provider):
    """Commands that are known before anything is typed."""

    commands: list[Command]
    shown_first: int = _LISTED
    """How many are listed before anything is typed."""

    @property
    def browser(self) -> BrowserApp:
        """The program."""
        return cast("BrowserApp", self.app)

    async def discover(self) -> Hits:
        """What is listed before anything is typed."""
        for command in self.commands[: self.shown_first]:
            yield DiscoveryHit(Content(_plain(command)), command.run, _plain(command), command.hint)

    async def search(self, query: str) -> Hits:
        """The commands that match best."""
        matcher = self.matcher(query)
        scored = [(matcher.match(_plain(command)), command) for command in self.commands]
        scored.sort(key=lambda pair: -pair[0])
        for score, command in scored[:_LISTED]:
            if score > 0:
                name = _plain(command)
                _, places = matcher.fuzzy_search.match(query, name)
                shown = Content(name)
                for place in places:
                    shown = shown.stylize(matcher.match_style, place, place + 1)
                yield Hit(score, shown, command.run, name, command.hint)


def _plain(command: Command) -> str:
    return clip(command.name, _WIDTH)


class ActionCommands(_ListedCommands):
    """What the keys of the screen and of the program do."""

    async def startup(self) -> None:
        """Find the actions, also those whose keys the focused input takes."""
        self.commands = []
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
                    self.commands.append(Command(action.description, f"key {key}", run))


class PlaceCommands(_ListedCommands):
    """Runs, test files and themes."""

    shown_first = 0

    async def startup(self) -> None:
        """Begin to read runs and files in the background.

        The palette cancels a search when more is typed, and with it everything that the search
        awaits: it must not cancel this reading.
        """
        self.commands = []
        self._reading = asyncio.create_task(self._read())

    async def shutdown(self) -> None:
        """Cancel the reading."""
        self._reading.cancel()

    async def search(self, query: str) -> Hits:
        """The commands that match best, once they are read."""
        await asyncio.shield(self._reading)
        async for hit in super().search(query):
            yield hit

    async def _read(self) -> None:
        runs, files = await asyncio.gather(
            asyncio.to_thread(self._runs), asyncio.to_thread(self._files)
        )
        self.commands = [*runs, *files, *self._themes()]

    def _runs(self) -> list[Command]:
        try:
            runs = self.browser.source.runs()
        except EvalstoreError:
            return []
        return [
            Command(
                f"Run {run.id[:8]} {run.message}".strip(),
                when(run.started),
                partial(self._show_run, run.id),
            )
            for run in runs
        ]

    def _files(self) -> list[Command]:
        try:
            files = self.browser.source.files()
        except EvalstoreError:
            return []
        return [
            Command(f"File {file}", "show cases", partial(self._show_file, file)) for file in files
        ]

    def _themes(self) -> list[Command]:
        return [
            Command(f"Theme {name}", "until you quit", partial(self._set_theme, name))
            for name in BUILTIN_THEMES
        ]

    def _show_run(self, id: str) -> None:
        self.browser.show_cases(id)

    def _show_file(self, file: str) -> None:
        self.browser.show_file(file)

    def _set_theme(self, theme: str) -> None:
        self.app.theme = theme
