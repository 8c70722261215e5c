"""The theme and the keys that people choose: in the settings, and their own over those."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from textual.keys import Keys, _character_to_key, key_to_character
from textual.theme import BUILTIN_THEMES

from evalstore.core.errors import EvalstoreError, Problem, WorkspaceError
from evalstore.files.fields import nearest, suggest
from evalstore.interfaces.tui.page_lines import Appearance, KeyRegistry
from evalstore.planning.options import Location
from evalstore.workspace.settings.settings import BrowserSettings, browser_settings


def read_appearance(location: Location, theme: str | None, keys: Sequence[str]) -> Appearance:
    """Read the settings, and over them a person's own theme and keys (`ID=KEYS`).

    Settings that cannot be read are left out here: the screens show what is wrong with them.
    Raises `EvalstoreError` when the theme or a key is unknown, or a key has two meanings.
    """
    file, shared = browser_settings(location.directory, location.config)
    chosen: dict[str, str] = {}
    for option in keys:
        id, equals, text = option.partition("=")
        if not equals or not text:
            raise EvalstoreError(
                f"'--key {option}' names no keys", hint="as in --key history.compare=D,f4"
            )
        chosen[id.strip()] = text
    if problems := list(find_problems(file, shared, BrowserSettings(theme, chosen))):
        if own := next((problem for problem in problems if problem.line is None), None):
            raise EvalstoreError(f"{own.file}: {own.message}", hint=own.hint)
        raise WorkspaceError(problems)
    return Appearance(
        theme or shared.theme,
        {id: ",".join(normal_keys(text)) for id, text in {**shared.keys, **chosen}.items()},
    )


def find_problems(
    file: str, shared: BrowserSettings, own: BrowserSettings | None = None
) -> Iterator[Problem]:
    """Yield unknown themes and actions, names that are not keys, and keys with two meanings."""
    own = own or BrowserSettings()
    for theme, place in ((shared.theme, file), (own.theme, "--theme")):
        if theme is not None and theme not in BUILTIN_THEMES:
            line = shared.lines.get("theme") if place == file else None
            hint = suggest(theme, BUILTIN_THEMES, "themes")
            yield Problem(place, f"unknown theme '{theme}'", line, hint=hint)
    if shared.keys or own.keys:
        from evalstore.interfaces.tui.app import REGISTRY  # which loads all screens

        yield from key_problems(file, shared, own, REGISTRY)


# --- keys that people choose: how they are written, and what is wrong with them


FIXED = ("ctrl+q", "ctrl+c")
"""Keys that cannot be given another meaning, so that everybody gets out."""
_MODIFIERS = ("ctrl", "shift", "alt", "super", "hyper", "meta")
_NAMES = frozenset(key.value for key in Keys if key.value.isalnum())
_KEYS_HINT = "write a character or a name such as ctrl+x, f5, pagedown; several with commas"


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
            yield replace(
                place, message=f"unknown action '{id}'", hint=suggest(id, known, "actions")
            )
        elif unknown:
            hint = nearest(unknown[0], _NAMES) or _KEYS_HINT
            yield replace(place, message=f"'{unknown[0]}' is not a key", hint=hint)
        elif fixed:
            yield replace(
                place,
                message=f"'{fixed[0]}' cannot be reassigned",
                hint="it always leaves the screen",
            )
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
                    yield replace(place, message=message, hint="give one of them other keys")


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
