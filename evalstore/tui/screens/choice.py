"""One of a few names, chosen in a box above the screen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from evalstore.display import safe
from evalstore.tui.screens.base import HELP_KEYS
from evalstore.tui.widgets.grid import Grid, StyledCell
from evalstore.tui.widgets.grid_columns import Column

if TYPE_CHECKING:
    from textual.app import ComposeResult


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
        & Grid { height: auto; max-height: 14; }
    }
    """
    TITLE = "A choice"
    HELP = "One of these names is asked for."
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,backspace,q", "dismiss(None)", "Back", id="choice.back"),
        HELP_KEYS,
    ]

    def __init__(self, title: str, names: Sequence[str]) -> None:
        super().__init__()
        self._title = title
        self._names = names

    def compose(self) -> ComposeResult:
        """The names below what they are for."""
        with Vertical():
            yield Static(Content(safe(self._title)))
            yield Grid(id="names")

    def on_mount(self) -> None:
        """Show them."""
        grid = self.query_one(Grid)
        grid.styles.height = min(len(self._names) + 1, 14)
        grid.show((Column("", 10, grows=True),), len(self._names), self._cells)
        grid.focus()

    def _cells(self, row: int) -> Sequence[StyledCell]:
        return (StyledCell(self._names[row]),)

    @on(Grid.Chosen)
    def choose(self, message: Grid.Chosen) -> None:
        """This one."""
        self.dismiss(self._names[message.row])
