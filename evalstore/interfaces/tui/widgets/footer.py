"""The line at the bottom: the keys and their actions, as many as fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple

from rich.cells import cell_len
from textual import events
from textual.binding import ActiveBinding
from textual.content import Content
from textual.keys import format_key
from textual.style import Style
from textual.widgets import Static

_LAST = ("page.back", "help", "quit")
"""Actions that are named last, however little room there is."""


class FooterHint(NamedTuple):
    """Actions that the footer names together, such as the next and the previous case."""

    words: str
    """What they do; empty: the description of the first."""
    first: str
    """The id of an action."""
    second: str = ""
    others: tuple[str, ...] = ()
    """The ids of more actions."""

    @property
    def ids(self) -> tuple[str, ...]:
        """Return the actions."""
        return tuple(id for id in (self.first, self.second, *self.others) if id)


class FooterKeys(NamedTuple):
    """The keys of a hint, as they are drawn."""

    id: str
    names: Sequence[str]
    words: str
    bindings: Sequence[ActiveBinding]

    @classmethod
    def of(cls, hint: FooterHint, active: Mapping[str, ActiveBinding]) -> FooterKeys | None:
        """Return the keys of the hint's actions that are available; None if none is."""
        bindings = [active[id] for id in hint.ids if id in active]
        if not bindings:
            return None
        names = [f" {it.binding.key_display or key_name(it.binding.key)}" for it in bindings]
        words = hint.words or bindings[0].binding.description
        return cls(hint.first, names, f" {words} ", bindings)

    @property
    def width(self) -> int:
        """Return the width in columns."""
        return sum(map(cell_len, (*self.names, self.words)))


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
    def keys(self) -> list[FooterKeys]:
        """Return the keys that are named: first the purpose of the page, last the ways out."""
        active: dict[str, ActiveBinding] = {}
        bindings = self.screen.active_bindings.values()
        for binding in sorted(bindings, key=lambda it: not it.binding.show):
            if binding.binding.description:
                active.setdefault(binding.binding.id or binding.binding.action, binding)
        hints = getattr(self.screen, "FOOTER", ())
        own = [FooterHint("", id) for id, it in active.items() if it.binding.show]
        chosen = [hint for hint in hints or own if not {*_LAST} & {*hint.ids}]
        words = getattr(self.screen, "footer_words", {})
        ordered = (*chosen, *(FooterHint("", id) for id in _LAST))
        ordered = tuple(hint._replace(words=words.get(hint.first, hint.words)) for hint in ordered)
        keys = [FooterKeys.of(hint, active) for hint in ordered]
        return _fit([key for key in keys if key], self.size.width)

    def render(self) -> Content:
        """Draw all keys on one line."""
        return Content("").join(part for keys in self.keys for part in self._parts(keys))

    def _parts(self, keys: FooterKeys) -> Iterator[Content]:
        for number, binding in enumerate(keys.bindings):
            pressed = Style.from_meta({"key": binding.binding.key})
            yield Content.styled(keys.names[number], self._KEY_STYLE).stylize(pressed)
        yield Content(keys.words).stylize(pressed)

    def on_click(self, event: events.Click) -> None:
        """Press the key that is under the mouse."""
        key = event.style.meta.get("key")
        if key:
            self.app.simulate_key(key)


def _fit(keys: Sequence[FooterKeys], width: int) -> list[FooterKeys]:
    """Choose whole entries that fit, in their order; the first and the ways out come first."""
    room = width
    chosen = set()
    for number in sorted(range(len(keys)), key=lambda n: n and keys[n].id not in _LAST):
        if keys[number].width > room:
            break
        room -= keys[number].width
        chosen.add(number)
    return [key for number, key in enumerate(keys) if number in chosen]


# --- names of keys for people


def key_name(key: str) -> str:
    """Name a key as people read it: `ctrl+d`, `?`, `enter`, `↑`."""
    *modifiers, last = key.split("+")
    return "+".join((*modifiers, last if last == "enter" else format_key(last)))
