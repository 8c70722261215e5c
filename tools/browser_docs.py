"""Writes the tables of docs/browser.md from the keys and themes of the browser."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from textual.theme import BUILTIN_THEMES

from evalstore.files.atomic_write import write_whole
from evalstore.interfaces.tui.app import PAGES, REGISTRY, Browser
from evalstore.interfaces.tui.case_filter import EXAMPLES
from evalstore.interfaces.tui.grid import Grid
from evalstore.interfaces.tui.page_lines import Action, key_name, own_actions
from evalstore.interfaces.tui.screens.actions import ActionsPage, CaseActionsPage, DatedPage
from evalstore.interfaces.tui.screens.base import Page
from evalstore.interfaces.tui.screens.dialogs import paragraphs
from evalstore.interfaces.tui.text_view import TextView

PAGE = Path(__file__).parent.parent / "docs/browser.md"
_SHARED = {
    "Everywhere": (Page, Browser),
    "Where there is something to run, copy or save": (ActionsPage,),
    "Where there are answers": (CaseActionsPage, DatedPage),
    "In a list": (Grid,),
    "In a text": (TextView,),
}
IN_ORDER_OF_USE = (
    "Runs",
    "Cases",
    "Answer",
    "Versions",
    "Comparison",
    "Statistics",
    "Search",
    "Pending work",
    "Plan of a run",
    "Run in progress",
    "Quit during a run",
    "Help",
)
"""The titles of the screens as a user meets them; screens that are not listed come last."""


def screens_in_order() -> list[type[Page]]:
    """The screens of the browser in the order of use."""
    places = {title: number for number, title in enumerate(IN_ORDER_OF_USE)}
    return sorted(PAGES, key=lambda page: places.get(page.TITLE or "", len(places)))


def lists() -> Iterator[tuple[str, list[Action]]]:
    """The title of each list and its actions; each action once."""
    listed: set[str] = set()

    def new(actions: Iterable[Action]) -> list[Action]:
        fresh = [action for action in actions if action.id not in listed]
        listed.update(action.id for action in fresh)
        return fresh

    for title, classes in _SHARED.items():
        yield title, new(action for owner in classes for action in own_actions(owner))
    for page in screens_in_order():
        if fresh := new(own_actions(page)):
            yield page.TITLE or "", fresh
    if rest := new(action for owner in REGISTRY.owners for action in own_actions(owner)):
        yield "In a question", rest


def keys() -> str:
    """All keys as Markdown: each with what it does and the name of its action."""
    parts = []
    for title, actions in lists():
        parts.append(f"### {title}\n\n")
        parts += [
            f"- {', '.join(f'`{key_name(key)}`' for key in action.keys)} "
            f"{action.description[:1].upper() + action.description[1:]} (`{action.id}`)\n"
            for action in actions
        ]
        parts.append("\n")
    return "".join(parts)


def screens() -> str:
    """A table of the screens: what each shows, in a sentence, and the keys that lead to it."""
    named = {id: key_name(action.keys[0]) for id, action in REGISTRY.actions.items()}

    def with_keys(text: str) -> str:
        return re.sub(r"\{([a-z_.]+)\}", lambda match: f"`{named[match[1]]}`", text)

    rows = []
    for page in screens_in_order():
        shows = _first_sentence(next(paragraphs(with_keys(page.HELP or ""))))
        way = with_keys(page.WAY) or "`evalstore view` begins with it"
        rows.append(f"| {page.TITLE} | {shows} | {way} |\n")
    return "| screen | what it shows | the way there |\n|---|---|---|\n" + "".join(rows)


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[.])\s", text, maxsplit=1)[0]


def filters() -> str:
    """A table of what a filter of the cases may have."""
    rows = "".join(f"| `{typed}` | {meaning} |\n" for typed, meaning in EXAMPLES.items())
    return f"| what is typed | what matches |\n|---|---|\n{rows}"


def themes() -> str:
    """The names of the themes."""
    return ", ".join(f"`{name}`" for name in sorted(BUILTIN_THEMES)) + ".\n"


def made(text: str) -> str:
    """The page with its generated parts replaced."""
    parts = {"screens": screens(), "filters": filters(), "keys": keys(), "themes": themes()}
    for name, part in parts.items():
        begin, end = f"<!-- made: {name} -->\n", f"<!-- end: {name} -->"
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}\n{part.strip()}\n\n{end}{rest.partition(end)[2]}"
    return text


if __name__ == "__main__":
    text = made(PAGE.read_text(encoding="utf-8"))
    if sys.argv[1:] == ["--print"]:
        sys.stdout.write(text)
    else:
        write_whole(PAGE, text.encode())
