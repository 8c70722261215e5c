"""Full-text search: in the browser as it is typed, and `grep`.

The index is brought up to date before each search. It lies in `.evalstore/search.db`, belongs
to this machine, and is in memory where that cannot be written.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from evalstore.errors import EvalstoreError
from evalstore.operations.json_output import fields_to_json
from evalstore.planning.open_project import open_store, open_workspace
from evalstore.store.results import iterate_results
from evalstore.store.search_index import SearchIndex
from evalstore.store.search_texts import KINDS, Kind, load_texts
from evalstore.store.search_words import find_places, has_words, split_words

if TYPE_CHECKING:
    from evalstore.planning.options import Location
    from evalstore.results import Result
    from evalstore.store import Store
    from evalstore.values import Json

Report = Callable[[int, int], bool]
"""Is told how many texts are in the index, and of how many; says whether to go on."""
In = Literal["answers", "feedback", "tests"]
"""Where is searched."""
_FILE = "search.db"
_AT_ONCE = 500
_AROUND = 60
"""Characters of context on each side."""


class Searcher:
    """Searches as somebody types; may be called from any thread.

    Keeps an index that is in memory; one of a file is opened for each search.
    """

    def __init__(self, location: Location) -> None:
        self._where = location
        self._one = threading.Lock()
        self._kept: SearchIndex | None = None

    def search(self, words: Sequence[str], report: Report) -> frozenset[str] | None:
        """The sessions in whose answer, feedback, test or instructions all these words are.

        None when `report` ended it. What it has done until then stays done.
        """
        while not self._one.acquire(timeout=0.05):
            if not report(0, 0):
                return None
        try:
            with open_store(self._where) as store:
                index = self._kept or open_index(self._where)
                if not index.path:
                    self._kept = index
                try:
                    return index.find_sessions(words) if index.update(store, report) else None
                except EvalstoreError:
                    self._kept = None
                    raise
                finally:
                    if index is not self._kept:
                        index.close()
        finally:
            self._one.release()


def open_index(location: Location) -> SearchIndex:
    """The index of a workspace."""
    workspace = open_workspace(location)
    path = workspace.private / _FILE
    workspace.boundary.require_database(path, workspace.name_of(path))
    return SearchIndex.open(path)


# --- grep


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A text in which the words are."""

    kind: Kind
    id: str
    """Of the session, the judgement, the test or the evaluation version."""
    file: str | None
    """None: no recent run has it."""
    row: str
    models: tuple[str, ...]
    """Whose answer, or the answers of whom the text is about."""
    sessions: tuple[str, ...]
    context: str
    """The first place of the words with the text around it."""
    matches: tuple[tuple[int, int], ...]
    """Where the words are in `context`."""

    def document(self) -> Json:
        """As JSON."""
        return {
            "in": _IN[self.kind],
            **fields_to_json(self),
            "kind": _KIND[self.kind],
        }


_IN: dict[Kind, In] = {
    "answers": "answers",
    "feedback": "feedback",
    "tests": "tests",
    "instructions": "tests",
}
_KIND: dict[Kind, str] = {
    "answers": "session",
    "feedback": "judgement",
    "tests": "test",
    "instructions": "evaluation",
}


def grep(
    location: Location,
    pattern: str,
    within: Sequence[In] = (),
    report: Report = lambda _done, _all: True,
) -> list[SearchHit]:
    """The stored texts in which all words of a pattern are, by file and row.

    The last word may be the beginning of one; what stands in quotation marks is one word.
    Raises `EvalstoreError` when nothing in the pattern is a word.
    """
    words = split_words(pattern)
    if not has_words(words):
        raise EvalstoreError(
            f"'{pattern}' has no word to search for",
            hint="words have letters, digits or symbols; punctuation is not searched",
        )
    kinds = [one for one in KINDS if not within or _IN[one] in within]
    with open_store(location) as store:
        index = open_index(location)
        try:
            index.update(store, report)
            found = index.find_documents(words, kinds)
            listed = [(kind, id, _Place.of(index, kind, id)) for kind, id in found]
        finally:
            index.close()
        placed = _placed(store, listed)
        return [
            hit
            for start in range(0, len(placed), _AT_ONCE)
            for hit in _hits(store, words, placed[start : start + _AT_ONCE])
        ]


@dataclass(slots=True, eq=False)
class _Place:
    """Where a text belongs."""

    sessions: tuple[str, ...]
    file: str | None = None
    row: str = ""
    models: tuple[str, ...] = ()

    @classmethod
    def of(cls, index: SearchIndex, kind: Kind, id: str) -> _Place:
        """With the sessions that the index knows."""
        return cls((id,) if kind == "answers" else tuple(index.sessions_of(id)))


_Listed = tuple[Kind, str, _Place]


def _placed(store: Store, listed: Sequence[_Listed]) -> list[_Listed]:
    """The same with their places in the newest runs that have them, in the order of these."""
    waiting: dict[str | None, list[_Place]] = {}
    for _, id, place in listed:
        for named in {id, *place.sessions}:
            waiting.setdefault(named, []).append(place)
    missing = {place for _, _, place in listed}
    for run in store.find_recent_runs():
        if not missing:
            break
        found: dict[_Place, list[Result]] = {}
        for batch in iterate_results(store, run):
            for one in batch:
                for key in (one.test, one.evaluation, *one.sessions, *one.evaluations):
                    for place in waiting.get(key, ()):
                        if place in missing:
                            found.setdefault(place, []).append(one)
        for place, results in found.items():
            place.file, place.row = results[0].file, results[0].row
            place.models = tuple(dict.fromkeys(result.model for result in results))
        missing -= found.keys()
    order = {kind: number for number, kind in enumerate(KINDS)}
    return sorted(
        listed,
        key=lambda one: (
            one[2].file is None,
            one[2].file or "",
            one[2].row,
            order[one[0]],
            one[2].models,
            one[1],
        ),
    )


def _hits(store: Store, words: Sequence[str], placed: Sequence[_Listed]) -> Iterator[SearchHit]:
    texts = {
        kind: load_texts(store, kind, [id for one, id, _ in placed if one == kind])
        for kind in {kind for kind, _, _ in placed}
    }
    for kind, id, place in placed:
        text = texts[kind].get(id)
        if text is not None:  # the index may know what another store has
            context, matches = _context(text, words)
            yield SearchHit(
                kind, id, place.file, place.row, place.models, place.sessions, context, matches
            )


def _context(text: str, words: Sequence[str]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The text around the first place of the words, on one line, and where they are in it."""
    text = "".join(" " if one.isspace() else one for one in text)
    places = find_places(text, words)
    first = places[0][0] if places else 0
    begin = max(0, first - _AROUND)
    if begin and (blank := text.find(" ", begin, first)) >= 0:
        begin = blank + 1
    stop = min(len(text), (places[0][1] if places else 0) + _AROUND)
    if stop < len(text) and (blank := text.rfind(" ", places[0][1] if places else 0, stop)) >= 0:
        stop = blank
    head, tail = "… " * (begin > 0), " …" * (stop < len(text))
    shift = begin - len(head)
    inside = tuple((a - shift, b - shift) for a, b in places if a >= begin and b <= stop)
    return f"{head}{text[begin:stop]}{tail}", inside
