"""Keys and themes that people choose: in the settings, and their own over those."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING

from textual.keys import Keys, _character_to_key, format_key, key_to_character
from textual.theme import BUILTIN_THEMES

from evalstore.errors import EvalstoreError, Problem, WorkspaceError
from evalstore.files.fields import nearest, suggest
from evalstore.workspace.settings import BrowserSettings, browser_settings

if TYPE_CHECKING:
    from evalstore.planning.options import Location

FIXED = ("ctrl+q", "ctrl+c")
"""Keys that do what they do whatever else is said, so that everybody gets out."""
_MODIFIERS = ("ctrl", "shift", "alt", "super", "hyper", "meta")
_NAMES = frozenset(key.value for key in Keys if key.value.isalnum())
_KEYS_HINT = "write a character or a name such as ctrl+x, f5, pagedown; several with commas"


@dataclass(frozen=True, slots=True)
class Appearance:
    """The theme and the keys of the browser, all of them known and without conflicts."""

    theme: str | None = None
    keys: Mapping[str, str] = field(default_factory=dict)


def read_look(where: Location, theme: str | None, keys: Sequence[str]) -> Appearance:
    """What the settings say, and over it a person's own theme and keys (`ID=KEYS`).

    Settings that cannot be read say nothing here: the screens tell what is wrong with them.
    """
    file, shared = browser_settings(where.directory, where.config)
    chosen: dict[str, str] = {}
    for one in keys:
        id, equals, text = one.partition("=")
        if not equals or not text:
            raise EvalstoreError(
                f"'--key {one}' names no keys", hint="as in --key history.compare=D,f4"
            )
        chosen[id.strip()] = text
    if found := list(find_problems(file, shared, BrowserSettings(theme, chosen))):
        if own := next((problem for problem in found if problem.line is None), None):
            raise EvalstoreError(f"{own.file}: {own.message}", hint=own.hint)
        raise WorkspaceError(found)
    return Appearance(
        theme or shared.theme,
        {id: ",".join(normal(text)) for id, text in {**shared.keys, **chosen}.items()},
    )


def find_problems(
    file: str, shared: BrowserSettings, own: BrowserSettings | None = None
) -> Iterator[Problem]:
    """Unknown names, invalid keys, and keys with two meanings."""
    own = own or BrowserSettings()
    for theme, place in ((shared.theme, file), (own.theme, "--theme")):
        if theme is not None and theme not in BUILTIN_THEMES:
            line = shared.lines.get("theme") if place == file else None
            hint = suggest(theme, BUILTIN_THEMES, "themes")
            yield Problem(place, f"unknown theme '{theme}'", line, hint=hint)
    if not shared.keys and not own.keys:
        return
    from evalstore.tui.keys.registry import actions

    known = actions()
    sound: dict[str, tuple[Problem, tuple[str, ...]]] = {}
    for id, text in [*shared.keys.items(), *own.keys.items()]:
        mine = own.keys.get(id) is text
        at = Problem("--key" if mine else file, "", None if mine else shared.lines[f"keys.{id}"])
        keys = normal(text)
        wrong = [key for key in keys if not _is_key(key)]
        kept = [key for key in keys if key in FIXED]
        if id not in known:
            yield _at(at, f"unknown action '{id}'", suggest(id, known, "actions"))
        elif wrong:
            hint = nearest(wrong[0], _NAMES) or _KEYS_HINT
            yield _at(at, f"'{wrong[0]}' is not a key", hint)
        elif kept:
            yield _at(at, f"'{kept[0]}' cannot be reassigned", "it always leaves the screen")
        else:
            sound[id] = at, keys
    yield from _conflicts(sound)


def _conflicts(given: Mapping[str, tuple[Problem, tuple[str, ...]]]) -> Iterator[Problem]:
    from evalstore.tui.keys.registry import scopes

    told: set[tuple[str, ...]] = set()
    for scope in scopes():
        for one, other in combinations(scope, 2):
            if one.id == other.id or (one.id not in given and other.id not in given):
                continue
            both = [given[a.id][1] if a.id in given else a.keys for a in (one, other)]
            for key in both[0]:
                where = one.id, other.id, key
                if key in both[1] and where not in told:
                    told.add(where)
                    at = given[one.id if one.id in given else other.id][0]
                    message = f"the key '{key}' would be '{one.id}' and '{other.id}' at once"
                    yield _at(at, message, "give one of them other keys")


def _at(place: Problem, message: str, hint: str) -> Problem:
    return Problem(place.file, message, place.line, hint=hint)


def normal(keys: str) -> tuple[str, ...]:
    """Keys as Textual names them: `?` is `question_mark`."""
    found = []
    for one in keys.split(","):
        *modifiers, key = one.strip().rsplit("+", 1) if len(one.strip()) > 1 else (one.strip(),)
        found.append("+".join((*modifiers, _character_to_key(key) if len(key) == 1 else key)))
    return tuple(dict.fromkeys(found))


def key_name(key: str) -> str:
    """A key as people read it: `ctrl+d`, `?`, `enter`, `↑`."""
    *modifiers, last = key.split("+")
    return "+".join((*modifiers, last if last == "enter" else format_key(last)))


def _is_key(name: str) -> bool:
    *modifiers, key = name.split("+")
    if any(modifier not in _MODIFIERS for modifier in modifiers):
        return False
    if modifiers == ["shift"] and len(key) == 1:
        return False
    return key in _NAMES or key_to_character(key) is not None
