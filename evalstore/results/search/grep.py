"""Full-text search: `grep`, and the search of the browser.

The index is updated before each search. For a store in SQLite it is the file
`.evalstore/search.db` of this machine, or in memory where that cannot be written. A store in
PostgreSQL has it in its own tables: whoever searches first adds what is new, for all.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

from evalstore.core.batches import in_small_batches
from evalstore.core.display import plural
from evalstore.core.errors import EvalstoreError
from evalstore.files.json_output import fields_to_json
from evalstore.planning.open_project import open_store, open_workspace
from evalstore.planning.selection import compile_name
from evalstore.results.prompt_names import name_prompts
from evalstore.results.search.text_places import (
    ListedText,
    TextPlace,
    find_places,
    list_documents,
    place_documents,
)
from evalstore.store.search.texts import (
    KINDS,
    Kind,
    load_searched,
    load_texts,
    readable_text,
)
from evalstore.store.search.words import find_word_places, has_words, split_words

if TYPE_CHECKING:
    from evalstore.core.values import Json
    from evalstore.planning.options import Location
    from evalstore.store import Store
    from evalstore.store.search.index import Report, SearchIndex

In = Literal["answers", "feedback", "tests"]
"""The kinds of text that can be searched."""
T = TypeVar("T")
_FILE = "search.db"
_BLANK = re.compile(r"\s")
_KEPT_PLACES = 10_000
_AROUND = 60
"""Characters of context on each side."""


class Searcher:
    """Searches while the user types; may be called from any thread.

    An index in memory is kept; an index file is opened for each search.
    """

    def __init__(self, location: Location) -> None:
        self._location = location
        self._lock = threading.Lock()
        self._kept: SearchIndex | None = None
        self._has_warned = False
        self._stamp: str | None = None
        """That of a store with search tables before its index was updated."""
        self._runs: list[str] = []
        """The recent runs in which texts have been looked for."""
        self._places: dict[tuple[str, tuple[str, ...]], TextPlace] = {}
        """The places of texts in these runs, by the id and the sessions of the text."""
        self._prompts: dict[str | None, str] = {}
        """The names of the system prompts of these texts."""

    def search(
        self, words: Sequence[str], report: Report, *, in_answers: bool = False
    ) -> Set[str] | None:
        """Return the sessions whose answer, feedback, test or instructions contain all these words.

        With `in_answers` the answer alone must. None when `report` ended the search; the index
        keeps what was added until then.
        """

        def find(_store: Store, index: SearchIndex) -> Set[str] | None:
            return index.find_sessions(words, lambda: report(0, 0), in_answers=in_answers)

        return self._use(report, find)

    def find(
        self,
        pattern: str,
        limit: int,
        report: Report = lambda _done, _all: True,
        within: Sequence[In] = (),
    ) -> FoundTexts | None:
        """Return texts that contain all words of a pattern, as `grep` does.

        At most `limit` texts are listed, answers before others, and those before older ones. None
        when `report` ended the search.
        """
        kinds = [kind for kind in KINDS if not within or _IN[kind] in within]
        words = split_words(pattern)
        if not has_words(words):
            return FoundTexts((), 0, _no_word(pattern))

        def find(store: Store, index: SearchIndex) -> FoundTexts | None:
            newest = index.find_newest(words, kinds, limit, lambda: report(0, 0))
            if newest is None:
                return None
            documents, total = newest
            placed = self._place(store, list_documents(index, documents), lambda: report(0, 0))
            if placed is None:
                return None
            names = self._name_prompts(place for _, _, place in placed)
            texts = tuple(
                FoundText(hit, place.run, ", ".join(names[id] for id in place.prompts))
                for hit, place in _hits(store, words, placed)
            )
            lacks = index.missing and not total
            return FoundTexts(texts, total, _incomplete(pattern, index) if lacks else None)

        return self._use(report, find)

    def _place(
        self, store: Store, listed: Sequence[ListedText], go_on: Callable[[], bool]
    ) -> list[ListedText] | None:
        """Return the texts with their places, which are kept until there is another run."""
        runs = list(store.find_recent_runs())
        ids = [run.id for run in runs]
        if ids != self._runs or len(self._places) > _KEPT_PLACES:
            self._runs, self._places, self._prompts = ids, {}, {}
        known = [
            (kind, id, self._places.get((id, place.sessions), place)) for kind, id, place in listed
        ]
        placed = find_places(store, known, runs, go_on)
        for _, id, place in placed or ():
            self._places[id, place.sessions] = place
        return placed

    def _name_prompts(self, places: Iterable[TextPlace]) -> Mapping[str | None, str]:
        """Return the names of the system prompts of texts, which are read when one is new."""
        ids = {id for place in places for id in place.prompts}
        if not ids <= self._prompts.keys():
            self._prompts = name_prompts(self._location, ids | self._prompts.keys())
        return self._prompts

    def _use(self, report: Report, search: Callable[[Store, SearchIndex], T | None]) -> T | None:
        """Search the store with its index, which is updated first; one search at a time."""
        while not self._lock.acquire(timeout=0.05):
            if not report(0, 0):
                return None
        try:
            with open_store(self._location) as store:
                index = self._kept or open_index(self._location, store)
                if index.in_memory:
                    self._kept = index
                try:
                    return search(store, index) if self._update(index, store, report) else None
                except EvalstoreError:
                    self._kept = None
                    raise
                finally:
                    if index is not self._kept:
                        index.close()
        finally:
            self._lock.release()

    def _update(self, index: SearchIndex, store: Store, report: Report) -> bool:
        """Update the index; not while nothing is written to a store that has it in itself."""
        stamp = store.stamp() if store.has_search_tables else None
        if stamp is not None and stamp == self._stamp:
            return report(0, 0)
        if not index.update(store, report):
            return False
        self._stamp = stamp
        if index.missing and not self._has_warned:
            self._has_warned = True
            self._location.warn(_lacks(index))
        return True


def open_index(location: Location, store: Store) -> SearchIndex:
    """Return the index of a store, or else that of the workspace."""
    if store.has_search_tables:
        from evalstore.store.search.tables import SearchTables

        return SearchTables(store)
    from evalstore.store.search.file import SearchFile

    workspace = open_workspace(location)
    path = workspace.private / _FILE
    workspace.boundary.require_database(path, workspace.name_of(path))
    return SearchFile.open(path)


# --- grep


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A text that contains the words."""

    kind: Kind
    id: str
    """The id of the session, the judgement, the test or the evaluation version."""
    file: str | None
    """The test file; None if the text is not in a recent run."""
    row: str
    models: tuple[str, ...]
    """The candidates whose answers contain the text, or that it is about."""
    sessions: tuple[str, ...]
    context: str
    """The first match with the text around it."""
    matches: tuple[tuple[int, int], ...]
    """Start and end of the matches in `context`."""

    def document(self) -> Json:
        """Return the match as JSON."""
        return {
            "in": _IN[self.kind],
            **fields_to_json(self),
            "kind": _KIND[self.kind],
        }


class FoundText(NamedTuple):
    """A text that contains the words, and the newest run that has it."""

    hit: SearchHit
    run: str | None
    """None if the text is not in a recent run."""
    prompt: str = ""
    """The name of its system prompt, where the case has several."""


class FoundTexts(NamedTuple):
    """The texts that contain the words."""

    texts: tuple[FoundText, ...]
    """By file and row, as `grep` lists them."""
    total: int
    """How many there are, also of those that are not listed."""
    problem: EvalstoreError | None = None
    """Why nothing could be searched."""


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


def iterate_hits(
    location: Location,
    pattern: str,
    within: Sequence[In] = (),
    report: Report = lambda _done, _all: True,
    *,
    name: str | None = None,
) -> Iterator[SearchHit]:
    """Yield the stored texts that contain all words of a pattern, by file and row.

    The last word may be the beginning of one; a phrase in quotation marks is one word. `name` is
    an expression over `file::row`, as that of a selection. Raises `EvalstoreError` when nothing
    in the pattern is a word, and when nothing is found while the index lacks texts. The index is
    updated, and the texts are placed, before the first one is yielded; few of them are in memory.
    """
    by_name = compile_name(name) if name else None
    words = split_words(pattern)
    if not has_words(words):
        raise _no_word(pattern)
    kinds = [kind for kind in KINDS if not within or _IN[kind] in within]
    with open_store(location) as store:
        index = open_index(location, store)
        try:
            index.update(store, report)
            documents = index.find_documents(words, kinds)
            placed = place_documents(store, index, documents, by_name)
        finally:
            index.close()
        is_any = False
        for batch in in_small_batches(placed):
            if index.missing and not is_any:
                location.warn(_lacks(index))
            is_any = True
            yield from (hit for hit, _ in _hits(store, words, batch))
        if index.missing and not is_any:
            raise _incomplete(pattern, index)


def _lacks(index: SearchIndex) -> str:
    return f"the search index lacks {plural(index.missing, 'text')}, which this user may not add"


def _incomplete(pattern: str, index: SearchIndex) -> EvalstoreError:
    return EvalstoreError(
        f"nothing with '{pattern}' is in the search index, which lacks "
        f"{plural(index.missing, 'text')} that this user may not add",
        hint="they become searchable when a user who may write to the store has searched",
    )


def _no_word(pattern: str) -> EvalstoreError:
    return EvalstoreError(
        f"'{pattern}' has no word to search for",
        hint="words have letters, digits or symbols; punctuation is not searched",
    )


class MarkedText(NamedTuple):
    """A text and the places of words in it."""

    text: str
    places: Sequence[tuple[int, int]]


def read_text(location: Location, hit: SearchHit, pattern: str) -> MarkedText:
    """Return a text that was found, with the places of the words in it; empty when it is gone."""
    with open_store(location) as store:
        content = load_searched(store, hit.kind, [hit.id]).get(hit.id)
    text = "" if content is None else readable_text(hit.kind, content)
    return MarkedText(text, find_word_places(text, split_words(pattern)))


def _hits(
    store: Store, words: Sequence[str], placed: Sequence[ListedText]
) -> Iterator[tuple[SearchHit, TextPlace]]:
    texts = {
        kind: load_texts(store, kind, [id for other, id, _ in placed if other == kind])
        for kind in {kind for kind, _, _ in placed}
    }
    for kind, id, place in placed:
        text = texts[kind].get(id)
        if text is not None:  # the index may contain texts of another store
            context, matches = _context(text, words)
            hit = SearchHit(
                kind, id, place.file, place.row, place.models, place.sessions, context, matches
            )
            yield hit, place


def _context(text: str, words: Sequence[str]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Return the text around the first match, on one line, and the matches in it."""
    text = _BLANK.sub(" ", text)
    places = find_word_places(text, words)
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
