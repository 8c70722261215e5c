"""What is typed behind `/`: words, and `verdict:`, `tag:`, `model:`, `file:` with a value."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalstore.operations.browsing import CaseRow

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

    def matches(self, case: CaseRow, models: Collection[str], found: Collection[str]) -> bool:
        """Whether a case matches; `found` are ids of sessions in which the words were found."""
        return self._has_fields(case, tuple(models)) and self._has_words(case, found)

    def _has_words(self, case: CaseRow, found: Collection[str]) -> bool:
        if not self.words:
            return True
        place = f"{case.file} {case.row} {case.prompt}".casefold()
        if all(word in place for word in self.words):
            return True
        return bool(found) and any(
            id in found for one in case.results if one for id in one.sessions
        )

    def _has_fields(self, case: CaseRow, models: tuple[str, ...]) -> bool:
        for name, values in self.fields.items():
            for value in values:
                if not _has_field(case, models, name, value, self.fields.get("model", ())):
                    return False
        return True


def _has_field(
    case: CaseRow, models: tuple[str, ...], name: str, value: str, named: tuple[str, ...]
) -> bool:
    if name == "file":
        return value in case.file.casefold()
    if name == "tag":
        return any(value in tag.casefold() for tag in case.tags)
    results = [
        (model, one) for model, one in zip(models, case.results, strict=True) if one is not None
    ]
    if name == "model":
        return any(value in model.casefold() for model, _ in results)
    return any(
        (one.word or "answered").startswith(value)
        for model, one in results
        if all(part in model.casefold() for part in named)
    )


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
