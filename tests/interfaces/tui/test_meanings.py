"""A key has one meaning on all screens, and an action has the same keys wherever it is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import pytest

from evalstore.interfaces.tui.app import PAGES, REGISTRY
from evalstore.interfaces.tui.page_lines import Action, footer_hint, own_actions

_ONE_MEANING = {
    ("escape", "backspace"): (
        "leaves what is in front",
        {"Back", "Cancel", "Close", "Continue", "Continue browsing"},
    ),
    ("enter",): ("does what the line or the question is about", {"Open", "Run", "Show cases"}),
    ("right", "l"): (
        "goes to the right: candidates are columns",
        {"Next column", "Next candidate"},
    ),
    ("left", "h"): ("goes to the left", {"Previous column", "Previous candidate"}),
    ("right_square_bracket",): ("the next of what is shown", {"Next case", "Next table"}),
    ("left_square_bracket",): (
        "the previous of what is shown",
        {"Previous case", "Previous table"},
    ),
    ("n",): ("the next that is wrong or differs", {"Next failure", "Next change"}),
    ("N",): ("the previous that is wrong or differs", {"Previous failure", "Previous change"}),
    ("q",): ("quits, and says what that stops during a run", {"Quit", "Stop it and quit"}),
}
"""Keys whose one meaning has other words where there is more to say."""
_EXCEPTIONS = {
    "space": ("pages down in a text, as in every pager: there is nothing to mark", "Page down"),
    "q": ("closes the help and a list of names, which is what is meant there", "Close"),
}
"""Keys with a second meaning, why, and what it is called."""
OF_INPUTS = {"submit"}
"""Actions of the fields that words are typed in."""
_FORWARD = {
    "n": "N",
    "a": "A",
    "right_square_bracket": "left_square_bracket",
    "right": "left",
    "l": "h",
    "tab": "shift+tab",
}
"""Keys to the next of something, and those to the previous one."""


def all_actions() -> Iterator[Action]:
    for owner in REGISTRY.owners:
        yield from own_actions(owner)


def same_meanings(key: str) -> set[str]:
    same = [words for keys, (_, words) in _ONE_MEANING.items() if key in keys]
    assert len(same) <= 1
    return set().union(*same)


def test_a_key_has_one_meaning_on_all_screens() -> None:
    meanings: dict[str, set[str]] = defaultdict(set)
    for action in all_actions():
        for key in action.keys:
            meanings[key].add(action.description)
    several = {}
    for key, words in meanings.items():
        left = words - {_EXCEPTIONS[key][1]} if key in _EXCEPTIONS else words
        if len(left) > 1 and not left <= same_meanings(key):
            several[key] = left
    assert several == {}


def test_what_is_listed_as_one_meaning_or_as_an_exception_exists() -> None:
    used = {(key, action.description) for action in all_actions() for key in action.keys}
    for keys, (_, words) in _ONE_MEANING.items():
        assert {(keys[0], word) for word in words} <= used
    assert {(key, word) for key, (_, word) in _EXCEPTIONS.items()} <= used


def test_an_action_has_the_same_keys_on_all_screens() -> None:
    keys: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for action in all_actions():
        if action.description not in {"Cancel", "Close", "Run", "Page down"}:
            keys[action.description].add(action.keys)
    assert {name: sets for name, sets in keys.items() if len(sets) > 1} == {}


@pytest.mark.parametrize("owner", REGISTRY.owners, ids=lambda owner: owner.__name__)
def test_what_has_a_next_has_a_previous_with_the_key_that_belongs_to_it(owner: type) -> None:
    keys = {action.description: action.keys for action in own_actions(owner)}
    nexts = {name.removeprefix("Next ") for name in keys if name.startswith("Next ")}
    assert nexts == {name.removeprefix("Previous ") for name in keys if "Previous " in name}
    for name in nexts:
        assert keys[f"Previous {name}"] == tuple(_FORWARD[key] for key in keys[f"Next {name}"])


def test_the_footer_names_an_action_alike_on_all_screens_and_as_the_help_does() -> None:
    names: dict[str, set[str]] = defaultdict(set)
    for hint in (footer_hint(named) for page in PAGES for named in page.FOOTER):
        names[hint.ids[0]].add(hint.words)
        if not (len(hint.ids) > 1 or hint.ids[0] in OF_INPUTS):
            assert REGISTRY.actions[hint.ids[0]].description.startswith(hint.words)
    assert {id: words for id, words in names.items() if len(words) > 1} == {}
