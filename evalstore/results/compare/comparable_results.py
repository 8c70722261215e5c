"""Finds the results of a side of a comparison whose cases the other side has run, too."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalstore.comparison.placed_results import PlacedResults
    from evalstore.core.results import Result
    from evalstore.core.values import Case, CaseFile
    from evalstore.planning.selection import Selection
    from evalstore.results.compare.compared_side import Side
    from evalstore.store.trees.case_finder import CaseFinder

_AT_ONCE = 4_000
"""Results whose cases are looked for together."""


def comparable(side: Side, other: Side, selection: Selection, finder: CaseFinder) -> Sequence[int]:
    """Return the numbers of the selected results, without cases that the other side did not run.

    Results with a system prompt that the case had not on the other side stay: it is new or gone.
    """
    results = side.results
    is_unplaced = results.find_unplaced(other.results)
    is_selected = [selection.covers_file(name) for name in results.file_names]
    is_asked = [other.models is None or name in other.models for name in results.model_names]
    nodes = [other.nodes.get(name) for name in results.file_names]
    unpaired: dict[str, array[int]] = {}
    """Results without a partner in files that the other side has, by the node of its cases."""
    selected = array("l")
    for number, file in enumerate(results.files):
        if not is_selected[file]:
            continue
        selected.append(number)
        node = nodes[file]
        if node and is_asked[results.models[number]] and is_unplaced[number]:
            unpaired.setdefault(node, array("l")).append(number)
    left_out = {
        number
        for node, numbers in unpaired.items()
        for start in range(0, len(numbers), _AT_ONCE)
        for number in _find_asked(
            results, numbers[start : start + _AT_ONCE], other.files[node], finder
        )
    }
    return array("l", (number for number in selected if number not in left_out))


def _find_asked(
    results: PlacedResults, numbers: Sequence[int], file: CaseFile, finder: CaseFinder
) -> Iterator[int]:
    """Yield those of these results whose cases, with their system prompts, another side has."""
    listed = results.read(numbers)
    cases = finder.find(file, {text for result in listed for _, text in _names(result)})
    rows = {name: case.prompts for case in cases for name in _names(case)}
    for number, result in zip(numbers, listed, strict=True):
        had = (rows.get(name) for name in _names(result))
        if any(
            prompts and (result.prompt in prompts or result.prompt_number < len(prompts))
            for prompts in had
        ):
            yield number


def _names(row: Case | Result) -> tuple[tuple[str, str], ...]:
    return ("key", row.key), ("row", row.row)
