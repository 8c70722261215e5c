"""The lines of a page: its title, and its keys; and the actions of all keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, NamedTuple

from rich.cells import cell_len
from textual import events
from textual.binding import ActiveBinding, Binding
from textual.content import Content
from textual.dom import DOMNode
from textual.keys import format_key
from textual.style import Style
from textual.widgets import Static

from evalstore.core.display import clip, columns_of, pad, safe, steady

READING = "reading …"
"""A part of the title while the page is being read."""
_LAST = ("page.back", "help", "quit")
"""Actions that are named last, however little room there is."""


class FooterHint(NamedTuple):
    """Actions that the footer names together, such as the next and the previous case."""

    words: str
    """What they do; empty: the description of the first."""
    ids: tuple[str, ...]


PENDING = FooterHint("Pending", ("history.status",))


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
        room, chosen = self.size.width + 1, set[int]()  # the line may lack the blank at its end
        # The first entry and the ways out have room first.
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
        self._text = self._brief = READING

    def show(self, parts: Sequence[TitlePart]) -> None:
        """Show these parts; those that are empty are left out."""
        pairs = [(part, part) if isinstance(part, str) else part for part in parts]
        self._text = " › ".join(steady(safe(text)) for text, _ in pairs if text)
        self._brief = " › ".join(steady(safe(text)) for _, text in pairs if text)
        self.refresh()

    def render(self) -> Content:
        """Draw the whole progress, and the title in the room that is left."""
        progress = getattr(self.screen, "run_progress", "")
        room = self.size.width or self.app.size.width  # it is drawn before it has a size
        if progress:
            room = max(0, room - cell_len(progress) - 2)
        text = clip(self._text if columns_of(self._text) <= room else self._brief, room)
        return Content(f"{pad(text, room)}  {progress}" if progress else text)


Owner = type[DOMNode]
_PACKAGE = "evalstore."
"""Classes of Textual have bindings, too, which cannot be changed here."""


@dataclass(frozen=True, slots=True)
class Action:
    """An effect of a key, which can be given other keys."""

    id: str
    keys: tuple[str, ...]
    """As Textual names them."""
    description: str
    action: str
    """As Textual writes it."""


def own_actions(owner: Owner) -> list[Action]:
    """Return the actions of a class, without those that it inherits."""
    actions: dict[str, Action] = {}
    for binding in Binding.make_bindings(owner.__dict__.get("BINDINGS", ())):
        if binding.id:
            keys = actions[binding.id].keys if binding.id in actions else ()
            actions[binding.id] = Action(
                binding.id, (*keys, binding.key), binding.description, binding.action
            )
    return list(actions.values())


def owners_of(node: Owner) -> list[Owner]:
    """Return the class and its bases that have bindings of their own, the general first."""
    return [
        parent
        for parent in reversed(node.__mro__)
        if parent.__module__.startswith(_PACKAGE) and parent.__dict__.get("BINDINGS")
    ]


@dataclass(frozen=True)
class KeyRegistry:
    """All actions of a program with its pages and its other widgets that have the focus."""

    program: Owner
    pages: Sequence[Owner]
    widgets: Sequence[Owner]

    @cached_property
    def owners(self) -> tuple[Owner, ...]:
        """Return all classes that have bindings of their own, the general ones first."""
        classes = (self.program, *self.pages, *self.widgets)
        owners = dict.fromkeys(owner for node in classes for owner in owners_of(node))
        return tuple(sorted(owners, key=lambda owner: len(owner.__mro__)))

    @cached_property
    def actions(self) -> dict[str, Action]:
        """Return all that can be given other keys, by id."""
        actions: dict[str, Action] = {}
        for action in (action for owner in self.owners for action in own_actions(owner)):
            actions.setdefault(action.id, action)
        return actions

    def scopes(self) -> Iterator[list[Action]]:
        """Yield lists of actions whose keys work together: a page's, a widget's, the program's."""
        for page in self.pages:
            for widget in self.widgets:
                owners = [*owners_of(page), self.program, *owners_of(widget)]
                yield [action for owner in owners for action in own_actions(owner)]


@dataclass(frozen=True, slots=True)
class Appearance:
    """The theme and the keys of the browser, all of them known and without conflicts."""

    theme: str | None = None
    keys: Mapping[str, str] = field(default_factory=dict)
