"""The line at the bottom: the keys and their actions, as many as fit."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from textual.binding import Binding
from textual.content import Content
from textual.style import Style
from textual.widgets import Static

from evalstore.tui.widgets.key_names import key_name

if TYPE_CHECKING:
    from textual import events
    from textual.binding import ActiveBinding

_FIRST = ("help", "quit", "page.back")
"""Actions that are named before all others when there is little room."""
_MORE_FROM = 100
"""From so many columns on, keys that are not worth knowing first are named, too."""


class KeyFooter(Static):
    """Names the keys that are worth knowing here; a click on one presses it.

    One line that is painted instead of a widget for each key: pages open the quicker for it.
    """

    DEFAULT_CSS = """
    KeyFooter {
        dock: bottom;
        height: 1;
        color: $footer-description-foreground;
        background: $footer-background;
    }
    """
    _KEY_STYLE: ClassVar[str] = "bold $footer-key-foreground"

    def on_mount(self) -> None:
        """Follow what can be done."""
        self.screen.bindings_updated_signal.subscribe(self, lambda _: self.refresh())

    @property
    def keys(self) -> list[ActiveBinding]:
        """The keys that are named, one for each action."""
        shown: dict[str, ActiveBinding] = {}
        more: dict[str, ActiveBinding] = {}
        for active in self.screen.active_bindings.values():
            if active.binding.description:
                named = shown if active.binding.show else more
                named.setdefault(active.binding.action, active)
        width = self.size.width
        fitting = _fit([*shown.values()], width)
        if len(fitting) == len(shown) and width >= _MORE_FROM:
            known = {*shown, *more}
            others = [active for action, active in more.items() if not _is_back(action, known)]
            fitting += _fill(self._page_keys(others), width - sum(map(_width, fitting)))
        return fitting

    def _page_keys(self, keys: Sequence[ActiveBinding]) -> list[ActiveBinding]:
        """Those that are the page's, first those that no other page has."""
        ids = [
            binding.id
            for owner in type(self.screen).__mro__
            for binding in owner.__dict__.get("BINDINGS", ())
            if isinstance(binding, Binding) and binding.id
        ]
        own = [key for key in keys if key.node is self.screen and key.binding.id in ids]
        return sorted(own, key=lambda key: ids.index(key.binding.id or ""))

    def render(self) -> Content:
        """All on one line; what cannot be done at the moment is dim."""
        return Content("").join(part for key in self.keys for part in self._parts(key))

    def _parts(self, binding: ActiveBinding) -> Iterator[Content]:
        pressed = Style.from_meta({"key": binding.binding.key})
        dim = "" if binding.enabled else " dim"
        key, words = _texts(binding)
        yield Content.styled(key, f"{self._KEY_STYLE}{dim}").stylize(pressed)
        yield Content.styled(words, dim.strip()).stylize(pressed)

    def on_click(self, event: events.Click) -> None:
        """Press the key that is under the mouse."""
        key = event.style.meta.get("key")
        if key:
            self.app.simulate_key(key)


def _texts(binding: ActiveBinding) -> tuple[str, str]:
    return (
        f" {binding.binding.key_display or key_name(binding.binding.key)}",
        f" {binding.binding.description} ",
    )


def _width(binding: ActiveBinding) -> int:
    return sum(map(cell_len, _texts(binding)))


def _is_back(action: str, known: Collection[str]) -> bool:
    """Whether it is the way back of another one, as `failure(-1)` is: that can be guessed."""
    return action.endswith("(-1)") and action.replace("(-1)", "(1)") in known


def _fit(keys: Sequence[ActiveBinding], width: int) -> list[ActiveBinding]:
    """As many as there is room for, whole, in their order; the ways out and the help first."""
    room = width
    chosen = set()
    for key in sorted(keys, key=lambda it: it.binding.id not in _FIRST):
        if _width(key) > room:
            break
        room -= _width(key)
        chosen.add(key.binding.action)
    return [key for key in keys if key.binding.action in chosen]


def _fill(keys: Sequence[ActiveBinding], room: int) -> Iterator[ActiveBinding]:
    """Those that fit into the room that is left."""
    for key in keys:
        if _width(key) <= room:
            room -= _width(key)
            yield key
