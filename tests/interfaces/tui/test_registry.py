"""The actions of the browser: nothing that has keys is left out."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

from textual.dom import DOMNode

import evalstore.interfaces.tui
from evalstore.interfaces.tui.app import PAGES, REGISTRY
from evalstore.interfaces.tui.screens.base import Page


def classes_below(parent: type[DOMNode]) -> Iterator[type[DOMNode]]:
    for node in parent.__subclasses__():
        if node.__module__.startswith("evalstore.interfaces.tui."):
            yield node
        yield from classes_below(node)


def all_classes() -> set[type[DOMNode]]:
    for module in pkgutil.walk_packages(
        evalstore.interfaces.tui.__path__, "evalstore.interfaces.tui."
    ):
        importlib.import_module(module.name)
    return set(classes_below(DOMNode))


def test_every_class_with_keys_of_its_own_is_registered() -> None:
    assert {node for node in all_classes() if node.__dict__.get("BINDINGS")} == set(REGISTRY.owners)


def test_every_screen_with_a_title_is_a_page_the_first_one_first_then_by_titles() -> None:
    pages = {node for node in all_classes() if issubclass(node, Page) and node.TITLE}
    assert pages == set(PAGES)
    titles = [page.TITLE or "" for page in PAGES if page.WAY]
    assert titles == sorted(titles, key=str.casefold)
    assert [page for page in PAGES if not page.WAY] == [PAGES[0]]
