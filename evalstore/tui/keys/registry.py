"""Which screens there are and what their keys do, found in the classes themselves."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from textual.binding import Binding
from textual.dom import DOMNode

import evalstore.tui
from evalstore.tui.screens.base import Page


@dataclass(frozen=True, slots=True)
class Action:
    """Something that keys do, and that can be given other keys."""

    id: str
    keys: tuple[str, ...]
    """As Textual names them."""
    description: str
    action: str
    """As Textual writes it."""
    is_shown: bool = False
    """Whether the footer shows it."""


@lru_cache(maxsize=1)
def owners() -> tuple[type[DOMNode], ...]:
    """All classes of the browser that have keys of their own, the general ones first."""
    for module in pkgutil.walk_packages(evalstore.tui.__path__, "evalstore.tui."):
        importlib.import_module(module.name)
    found = dict.fromkeys(node for node in _below(DOMNode) if node.__dict__.get("BINDINGS"))
    return tuple(sorted(found, key=lambda one: len(one.__mro__)))


def _below(parent: type[DOMNode]) -> Iterator[type[DOMNode]]:
    """The classes of this package among those that are derived from one."""
    for node in parent.__subclasses__():
        if node.__module__.startswith("evalstore.tui."):
            yield node
        yield from _below(node)


def pages() -> list[type[Page]]:
    """All screens with a name: the first one, then in the order of their names."""
    owners()
    found = {node for node in _below(Page) if issubclass(node, Page) and node.TITLE}
    return sorted(found, key=lambda one: (bool(one.WAY), (one.TITLE or "").casefold()))


def own_actions(owner: type[DOMNode]) -> list[Action]:
    """What the keys of a class do, without what it inherits."""
    found: dict[str, Action] = {}
    for binding in Binding.make_bindings(owner.__dict__.get("BINDINGS", ())):
        if binding.id:
            keys = found[binding.id].keys if binding.id in found else ()
            found[binding.id] = Action(
                binding.id, (*keys, binding.key), binding.description, binding.action, binding.show
            )
    return list(found.values())


def actions() -> dict[str, Action]:
    """All that can be given other keys, by id."""
    found: dict[str, Action] = {}
    for one in (action for owner in owners() for action in own_actions(owner)):
        found.setdefault(one.id, one)
    return found


def scopes() -> Iterator[list[Action]]:
    """Actions whose keys are heard at the same time: a screen's, one widget's, the program's."""
    from evalstore.tui.app import Browser

    found = owners()
    screens = [node for node in found if issubclass(node, Page)]
    widgets = [node for node in found if not issubclass(node, (Page, Browser))]
    for screen in screens:
        above = [node for node in found if issubclass(screen, node)]
        for widget in widgets:
            heard: list[type[DOMNode]] = [*above, Browser, widget]
            yield [action for owner in heard for action in own_actions(owner)]
