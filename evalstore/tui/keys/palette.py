"""The command palette: what the keys do, by name; and runs and test files to go to.

Textual reads plain texts as markup there, so all that is shown is `Content`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.theme import BUILTIN_THEMES

from evalstore.display import clip
from evalstore.errors import EvalstoreError
from evalstore.tui.keys.registry import own_actions, owners
from evalstore.tui.render.verdicts import when

if TYPE_CHECKING:
    from evalstore.tui.app import Browser

_WIDTH = 200
"""Longer names are cut."""
_LISTED = 50
"""How many hits are shown at most."""


@dataclass(frozen=True, slots=True)
class Command:
    """Something to choose."""

    name: str
    """May hold anything."""
    what: str
    """A word about it; ours."""
    run: Callable[[], Awaitable[object] | None]


class _Listed(Provider):
    """Commands that are known before anything is typed."""

    commands: list[Command]
    shown_first: int = _LISTED
    """How many are listed before anything is typed."""

    @property
    def browser(self) -> Browser:
        """The program."""
        from evalstore.tui.app import Browser

        assert isinstance(self.app, Browser)
        return self.app

    async def discover(self) -> Hits:
        """What is listed before anything is typed."""
        for command in self.commands[: self.shown_first]:
            yield DiscoveryHit(Content(_plain(command)), command.run, _plain(command), command.what)

    async def search(self, query: str) -> Hits:
        """The commands that match best."""
        matcher = self.matcher(query)
        found = [(matcher.match(_plain(command)), command) for command in self.commands]
        found.sort(key=lambda pair: -pair[0])
        for score, one in found[:_LISTED]:
            if score > 0:
                name = _plain(one)
                _, places = matcher.fuzzy_search.match(query, name)
                shown = Content(name)
                for place in places:
                    shown = shown.stylize(matcher.match_style, place, place + 1)
                yield Hit(score, shown, one.run, name, one.what)


def _plain(command: Command) -> str:
    return clip(command.name, _WIDTH)


class ActionCommands(_Listed):
    """What the keys of the screen and of the program do."""

    async def startup(self) -> None:
        """Find them: also those that a line to type in takes the keys of."""
        self.commands = []
        known = {"commands"}
        for node in (self.screen, self.app):
            heard = [one for one in owners() if isinstance(node, one)]
            for action in (action for one in reversed(heard) for action in own_actions(one)):
                if action.id in known:
                    continue
                if self.app._check_action_state(action.action, node):
                    known.add(action.id)
                    run = partial(self.app.run_action, action.action, node)
                    key = self.browser.key_of(action.id)
                    self.commands.append(Command(action.description, f"key {key}", run))


class PlaceCommands(_Listed):
    """Runs, test files and themes."""

    shown_first = 0

    async def startup(self) -> None:
        """Begin to read what there is, and do not wait for it.

        The palette cancels a search when more is typed, and with it whatever the search waits
        for: had it to wait for this, there would be nothing to find from then on.
        """
        self.commands = []
        self._reading = asyncio.create_task(self._read())

    async def shutdown(self) -> None:
        """Stop waiting for results that are not shown any more."""
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
            Command(f"Theme {name}", "until you quit", partial(self._paint, name))
            for name in BUILTIN_THEMES
        ]

    def _show_run(self, id: str) -> None:
        self.browser.show_cases(id)

    def _show_file(self, file: str) -> None:
        self.browser.show_file(file)

    def _paint(self, theme: str) -> None:
        self.app.theme = theme
