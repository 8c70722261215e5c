"""A row of data as templates and expressions see it."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import NamedTuple, Protocol

from evalstore.core.values import Json


class ColumnNames(Protocol):
    """The names of the columns of one file."""

    @property
    def known(self) -> Set[str]:
        """Return the names in templates."""

    @property
    def aliases(self) -> Mapping[str, str]:
        """Return the names in templates by the names as written, where they differ."""


class FixedNames(NamedTuple):
    """Names of columns that came with a row from another process."""

    known: frozenset[str]
    aliases: Mapping[str, str]


class DataItem(dict[str, Json]):
    """A row: its values by the names of their columns, or by the names as written.

    In templates `item.items` is the column `items`, if the file has one; see
    `evalstore.files.jinja_sandbox`. In Python `item.items` is always the method.
    """

    __slots__ = ("__columns",)

    def __init__(self, values: Mapping[str, Json], columns: ColumnNames) -> None:
        super().__init__(values)
        self.__columns = columns

    def __missing__(self, name: str) -> Json:
        """Return the value by the name as written."""
        known = self.__columns.aliases.get(name)
        if known is None or not dict.__contains__(self, known):
            raise KeyError(name)
        return dict.__getitem__(self, known)

    def __contains__(self, name: object) -> bool:
        """Return whether this row has a value for the column of that name."""
        if dict.__contains__(self, name):
            return True
        known = self.__columns.aliases.get(name) if isinstance(name, str) else None
        return known is not None and dict.__contains__(self, known)

    def get(self, name: str, default: Json = None) -> Json:
        """Return the value of a column by either of its names."""
        try:
            return self[name]
        except KeyError:
            return default


def column_names_of(item: DataItem) -> ColumnNames:
    """Return the names of the columns of a row; not a method, which templates could call."""
    columns: ColumnNames = getattr(item, "_DataItem__columns")  # noqa: B009 - mypy does not know the mangled name
    return columns
