"""The names of the columns of a file."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache

from evalstore.core.errors import FileProblem
from evalstore.core.values import Json
from evalstore.files.fields import suggest
from evalstore.files.processes.data_item import DataItem


def stable_names(written: Iterable[str]) -> list[str]:
    """Name each column in lower case, with `_` for characters not valid in identifiers.

    A name that is taken gets `_1`, `_2` …, from left to right. Letters of all scripts
    stay, digits may come first, and a name may be empty.
    """
    used: set[str] = set()
    counts: dict[str, int] = {}
    names = []
    for column in written:
        name = base = _stable(column)
        while name in used:
            counts[base] = counts.get(base, 0) + 1
            name = f"{base}_{counts[base]}"
        used.add(name)
        names.append(name)
    return names


def _stable(written: str) -> str:
    text = unicodedata.normalize("NFC", unicodedata.normalize("NFC", written).lower())
    return "".join([character if _can_stand(character) else "_" for character in text])


@lru_cache(maxsize=4096)
def _can_stand(character: str) -> bool:
    """Return whether an identifier may have a character after its start."""
    return f"a{character}".isidentifier()


class DatasetColumns:
    """The columns of one file: their names in the file and in templates."""

    def __init__(self, keys: Iterable[str], written: Mapping[str, str] | None = None) -> None:
        keys = list(keys)
        self._written = written or {}
        self.names = dict(zip(keys, stable_names(keys), strict=True))
        """From the key in the records of a reader to the name in templates."""
        self.known: frozenset[str] = frozenset()
        self.aliases: dict[str, str] = {}
        self._settle()

    def _settle(self) -> None:
        self.known = frozenset(self.names.values())
        self.aliases = {}
        """From names as written to names in templates, where they differ."""
        for key, name in self.names.items():
            written = self._written.get(key, key)
            if written not in self.known:
                self.aliases.setdefault(written, name)
        self.same = all(key == name for key, name in self.names.items())
        """Whether every key is the name."""

    def rename(self, renamed: Mapping[str, str], line: int | None = None) -> None:
        """Rename columns, given by either of their names; raises `FileProblem`."""
        by_name = {name: key for key, name in self.names.items()}
        by_alias = {alias: by_name[name] for alias, name in self.aliases.items()}
        changed: dict[str, str] = {}
        for old, new in renamed.items():
            key = by_name.get(old, by_alias.get(old))
            if key is None:
                hint = suggest(old, [*by_name, *by_alias], "columns")
                raise FileProblem(f"'rename': unknown column '{old}'", line, hint=hint)
            if key in changed:
                raise FileProblem(f"'rename' gives the column '{old}' two names", line)
            changed[key] = new
        names = {**self.names, **changed}
        for key, new in changed.items():
            other = next(
                (
                    other_key
                    for other_key, name in names.items()
                    if name == new and other_key != key
                ),
                None,
            )
            if other is not None:
                raise FileProblem(
                    f"'rename' gives two columns the name '{new}'",
                    line,
                    hint=f"rename the column '{self._written.get(other, other)}' as well",
                )
        self.names = names
        self._settle()

    def item(self, values: Mapping[str, Json]) -> DataItem:
        """Return a row by its names; raises `KeyError` for a key that is not a column."""
        if self.same and values.keys() <= self.known:
            return DataItem(values, self)
        return DataItem({self.names[key]: value for key, value in values.items()}, self)
