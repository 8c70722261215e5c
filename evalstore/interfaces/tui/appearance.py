"""The theme and the keys that people choose: in the settings, and their own over those."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from textual.theme import BUILTIN_THEMES

from evalstore.core.errors import EvalstoreError, Problem, WorkspaceError
from evalstore.files.fields import suggest
from evalstore.interfaces.tui.keys.key_validation import Appearance, key_problems, normal_keys
from evalstore.planning.options import Location
from evalstore.workspace.settings.settings import BrowserSettings
from evalstore.workspace.settings.settings_reader import browser_settings


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


def theme_names() -> list[str]:
    """Return the names of all colour themes."""
    return [*BUILTIN_THEMES]


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
