"""Small windows above a page: a text with keys, a prompt for a line of text, a choice of names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from evalstore.core.display import StyledLine, safe, text_lines
from evalstore.core.errors import EvalstoreError
from evalstore.interfaces.tui.render.verdicts import problem_text
from evalstore.interfaces.tui.screens.base import HELP_KEYS, Page
from evalstore.interfaces.tui.state.background_run import BackgroundRun
from evalstore.interfaces.tui.widgets.footer import KeyFooter, TitleLine
from evalstore.interfaces.tui.widgets.grid import Grid
from evalstore.interfaces.tui.widgets.grid_columns import Column, StyledCell
from evalstore.interfaces.tui.widgets.text_view import TextView
from evalstore.interfaces.tui.widgets.typed_line import TypedLine

_FRAME_LINES = 5
"""Lines of a window that are not its text: the border, the title, a blank one, the keys."""


class Dialog(Page, ModalScreen[None]):
    """A text above the page below, with keys to answer it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "app.quit", "Quit", show=False, id="quit")
    ]
    DEFAULT_CSS = """
    Dialog {
        align: center bottom;
        & > #box { height: auto; }
        & > #box { border: round $primary; background: $surface; }
        & TextView { height: auto; margin-bottom: 1; }
        &.-short > #box { height: 100%; border: none; }
        &.-short TextView { height: 1fr; margin-bottom: 0; }
    }
    """

    is_planning = False
    """Whether it reads the whole workspace: pages below it wait for that."""

    def compose(self) -> ComposeResult:
        """Lay out a title, a line for problems, and the text."""
        with Vertical(id="box"):
            yield TitleLine()
            yield self.problem_line()
            yield TextView(id="body")
            yield KeyFooter()

    def on_resize(self) -> None:
        """Make the window as high as its text, but leave some of the page below it."""
        height = self.size.height
        is_short = height < self.VERTICAL_BREAKPOINTS[-1][0]
        self.body.styles.max_height = None if is_short else height * 6 // 10 - _FRAME_LINES

    @property
    def body(self) -> TextView:
        """Return the text of the window."""
        return self.query_one("#body", TextView)


class PromptDialog(ModalScreen[str | None]):
    """Asks for a line of text; Escape is not an answer, an empty one is.

    With `do` the text is tried on Enter; a problem with it is shown in the prompt.
    """

    TITLE = "A question"
    HELP = "What you type is used as it is."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Cancel", id="prompt.leave"),
        HELP_KEYS,
    ]
    DEFAULT_CSS = """
    PromptDialog {
        align: center bottom;
        & > Vertical { height: auto; border: round $primary; background: $surface; }
        & Static { height: auto; padding: 0 1; }
        & Input.-textual-compact { padding: 0 1; }
        & .title { text-style: bold; }
        & .hint { color: $faint; }
        & .problem { color: $text-error; display: none; }
        & > ToastRack { dock: top; }
    }
    """

    def __init__(
        self,
        title: str,
        hint: str,
        *,
        text: str = "",
        placeholder: str = "",
        do: Callable[[str], object] | None = None,
        waits: bool = False,
    ) -> None:
        """`do` may raise `EvalstoreError`, and the prompt stays open.

        `waits`: the text is still being read, and nothing is answered before `fill`.
        """
        super().__init__()
        self._do = do
        self._title, self._hint = title, hint
        self._text, self._placeholder = text, placeholder
        self._waits, self._is_entered = waits, False

    def compose(self) -> ComposeResult:
        """Lay out the question, the line, and what the keys do."""
        with Vertical():
            yield Static(Content(safe(self._title)), classes="title", markup=False)
            yield TypedLine(
                self._text, placeholder=self._placeholder, select_on_focus=False, compact=True
            )
            yield Static(classes="problem", markup=False)
            yield Static(Content(safe(self._hint)), classes="hint", markup=False)

    def fill(self, text: str) -> None:
        """Put a text into the line, unless something was typed by then."""
        line = self.query_one(Input)
        if not line.value:
            line.value = safe(" ".join(text.split()))
            line.cursor_position = len(line.value)
        self._waits = False
        if self._is_entered:
            self.dismiss(line.value)

    def on_input_submitted(self, message: Input.Submitted) -> None:
        """Take what was typed."""
        if self._waits:
            self._is_entered = True
            return
        text = message.value or message.input.value  # it may have been filled since
        try:
            if self._do:
                self._do(text)
        except EvalstoreError as problem:
            line = self.query_one(".problem", Static)
            line.update(Content(safe(problem_text(problem), lines=True)))
            line.display = True
        else:
            self.dismiss(text)


class Choice(ModalScreen[str | None]):
    """Asks for one of these names; Escape is none of them."""

    DEFAULT_CSS = """
    Choice {
        align: center middle;
        & > Vertical {
            width: 60; max-width: 100%; height: auto; max-height: 100%;
            border: round $accent; background: $surface;
        }
        & Static { height: 1; padding: 0 1; text-style: bold; }
        & Static { text-wrap: nowrap; text-overflow: ellipsis; }
        & Grid { height: auto; max-height: 14; }
    }
    """
    TITLE = "A choice"
    HELP = "Choose one of these names."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,backspace", "dismiss(None)", "Back", id="choice.back"),
        Binding("q", "dismiss(None)", "Close", show=False, id="choice.close"),
        HELP_KEYS,
    ]

    def __init__(self, title: str, names: Sequence[str]) -> None:
        super().__init__()
        self._title = title
        self._names = names

    def compose(self) -> ComposeResult:
        """Lay out the names below what they are for."""
        with Vertical():
            yield Static(Content(safe(self._title)))
            yield Grid(id="names")

    def on_mount(self) -> None:
        """Show them."""
        grid = self.query_one(Grid)
        grid.styles.height = min(len(self._names) + 1, 14)
        cells = [(StyledCell(name),) for name in self._names]
        grid.show((Column("", 10, grows=True),), len(cells), cells.__getitem__)
        grid.focus()

    @on(Grid.Chosen)
    def choose(self, message: Grid.Chosen) -> None:
        """Close the dialog with the chosen name."""
        self.dismiss(self._names[message.row])


class QuitConfirmation(Dialog):
    """How far the run is, and what quitting would do with it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,backspace", "back", "Continue", id="page.back"),
        Binding("q", "app.quit", "Stop it and quit", id="quit"),
    ]
    TITLE = "Quit during a run"
    WAY = "{quit} during a run"
    HELP = """\
{quit} asks before it quits during a run. {quit} again stops the run, waits for the calls that have
begun, stores their answers and quits; a third time it quits at once. {page.back} continues the run.
"""

    runner: BackgroundRun
    asks_to_quit = True

    def __init__(self, runner: BackgroundRun) -> None:
        super().__init__()
        self.runner = runner

    def on_mount(self) -> None:
        """Show the progress; from now on it is drawn with that of all other screens."""
        self.body.focus()
        self.show_progress()

    def reload(self) -> None:
        """Draw again."""
        self.show_progress()

    def show_progress(self) -> None:
        """Show the progress, as far as all screens show it, and what quitting would do."""
        self.set_title("quit")
        self.body.show(self._lines(), stay=True)
        self._make_room()

    def on_resize(self) -> None:
        """Stand above the progress of the run again; Textual calls the base class's, too."""
        self.call_after_refresh(self._make_room)

    def _make_room(self) -> None:
        """Stand above a window that is open below this one, where there is room for both."""
        below = next(iter(self.app.screen_stack[-2:-1]), None)
        height = 0
        if isinstance(below, Dialog) and below is not self:
            height = below.query_one("#box").outer_size.height
        box = self.query_one("#box")
        has_room = height + box.outer_size.height < self.size.height
        box.styles.margin = (0, 0, height if has_room else 0, 0)

    def _lines(self) -> Iterator[StyledLine]:
        key = self.browser.key_of("quit")
        shown = self.runner.shown
        done, total = shown.counts
        progress = f"{done:,} of {total:,} are done" if shown.is_planned else "it is planned"
        if self.runner.is_over:
            yield from text_lines(f"The run has ended meanwhile. {key} quits.")
        elif self.browser.runs.is_leaving:
            yield from text_lines(f"The run is being stopped: {progress}.")
            yield from text_lines(
                "Calls that have begun are finished and stored, then the browser quits; "
                f"{key} once more quits at once."
            )
        else:
            back = self.browser.key_of("page.back")
            yield from text_lines(f"A run is in progress: {progress}.")
            yield from text_lines(
                f"{key} again stops it and quits; what was answered is kept. "
                f"{back} continues the run."
            )

    def action_back(self) -> None:
        """Keep the browser open; a run that is being stopped still ends."""
        self.browser.runs.is_leaving = False
        self.app.pop_screen()
