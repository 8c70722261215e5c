"""Sorts the results that `show` prints by urgency."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.core.values import URGENCY, Json
from evalstore.results.show.shown_results import ShownResult, ShownResults, word_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from evalstore.results.show.show import ShownItem


class UrgentFirst:
    """The results of an item, the most urgent first; those in a file are read each time."""

    def __init__(self, item: ShownItem) -> None:
        self._results: ShownResults | list[ShownResult]
        self._marks = item.marks
        self._is_file = item.kind == "cases"
        related = item.related.get("results", ())
        if isinstance(related, ShownResults):
            self._results = related
            return
        several = _with_several_prompts(related) if item.several is None else item.several
        self._results = [
            ShownResult(result, self._is_file or (result["file"], result["row"]) in several)
            for result in _list_by_urgency(item)
        ]

    def __len__(self) -> int:
        return len(self._results)

    def __iter__(self) -> Iterator[ShownResult]:
        if not isinstance(self._results, ShownResults):
            return iter(self._results)
        listed = self._results.by_urgency(self._broke if self._marks else None)
        if self._is_file:
            return (ShownResult(result, has_several=True) for result, _ in listed)
        return listed

    def _broke(self, result: Json) -> bool:
        return self._marks.get(cell_of(result)) == "broke"


def cell_of(result: Json) -> tuple[str, str, str | None, str]:
    """Return the case, system prompt and candidate of a result."""
    return result["file"], result["row"], result["prompt"], result["model"]


def _list_by_urgency(item: ShownItem) -> list[Json]:
    """Return the documents of the results of an item, the most urgent first."""
    return sorted(
        item.related.get("results", ()),
        key=lambda result: (
            URGENCY.index(word_of(result)),
            not item.marks.get(cell_of(result), "").startswith("broke"),
        ),
    )


def _with_several_prompts(results: Iterable[Json]) -> set[tuple[str, str]]:
    """Return the cases of a run that were asked with several system prompts."""
    seen: dict[tuple[str, str], set[str | None]] = {}
    for result in results:
        seen.setdefault((result["file"], result["row"]), set()).add(result["prompt"])
    return {place for place, prompts in seen.items() if len(prompts) > 1}
