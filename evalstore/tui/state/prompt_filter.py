"""Filters cases by their system prompts: by the names and the ids of these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from evalstore.display import safe
from evalstore.tui.state.case_query import matches_any

if TYPE_CHECKING:
    from evalstore.operations.views.cases import Cases

T = TypeVar("T", str, str | None)


class PromptFilter:
    """The system prompts of cases. Each is matched once, however many cases have it."""

    def __init__(self, cases: Cases) -> None:
        self._rows = cases.rows
        self._texts = {
            id: (safe(name).casefold(), id or "no prompt") for id, name in cases.prompts.items()
        }
        """By the id of a prompt: its name and its id."""
        labels = {row.prompt for row in cases.rows if row.prompt}
        self._labels = {label: (safe(label).casefold(),) for label in labels}
        """The names that the cases of files with several prompts have in the table."""
        self.names = sorted({*labels, *cases.prompts.values()})
        """All names, for a hint."""

    def is_known(self, value: str) -> bool:
        """Return whether a prompt matches."""
        texts = [*self._texts.values(), *self._labels.values()]
        return any(matches_any(text, (value,)) for known in texts for text in known)

    def select(
        self, numbers: Iterable[int], values: Sequence[str], *, negated: bool
    ) -> Sequence[int]:
        """Return the numbers of the cases whose prompt matches one of the values, or none."""
        ids = _matching(self._texts, values)
        labels = _matching(self._labels, values)
        rows = self._rows
        return [
            number
            for number in numbers
            if (rows[number].prompt in labels or rows[number].prompt_id in ids) != negated
        ]


def _matching(texts: Mapping[T, Iterable[str]], values: Sequence[str]) -> set[T]:
    return {key for key, known in texts.items() if any(matches_any(it, values) for it in known)}
