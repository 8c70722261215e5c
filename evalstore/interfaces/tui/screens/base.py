"""The base of all screens: title, problems, reading in threads; and the app as they know it."""

from __future__ import annotations

import gc
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from textual import events, on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.content import Content
from textual.message import Message
from textual.screen import Screen
from textual.timer import Timer
from textual.widgets import Static
from textual.widgets._toast import ToastRack
from textual.worker import Worker, WorkerState, get_current_worker

from evalstore.core.display import safe
from evalstore.core.errors import EvalstoreError
from evalstore.interfaces.tui.data_source import BackgroundRun, WorkspaceSource
from evalstore.interfaces.tui.grid import Grid
from evalstore.interfaces.tui.page_lines import (
    READING,
    FooterHint,
    KeyFooter,
    TitleLine,
    TitlePart,
)
from evalstore.interfaces.tui.render.run import run_text
from evalstore.interfaces.tui.render.verdicts import problem_text
from evalstore.interfaces.tui.text_view import FittedView, TextView
from evalstore.results.table.cases import CaseRow
from evalstore.runs.run_text import summary_text
from evalstore.store.driver import Reached, telling, while_wanted

if TYPE_CHECKING:
    from evalstore.runs.run import PlanPreview, RunRequest


T = TypeVar("T")
_ACTION_ID = re.compile(r"\{([a-z_]+(?:\.[a-z_]+)?)\}")
_NEED_ROOM = ("label", "unlabel", "judge_again", "run", "edit")
"""Actions that are not available in a terminal that is too small."""
_COLLECT_SECONDS = 1.0
"""So long after cases were left all objects are looked through, once nothing is read."""
NEWS_SECONDS = 0.25
"""From one piece of news about a long reading to the next."""
STORE_CHECKS = "store checks"
"""The group of readings that find out whether the store or files of the workspace have changed."""


class BrowserApp(App[None]):
    """The application as screens know it: its data, its keys, and the way to other screens.

    Its messages show control characters as escapes.
    """

    source: WorkspaceSource
    runs: BrowserRuns
    pages: Mapping[str, type[Page]]
    """The screens that help tells about, by the names with which others open them."""
    problem: EvalstoreError | None = None
    """Why the store cannot be read at the moment."""
    unsaved_labels: list[str]
    """Labels that could not be stored, until the user was told."""

    def notify(self, message: str, **options: Any) -> None:
        """Show a message in passing; without colours, a warning begins with a word that says so."""
        severity = options.get("severity", "information")
        is_named = severity == "information" or message.startswith("error: ")
        if self.no_color and not is_named:
            message = f"{severity}: {message}"
        super().notify(safe(message, lines=True), **options)

    def _refresh_notifications(self) -> None:
        """Show the messages, and no gaps in place of those that have gone."""
        super()._refresh_notifications()
        self.call_later(self._remove_frames)

    def _remove_frames(self) -> None:
        """Remove the frames of messages that have gone: each takes lines from the page."""
        shown = {ToastRack._toast_id(message) for message in self._notifications}
        for rack in (it for screen in self.screen_stack for it in screen.query_children(ToastRack)):
            if gone := [frame for frame in rack.children if frame.id not in shown]:
                rack.remove_children(gone)

    # --- the pages that are open

    @property
    def open_pages(self) -> list[Page]:
        """Return the pages that are open, the one on top last."""
        return [page for page in self.screen_stack if isinstance(page, Page)]

    @property
    def shown_page(self) -> Page | None:
        """Return the page that is shown, also below a dialog."""
        return next((page for page in reversed(self.open_pages) if not page.is_modal), None)

    def mark_stale(self, page: Page) -> None:
        """Let all other pages read again when they are shown again."""
        for other in self.open_pages:
            other.is_stale |= other is not page

    def go_back(self) -> None:
        """Leave the screen; the first one stays."""
        if len(self.screen_stack) > 2:
            self.pop_screen()

    # --- what the program does for its screens

    def key_of(self, id: str) -> str:
        """Return the first key of an action, as people read it."""
        raise NotImplementedError

    def collect_later(self) -> None:
        """Free what a page of cases has left."""
        self.set_timer(_COLLECT_SECONDS, self._collect)

    def _collect(self) -> None:
        if any(worker.is_running for worker in self.workers):
            self.collect_later()
        else:
            gc.collect()

    def open(self, name: str, *args: Any, **options: Any) -> None:
        """Open a page with the arguments of its class.

        A page without arguments, such as that of pending work, is not opened above itself.
        """
        page = self.pages[name]
        if args or type(self.screen) is not page:
            self.push_screen(page(*args, **options))

    def show_new_run(self, run: str) -> None:
        """Open the cases of a run that has just ended, in place of those of an older run."""

    def is_above_run(self, page: Page) -> bool:
        """Return whether the screen below a page has the cases of a run."""
        raise NotImplementedError


HELP_KEYS = Binding("question_mark,f1", "app.help", "Help", id="help")


class Page(Screen[None]):
    """A screen that reads in threads and shows what comes.

    Workers only post messages; handlers own every change of a widget. Texts of files and
    models are `Content`, never markup.
    """

    TITLE: ClassVar[str | None] = None
    """What people call the screen."""
    HELP: ClassVar[str | None] = None
    """What it shows, in plain words; `{id}` stands for the keys of an action."""
    WAY: ClassVar[str] = ""
    """How to get there, in the same manner; empty for the first screen."""
    HORIZONTAL_BREAKPOINTS = [(0, "-slim"), (20, "-narrow"), (100, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-tiny"), (6, "-short"), (20, "-tall")]  # noqa: RUF012
    DEFAULT_CSS = """
    Page {
        layout: vertical;
        overflow: hidden;
        background: $surface;
        layers: default over;
        & .title { height: 1; padding: 0 1; background: $panel; text-style: bold; }
        & .problem { height: auto; max-height: 8; padding: 0 1; color: $text-error; display: none; }
        & > .empty { height: 1fr; content-align: center middle; color: $faint; display: none; }
        &.-short .detail, &.-tiny .detail { display: none; }
        & > .small { layer: over; width: 100%; height: 100%; display: none; }
        & > .small { background: $surface; color: $text-warning; }
        &.-tiny > .small, &.-slim > .small { display: block; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,backspace", "back", "Back", id="page.back"),
        Binding("r", "reload", "Reload", show=False, id="page.reload"),
        Binding("tab", "app.focus_next", "Next panel", show=False, id="panel.next"),
        Binding("shift+tab", "app.focus_previous", "Previous panel", show=False, id="panel.last"),
        HELP_KEYS,
    ]

    FOOTER: ClassVar[Sequence[FooterHint | str]] = ()
    """What the footer names, in this order: hints, or actions with their own descriptions.

    Empty: the actions that are to be shown.
    """

    @property
    def footer_words(self) -> Mapping[str, str]:
        """Return by the ids of actions what they do at the moment, if their names do not say it."""
        return {}

    search_words = ""
    """The words that a search in all texts begins with."""
    is_stale = False
    """Whether the store or files of the workspace have changed since the page was read."""

    runner: BackgroundRun | None = None
    """The run that the page is about; its progress is drawn there, too."""
    asks_to_quit = False
    """Whether it asks whether to quit during a run."""

    awaits_list = False
    """Whether what its keys are about has not been read yet."""
    has_told = False
    """Whether the screen has shown a message since it was covered last."""

    def __init__(self, *, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self._title_parts: tuple[TitlePart, ...] = ()
        self._problems: dict[str, EvalstoreError] = {}
        """By what is read: what went wrong last."""
        self.pauses: dict[str, Timer] = {}
        """By what is going to be done: how long nothing else of the kind must be requested."""

    @dataclass
    class Fetched(Message):
        """Something that was read has arrived."""

        then: Callable[[Any], object] | None
        """None: it could not be read, and the value says why."""
        value: Any
        group: str

    @property
    def source(self) -> WorkspaceSource:
        """Return the source of the data."""
        return self.browser.source

    @property
    def browser(self) -> BrowserApp:
        """Return the program."""
        return cast("BrowserApp", self.app)

    def on_mount(self) -> None:
        """Prepare the message for a terminal that is too small; Textual calls this one, too."""
        self.mount(Static("too small: 20x6 or more", classes="small", markup=False))

    # --- the parts of a page

    @property
    def run_progress(self) -> str:
        """Return the progress of a run for the right end of the title; empty without one."""
        return self.browser.runs.progress_text

    def set_title(self, *parts: TitlePart) -> None:
        """Show these parts as the title."""
        self._title_parts = parts
        self.query_one(TitleLine).show(parts)

    def with_keys(self, text: str) -> str:
        """Return the text with the ids of actions in braces replaced by their keys."""
        return _ACTION_ID.sub(lambda match: self.browser.key_of(match[1]), text)

    # --- reading

    def fetch(
        self,
        read: Callable[[], T],
        then: Callable[[T], object],
        *,
        group: str = "read",
        writes: bool = False,
    ) -> None:
        """Read in a thread, then show; of one group only the last; others end unless `writes`."""
        reading = [read]  # taken out, as the worker that has read it may stay

        def work() -> None:
            worker = get_current_worker()
            try:
                with while_wanted(None if writes else lambda: not worker.is_cancelled):
                    message = self.Fetched(then, reading.pop()(), group)
            except EvalstoreError as problem:
                message = self.Fetched(None, problem, group)
            if not worker.is_cancelled:
                self.post_message(message)

        self.run_worker(work, thread=True, exclusive=True, group=group, exit_on_error=False)

    @contextmanager
    def telling(self, show: Callable[[str], None], *, after: float = 0.0) -> Iterator[None]:
        """Show how far the reading in this block, in a thread, has come; not too often.

        The first time comes when it has taken more than `after` seconds.
        """
        worker, last = get_current_worker(), time.monotonic() + after - NEWS_SECONDS

        def tell(reached: Reached) -> None:
            nonlocal last
            if time.monotonic() - last < NEWS_SECONDS:
                return
            if not worker.is_cancelled:
                total = f" of {reached.total:,}" if reached.total else ""
                text = f"{READING} {reached.done:,}{total} {reached.counted}"
                self.post_message(self.Fetched(show, text, "news"))
            last = time.monotonic()

        with telling(tell):
            yield

    def reporter(self, words: str, show: Callable[[str], object]) -> Callable[[int, int], bool]:
        """Return what shows the progress of this thread in percent, until it is cancelled."""
        worker, shown = get_current_worker(), -1

        def report(done: int, total: int) -> bool:
            nonlocal shown
            percent = min(100 * done // total, 99) if total else shown
            if percent != shown and not worker.is_cancelled:
                shown = percent
                self.post_message(self.Fetched(show, words.format(percent), "news"))
            return not worker.is_cancelled

        return report

    def pause(self, group: str, seconds: float, do: Callable[[], None]) -> None:
        """Do something after a pause; of one group only the last."""

        def end() -> None:
            if self.pauses.get(group) is timer:  # else it was ended at the last moment
                del self.pauses[group]
                do()

        self.end_pause(group)
        timer = self.pauses[group] = self.set_timer(seconds, end)

    def end_pause(self, group: str) -> None:
        """Do not do what waits, if there is such."""
        if group in self.pauses:
            self.pauses.pop(group).stop()

    def on_unmount(self) -> None:
        """Forget what waits; Textual calls this and the methods of that name of other classes."""
        for group in [*self.pauses]:
            self.end_pause(group)

    def on_screen_resume(self) -> None:
        """Take the size of the terminal, and what was stored, while another page was above."""
        size = self.app.size
        before = self.classes
        widths, heights = self.HORIZONTAL_BREAKPOINTS, self.VERTICAL_BREAKPOINTS
        for cells, steps in ((size.width, widths), (size.height, heights)):
            fitting = max(step for step in steps if step[0] <= cells)
            for step in steps:
                self.set_class(step == fitting, step[1], update=False)
        if self.classes != before:
            self.update_node_styles()
        if self.browser.problem:
            self.report_problem(STORE_CHECKS, self.browser.problem)
        if self.is_stale:
            self.is_stale = False
            self.reload()

    def reads(self, group: str = "read") -> bool:
        """Return whether something is being read: what the page shows, or what else a group has."""
        return any(
            worker.group == group and worker.node is self and not worker.is_finished
            for worker in self.workers
        )

    @on(Fetched)
    def show_fetched(self, message: Fetched) -> None:
        """Show what was read; a problem stays until its group has been read."""
        if message.then is None:
            self.report_problem(message.group, message.value)
        else:
            self.clear_problem(message.group)
            message.then(message.value)
        self.awaits_list &= message.group != "read"

    def report_problem(self, group: str, problem: EvalstoreError) -> None:
        """Show what went wrong with the reading of a group, until `clear_problem`."""
        self._problems[group] = problem
        self.show_problem(problem)

    def clear_problem(self, group: str) -> None:
        """Forget the problem of a group; all problems when the page itself has been read again."""
        solved = [name for name in self._problems if group in (name, "read")]
        for name in solved:
            del self._problems[name]
        if solved:
            left = next(reversed(self._problems.values()), None)
            if left:
                self.show_problem(left)
            else:
                self.query_one(".problem", Static).display = False

    @on(Worker.StateChanged)
    def report_bug(self, message: Worker.StateChanged) -> None:
        """Report a reading that ends in any other way as a bug, and stay alive."""
        if message.state is WorkerState.ERROR:
            self.awaits_list = False
            problem = EvalstoreError(f"a bug in evalstore: {message.worker.error!r}")
            self.report_problem(message.worker.group, problem)

    def show_problem(self, problem: EvalstoreError) -> None:
        """Show a problem with its place and its hint; nothing is being read any more."""
        parts = self._title_parts
        self.set_title(*(part for part in parts if not str(part).startswith(READING)))
        line = self.query_one(".problem", Static)
        line.update(Content(safe(problem_text(problem), lines=True)))
        line.display = True

    def notify(self, message: str, **options: Any) -> None:
        """Show a message in passing."""
        self.has_told = True
        super().notify(message, **options)

    def on_screen_suspend(self) -> None:
        """Remove the messages of the screen, unless it is left: then they are about the next."""
        if self.has_told and self in self.app.screen_stack:
            self.has_told = False
            self.app.clear_notifications()

    def warn(self, problem: EvalstoreError | str) -> None:
        """Show in passing that something did not work."""
        text = problem if isinstance(problem, str) else problem_text(problem)
        self.notify(text, severity="warning", markup=False, timeout=10)

    # --- keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action is available; few are on the first or on a small screen."""
        if self.is_small and action in _NEED_ROOM:
            return False
        return action != "back" or self not in self.app.screen_stack[:2]

    @property
    def is_small(self) -> bool:
        """Return whether the terminal is too small to show the page."""
        return self.has_class("-tiny") or self.has_class("-slim")

    def reload(self) -> None:
        """Read again; the cursor keeps its place."""

    def show_progress(self) -> None:
        """Show the progress of the run."""

    def show_end(self) -> bool:
        """Show what a run that has ended has changed; returns whether the page says how it did."""
        self.reload()
        return False

    def refresh_ages(self) -> None:
        """Draw again how long ago something was: a minute has passed."""

    def highlight(self, case: CaseRow, model: str) -> None:
        """Move the cursor to a case and a candidate, on a page that lists cases."""

    def action_reload(self) -> None:
        """Read again."""
        self.reload()

    def action_back(self) -> None:
        """Leave this screen."""
        self.browser.go_back()


# --- runs that the browser starts, at most one at a time, in the background


_DRAW_SECONDS = 0.2
"""How often the progress is drawn."""


class BrowserRuns:
    """Starts runs, shows their progress and stops them before the browser ends."""

    def __init__(self, app: BrowserApp) -> None:
        self._app = app
        self.runner: BackgroundRun | None = None
        self._drawn: tuple[str, ...] = ()
        """What is drawn of the run in titles and above the runs."""
        self.is_leaving = False
        """Whether the browser ends as soon as the run has stopped."""

    @property
    def is_running(self) -> bool:
        """Return whether a run is in progress."""
        return self.runner is not None and not self.runner.is_over

    @property
    def progress_text(self) -> str:
        """Return the progress in few characters; empty without a run."""
        if self.runner is None or self.runner.shown.is_over:
            return ""
        shown = self.runner.shown
        done, total = shown.counts
        progress = f"{done:,}/{total:,}" if shown.is_planned else "…"
        return f"▶ {progress}" + (" stopping" if shown.stops else "")

    @property
    def text(self) -> str:
        """Return what the run does in a line; empty without a run."""
        if self.runner is None or self.runner.shown.is_over:
            return ""
        return run_text(self.runner.shown)

    def draw(self) -> None:
        """Draw what all screens show of the run, as it is at this moment.

        Titles, and the state above the runs, are left as they are when they would not change.
        """
        if self.runner is None:
            return
        before = self._drawn
        self.runner.shown = self.runner.copy()
        self._drawn = self.progress_text, self.text
        for page in self._app.open_pages:
            if self._drawn != before:
                for line in page.query(TitleLine):
                    line.refresh()
                for view in page.query("#dashboard").results(FittedView):
                    view.refit()
            if page.runner and page.is_mounted:
                page.show_progress()

    def refuse_second(self) -> bool:
        """Show a message if a run is in progress; returns whether there is one."""
        if self.is_running:
            key = self._app.key_of("page.run")
            text = f"A run is already in progress: {key} shows its progress."
            self._app.notify(text, severity="warning", markup=False)
        return self.is_running

    def begin(self, request: RunRequest, preview: PlanPreview) -> None:
        """Start what was planned, and show its progress."""
        if self.refuse_second():
            return
        self.runner = runner = BackgroundRun(request, preview)
        self._app.open("run", runner)
        self.draw()
        self._timer = self._app.set_interval(_DRAW_SECONDS, self.draw)
        work = partial(self._carry_out, runner)
        self._app.run_worker(work, thread=True, group="run", exit_on_error=False)

    def _carry_out(self, runner: BackgroundRun) -> None:
        try:
            runner.end = self._app.source.carry_out(runner.request, runner, runner.preview)
        except EvalstoreError as problem:
            runner.problem = problem
        except Exception as bug:  # noqa: BLE001 - the browser stays alive and says so
            runner.problem = EvalstoreError(f"a bug in evalstore: {bug!r}")
        finally:
            runner.is_over = True
            self._app.call_later(self._show_end, runner)

    def _show_end(self, runner: BackgroundRun) -> None:
        """Show how the run ended, and what it has changed."""
        self._timer.stop()
        self.draw()
        if self.is_leaving:
            self._app.exit()
            return
        is_shown = [page.show_end() for page in self._app.open_pages]
        if not any(is_shown):
            problem = problem_text(runner.problem) if runner.problem else ""
            told = summary_text(runner.end.report) if runner.end else problem
            self._app.notify(told, markup=False, timeout=10)

    def show(self) -> None:
        """Show the progress on a screen of its own."""
        if self.runner and not any(page.runner for page in self._app.open_pages):
            self._app.open("run", self.runner)

    # --- leaving

    def may_leave(self) -> bool:
        """Return whether the browser may end; during a run the user is asked, then it stops."""
        if self.runner is None or self.runner.is_over or self.is_leaving:
            return True
        if not any(page.asks_to_quit for page in self._app.open_pages):
            self._app.open("quit", self.runner)
            return False
        self.is_leaving = True
        if not self.runner.stops:
            self.runner.interrupt()
        self.draw()
        return False

    def leave(self) -> None:
        """End the browser; calls in flight of a run are finished and stored first."""
        if self.runner is None or self.runner.is_over or self.is_leaving:
            self._app.exit()
        else:
            self.is_leaving = True
            self.runner.interrupt()

    def stop(self) -> None:
        """Stop the run after the browser has ended, unless it was awaited before."""
        if self.runner is not None and not self.runner.is_over:
            self.runner.interrupt()


# --- pages with panels: each has a title, and a frame where there is room; the focus has a sign


_FRAMED = 110
"""The width from which on panels have frames, with an empty column on both sides of a text."""
_BROAD = 150
"""The width from which on panels stand side by side."""


class PanelPage(Page):
    """A page that may have panels; in a terminal of few lines they have no titles.

    Those in a container `panels` stand side by side where the page is `-broad`, else below each
    other.
    """

    PANELS: ClassVar[Mapping[str, str]] = {}
    """The titles of the panels, a list and its details, by the ids of their widgets."""
    MARKS: ClassVar[bool] = False
    """Whether lines of the list can be marked."""
    DETAILS: ClassVar[type[TextView]] = TextView
    awaits_list = True
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012
        *Page.HORIZONTAL_BREAKPOINTS,
        (_FRAMED, "-framed"),
        (_BROAD, "-broad"),
    ]
    DEFAULT_CSS = """
    PanelPage {
        & > #panels { height: 1fr; layout: vertical; }
        & > #panels > Grid { height: 1fr; }
        & > #panels > .detail { height: 1fr; }
        &.-broad > #panels { layout: horizontal; }
        &.-broad > #panels > * { width: 1fr; height: 1fr; }
        &.-broad > #panels > Grid { width: auto; min-width: 50%; max-width: 60%; }
        &.-broad > #panels > .detail { margin-left: 1; }
        & .panel {
            border-top: solid $faint;
            border-title-color: $foreground;
            border-title-background: $surface;
            border-title-style: none;
        }
        & .panel:focus {
            border-top: heavy $text-primary;
            border-title-color: $text-primary;
            border-title-style: bold;
        }
        &.-short .panel, &.-tiny .panel { border-top: none; }
        &.-framed.-tall .panel, &.-broad.-tall .panel { border: round $faint; }
        &.-framed.-tall .panel:focus, &.-broad.-tall .panel:focus { border: round $text-primary; }
        &.-framed.-tall TextView.panel, &.-broad.-tall TextView.panel { padding: 0 1; }
    }
    """

    def compose(self) -> ComposeResult:
        """Lay out the list, with the details of the highlighted line below it or at its right."""
        yield TitleLine()
        yield from self.compose_above()
        yield Static(classes="empty", markup=False)
        list_id, details_id = self.PANELS
        with Container(id="panels"):
            yield Grid(id=list_id, marks=self.MARKS)
            yield self.DETAILS(id=details_id).add_class("detail")
        yield KeyFooter()

    def compose_above(self) -> ComposeResult:
        """Lay out what is between the title and the list."""
        yield Static(classes="problem", markup=False)

    @property
    def grid(self) -> Grid:
        """Return the list."""
        return self.query_one(Grid)

    def set_empty(self, text: str) -> None:
        """Show in place of the panels why the list is empty; empty: there is a list."""
        line = self.query_one(".empty", Static)
        line.update(Content(safe(text, lines=True)))
        line.display, self.query_one("#panels").display = bool(text), not text

    @property
    def panel_titles(self) -> Mapping[str, str]:
        """Return the titles of the panels by the ids of widgets; `PANELS` unless they change."""
        return self.PANELS

    def on_mount(self) -> None:
        """Show the titles; Textual calls this and the methods of that name of other classes."""
        self.show_panels()

    @on(events.DescendantFocus)
    @on(events.DescendantBlur)
    def show_panels(self) -> None:
        """Show the title of each panel, with a sign before that of the one with the focus."""
        for id, title in self.panel_titles.items():
            panel = self.query_one(f"#{id}")
            panel.add_class("panel")
            panel.border_title = Content(f" ▸ {title} " if panel.has_focus else f" {title} ")
