"""What is typed behind `/`: words, and with values `verdict:`, `tag:`, `model:` and so on."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

FIELDS = ("verdict", "tag", "model", "file", "prompt")
_WHOLE = ("tag", "model", "file")
"""In quotation marks they are meant as a whole."""
_PART = re.compile(
    rf'(-?)(?:({"|".join(FIELDS)}):((?:"[^"]*"?|[^\s"])*)|("[^"]*"?|\S+))',
    re.IGNORECASE,
)
_VALUE = re.compile(r'"[^"]*"?|[^",]+')


class QueryField(NamedTuple):
    """A name with values, of which one must match."""

    name: str
    values: tuple[str, ...]
    is_negated: bool
    """Whether none of them may match."""


@dataclass(frozen=True)
class Query:
    """A filter of cases. All parts must hold; a value matches as a part of the text."""

    words: tuple[str, ...] = ()
    """What the file, the row, an answer or the feedback holds."""
    without: tuple[str, ...] = ()
    """What none of these holds."""
    fields: tuple[QueryField, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Return whether everything matches."""
        return not (self.words or self.without or self.fields)


def _value(name: str, typed: str) -> str:
    value = typed.strip('"')
    is_whole = typed[0] == typed[-1] == '"' and len(typed) > 2 and name in _WHOLE
    return f"={value}" if is_whole else value


def matches_any(text: str, values: Iterable[str]) -> bool:
    """Return whether a value matches: as a part of the text, or behind `=` as the whole."""
    return any(
        value[1:] == text if value.startswith("=") and len(value) > 1 else value in text
        for value in values
    )


def read_query(text: str) -> Query:
    """Parse a filter that was typed; nothing that is typed is an error."""
    words: list[str] = []
    without: list[str] = []
    fields: list[QueryField] = []
    for minus, name, listed, typed in _PART.findall(text.casefold()):
        if name:
            values = [
                value for written in _VALUE.findall(listed) if (value := _value(name, written))
            ]
            if values:
                fields.append(QueryField(name, tuple(values), bool(minus)))
        elif (word := typed.strip('"')) and typed != "-":
            (without if minus else words).append(word)
    return Query(tuple(words), tuple(without), tuple(fields))
