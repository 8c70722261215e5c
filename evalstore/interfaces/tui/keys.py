"""Actions of the browser, found in the bindings of the classes that are handed in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from textual.binding import Binding
from textual.dom import DOMNode

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
