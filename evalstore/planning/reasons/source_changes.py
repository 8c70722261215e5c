"""Compares the files of two versions of a test: whose bytes differ, of all that it uses."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from evalstore.comparison.version_diff import Difference, in_place
from evalstore.core.runs import SOURCE_TEST, RunSources

ROWS = "rows of "
"""Begins the name of a data file that was edited."""
_NAMES = {
    "dataset": ROWS,
    "prompt": "system prompt ",
    "evaluator": "judge prompt ",
    "tool": "tool ",
    "schema": "schema ",
    "file": "file ",
}
"""How edits name what a test file uses, by its kind."""
_EDIT = re.compile(
    r"(?P<place>conversation \d+, )?"
    r"(?:(?P<kind>tool|schema) (?P<name>.+?) changed(?=:|$)"
    r"|(?P<prompt>(?:system|judge) prompt) (?P<called>.+?): )",
    re.DOTALL,
)
"""Begins a difference that names what was edited."""
_UNNAMED = re.compile(r"[0-9a-f]{8}")


@dataclass(frozen=True, slots=True)
class SourceChanges:
    """Whose bytes differ between two versions of a test file."""

    is_test_edited: bool
    """Whether those of the test file itself do."""
    edited: tuple[str, ...]
    """What else was edited, of what both versions use: `rows of tests/data/letters.csv`."""
    given_up: tuple[str, ...] = ()
    """What the newer version does not use any more."""

    @property
    def data(self) -> list[str]:
        """Return the data file, if it was edited: `rows of` its path."""
        return [name for name in self.edited if name.startswith(ROWS)]

    def names_of(self, kind: str) -> list[str]:
        """Return the names of what was edited of a kind, such as `system prompt `."""
        return [name.removeprefix(kind) for name in self.edited if name.startswith(kind)]

    def uses_another(self, kind: str, name: str) -> bool:
        """Return whether a version with this name is one that the older version did not use.

        Then the test file was edited, and not what it uses.
        """
        names = self.names_of(f"{kind} ")
        is_edited = name in names or (bool(names) and bool(_UNNAMED.fullmatch(name)))
        return self.is_test_edited and not is_edited


def replaced_by(kind: str, name: str, changes: SourceChanges) -> Difference:
    """Return that a version with this name is used in the place of what was used before."""
    former = [each for each in changes.given_up if each.startswith(f"{kind} ")]
    return in_place(kind, name, former[0].removeprefix(f"{kind} ") if len(former) == 1 else None)


def names_use(difference: Difference) -> bool:
    """Return whether a difference names something that a test file uses as edited."""
    return _EDIT.match(difference.subject) is not None


def as_replaced(difference: Difference, changes: SourceChanges | None) -> Difference:
    """Return a difference; if it names as edited what was not used before, that it is used now."""
    match = _EDIT.match(difference.subject) if changes else None
    if match is None or changes is None:
        return difference
    kind, name = match["kind"] or match["prompt"], match["name"] or match["called"]
    if not changes.uses_another(kind, name):
        return difference
    found = replaced_by(kind, name, changes)
    return Difference(f"{match['place'] or ''}{found.subject}")


def compare_sources(
    was: RunSources | None, now: RunSources | None, path: str, former: str | None = None
) -> SourceChanges | None:
    """Return whose bytes differ between two versions of a test file; None if that is not known.

    `former` is its path in the older version, if it had another one.
    """
    before = was.of(former or path) if was else None
    after = now.of(path) if now else None
    if before is None or after is None:
        return None
    if not (before and after):  # one of them uses nothing, so only the test file can differ
        return SourceChanges(True, ())
    return SourceChanges(
        before[SOURCE_TEST] != after[SOURCE_TEST],
        _names(key for key, digest in after.items() if before.get(key, digest) != digest),
        _names(key for key in before if key not in after),
    )


def _names(keys: Iterable[str]) -> tuple[str, ...]:
    """Return how edits name what a test file uses."""
    parts = (key.partition(":") for key in keys)
    return tuple(f"{_NAMES[kind]}{name}" for kind, _, name in parts if kind in _NAMES)
