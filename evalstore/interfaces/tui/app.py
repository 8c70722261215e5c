"""The browser: all its screens, the way from one to another, and the list of its commands."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, partial
from heapq import nsmallest
from types import FrameType
from typing import ClassVar, cast

from textual import events, work
from textual.binding import Binding, BindingType
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
from textual.scrollbar import ScrollBar, ScrollBarRender
from textual.theme import BUILTIN_THEMES
from textual.worker import get_current_worker

from evalstore.core.display import case_name, clip, pad, safe, widest
from evalstore.core.errors import EvalstoreError, hide_passwords
from evalstore.interfaces.tui.case_listing import CasePlace
from evalstore.interfaces.tui.data_source import WorkspaceSource
from evalstore.interfaces.tui.grid import Grid
from evalstore.interfaces.tui.page_lines import (
    Appearance,
    KeyRegistry,
    key_name,
    own_actions,
    owners_of,
)
from evalstore.interfaces.tui.render.verdicts import when
from evalstore.interfaces.tui.screens.actions import CaseActionsPage, show_other_runs
from evalstore.interfaces.tui.screens.answer import AnswerPage
from evalstore.interfaces.tui.screens.base import STORE_CHECKS, BrowserApp, BrowserRuns, Page
from evalstore.interfaces.tui.screens.cases import CasesPage
from evalstore.interfaces.tui.screens.compare import ComparePage
from evalstore.interfaces.tui.screens.dialogs import (
    Choice,
    HelpPage,
    PromptDialog,
    QuitConfirmation,
)
from evalstore.interfaces.tui.screens.run import PlanPage, RunPage, StatusPage
from evalstore.interfaces.tui.screens.runs import RunsPage
from evalstore.interfaces.tui.screens.search import SearchPage
from evalstore.interfaces.tui.screens.stats import StatsPage
from evalstore.interfaces.tui.screens.test_history import TestHistoryPage
from evalstore.interfaces.tui.text_view import TextView, readable_variables
from evalstore.results.table.cases import CaseRow, Cases, CaseWindow
from evalstore.store.driver import while_wanted
from evalstore.store.revisions import WORK

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


_GARBAGE = (10_000, 5, 1 << 30)
"""New objects before a collection of garbage looks through them, some milliseconds; those before
that does so for the objects of the last ones; and those before all are looked through, for which
the screen would wait."""
_leave_out = cache(gc.freeze)  # a second browser of a process would leave out the first one
_CHECK_SECONDS = 1.0
"""How often the browser checks whether somebody has written to the store or edited files."""

_KEY_SECONDS = 0.02
"""Between two looks whether a list was read for which a key waits."""
_KEY_TURNS = 20
"""Turns of the event loop from a key to the next: it may open a page or a line."""
_WAYS_OUT = frozenset(("page.back", "quit", "help", "commands"))
"""The actions that do not wait for a list."""
_AGE_SECONDS = 60.0
"""How often ages such as `2 minutes ago` are drawn again."""

_CSS = """
    * {
        scrollbar-size-vertical: 1;
        scrollbar-color: $scroll-thumb;
        scrollbar-color-hover: $scroll-thumb;
        scrollbar-color-active: $faint;
        scrollbar-background: $surface;
        scrollbar-background-hover: $surface;
        scrollbar-background-active: $surface;
    }
    ToastRack { layer: default; visibility: visible; max-height: 50%; scrollbar-size-vertical: 0; }
    Dialog > ToastRack, ModalScreen > ToastRack { dock: top; margin: 0; }
    ModalScreen, Dialog { background: $background 30%; }
    ModalScreen:ansi, ModalScreen:nocolor, Dialog:ansi, Dialog:nocolor { background: transparent; }
    Toast { width: 1fr; max-width: 100%; margin: 0; padding: 0 1; color: $message-foreground; }
    Toast.-information { border-left: outer $message-information; }
    Toast.-warning { border-left: outer $message-warning; }
    Toast.-error { border-left: outer $message-error; }
    Toast .toast--title { color: $message-foreground; }
    Input:focus { background-tint: $surface 0%; }
    Input > .input--placeholder, Input > .input--suggestion { color: $faint; }
    Page:nocolor > .title { text-style: bold reverse; }
    Grid:nocolor > .grid--header { text-style: bold underline; }
    Grid:nocolor > .grid--cursor { text-style: bold; }
    Grid:nocolor:focus > .grid--cursor { text-style: reverse; }
"""


_LIGHT = replace(
    BUILTIN_THEMES["textual-light"], background="#ffffff", surface="#ffffff", panel="#e9edf2"
)
"""The light theme with a white background: its own greys hardly differ from each other."""


class WholeCells(ScrollBarRender):
    """Draws scrollbars in whole cells: parts of one look odd in many fonts, and without colours."""

    VERTICAL_BARS: ClassVar[list[str]] = [" "]


ScrollBar.renderer = WholeCells


class Browser(BrowserApp):
    """Browses what a store holds, and follows it and the files of the workspace."""

    TITLE = "evalstore"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit", id="quit"),
        Binding("ctrl+p", "command_palette", "Commands", show=False, priority=True, id="commands"),
    ]
    CSS = _CSS

    def __init__(
        self,
        source: WorkspaceSource,
        revision: str | None = None,
        appearance: Appearance | None = None,
    ):
        """Show the cases of the revision first, if there is one."""
        # Without colours the terminal's own are used, and nothing is painted grey instead.
        super().__init__(ansi_color=True if os.environ.get("NO_COLOR") else None)
        # A picture that moves is seen torn where the terminal is slow, and keys wait for it.
        self.animation_level = "none"
        self.register_theme(_LIGHT)
        self.source = source
        self.appearance = appearance or Appearance()
        self._revision = revision
        self.runs = BrowserRuns(self)
        self._is_behind = False
        self._typed: list[events.Key] = []
        """The key that takes effect now, and those that were typed after it."""
        self.unsaved_labels = []
        self.pages = SCREENS
        self._is_display_closed = watch_display()

    def on_mount(self) -> None:
        """Show the runs, and begin to check the store."""
        gc.set_threshold(*_GARBAGE)
        _leave_out()
        self.set_keymap(dict(self.appearance.keys))
        if self.appearance.theme:
            self.theme = self.appearance.theme
        self.push_screen(RunsPage())
        if self._revision is not None:
            self.open("cases", None if self._revision == WORK else self._revision)
        end_at_signals(self.runs.leave)
        self.set_interval(_CHECK_SECONDS, self.check_store)
        self.set_interval(_AGE_SECONDS, self.refresh_ages)
        self.check_store()

    def check_store(self) -> None:
        """Read again when somebody has written to the store, or edited files of the workspace."""
        self.run_worker(
            self._check_store, thread=True, exclusive=True, group=STORE_CHECKS, exit_on_error=False
        )

    def _check_store(self) -> None:
        if self._is_display_closed():
            if not self.runs.is_leaving:
                self.call_from_thread(self.runs.leave)
            return
        try:
            is_recorded = self.source.has_store_changed()
            has_changed = self.source.have_files_changed()
        except EvalstoreError as problem:
            if str(problem) != str(self.problem):
                self.call_from_thread(self.show_store_problem, problem)
            return
        was_unreadable = self.problem is not None
        if was_unreadable:
            self.call_from_thread(self.show_store_problem, None)
        self.call_later(show_other_runs, self, self.source.other_runs)
        if was_unreadable or is_recorded or has_changed or self._is_behind:
            self.call_from_thread(self.show_changes)

    def show_store_problem(self, problem: EvalstoreError | None) -> None:
        """Show why the store cannot be read; None: it can be read again."""
        self.problem = problem
        for page in self.open_pages:
            if problem is None:
                page.clear_problem(STORE_CHECKS)
            elif page is self.screen:
                page.report_problem(STORE_CHECKS, problem)

    def show_changes(self) -> None:
        """Read the shown page and plan again, also below a dialog, after a reading in progress."""
        page = self.shown_page
        plan = self.screen if isinstance(self.screen, PlanPage) else None
        shown = [screen for screen in (page, plan) if screen is not None]
        self._is_behind = any(screen.reads() for screen in shown)
        if page is not None:
            self.mark_stale(page)
        if page is not None and not self._is_behind:
            for screen in shown:
                screen.reload()

    def refresh_ages(self) -> None:
        """Draw the ages on the shown page again, and those of a dialog above it."""
        for screen in {self.shown_page, self.screen}:
            if isinstance(screen, Page):
                screen.refresh_ages()

    def get_css_variables(self) -> dict[str, str]:
        """Return the colours of the theme, with texts that can be read."""
        self.theme_variables = readable_variables(super().get_css_variables())
        return self.theme_variables

    async def action_quit(self) -> None:
        """Leave; during a run the user is asked first."""
        if self.runs.may_leave():
            await super().action_quit()

    def _fatal_error(self) -> None:
        """Show where a bug is, without passwords and the values of variables, which may be keys."""
        from rich.console import Group
        from rich.traceback import Traceback

        error = sys.exception()
        assert error is not None
        trace = Traceback.extract(type(error), error, error.__traceback__)
        for stack in trace.stacks:
            stack.exc_value = hide_passwords(stack.exc_value)
        self.panic(Group(Traceback(trace, width=None), "this is a bug in evalstore"))

    def on_unmount(self) -> None:
        """Stop what is still under way."""
        self.runs.stop()

    # --- keys and commands

    def key_of(self, id: str) -> str:
        """Return the first key of an action, as people read it."""
        keys = self.appearance.keys.get(id)
        return key_name(keys.split(",")[0] if keys else REGISTRY.actions[id].keys[0])

    async def on_event(self, event: events.Event) -> None:
        """Press keys one after another: each when what the one before sets off is there.

        A line end is Enter: terminals send one for it before the browser has begun.
        """
        if not isinstance(event, events.Key) or event.is_forwarded:
            await super().on_event(event)
            return
        self._typed.append(events.Key("enter", "\r") if event.key == "ctrl+j" else event)
        if len(self._typed) == 1:
            await self._press_typed()

    async def _press_typed(self, page: object = None) -> None:
        """Press the first key that was typed; it waits for a list, unless one leaves the page.

        Keys that waited for the list of another page, which a click has left, are dropped.
        """
        if page not in (None, self.screen):
            self._typed.clear()
            return
        if getattr(self.screen, "awaits_list", False):
            active = self.screen.active_bindings
            ids = [it.key in active and active[it.key].binding.id for it in self._typed]
            ways = {"prompt.leave"} if isinstance(self.screen, PromptDialog) else _WAYS_OUT
            if ways.isdisjoint(ids):
                self.set_timer(_KEY_SECONDS, partial(self._press_typed, self.screen))
                return
            del self._typed[: next(at for at, id in enumerate(ids) if id in ways)]
        try:
            await super().on_event(self._typed[0])
        finally:
            self._go_on(_KEY_TURNS)

    def _go_on(self, left: int) -> None:
        """Press the next key after so many turns, in which the last one takes effect."""
        if left:
            asyncio.get_running_loop().call_soon(self._go_on, left - 1)
            return
        del self._typed[0]
        if self._typed:
            self.call_later(self._press_typed)

    def action_command_palette(self) -> None:
        """Open the palette, unless it is open."""
        if not isinstance(self.screen, Palette):
            self.push_screen(Palette())

    def action_help(self) -> None:
        """Open the help on this screen; in the help, close it."""
        if isinstance(self.screen, HelpPage):
            self.go_back()
            return
        self.push_screen(HelpPage(self.screen))

    def action_help_quit(self) -> None:
        """Show the key that quits, as Ctrl-C does not."""
        self.notify(f"{self.key_of('quit')} quits", markup=False)

    # --- from screen to screen

    def is_above_run(self, page: Page) -> bool:
        """Return whether the screen below a page has the cases of a run."""
        below = self.screen_stack[self.screen_stack.index(page) - 1]
        return isinstance(below, CasesPage) and below.revision is not None

    def show_new_run(self, run: str) -> None:
        """Open the cases of a run that has ended, in place of an older run, at what is selected."""
        page, place = self.screen, None
        if isinstance(page, CaseActionsPage) and (result := next(iter(page.selected), None)):
            place = CasePlace(result.file, result.row, result.model, page.prompt_name(result))
        if isinstance(self.screen, CasesPage) and self.screen.revision is not None:
            self.pop_screen()
        self.open("cases", run, place=place)


SCREENS: Mapping[str, type[Page]] = {
    "runs": RunsPage,
    "answer": AnswerPage,
    "cases": CasesPage,
    "compare": ComparePage,
    "help": HelpPage,
    "pending": StatusPage,
    "plan": PlanPage,
    "quit": QuitConfirmation,
    "run": RunPage,
    "search": SearchPage,
    "stats": StatsPage,
    "versions": TestHistoryPage,
}
"""All screens: the first one, then by their titles."""
PAGES = (*SCREENS.values(),)
REGISTRY = KeyRegistry(Browser, PAGES, (PromptDialog, Choice, Grid, TextView))
"""The actions of all screens and widgets."""


# --- signals that end or stop the browser, and whether anything shows it


def end_at_signals(leave: Callable[[], None]) -> None:
    """Leave in order at `SIGTERM` and `SIGHUP`: the terminal restored, paid answers stored."""
    with suppress(NotImplementedError, RuntimeError, ValueError):  # Windows, another thread
        for name in ("SIGTERM", "SIGHUP"):
            asyncio.get_running_loop().add_signal_handler(getattr(signal, name), leave)
        _resume_after_stops_only()


def watch_display() -> Callable[[], bool]:
    """Return what says whether the terminal, or the process that shows a web page, has gone.

    `SIGHUP` may be blocked or get lost when a terminal is closed. Textual then reads the end of its
    input again and again.
    """
    had_terminal = _has_terminal()
    web_parent = os.getppid() if "TEXTUAL_DRIVER" in os.environ else None

    def is_closed() -> bool:
        has_no_parent = web_parent not in (None, os.getppid())
        return has_no_parent or (had_terminal and not _has_terminal())

    return is_closed


def _has_terminal() -> bool:
    try:
        return sys.__stdin__ is not None and os.isatty(sys.__stdin__.fileno())
    except (OSError, ValueError):  # closed
        return False


def _resume_after_stops_only() -> None:
    """Let the driver take the terminal again only when it has given it away before.

    A terminal that is closed sends `SIGCONT` behind `SIGHUP`, and any process may send it. Textual
    then reads the keys in a second thread, and the process does not end any more.
    """
    stops, resumes = signal.getsignal(signal.SIGTSTP), signal.getsignal(signal.SIGCONT)
    if not callable(stops) or not callable(resumes):
        return  # not in a terminal
    is_stopped = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal is_stopped
        is_stopped = True
        stops(number, frame)

    def resume(number: int, frame: FrameType | None) -> None:
        nonlocal is_stopped
        if is_stopped:
            is_stopped = False
            resumes(number, frame)

    signal.signal(signal.SIGTSTP, stop)
    signal.signal(signal.SIGCONT, resume)
