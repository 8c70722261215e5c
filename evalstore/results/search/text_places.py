"""Finds the places of texts: the cases, and the newest runs, in which they are."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Protocol

from evalstore.core.batches import in_batches, in_small_batches
from evalstore.files.temporary_list import SortedValues, TemporaryList
from evalstore.store.search.texts import KINDS, Kind
from evalstore.workspace.digest_set import digest_of_value

if TYPE_CHECKING:
    from evalstore.core.runs import Run
    from evalstore.store import Store
    from evalstore.store.rows.row_queries import ResultIds, ResultLeaf
    from evalstore.store.search.index import SearchIndex


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

    None once `go_on` returns False.
    """
    missing = [text for text in listed if not text[2].is_final]
    keys = TextKeys()
    for number, (_, id, place) in enumerate(missing):
        keys.add(number, {id, *place.sessions})
    places = _ListedPlaces([place for _, _, place in missing])
    if not _search(store, keys, places, runs, go_on):
        return None
    places.finish()
    return sorted(listed, key=_sort_key)


def place_documents(
    store: Store,
    index: SearchIndex,
    documents: Sequence[tuple[Kind, str]],
    by_name: Callable[[str], bool] | None = None,
) -> PlacedTexts:
    """Find the places of many texts, as `find_places` does.

    Each result is read once, and few of the texts are in memory. With `by_name`, only those are
    returned whose `file::row` it accepts.
    """
    keys = TextKeys()
    texts = chain.from_iterable(list_documents(index, some) for some in in_batches(documents))
    for number, (_, id, place) in enumerate(texts):
        keys.add(number, {id, *place.sessions})
    places = _FiledPlaces(len(documents))
    _search(store, keys, places, store.find_recent_runs())
    placed = PlacedTexts()
    for batch in in_batches(places):
        listed = list_documents(index, [documents[number] for number, *_ in batch])
        for (_, _, place), case in zip(listed, batch, strict=True):
            _, place.file, place.row, place.models = case
        placed.add(
            each
            for each in listed
            if not by_name or (each[2].file is not None and by_name(each[2].name))
        )
    return placed


# --- results that have texts


class _Places(Protocol):
    """Notes the results that have texts."""

    left: int
    """How many texts no result has yet."""

    def add(self, run: str, file: str, result: ResultIds, numbers: Iterable[int]) -> None:
        """Note a result of a run for those of these texts that no newer run has.

        The results of a run are added together.
        """


def _search(
    store: Store,
    keys: TextKeys,
    places: _Places,
    runs: Iterable[Run],
    go_on: Callable[[], bool] = lambda: True,
) -> bool:
    """Note the results that have texts; returns False once `go_on` does.

    Results that a newer run has at the same place of a file are not read again.
    """
    searched: set[tuple[str, ResultLeaf]] = set()
    for run in runs if places.left else ():
        leaves = [each for each in store.find_tree_leaves(run.results) if each not in searched]
        searched.update(leaves)
        for batch in in_small_batches(leaves):
            if not go_on():
                return False
            results = store.find_result_ids(leaf for _, leaf in batch)
            for file, leaf in batch:
                for result in results[leaf.id]:
                    if numbers := {number for id in result.ids for number in keys.find(id)}:
                        places.add(run.id, file, result, numbers)
        if not places.left:
            break
    return True


class _ListedPlaces:
    """Notes the places of texts in these."""

    def __init__(self, places: Sequence[TextPlace]) -> None:
        self.left = len(places)
        self._places = places
        self._of_case: dict[int, int] = {}
        """How many system prompts the cases of these places have."""

    def add(self, run: str, file: str, result: ResultIds, numbers: Iterable[int]) -> None:
        """Note a result of a run for those of these texts that no newer run has."""
        for number in numbers:
            place = self._places[number]
            if place.run is None:
                place.run, place.file, place.row = run, file, result.row
                self._of_case[number] = result.prompts
                self.left -= 1
            if place.run == run:
                if result.model not in place.models:
                    place.models += (result.model,)
                if result.prompt not in place.prompts:
                    place.prompts += (result.prompt,)

    def finish(self) -> None:
        """Set what is known when all recent runs have been looked at."""
        for number, place in enumerate(self._places):
            place.is_final = True
            if len(place.prompts) >= self._of_case.get(number, 0):
                place.prompts = ()


class _FiledPlaces:
    """Notes the places of many texts in a temporary file, and six bytes of each in memory."""

    def __init__(self, count: int) -> None:
        self.left = count
        self._run, self._run_number = "", 0
        self._runs = array("H", bytes(2 * count))
        """The number of the run of each place; 0 if no result has the text."""
        self._all_models: list[tuple[str, ...]] = []
        self._numbers: dict[tuple[str, ...], int] = {}
        self._models = array("I", bytes(4 * count))
        """The number of the candidates of each place."""
        self._filed = TemporaryList()

    def add(self, run: str, file: str, result: ResultIds, numbers: Iterable[int]) -> None:
        """Note a result of a run for those of these texts that no newer run has."""
        if run != self._run:
            self._run, self._run_number = run, self._run_number + 1
        for number in numbers:
            if not self._runs[number]:
                self._runs[number] = self._run_number
                self._models[number] = self._number((result.model,))
                self._filed.append((number, file, result.row))
                self.left -= 1
            elif self._runs[number] == self._run_number:
                models = self._all_models[self._models[number]]
                if result.model not in models:
                    self._models[number] = self._number((*models, result.model))

    def _number(self, models: tuple[str, ...]) -> int:
        number = self._numbers.setdefault(models, len(self._numbers))
        if number == len(self._all_models):
            self._all_models.append(models)
        return number

    def __iter__(self) -> Iterator[tuple[int, str | None, str, tuple[str, ...]]]:
        """Yield the numbers of the texts, each with its file, its row and its candidates."""
        for number, file, row in self._filed:
            yield number, file, row, self._all_models[self._models[number]]
        for number, run in enumerate(self._runs):
            if not run:
                yield number, None, "", ()


# --- in order


def _sort_key(text: ListedText) -> tuple[bool, str, str, int, tuple[str, ...], str]:
    """Return what texts are sorted by: their places; those without one come last."""
    kind, id, place = text
    return place.file is None, place.file or "", place.row, KINDS.index(kind), place.models, id


def _sorted_value(text: ListedText) -> list[object]:
    *place, models, id = _sort_key(text)
    return [*place, "\0".join(models), id, [*models], [*text[2].sessions]]


class PlacedTexts:
    """Many texts with their cases in a temporary file, sorted by place."""

    def __init__(self) -> None:
        self._values = SortedValues(keys=6)

    def add(self, texts: Iterable[ListedText]) -> None:
        """Add texts whose places were found."""
        self._values.add(map(_sorted_value, texts))

    def __iter__(self) -> Iterator[ListedText]:
        for is_unplaced, file, row, kind, _, id, models, sessions in self._values:
            case = (None if is_unplaced else file, row)
            yield KINDS[kind], id, TextPlace(tuple(sessions), *case, tuple(models))


# --- finds the texts that an id of a result belongs to, of many in little memory


_PARTS = 256
"""The number of parts into which they are divided; each is sorted separately."""
_SHIFT = 56


class TextKeys:
    """The numbers of texts by the ids that stand for them: a dozen bytes for each."""

    def __init__(self) -> None:
        self._parts = [(array("Q"), array("I")) for _ in range(_PARTS)]
        """Digests of ids, with the numbers."""
        self._is_sorted = True

    def add(self, number: int, ids: Iterable[str]) -> None:
        """Let these ids stand for the text with a number."""
        for digest in map(digest_of_value, ids):
            digests, numbers = self._parts[digest >> _SHIFT]
            digests.append(digest)
            numbers.append(number)
        self._is_sorted = False

    def find(self, id: str) -> Sequence[int]:
        """Return the numbers of the texts that an id stands for."""
        if not self._is_sorted:
            self._parts = [_sort(*part) for part in self._parts]
            self._is_sorted = True
        digest = digest_of_value(id)
        digests, numbers = self._parts[digest >> _SHIFT]
        first = end = bisect_left(digests, digest)
        while end < len(digests) and digests[end] == digest:
            end += 1
        return numbers[first:end]


def _sort(digests: array[int], numbers: array[int]) -> tuple[array[int], array[int]]:
    """Return both in the order of the digests."""
    order = sorted(range(len(digests)), key=digests.__getitem__)
    return (
        array("Q", [digests[place] for place in order]),
        array("I", [numbers[place] for place in order]),
    )
