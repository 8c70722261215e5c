"""The lines at the bottom and at the top of a page: its keys, and its title."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple

from rich.cells import cell_len
from textual import events
from textual.binding import ActiveBinding
from textual.content import Content
from textual.keys import format_key
from textual.style import Style
from textual.widgets import Static

from evalstore.core.display import clip, columns_of, pad, safe, steady

_LAST = ("page.back", "help", "quit")
"""Actions that are named last, however little room there is."""


class FooterHint(NamedTuple):
    """Actions that the footer names together, such as the next and the previous case."""

    words: str
    """What they do; empty: the description of the first."""
    ids: tuple[str, ...]


def footer_hint(named: FooterHint | str) -> FooterHint:
    """Return a hint; of the id of an action one with its description."""
    return FooterHint("", (named,)) if isinstance(named, str) else named


class FooterKeys(NamedTuple):
    """The keys of a hint, as they are drawn."""

    id: str
    names: Sequence[str]
    words: str
    bindings: Sequence[ActiveBinding]

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
        named = getattr(self.screen, "FOOTER", ())
        named = named or [id for id, it in active.items() if it.binding.show and id not in _LAST]
        words = getattr(self.screen, "footer_words", {})
        keys: list[FooterKeys] = []
        for hint in map(footer_hint, (*named, *_LAST)):
            if available := [active[id] for id in hint.ids if id in active]:
                own = hint.words or available[0].binding.description
                shown = (it.binding.key_display or key_name(it.binding.key) for it in available)
                text = f" {words.get(hint.ids[0], own)} "
                keys.append(FooterKeys(hint.ids[0], [f" {key}" for key in shown], text, available))
        room, chosen = self.size.width, set()  # the first entry and the ways out have room first
        for number in sorted(range(len(keys)), key=lambda n: n and keys[n].id not in _LAST):
            room -= keys[number].width
            if room < 0:
                break
            chosen.add(number)
        return [key for number, key in enumerate(keys) if number in chosen]

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


# --- names of keys for people


def key_name(key: str) -> str:
    """Name a key as people read it: `ctrl+d`, `?`, `enter`, `↑`."""
    *modifiers, last = key.split("+")
    return "+".join((*modifiers, last if last == "enter" else format_key(last)))


# --- the line at the top of a page: its title, and at its right end the progress of a run


TitlePart = str | tuple[str, str]
"""A part of a title; or the whole of it, and what is shown where the title has no room for that."""


class TitleLine(Static):
    """The title of the page; at its right end, on every page, the progress of a run."""

    def __init__(self) -> None:
        super().__init__(classes="title", markup=False)
        self._text = self._brief = ""

    def show(self, parts: Sequence[TitlePart]) -> None:
        """Show these parts; those that are empty are left out."""
        pairs = [(part, part) if isinstance(part, str) else part for part in parts]
        self._text = " › ".join(steady(safe(text)) for text, _ in pairs if text)
        self._brief = " › ".join(steady(safe(text)) for _, text in pairs if text)
        self.refresh()

    def render(self) -> Content:
        """Draw the whole progress, and the title in the room that is left."""
        progress, room = getattr(self.screen, "run_progress", ""), self.size.width
        if progress:
            room = max(0, room - cell_len(progress) - 2)
        text = clip(self._text if columns_of(self._text) <= room else self._brief, room)
        return Content(f"{pad(text, room)}  {progress}" if progress else text)
