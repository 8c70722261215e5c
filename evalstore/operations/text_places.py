"""Finds the places of texts: the cases, and the newest runs, in which they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalstore.store.path_trees import read_tree
from evalstore.store.result_finder import ResultFinder
from evalstore.store.results import iterate_entries
from evalstore.store.search_texts import KINDS, Kind

if TYPE_CHECKING:
    from evalstore.results import Result
    from evalstore.runs import Run
    from evalstore.store import Store
    from evalstore.store.search_index import SearchIndex
    from evalstore.values import Case


@dataclass(slots=True, eq=False)
class TextPlace:
    """The place of a text."""

    sessions: tuple[str, ...]
    file: str | None = None
    row: str = ""
    models: tuple[str, ...] = ()
    prompts: tuple[str | None, ...] = ()
    """The system prompts of its results, where the case has others, too."""
    run: str | None = None
    """The newest run that has it."""
    is_final: bool = False
    """Whether all recent runs have been looked at."""

    @property
    def name(self) -> str:
        """Return the name of the case by which it is selected."""
        return f"{self.file}::{self.row}"


ListedText = tuple[Kind, str, TextPlace]


def list_documents(index: SearchIndex, documents: Sequence[tuple[Kind, str]]) -> list[ListedText]:
    """Return texts that were found, with the sessions they belong to; their cases are not known."""
    sessions = index.sessions_of([id for kind, id in documents if kind != "answers"])
    return [
        (kind, id, TextPlace((id,) if kind == "answers" else sessions.get(id, ())))
        for kind, id in documents
    ]


def find_places(
    store: Store,
    listed: Sequence[ListedText],
    runs: Iterable[Run],
    go_on: Callable[[], bool] = lambda: True,
) -> list[ListedText] | None:
    """Find the places of texts in the newest runs that have them, sorted by place.

    Results that a newer run has, too, are not read again, and of those that have none of the texts
    hardly anything is. None once `go_on` returns False.
    """
    missing = {place for _, _, place in listed if not place.is_final}
    waiting: dict[str | None, list[TextPlace]] = {}
    of_results, of_cases = set[str](), set[str]()
    for kind, id, place in listed:
        if place in missing:
            for named in {id, *place.sessions}:
                waiting.setdefault(named, []).append(place)
            (of_cases if kind in ("tests", "instructions") else of_results).add(id)
            of_results.update(place.sessions)
    finder = ResultFinder(store, of_results, of_cases, go_on)
    searched: set[tuple[str, str]] = set()
    unplaced = set(missing)
    for run in runs if unplaced else ():
        entries = dict(read_tree(run.results, store.load_nodes).items() - searched)
        searched |= entries.items()
        parts = finder.find(entries)
        if parts is None:
            return None
        matches: dict[TextPlace, list[tuple[Result, Case]]] = {}
        for batch in iterate_entries(store, *parts):
            if not go_on():
                return None
            for result, case in batch:
                for key in (result.test, result.evaluation, *result.sessions, *result.evaluations):
                    for place in waiting.get(key, ()):
                        if place in unplaced:
                            matches.setdefault(place, []).append((result, case))
        for place, found in matches.items():
            (first, case), *_ = found
            place.file, place.row = first.file, first.row
            place.models = tuple(dict.fromkeys(result.model for result, _ in found))
            prompts = tuple(dict.fromkeys(result.prompt for result, _ in found))
            place.prompts = prompts if len(prompts) < len(case.prompts) else ()
            place.run = run.id
        unplaced -= matches.keys()
        if not unplaced:
            break
    for place in missing:
        place.is_final = True
    order = {kind: number for number, kind in enumerate(KINDS)}
    return sorted(
        listed,
        key=lambda hit: (
            hit[2].file is None,
            hit[2].file or "",
            hit[2].row,
            order[hit[0]],
            hit[2].models,
            hit[1],
        ),
    )
