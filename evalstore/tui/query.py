"""What is typed behind `/`: words, and `verdict:`, `tag:`, `model:`, `file:` with a value."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_PART = re.compile(r'(?:(verdict|tag|model|file):)?("[^"]*"?|\S+)')
FIELDS = ("verdict", "tag", "model", "file")


@dataclass(frozen=True)
class Query:
    """A filter of cases. All parts must hold; a value matches as a part of the text."""

    words: tuple[str, ...] = ()
    """What the file, the row, an answer or the feedback holds."""
    fields: dict[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        """Whether everything matches."""
        return not self.words and not self.fields


def read_query(text: str) -> Query:
    """What was typed as a filter; nothing that is typed is an error."""
    words: list[str] = []
    fields: dict[str, tuple[str, ...]] = {}
    for name, value in _PART.findall(text):
        value = value.strip('"').casefold()
        if name and value:
            fields[name] = (*fields.get(name, ()), value)
        elif value and not name:
            words.append(value)
    return Query(tuple(words), fields)
