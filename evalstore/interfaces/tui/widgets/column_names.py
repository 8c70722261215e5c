"""The names in a column of a table, shortened so that they can still be distinguished."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from os.path import commonprefix

from evalstore.core.display import columns_of
from evalstore.results.edits.distinct_labels import one_line, shared_starts, shorten_label

_AND = ", "
_NEXT_KEY = re.compile(f"{_AND}[^,=]+=")
_COMPARED = 3_000
"""Of more names only the start that all of them share is known: sorting them takes too long."""


class ShortenedNames:
    """The names of a column, in groups whose names are compared with each other.

    They are compared when the first of a group is too long for its column.
    """

    def __init__(self, names_of: Callable[[str], Sequence[str]]) -> None:
        """`names_of` returns all names of a group."""
        self._names_of = names_of
        self._groups: dict[str, _SharedStarts] = {}

    def forget(self) -> None:
        """Forget the names, of a table that is not drawn any more."""
        self._names_of = lambda _group: ()

    def shorten(self, name: str, columns: int, group: str = "") -> str:
        """Return a name as one line of at most this many columns.

        When not all names of the group fit, the fields that all of them begin with
        (`lang=en, question=`) are left out; of a path that does not fit, the folders (`…/late.md`).
        """
        text = one_line(name)
        if group not in self._groups:
            self._groups[group] = _SharedStarts([one_line(name) for name in self._names_of(group)])
        starts = self._groups[group]
        if columns_of(text) <= columns and starts.longest <= columns:
            return text
        own = text[starts.fields :] if starts.covers(text) else text
        in_folder = f"…{text[starts.folders - 1 :]}"
        if starts.folders and columns_of(own) > columns >= columns_of(in_folder):
            return in_folder
        return shorten_label(own, columns, max(0, starts.of(text) - (len(text) - len(own))))


class _SharedStarts:
    """What names have in common at their start."""

    def __init__(self, names: Sequence[str]) -> None:
        first, last = (min(names), max(names)) if names else ("", "")
        common = commonprefix((first, last))  # noqa: RUF071 - letters are compared
        self._common = "" if first == last else common
        self.longest = max(map(columns_of, names), default=0)
        """Columns of the widest name."""
        self.fields = self._common.rfind("=") + 1
        """The length of the fields that all names begin with, and of the next key if it is the last
        one: `7, class=first` would say what only one of its values is."""
        if _NEXT_KEY.search(first, self.fields):
            self.fields = self._common.rfind(_AND) + len(_AND) if _AND in self._common else 0
        self.folders = self._common.rfind("/") + 1
        """The length of the folders that all names begin with."""
        self._starts = shared_starts(names) if len(names) <= _COMPARED else {}

    def covers(self, name: str) -> bool:
        """Return whether the name begins as all names of the group do."""
        return name.startswith(self._common)

    def of(self, name: str) -> int:
        """Return how many characters at its start a name shares with the one most like it."""
        return self._starts.get(name, len(self._common) if self.covers(name) else 0)


def case_names(places: Iterable[tuple[str, str, str]]) -> dict[str, ShortenedNames]:
    """Return the names of the columns `file`, `row` and `candidate` of these places.

    The group of a row is its file.
    """
    listed = list(places)

    @cache
    def rows_by_file() -> Mapping[str, list[str]]:
        rows: dict[str, list[str]] = {}
        for file, row, _ in listed:
            if row:
                rows.setdefault(file, []).append(row)
        return rows

    return {
        "file": ShortenedNames(lambda _: [file for file, _, _ in listed]),
        "row": ShortenedNames(lambda file: rows_by_file().get(file, [])),
        "candidate": ShortenedNames(lambda _: [model for _, _, model in listed if model]),
    }


def only_file(files: Iterable[str]) -> str:
    """Return the file that all are of; empty when there are several, or none."""
    rest = iter(files)
    first = next(rest, "")
    return first if all(file == first for file in rest) else ""
