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
    found = dict.fromkeys(one for one in _below(DOMNode) if one.__dict__.get("BINDINGS"))
    return tuple(sorted(found, key=lambda one: len(one.__mro__)))


def _below(parent: type[DOMNode]) -> Iterator[type[DOMNode]]:
    """The classes of this package among those that are derived from one."""
    for one in parent.__subclasses__():
        if one.__module__.startswith("evalstore.tui."):
            yield one
        yield from _below(one)


def pages() -> list[type[Page]]:
    """All screens with a name: the first one, then in the order of their names."""
    owners()
    found = {one for one in _below(Page) if issubclass(one, Page) and one.TITLE}
    return sorted(found, key=lambda one: (bool(one.WAY), (one.TITLE or "").casefold()))


def own_actions(owner: type[DOMNode]) -> list[Action]:
    """What the keys of a class do, without what it inherits."""
    found: dict[str, Action] = {}
    for one in Binding.make_bindings(owner.__dict__.get("BINDINGS", ())):
        if one.id:
            keys = found[one.id].keys if one.id in found else ()
            found[one.id] = Action(one.id, (*keys, one.key), one.description, one.action, one.show)
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
    screens = [one for one in found if issubclass(one, Page)]
    widgets = [one for one in found if not issubclass(one, (Page, Browser))]
    for screen in screens:
        above = [one for one in found if issubclass(screen, one)]
        for widget in widgets:
            heard: list[type[DOMNode]] = [*above, Browser, widget]
            yield [one for owner in heard for one in own_actions(owner)]
