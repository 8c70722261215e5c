"""Cases in an order, filtered: quick enough to be done at every key for very many cases.

What many cases have in common is looked at once: their file, their tags, and which
candidate came to which verdict. Orders are made once.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from evalstore.tui.looks import URGENCY

if TYPE_CHECKING:
    from evalstore.operations.browsing import CaseRow, Cases
    from evalstore.tui.query import Query

ORDERS = ("file", "verdict", "row")
_Words = tuple[str | None, ...]
"""What each candidate came to; None: it was not asked."""


class Listing:
    """The cases of a run with what filters need of them. May be made in any thread."""

    def __init__(self, cases: Cases) -> None:
        self._rows = cases.rows
        self._models = tuple(model.casefold() for model in cases.models)
        self._files = list(dict.fromkeys(one.file for one in cases.rows))
        self._tags = list(dict.fromkeys(one.tags for one in cases.rows))
        numbers: dict[_Words, int] = {}
        self._came_to = array(
            "I", (numbers.setdefault(_words(one), len(numbers)) for one in cases.rows)
        )
        """For each row, which of these."""
        self._kinds = list(numbers)
        self._orders: dict[str, Sequence[int]] = {"file": range(len(cases.rows))}
        self._places: list[str] | None = None

    def select(self, query: Query, order: str, found: Collection[str] = ()) -> list[CaseRow]:
        """The rows that match, in order; `found` are sessions in which the words were found."""
        numbers: Iterable[int] = self._ordered(order)
        rows = self._rows
        for name, values in query.fields.items():
            numbers = self._with_field(numbers, name, values, query.fields.get("model", ()))
        if query.words:
            numbers = self._with_words(numbers, query.words, found)
        return [rows[number] for number in numbers]

    def _ordered(self, order: str) -> Sequence[int]:
        if order not in self._orders:
            keys: list[int] | list[str]
            if order == "verdict":
                worst = [_worst(words) for words in self._kinds]
                keys = [worst[number] for number in self._came_to]
            else:
                keys = [one.row.casefold() for one in self._rows]
            self._orders[order] = array("I", sorted(range(len(keys)), key=keys.__getitem__))
        return self._orders[order]

    def _with_field(
        self, numbers: Iterable[int], name: str, values: Sequence[str], named: Sequence[str]
    ) -> Iterable[int]:
        rows = self._rows
        if name == "file":
            files = {one for one in self._files if _has_all(one.casefold(), values)}
            return [number for number in numbers if rows[number].file in files]
        if name == "tag":
            tags = {
                one
                for one in self._tags
                if all(any(value in tag.casefold() for tag in one) for value in values)
            }
            return [number for number in numbers if rows[number].tags in tags]
        kinds = [
            self._has_model(words, values)
            if name == "model"
            else self._has_verdict(words, values, named)
            for words in self._kinds
        ]
        came_to = self._came_to
        return [number for number in numbers if kinds[came_to[number]]]

    def _has_model(self, words: _Words, values: Sequence[str]) -> bool:
        asked = [model for model, word in zip(self._models, words, strict=True) if word is not None]
        return all(any(value in model for model in asked) for value in values)

    def _has_verdict(self, words: _Words, values: Sequence[str], named: Sequence[str]) -> bool:
        come = [
            word
            for model, word in zip(self._models, words, strict=True)
            if word is not None and _has_all(model, named)
        ]
        return all(any(word.startswith(value) for word in come) for value in values)

    def _with_words(
        self, numbers: Iterable[int], words: Sequence[str], found: Collection[str]
    ) -> list[int]:
        rows, places = self._rows, self._folded()
        in_files = {
            one: tuple(word for word in words if word not in one.casefold()) for one in self._files
        }
        listed: list[int] = []
        for number in numbers:
            place = places[number]
            for word in in_files[rows[number].file]:
                if word not in place:
                    if found and _is_in(rows[number], found):
                        listed.append(number)
                    break
            else:
                listed.append(number)
        return listed

    def _folded(self) -> list[str]:
        """The row and the prompt of each case; a text that is needed twice is there once."""
        if self._places is None:
            texts = (f"{one.row} {one.prompt}" if one.prompt else one.row for one in self._rows)
            self._places = [
                folded if (folded := text.casefold()) != text else text for text in texts
            ]
        return self._places


def _words(case: CaseRow) -> _Words:
    return tuple(None if one is None else one.word or "answered" for one in case.results)


def _worst(words: _Words) -> int:
    return min((URGENCY.index(word) for word in words if word is not None), default=9)


def _has_all(text: str, values: Iterable[str]) -> bool:
    return all(value in text for value in values)


def _is_in(case: CaseRow, found: Collection[str]) -> bool:
    return any(id in found for one in case.results if one for id in one.sessions)
