"""Keys that people choose: how they are written, and what is wrong with them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from textual.keys import Keys, _character_to_key, key_to_character

from evalstore.core.errors import Problem
from evalstore.files.fields import nearest, suggest
from evalstore.interfaces.tui.keys.registry import KeyRegistry
from evalstore.workspace.settings.settings import BrowserSettings

FIXED = ("ctrl+q", "ctrl+c")
"""Keys that cannot be given another meaning, so that everybody gets out."""
_MODIFIERS = ("ctrl", "shift", "alt", "super", "hyper", "meta")
_NAMES = frozenset(key.value for key in Keys if key.value.isalnum())
_KEYS_HINT = "write a character or a name such as ctrl+x, f5, pagedown; several with commas"


@dataclass(frozen=True, slots=True)
class Appearance:
    """The theme and the keys of the browser, all of them known and without conflicts."""

    theme: str | None = None
    keys: Mapping[str, str] = field(default_factory=dict)


def key_problems(
    file: str, shared: BrowserSettings, own: BrowserSettings, registry: KeyRegistry
) -> Iterator[Problem]:
    """Yield unknown actions, names that are not keys, and keys with two meanings."""
    known = registry.actions
    valid: dict[str, tuple[Problem, tuple[str, ...]]] = {}
    for id, text in [*shared.keys.items(), *own.keys.items()]:
        is_own = own.keys.get(id) is text
        line = None if is_own else shared.lines[f"keys.{id}"]
        place = Problem("--key" if is_own else file, "", line)
        keys = normal_keys(text)
        unknown = [key for key in keys if not _is_key(key)]
        fixed = [key for key in keys if key in FIXED]
        if id not in known:
            yield _at(place, f"unknown action '{id}'", suggest(id, known, "actions"))
        elif unknown:
            hint = nearest(unknown[0], _NAMES) or _KEYS_HINT
            yield _at(place, f"'{unknown[0]}' is not a key", hint)
        elif fixed:
            yield _at(place, f"'{fixed[0]}' cannot be reassigned", "it always leaves the screen")
        else:
            valid[id] = place, keys
    yield from _conflicts(valid, registry)


def _conflicts(
    bindings: Mapping[str, tuple[Problem, tuple[str, ...]]], registry: KeyRegistry
) -> Iterator[Problem]:
    reported: set[tuple[str, ...]] = set()
    for scope in registry.scopes():
        for action, other in combinations(scope, 2):
            if action.id == other.id or (action.id not in bindings and other.id not in bindings):
                continue
            keys, other_keys = (
                bindings[it.id][1] if it.id in bindings else it.keys for it in (action, other)
            )
            for key in keys:
                conflict = action.id, other.id, key
                if key in other_keys and conflict not in reported:
                    reported.add(conflict)
                    place = bindings[action.id if action.id in bindings else other.id][0]
                    message = f"the key '{key}' would be '{action.id}' and '{other.id}' at once"
                    yield _at(place, message, "give one of them other keys")


def _at(place: Problem, message: str, hint: str) -> Problem:
    return Problem(place.file, message, place.line, hint=hint)


def normal_keys(keys: str) -> tuple[str, ...]:
    """Convert keys to the names that Textual uses: `?` is `question_mark`."""
    names = []
    for text in keys.split(","):
        *modifiers, key = text.strip().rsplit("+", 1) if len(text.strip()) > 1 else (text.strip(),)
        names.append("+".join((*modifiers, _character_to_key(key) if len(key) == 1 else key)))
    return tuple(dict.fromkeys(names))


def _is_key(name: str) -> bool:
    *modifiers, key = name.split("+")
    if any(modifier not in _MODIFIERS for modifier in modifiers):
        return False
    if modifiers == ["shift"] and len(key) == 1:
        return False
    return key in _NAMES or key_to_character(key) is not None
