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
from typing import NamedTuple, cast

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
from textual.worker import Worker, get_current_worker

from evalstore.core.display import case_name, clip, columns_of, safe
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
_RATED = 500
"""How many names are compared with what is typed letter by letter."""
_LEAST, _FRAME, _GAP = 16, 6, 4
"""The least width of a name with its hint, the columns around both, and those between them."""
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

    @property
    def kind_length(self) -> int:
        """Return how many characters stand before what is named."""
        return len(self.kind) + 1 if self.kind else 0


class _ListedCommands(Provider):
    """Commands that are known before anything is typed."""

    commands: list[Command]
    shown_first: int = _LISTED
    """How many are listed before anything is typed."""
    room: int = 76
    """The columns of a name with its hint, if both fit: more would take them apart."""
    bonus: float = 0.0
    """What is added to scores, so that of equal matches these come first; below 0.2."""

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
        """Yield the commands that match best: names that begin so before names that have it."""
        matches = []
        for command in await _with_words(self.commands, query):
            if match := match_name(command.plain, query, kind_length=command.kind_length):
                matches.append((match, command))
        matches.sort(key=lambda pair: -pair[0].score)
        style = self.matcher(query).match_style
        for match, command in matches[:_LISTED]:
            shown = Content(command.plain)
            for place in match.places:
                shown = shown.stylize(style, place, place + 1)
            shown = self._with_hint(shown, command)
            yield Hit(match.score + self.bonus, shown, command.run, command.plain)

    def _with_hint(self, shown: Content, command: Command) -> Content:
        """Return a name in a line with its key, or another hint, at the right."""
        room = max(_LEAST, self.app.size.width - _FRAME)
        if shown.cell_length + columns_of(command.hint) < self.room:
            room = min(room, self.room)
        hint = command.hint if columns_of(command.hint) < room // 2 else ""
        left = room - columns_of(hint)
        name = shown.truncate(left - 1, ellipsis=True, pad=False)
        blank = " " * max(1, left - name.cell_length)
        return Content.assemble(name, blank, (hint, "$faint")) if hint else name


async def _with_words(commands: Sequence[Command], query: str) -> Sequence[Command]:
    """Filter many commands by the words in their names: only few can be rated at once.

    Those whose names begin with what is typed come first.
    """
    if len(commands) <= _RATED:
        return commands
    typed = " ".join(query.casefold().split())
    words = typed.split()
    starts: list[Command] = []
    others: list[Command] = []
    for first in range(0, len(commands), _AT_ONCE):
        for command in commands[first : first + _AT_ONCE]:
            name = command.name.casefold()
            if all(word in name for word in words):
                begins = name.startswith(typed) or name.startswith(typed, command.kind_length)
                (starts if begins else others).append(command)
        if len(starts) >= _RATED:
            break
        del others[_RATED:]
        await asyncio.sleep(0)
    return [*starts, *others][:_RATED]


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
        self.room = max(columns_of(f"{it.name}{it.hint}") for it in self.commands) + _GAP


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
        self._kinds: list[list[Command]] = [[], [], [], self.commands]
        self._readings = [
            self._begin_to_read(number, read)
            for number, read in enumerate((self._runs, self._files, self._cases))
        ]

    async def shutdown(self) -> None:
        """End the readings."""
        for reading in self._readings:
            reading.cancel()

    def _begin_to_read(self, number: int, read: Callable[[], list[Command]]) -> Worker[None]:
        """Read in a thread until the palette is closed; a bug there is reported by the page."""
        reading = [read]  # taken out, as the worker that has read it may stay

        def work() -> None:
            worker = get_current_worker()
            with (
                suppress(EvalstoreError),  # the page below shows what is wrong
                while_wanted(lambda: not worker.is_cancelled),
            ):
                self.app.call_later(self._take, number, reading.pop()())

        return self.screen.run_worker(work, thread=True, group="commands", exit_on_error=False)

    def _take(self, number: int, found: list[Command]) -> None:
        self._kinds[number] = found
        self.commands = [command for kind in self._kinds for command in kind]
        if isinstance(self.app.screen, Palette):
            self.app.screen.search_again()

    def _runs(self) -> list[Command]:
        browser, runs = self.browser, self.browser.source.runs()
        names = (f"Run {run.id[:8]} {run.message or ''}".strip() for run in runs)
        return [
            Command(name, when(run.started), partial(browser.open, browser.to.cases, run.id), "Run")
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
            self.screen.filter.set(typed)
        else:
            self.browser.open(self.browser.to.cases, None, typed)

    def _show_case(self, cases: Cases, case: CaseRow) -> None:
        """Move the cursor of the page to a case; a filter that hides it is removed."""
        page = self.screen
        if not isinstance(page, CasesPage):
            place = CasePlace(case.file, case.row, prompt=case.prompt)
            self.browser.open(self.browser.to.cases, cases.run, place=place)
            return
        if page.listing.line_of(case) is None:
            page.filter.remove()
            page.filter.change("")
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

    def on_resize(self) -> None:
        """Put the keys at the right of another width."""
        listed = (option for commands in self.query(CommandList) for option in commands.options)
        if any(not option.disabled for option in listed):
            self.search_again()

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


# --- how well the name of a command matches what is typed: whole names before scattered letters


_WORD = re.compile(r"[^\W_]+|[^\w\s]")
_SPREAD = 2
"""Letters that are not together count as a match within so many times their number."""
_WHOLE, _START, _WORD_START, _WORD_STARTS, _PART, _PARTS, _LETTERS = range(7, 0, -1)
"""How a name matches, the best first."""


class Match(NamedTuple):
    """How a name matches."""

    score: float
    """Higher is better; the whole number is the way it matches, the rest prefers short names."""
    places: tuple[int, ...]
    """The characters of the name that match."""


def match_name(name: str, typed: str, *, kind_length: int = 0) -> Match | None:
    """Return how well a name matches; None when it does not.

    The first `kind_length` characters are the word for its kind.
    """
    folded = _fold(name)
    sought = " ".join(_fold(typed).split())
    if not sought:
        return None
    starts = kind_length, 0
    word_starts = [match.start() for match in _WORD.finditer(folded)]
    ways = (
        (_WHOLE, (folded.find(sought, at) for at in starts if folded[at:].strip() == sought)),
        (_START, (at for at in starts if folded.startswith(sought, at))),
        (_WORD_START, (at for at in word_starts if folded.startswith(sought, at))),
    )
    for way, places in ways:
        if (start := next(places, -1)) >= 0:
            return _match(way, name, range(start, start + len(sought)))
    words = sought.split()
    beginnings = [
        next((start for start in word_starts if folded.startswith(word, start)), -1)
        for word in words
    ]
    if -1 not in beginnings:
        return _match(_WORD_STARTS, name, _spans(beginnings, words))
    if (start := folded.find(sought)) >= 0:
        return _match(_PART, name, range(start, start + len(sought)))
    parts = [folded.find(word) for word in words]
    if -1 not in parts:
        return _match(_PARTS, name, _spans(parts, words))
    letters = sought.replace(" ", "")  # those of the kind are in all names of the kind
    named = [start for start in word_starts if start >= kind_length]
    rest = " " * kind_length + folded[kind_length:]
    scattered = _initials(rest, letters, named) or _near(rest, letters)
    return _match(_LETTERS, name, scattered) if scattered else None


def _fold(text: str) -> str:
    """Return a text without case; each character stays one, so that places are those of the text.

    Most texts keep their length when they are folded as a whole, which is quick.
    """
    folded = text.casefold()
    if len(folded) == len(text):
        return folded
    return "".join(
        part if len(part := character.casefold()) == 1 else character for character in text
    )


def _match(way: int, name: str, places: range | tuple[int, ...]) -> Match:
    first = places[0] if places else 0
    return Match(way + 0.4 / (1 + first) + 0.4 / (1 + len(name)), tuple(places))


def _spans(starts: list[int], words: list[str]) -> tuple[int, ...]:
    ranges = (range(start, start + len(it)) for start, it in zip(starts, words, strict=True))
    return tuple(sorted({place for places in ranges for place in places}))


def _initials(folded: str, letters: str, word_starts: list[int]) -> tuple[int, ...]:
    """Return places at which each letter follows the one before or begins a later word."""
    ways: list[tuple[int, ...]] = [()]
    for letter in letters:
        longer: dict[int, tuple[int, ...]] = {}
        for way in ways:
            last = way[-1] if way else -1
            nexts = [start for start in word_starts if start > last]
            if way:
                nexts.append(last + 1)
            for place in nexts:
                if folded.startswith(letter, place):
                    longer.setdefault(place, (*way, place))
        ways = list(longer.values())
    return ways[0] if ways else ()


def _near(folded: str, letters: str) -> tuple[int, ...]:
    """Return the places of letters in their order that are not far from each other."""
    most = _SPREAD * len(letters)
    if len(letters) < 3:
        return ()
    start = folded.find(letters[0])
    while start >= 0:
        places = [start]
        for letter in letters[1:]:
            place = folded.find(letter, places[-1] + 1, start + most)
            if place < 0:
                break
            places.append(place)
        else:
            return tuple(places)
        start = folded.find(letters[0], start + 1)
    return ()
