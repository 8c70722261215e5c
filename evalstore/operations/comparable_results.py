"""Finds the results of a side of a comparison whose cases the other side has run, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from evalstore.planning.selection import Selection
    from evalstore.results import Result
    from evalstore.store.case_finder import CaseFinder
    from evalstore.values import Case, CaseFile


class ComparedSide(Protocol):
    """What is looked at of a side of a comparison; `diff_sides.Side` says what it means."""

    results: list[Result]
    nodes: dict[str, str]
    files: dict[str, CaseFile]
    models: set[str] | None


def comparable(
    side: ComparedSide, other: ComparedSide, selection: Selection, finder: CaseFinder
) -> list[Result]:
    """Return the selected results of a side, without cases that the other side did not run.

    Results with a system prompt that the case had not on the other side stay: it is new or gone.
    """
    places = all_places(other.results)
    selected = [result for result in side.results if selection.covers_file(result.file)]
    unpaired: dict[str, list[Result]] = {}
    """Results without a partner in files that the other side has, by the node of its cases."""
    for result in selected:
        node = other.nodes.get(result.file)
        is_asked = other.models is None or result.model in other.models
        if node and is_asked and places.isdisjoint(places_of(result)):
            unpaired.setdefault(node, []).append(result)
    left_out: set[Result] = set()
    for node, results in unpaired.items():
        texts = {text for result in results for _, text in _names(result)}
        cases = finder.find(other.files[node], texts)
        rows = {name: case.prompts for case in cases for name in _names(case)}
        for result in results:
            had = (rows.get(name) for name in _names(result))
            if any(
                prompts and (result.prompt in prompts or result.prompt_number < len(prompts))
                for prompts in had
            ):
                left_out.add(result)
    return [result for result in selected if result not in left_out]


def _names(row: Case | Result) -> tuple[tuple[str, str], ...]:
    return ("key", row.key), ("row", row.row)


Place = tuple[str, str, str, Any]


def all_places(results: Iterable[Result]) -> set[Place]:
    """Return the keys by which these results may be paired with others."""
    return {place for result in results for place in places_of(result)}


def places_of(result: Result) -> Iterator[Place]:
    """Yield the keys by which a result may be paired with another."""
    file, model = result.file, result.model
    for row in (result.key, result.row):
        yield file, model, row, result.prompt
        yield file, model, row, result.prompt_number
