"""What all screens share: a title, a place for what went wrong, reading beside the screen."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from rich.cells import cell_len
from textual import on
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Static
from textual.worker import Worker, WorkerState, get_current_worker

from evalstore.display import clip, pad, safe
from evalstore.errors import EvalstoreError
from evalstore.tui.render.run import words_of

if TYPE_CHECKING:
    from evalstore.tui.app import Browser
    from evalstore.tui.state.data_source import DataSource

T = TypeVar("T")
_NAMED = re.compile(r"\{([a-z_]+(?:\.[a-z_]+)?)\}")
READING = "reading …"
"""A part of the title."""
_UNSEEN = ("label", "unlabel", "judge_again", "run", "edit")
"""Actions that are not taken in a terminal that is too small."""
LOOK = "look"
"""The group of looking whether somebody has written to the store."""


class TitleLine(Static):
    """Where the reader is; at the right end, in every place, how far a run is."""

    where = ""
    """What the page says."""

    @property
    def going(self) -> str:
        """How far a run is; empty when none goes, and on the page that tells it anyway."""
        assert isinstance(self.screen, Page)
        return self.screen.going

    def render(self) -> Content:
        """What goes on is seen whole, the rest has the room that is left."""
        going = self.going
        if not going:
            return Content(self.where)
        room = max(0, self.size.width - cell_len(going) - 2)
        return Content(f"{pad(clip(self.where, room), room)}  {going}")


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
        layers: default over;
        & > .title { height: 1; padding: 0 1; background: $panel; text-style: bold; }
        & > .problem { height: auto; max-height: 8; padding: 0 1; color: $text-error; }
        & > .problem { display: none; }
        & > .empty { height: 1fr; content-align: center middle; color: $text-muted; display: none; }
        &.-short .detail, &.-tiny .detail, & .gone { display: none; }
        & > .small { layer: over; width: 100%; height: 100%; display: none; }
        & > .small { background: $surface; color: $text-warning; }
        &.-tiny > .small, &.-slim > .small { display: block; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,backspace", "back", "Back", id="page.back"),
        Binding("r", "reload", "Reload", show=False, id="page.reload"),
        HELP_KEYS,
    ]

    is_stale = False
    """Whether somebody has written to the store since the page was read."""

    def __init__(self, *, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self._heading: tuple[str, ...] = ()
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
    def source(self) -> DataSource:
        """Where what is shown comes from."""
        return self.browser.source

    @property
    def browser(self) -> Browser:
        """The program."""
        from evalstore.tui.app import Browser

        assert isinstance(self.app, Browser)
        return self.app

    def on_mount(self) -> None:
        """Have at hand what is said when the terminal is too small; of screens also this is run."""
        self.mount(Static("too small: 20x6 or more", classes="small", markup=False))

    # --- the parts of a page

    @staticmethod
    def title_line() -> TitleLine:
        """A line at the top."""
        return TitleLine(classes="title", markup=False)

    @property
    def going(self) -> str:
        """The right end of the title: the progress of a run in the background."""
        return self.browser.runs.going

    @staticmethod
    def problem_line() -> Static:
        """Where it is said what went wrong."""
        return Static(classes="problem", markup=False)

    @staticmethod
    def empty_state() -> Static:
        """What is shown instead of an empty list."""
        return Static(classes="empty", markup=False)

    def set_title(self, *parts: str) -> None:
        """Say where the reader is."""
        self._heading = parts
        line = self.query_one(TitleLine)
        line.where = " › ".join(safe(part) for part in parts if part)
        line.refresh()

    def set_empty(self, text: str) -> None:
        """Say why there is nothing, and which command changes that; or nothing."""
        found = self.query_one(".empty", Static)
        found.update(Content(safe(text, lines=True)))
        found.display = bool(text)

    def with_keys(self, text: str) -> str:
        """The text with the ids of actions in braces replaced by their keys."""
        return _NAMED.sub(lambda found: self.browser.key_of(found[1]), text)

    # --- reading

    def fetch(
        self, read: Callable[[], T], then: Callable[[T], None], *, group: str = "read"
    ) -> None:
        """Read in a thread, then show; of one group only what was wanted last is shown."""

        def work() -> None:
            worker = get_current_worker()
            try:
                value = read()
            except EvalstoreError as problem:
                if not worker.is_cancelled:
                    self.post_message(self.Fetched(None, problem, group))
            else:
                if not worker.is_cancelled:
                    self.post_message(self.Fetched(then, value, group))

        self.run_worker(work, thread=True, exclusive=True, group=group, exit_on_error=False)

    def on_screen_resume(self) -> None:
        """Take the size of the terminal, and what was stored, while another page was above."""
        size = self.app.size
        before = self.classes
        for cells, steps in (
            (size.width, self.HORIZONTAL_BREAKPOINTS),
            (size.height, self.VERTICAL_BREAKPOINTS),
        ):
            fitting = max(step for step in steps if step[0] <= cells)
            for step in steps:
                self.set_class(step == fitting, step[1], update=False)
        if self.classes != before:
            self.update_node_styles()
        if self.browser.problem:
            self.fail(LOOK, self.browser.problem)
        if self.is_stale:
            self.is_stale = False
            self.reload()

    @property
    def is_reading(self) -> bool:
        """Whether what the page shows is being read."""
        return any(
            worker.is_running and worker.group == "read" and worker.node is self
            for worker in self.workers
        )

    @on(Fetched)
    def show_fetched(self, message: Fetched) -> None:
        """Show what has come; a problem stays until what it was about has been read."""
        if message.then is None:
            self.fail(message.group, message.value)
        else:
            self.mend(message.group)
            message.then(message.value)

    def fail(self, group: str, problem: EvalstoreError) -> None:
        """Say what went wrong with the reading of a group, until `mend` of it."""
        self._problems[group] = problem
        self.show_problem(problem)

    def mend(self, group: str) -> None:
        """What went wrong there is over; all is when the page itself has been read again."""
        over = [problem for problem in self._problems if group in (problem, "read")]
        for one in over:
            del self._problems[one]
        if over:
            left = next(reversed(self._problems.values()), None)
            if left:
                self.show_problem(left)
            else:
                self.query_one(".problem", Static).display = False

    @on(Worker.StateChanged)
    def report_bug(self, message: Worker.StateChanged) -> None:
        """A reading that ends in any other way is a bug: say so and stay alive."""
        if message.state is WorkerState.ERROR:
            problem = message.worker.error
            self.fail(message.worker.group, EvalstoreError(f"a bug in evalstore: {problem!r}"))

    def show_problem(self, problem: EvalstoreError) -> None:
        """Say what went wrong, with its place and what helps; it is not being read any more."""
        self.set_title(*(part for part in self._heading if part != READING))
        found = self.query_one(".problem", Static)
        found.update(Content(safe(words_of(problem), lines=True)))
        found.display = True

    # --- keys

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The first screen cannot be left; what cannot be seen is not acted on."""
        if self.is_small and action in _UNSEEN:
            return False
        return action != "back" or self.browser.can_leave(self)

    @property
    def is_small(self) -> bool:
        """Whether the terminal is too small to show the page."""
        return self.has_class("-tiny") or self.has_class("-slim")

    def reload(self, *, stay: bool = True) -> None:
        """Read again; with `stay` the cursor keeps its place."""

    def action_reload(self) -> None:
        """Read again."""
        self.reload()

    def action_back(self) -> None:
        """Leave this screen."""
        self.browser.go_back()
