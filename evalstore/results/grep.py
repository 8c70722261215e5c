"""Full-text search: `grep`, and the search of the browser.

The index is updated before each search. It is the file `.evalstore/search.db` of this machine, or
in memory where that cannot be written.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, NamedTuple, TypeVar

from evalstore.core.batches import in_batches, in_small_batches
from evalstore.core.errors import EvalstoreError
from evalstore.core.runs import Run
from evalstore.core.values import Json
from evalstore.files.json_output import fields_to_json
from evalstore.files.temporary_list import open_temporary
from evalstore.planning.open_project import open_store, open_workspace
from evalstore.planning.options import Location
from evalstore.planning.selection import compile_name
from evalstore.results.names import name_prompts
from evalstore.store import Store
from evalstore.store.search.index import (
    KINDS,
    Kind,
    Report,
    SearchIndex,
    find_word_places,
    has_words,
    load_searched,
    load_texts,
    readable_text,
    split_words,
)

In = Literal["answers", "feedback", "tests"]
"""The kinds of text that can be searched."""
T = TypeVar("T")
_FILE = "search.db"
_BLANK = re.compile(r"\s")
_AROUND = 60
"""Characters of context on each side."""
_FEW = 10_000
"""The most ids in memory by which results are left out that have none of the texts."""


class Searcher:
    """Searches while the user types; may be called from any thread.

    An index in memory is kept; an index file is opened for each search.
    """

    def __init__(self, location: Location) -> None:
        self._location = location
        self._lock = threading.Lock()
        self._kept: SearchIndex | None = None
        self._runs: list[str] = []
        """The recent runs in which texts have been looked for."""
        self._places: dict[tuple[str, tuple[str, ...]], TextPlace] = {}
        """The places of texts in these runs, by the id and the sessions of the text."""

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
            return FoundTexts((), 0, no_word(pattern))

        def find(store: Store, index: SearchIndex) -> FoundTexts | None:
            newest = index.find_newest(words, kinds, limit, lambda: report(0, 0))
            if newest is None:
                return None
            documents, total = newest
            placed = self._place(store, list_documents(index, documents), lambda: report(0, 0))
            if placed is None:
                return None
            names = name_prompts(self._location, {id for *_, it in placed for id in it.prompts})
            texts = tuple(_found_texts(store, words, placed, names))
            return FoundTexts(texts, total)

        return self._use(report, find)

    def _place(
        self, store: Store, listed: Sequence[ListedText], go_on: Callable[[], bool]
    ) -> list[ListedText] | None:
        """Return the texts with their places, which are kept until there is another run."""
        runs = list(store.find_recent_runs())
        ids = [run.id for run in runs]
        if ids != self._runs:
            self._runs, self._places = ids, {}
        known = [
            (kind, id, self._places.get((id, place.sessions), place)) for kind, id, place in listed
        ]
        placed = find_places(store, known, runs, go_on)
        for _, id, place in placed or ():
            self._places[id, place.sessions] = place
        return placed

    def _use(self, report: Report, search: Callable[[Store, SearchIndex], T | None]) -> T | None:
        """Search the store with its index, which is updated first; one search at a time."""
        while not self._lock.acquire(timeout=0.05):
            if not report(0, 0):
                return None
        try:
            with open_store(self._location) as store:
                index = self._kept or open_index(self._location)
                if not index.path:
                    self._kept = index
                try:
                    return search(store, index) if index.update(store, report) else None
                except EvalstoreError:
                    self._kept = None
                    raise
                finally:
                    if index is not self._kept:
                        index.close()
        finally:
            self._lock.release()


def open_index(location: Location) -> SearchIndex:
    """Return the index of the workspace."""
    workspace = open_workspace(location)
    path = workspace.private / _FILE
    workspace.boundary.require_database(path, workspace.name_of(path))
    return SearchIndex.open(path)


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

    @property
    def noun(self) -> str:
        """Return what a text of this kind is called."""
        return {"answers": "answer", "tests": "test"}.get(self.kind, self.kind)

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
    named: bool = False,
) -> Iterator[FoundText]:
    """Yield the stored texts that contain all words of a pattern, by file and row.

    The last word may be the beginning of one; a phrase in quotation marks is one word. `name` is
    an expression over `file::row`, as that of a selection. Raises `EvalstoreError` when nothing
    in the pattern is a word. The index is updated, and the texts are placed, before the first one
    is yielded; few of them are in memory. With `named`, each has the name of its system prompt.
    """
    by_name = compile_name(name) if name else None
    words = split_words(pattern)
    if not has_words(words):
        raise no_word(pattern)
    kinds = [kind for kind in KINDS if not within or _IN[kind] in within]
    with open_store(location) as store:
        index = open_index(location)
        try:
            index.update(store, report)
            documents = in_batches(index.find_documents(words, kinds))
            texts = _SearchedTexts(
                text for some in documents for text in list_documents(index, some)
            )
        finally:
            index.close()
        texts.search(store, store.find_recent_runs())
        placed: Iterable[ListedText] = texts
        if by_name:
            placed = (it for it in texts if it[2].file is not None and by_name(it[2].name))
        names: Mapping[str | None, str] = {}
        for batch in in_small_batches(placed):
            ids = {id for *_, place in batch for id in place.prompts} if named else set()
            if not ids <= names.keys():
                names = name_prompts(location, ids | names.keys())
            yield from _found_texts(store, words, batch, names)


def no_word(pattern: str) -> EvalstoreError:
    """Return the error for a pattern in which nothing is a word."""
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


def _found_texts(
    store: Store,
    words: Sequence[str],
    placed: Sequence[ListedText],
    names: Mapping[str | None, str],
) -> Iterator[FoundText]:
    """Yield the texts that the store has; `names` are those of system prompts, or empty."""
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
            prompts = [names[id] for id in place.prompts] if names else []
            yield FoundText(hit, place.run, ", ".join(prompts))


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


# --- the places of texts: the cases, and the newest runs, in which they are


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
    texts = _SearchedTexts(text for text in listed if not text[2].is_final)
    if not texts.search(store, runs, go_on):
        return None
    return sorted((*(text for text in listed if text[2].is_final), *texts), key=_sort_key)


def _sort_key(text: ListedText) -> tuple[bool, str, str, int, tuple[str, ...], str]:
    """Return what texts are sorted by: their places; those without one come last."""
    kind, id, place = text
    return place.file is None, place.file or "", place.row, KINDS.index(kind), place.models, id


_TABLES = """
    CREATE TABLE texts (number INTEGER PRIMARY KEY, kind INTEGER, id TEXT, sessions TEXT);
    CREATE TABLE keys (id TEXT, number INTEGER, is_own INTEGER, PRIMARY KEY (id, number))
        WITHOUT ROWID;
    CREATE TABLE results (id TEXT, file TEXT, row TEXT, model TEXT, prompt TEXT, prompts INTEGER);
    CREATE TABLE places (n INTEGER PRIMARY KEY, number INTEGER, run TEXT, file TEXT, row TEXT,
        model TEXT, prompt TEXT, prompts INTEGER, is_own INTEGER);
    CREATE INDEX places_of_texts ON places (number, run);
"""
"""The texts, the ids that stand for them, some results, and the results in which texts are.

A judgement is in a result that has its own id, or else in one that has the answer it is about.
"""
_PLACE = """
    INSERT INTO places (number, run, file, row, model, prompt, prompts, is_own)
    SELECT k.number, ?, r.file, r.row, r.model, r.prompt, r.prompts, k.is_own
    FROM results r JOIN keys k ON k.id = r.id
    WHERE NOT EXISTS (
        SELECT 1 FROM places p WHERE p.number = k.number AND p.run <> ? AND p.is_own >= k.is_own)
    ORDER BY r.rowid
"""
_LEFT = "SELECT count(*) FROM texts WHERE number NOT IN (SELECT number FROM places WHERE is_own)"
_SORTED = """
    SELECT t.kind, t.id, t.sessions, p.*
    FROM texts t LEFT JOIN (
        SELECT number, min(n), run, file, row, prompts, group_concat(model, char(0)),
            group_concat(coalesce(prompt, ''), char(0))
        FROM places o
        WHERE is_own OR NOT EXISTS (SELECT 1 FROM places p WHERE p.number = o.number AND p.is_own)
        GROUP BY number) p ON p.number = t.number
    ORDER BY p.file IS NULL, p.file, p.row, t.kind, t.id
"""


class _SearchedTexts:
    """Texts whose places are searched, in a temporary database."""

    def __init__(self, texts: Iterable[ListedText]) -> None:
        self._database = open_temporary(self, _TABLES)
        for batch in in_batches(enumerate(texts)):
            rows = (
                (number, KINDS.index(kind), id, "\0".join(place.sessions))
                for number, (kind, id, place) in batch
            )
            self._database.executemany("INSERT INTO texts VALUES (?, ?, ?, ?)", rows)
            keys = (
                (key, number, key == id)
                for number, (_, id, place) in batch
                for key in {id, *place.sessions}
            )
            self._database.executemany("INSERT INTO keys VALUES (?, ?, ?)", keys)

    def search(
        self, store: Store, runs: Iterable[Run], go_on: Callable[[], bool] = lambda: True
    ) -> bool:
        """Note the results of the newest run with each text; returns False once `go_on` does.

        Results that a newer run has at the same place of a file are not read again.
        """
        searched: set[tuple[str, str]] = set()
        some = self._database.execute("SELECT DISTINCT id FROM keys LIMIT ?", (_FEW + 1,))
        keys = {id for (id,) in some}
        has_all = len(keys) <= _FEW
        for run in runs:
            if not self._database.execute(_LEFT).fetchone()[0]:
                break
            all_leaves = store.find_tree_leaves(run.results)
            leaves = [leaf for leaf in all_leaves if (leaf.file, leaf.id) not in searched]
            searched.update((leaf.file, leaf.id) for leaf in leaves)
            for batch in in_small_batches(leaves):
                if not go_on():
                    return False
                found = store.find_result_ids(batch)
                self._database.execute("DELETE FROM results")
                rows = (
                    (id, leaf.file, each.row, each.model, each.prompt, each.prompts)
                    for leaf in batch
                    for each in found[leaf.id]
                    for id in each.ids
                    if not has_all or id in keys
                )
                statement = "INSERT INTO results VALUES (?, ?, ?, ?, ?, ?)"
                self._database.executemany(statement, rows)
                self._database.execute(_PLACE, (run.id, run.id))
        return True

    def __iter__(self) -> Iterator[ListedText]:
        """Yield the texts by place."""

        def restore() -> Iterator[ListedText]:
            for kind, id, sessions, *found in self._database.execute(_SORTED):
                _, first, run, file, row, prompts, models, shown = found
                place = TextPlace(tuple(sessions.split("\0")) if sessions else (), is_final=True)
                if first is not None:
                    place.file, place.row, place.run = file, row, run
                    place.models = tuple(dict.fromkeys(models.split("\0")))
                    some = tuple(prompt or None for prompt in dict.fromkeys(shown.split("\0")))
                    place.prompts = some if len(some) < prompts else ()
                yield KINDS[kind], id, place

        def place_of(text: ListedText) -> tuple[str | None, str, Kind]:
            return text[2].file, text[2].row, text[0]

        for (file, *_), same in groupby(restore(), place_of):
            if file is None:
                yield from same
            else:
                yield from sorted(same, key=_sort_key)
