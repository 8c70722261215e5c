"""Finds the places of texts: the cases, and the newest runs, in which they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalstore.files.temporary_list import SortedValues
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
        matches: dict[TextPlace, _Matches] = {}
        for batch in iterate_entries(store, *parts):
            if not go_on():
                return None
            for result, case in batch:
                for key in (result.test, result.evaluation, *result.sessions, *result.evaluations):
                    for place in waiting.get(key, ()):
                        if place in unplaced:
                            if place not in matches:
                                matches[place] = _Matches(result, case)
                            matches[place].add(result)
        for place, found in matches.items():
            place.file, place.row, place.models = found.file, found.row, found.models
            place.prompts = found.prompts if len(found.prompts) < found.of_case else ()
            place.run = run.id
        unplaced -= matches.keys()
        if not unplaced:
            break
    for place in missing:
        place.is_final = True
    return sorted(listed, key=_sort_key)


class _Matches:
    """The results of a run that have a text; of each only what its place needs."""

    __slots__ = ("file", "models", "of_case", "prompts", "row")

    def __init__(self, first: Result, case: Case) -> None:
        self.file, self.row = first.file, first.row
        self.models: tuple[str, ...] = ()
        self.prompts: tuple[str | None, ...] = ()
        self.of_case = len(case.prompts)
        """How many system prompts the case has."""

    def add(self, result: Result) -> None:
        if result.model not in self.models:
            self.models += (result.model,)
        if result.prompt not in self.prompts:
            self.prompts += (result.prompt,)


def _sort_key(text: ListedText) -> tuple[bool, str, str, int, tuple[str, ...], str]:
    """Return what texts are sorted by: their places; those without one come last."""
    kind, id, place = text
    return place.file is None, place.file or "", place.row, KINDS.index(kind), place.models, id


def _sorted_value(text: ListedText) -> list[object]:
    """Return a text with lists, as JSON has them: filed ones are compared with those in memory."""
    *place, models, id = _sort_key(text)
    return [*place, [*models], id, [*text[2].sessions]]


class PlacedTexts:
    """Very many texts with their cases in a temporary file, sorted by place."""

    def __init__(self) -> None:
        self._values = SortedValues()

    def add(self, texts: Iterable[ListedText]) -> None:
        """Add texts whose places were found."""
        self._values.add(map(_sorted_value, texts))

    def __iter__(self) -> Iterator[ListedText]:
        for is_unplaced, file, row, kind, models, id, sessions in self._values:
            case = (None if is_unplaced else file, row)
            yield KINDS[kind], id, TextPlace(tuple(sessions), *case, tuple(models))
