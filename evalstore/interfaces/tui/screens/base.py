"""The base of all screens: title, problems, reading in threads; and the app as they know it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, cast

from textual import on
from textual.app import App
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Static
from textual.widgets._toast import ToastRack
from textual.worker import Worker, WorkerState, get_current_worker

from evalstore.core.display import safe
from evalstore.core.errors import EvalstoreError
from evalstore.interfaces.tui.render.documents.reading import READING, problem_text
from evalstore.interfaces.tui.state.wanted_reading import WantedReading
from evalstore.interfaces.tui.widgets.title_line import TitleLine, TitlePart

if TYPE_CHECKING:
    from evalstore.interfaces.tui.keys.registry import KeyRegistry
    from evalstore.interfaces.tui.state.case_listing import CasePlace
    from evalstore.interfaces.tui.state.data_source import Among, Models, WorkspaceSource
    from evalstore.interfaces.tui.state.navigation import CaseNavigator
    from evalstore.interfaces.tui.widgets.footer import FooterHint
    from evalstore.results.table.case_rows import CaseRow
    from evalstore.runs.interactive_run import PlanPreview, RunRequest


class MessageApp(App[None]):
    """An application whose messages show control characters as escapes."""

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


class MessageScreen(Screen[None]):
    """A screen whose messages go when another one covers it: they say nothing about that one."""

    has_told = False
    """Whether the screen has shown a message since it was covered last."""

    def notify(self, message: str, **options: Any) -> None:
        """Show a message in passing."""
        self.has_told = True
        super().notify(message, **options)

    def on_screen_suspend(self) -> None:
        """Remove the messages of the screen, unless it is left: then they are about the next."""
        if self.has_told and self in self.app.screen_stack:
            self.has_told = False
            self.app.clear_notifications()


T = TypeVar("T")
_ACTION_ID = re.compile(r"\{([a-z_]+(?:\.[a-z_]+)?)\}")
_NEED_ROOM = ("label", "unlabel", "judge_again", "run", "edit")
"""Actions that are not available in a terminal that is too small."""
STORE_CHECKS = "store checks"
"""The group of readings that find out whether the store or files of the workspace have changed."""


class BrowserApp(Protocol):
    """The application as screens know it: its data, its keys, and the way to other screens."""

    problem: EvalstoreError | None
    """Why the store cannot be read at the moment."""
    unsaved_labels: list[str]
    """Labels that could not be stored, until the user was told."""

    def collect_later(self) -> None:
        """Free what a page of cases has left."""

    @property
    def source(self) -> WorkspaceSource:
        """Return the source of the data."""

    @property
    def runs(self) -> RunControl:
        """Return the run that is in progress."""

    @property
    def pages(self) -> Sequence[type[Page]]:
        """Return all screens that help tells about, the first one first."""

    @property
    def registry(self) -> KeyRegistry:
        """Return the actions of all screens and widgets."""

    @property
    def shown_page(self) -> Page | None:
        """Return the page that is shown, also below a dialog."""

    def key_of(self, id: str) -> str:
        """Return the first key of an action, as people read it."""

    def mark_stale(self, page: Page) -> None:
        """Let all other pages read again when they are shown again."""

    def can_leave(self, page: Page) -> bool:
        """Return whether there is a screen below."""

    def go_back(self) -> None:
        """Leave the screen; the first one stays."""

    def go_back_to_case(self, case: CaseRow, model: str) -> None:
        """Leave the screen; a list of cases below it moves its cursor to this case."""

    def show_cases(
        self, revision: str | None, typed: str = "", place: CasePlace | None = None
    ) -> None:
        """Open the cases of a run, or of the workspace; filtered, with the cursor at a place."""

    def show_new_run(self, run: str) -> None:
        """Open the cases of a run that has just ended, in place of those of an older run."""

    def is_above_run(self, page: Page) -> bool:
        """Return whether the screen below a page has the cases of a run."""

    def show_status(self) -> None:
        """Open the pending work."""

    def show_search(self, typed: str = "") -> None:
        """Open the search in all stored texts."""

    def show_answer(self, navigator: CaseNavigator) -> None:
        """Open an answer, at a place among cases."""

    def show_test_history(self, file: str, row: str, model: str = "") -> None:
        """Open the runs at which a test changed, from a candidate's answer."""

    def show_comparison(
        self, was: str | None, now: str | None, models: Models = None, among: Among = None
    ) -> None:
        """Open a run beside a run or the workspace (None), or two candidates of one of them.

        A `PromptPair` is two system prompts in place of candidates; these are compared `among` some
        of the cases, if they are given.
        """

    def show_stats(self, run: str | None) -> None:
        """Open the statistics of a run, or of the workspace."""

    def show_plan(
        self, read: Callable[[], RunRequest], edit: Callable[[int | None], None] | None = None
    ) -> None:
        """Open the plan of a run; `edit` opens the file that was edited, at a line."""


HELP_KEYS = Binding("question_mark,f1", "app.help", "Help", id="help")


class Page(MessageScreen):
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
        & > .title { height: 1; padding: 0 1; background: $panel; text-style: bold; }
        & > .problem { height: auto; max-height: 8; padding: 0 1; color: $text-error; }
        & > .problem { display: none; }
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

    FOOTER: ClassVar[Sequence[FooterHint]] = ()
    """What the footer names, in this order; empty: the actions that are to be shown."""

    @property
    def footer_words(self) -> Mapping[str, str]:
        """Return by the ids of actions what they do at the moment, if their names do not say it."""
        return {}

    search_words = ""
    """The words that a search in all texts begins with."""
    is_stale = False
    """Whether the store or files of the workspace have changed since the page was read."""

    def __init__(self, *, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self._title_parts: tuple[TitlePart, ...] = ()
        self._problems: dict[str, EvalstoreError] = {}
        """By what is read: what went wrong last."""

    @dataclass
    class Fetched(Message):
        """Something that was read has arrived."""

        then: Callable[[Any], None] | None
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

    def title_line(self) -> TitleLine:
        """Return a line at the top."""
        return TitleLine(lambda: self.run_progress)

    @property
    def run_progress(self) -> str:
        """Return the progress of a run for the right end of the title; empty without one."""
        return self.browser.runs.progress_text

    @staticmethod
    def problem_line() -> Static:
        """Return a line for a problem."""
        return Static(classes="problem", markup=False)

    @staticmethod
    def empty_state() -> Static:
        """Return a text in place of an empty list."""
        return Static(classes="empty", markup=False)

    def set_title(self, *parts: TitlePart) -> None:
        """Show these parts as the title."""
        self._title_parts = parts
        self.query_one(TitleLine).show(parts)

    def set_empty(self, text: str) -> None:
        """Show why the list is empty, and which command changes that; empty: there is a list."""
        line = self.query_one(".empty", Static)
        line.update(Content(safe(text, lines=True)))
        line.display = bool(text)

    def with_keys(self, text: str) -> str:
        """Return the text with the ids of actions in braces replaced by their keys."""
        return _ACTION_ID.sub(lambda match: self.browser.key_of(match[1]), text)

    # --- reading

    def fetch(
        self,
        read: Callable[[], T],
        then: Callable[[T], None],
        *,
        group: str = "read",
        writes: bool = False,
    ) -> None:
        """Read in a thread, then show; of one group only the last; others end unless `writes`."""
        reading = WantedReading(read, is_whole=writes)

        def work() -> None:
            worker = get_current_worker()
            try:
                message = self.Fetched(then, reading.carry_out(lambda: worker.is_cancelled), group)
            except EvalstoreError as problem:
                message = self.Fetched(None, problem, group)
            if not worker.is_cancelled:
                self.post_message(message)

        self.run_worker(work, thread=True, exclusive=True, group=group, exit_on_error=False)

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

    @property
    def is_reading(self) -> bool:
        """Return whether what the page shows is being read."""
        return any(
            worker.is_running and worker.group == "read" and worker.node is self
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
            problem = EvalstoreError(f"a bug in evalstore: {message.worker.error!r}")
            self.report_problem(message.worker.group, problem)

    def show_problem(self, problem: EvalstoreError) -> None:
        """Show a problem with its place and its hint; nothing is being read any more."""
        parts = self._title_parts
        self.set_title(*(part for part in parts if not str(part).startswith(READING)))
        line = self.query_one(".problem", Static)
        line.update(Content(safe(problem_text(problem), lines=True)))
        line.display = True

    def warn(self, problem: EvalstoreError | str) -> None:
        """Show in passing that something did not work."""
        text = problem if isinstance(problem, str) else problem_text(problem)
        self.notify(text, severity="warning", markup=False, timeout=10)

    # --- keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action is available; few are on the first or on a small screen."""
        if self.is_small and action in _NEED_ROOM:
            return False
        return action != "back" or self.browser.can_leave(self)

    @property
    def is_small(self) -> bool:
        """Return whether the terminal is too small to show the page."""
        return self.has_class("-tiny") or self.has_class("-slim")

    def reload(self, *, stay: bool = True) -> None:
        """Read again; with `stay` the cursor keeps its place."""

    def refresh_ages(self) -> None:
        """Draw again how long ago something was: a minute has passed."""

    def action_reload(self) -> None:
        """Read again."""
        self.reload()

    def action_back(self) -> None:
        """Leave this screen."""
        self.browser.go_back()


# --- the run of the browser, as screens know it


class RunControl(Protocol):
    """Starts runs, at most one at a time, and says what the screens show of it."""

    is_leaving: bool
    """Whether the browser ends as soon as the run has stopped."""

    @property
    def is_running(self) -> bool:
        """Return whether a run is in progress."""

    @property
    def progress_text(self) -> str:
        """Return the progress in few characters; empty without a run."""

    @property
    def texts(self) -> Sequence[str]:
        """Return what the run does in ever fewer words; empty without a run."""

    def show(self) -> None:
        """Show the progress on a screen of its own."""

    def refuse_second(self) -> bool:
        """Show a message if a run is in progress; returns whether there is one."""

    def begin(self, request: RunRequest, preview: PlanPreview) -> None:
        """Start what was planned, and show its progress."""

    def draw(self) -> None:
        """Draw what all screens show of the run, as it is at this moment."""

    def stay(self) -> None:
        """Keep the browser open when the run has stopped."""
