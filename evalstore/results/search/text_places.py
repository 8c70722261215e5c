"""Finds the places of texts: the cases, and the newest runs, in which they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any

from evalstore.core.batches import in_batches, in_small_batches
from evalstore.files.temporary_list import open_temporary
from evalstore.store.search.texts import KINDS, Kind

if TYPE_CHECKING:
    from evalstore.core.runs import Run
    from evalstore.store import Store
    from evalstore.store.rows.row_queries import ResultLeaf
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
    texts = _SearchedTexts(text for text in listed if not text[2].is_final)
    if not texts.search(store, runs, go_on):
        return None
    return sorted((*(text for text in listed if text[2].is_final), *texts), key=_sort_key)


def place_documents(
    store: Store,
    index: SearchIndex,
    documents: Sequence[tuple[Kind, str]],
    by_name: Callable[[str], bool] | None = None,
) -> Iterable[ListedText]:
    """Find the places of many texts, as `find_places` does; few of them are in memory.

    With `by_name`, only those are returned whose `file::row` it accepts.
    """
    listed = (list_documents(index, some) for some in in_batches(documents))
    texts = _SearchedTexts(chain.from_iterable(listed))
    texts.search(store, store.find_recent_runs())
    if by_name is None:
        return texts
    return (text for text in texts if text[2].file is not None and by_name(text[2].name))


def _sort_key(text: ListedText) -> tuple[bool, str, str, int, tuple[str, ...], str]:
    """Return what texts are sorted by: their places; those without one come last."""
    kind, id, place = text
    return place.file is None, place.file or "", place.row, KINDS.index(kind), place.models, id


_TABLES = """
    CREATE TABLE texts (number INTEGER PRIMARY KEY, kind INTEGER, id TEXT, sessions TEXT);
    CREATE TABLE keys (id TEXT, number INTEGER, PRIMARY KEY (id, number)) WITHOUT ROWID;
    CREATE TABLE results (id TEXT, file TEXT, row TEXT, model TEXT, prompt TEXT, prompts INTEGER);
    CREATE TABLE places (n INTEGER PRIMARY KEY, number INTEGER, run TEXT, file TEXT, row TEXT,
        model TEXT, prompt TEXT, prompts INTEGER);
    CREATE INDEX places_of_texts ON places (number, run);
"""
"""The texts, the ids that stand for them, some results, and the results in which texts are."""
_PLACE = """
    INSERT INTO places (number, run, file, row, model, prompt, prompts)
    SELECT k.number, ?, r.file, r.row, r.model, r.prompt, r.prompts
    FROM results r JOIN keys k ON k.id = r.id
    WHERE NOT EXISTS (SELECT 1 FROM places p WHERE p.number = k.number AND p.run <> ?)
    ORDER BY r.rowid
"""
_LEFT = "SELECT count(*) FROM texts WHERE number NOT IN (SELECT number FROM places)"
_SORTED = """
    SELECT t.kind, t.id, t.sessions, p.*
    FROM texts t LEFT JOIN (
        SELECT number, min(n), run, file, row, prompts, group_concat(model, char(0)),
            group_concat(coalesce(prompt, ''), char(0))
        FROM places GROUP BY number) p ON p.number = t.number
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
                (key, number) for number, (_, id, place) in batch for key in {id, *place.sessions}
            )
            self._database.executemany("INSERT INTO keys VALUES (?, ?)", keys)

    def search(
        self, store: Store, runs: Iterable[Run], go_on: Callable[[], bool] = lambda: True
    ) -> bool:
        """Note the results of the newest run with each text; returns False once `go_on` does.

        Results that a newer run has at the same place of a file are not read again.
        """
        searched: set[tuple[str, ResultLeaf]] = set()
        for run in runs:
            if not self._database.execute(_LEFT).fetchone()[0]:
                break
            leaves = [each for each in store.find_tree_leaves(run.results) if each not in searched]
            searched.update(leaves)
            for batch in in_small_batches(leaves):
                if not go_on():
                    return False
                found = store.find_result_ids(leaf for _, leaf in batch)
                self._database.execute("DELETE FROM results")
                rows = (
                    (id, file, each.row, each.model, each.prompt, each.prompts)
                    for file, leaf in batch
                    for each in found[leaf.id]
                    for id in each.ids
                )
                statement = "INSERT INTO results VALUES (?, ?, ?, ?, ?, ?)"
                self._database.executemany(statement, rows)
                self._database.execute(_PLACE, (run.id, run.id))
        return True

    def __iter__(self) -> Iterator[ListedText]:
        """Yield the texts by place."""
        texts = (_restore(*row) for row in self._database.execute(_SORTED))
        for (file, *_), same in groupby(texts, lambda text: (text[2].file, text[2].row, text[0])):
            if file is None:
                yield from same
            else:
                yield from sorted(same, key=_sort_key)


def _restore(kind: int, id: str, sessions: str, *found: Any) -> ListedText:
    """Return a text with its place; `found` are the columns of its first result, and of all."""
    _, first, run, file, row, prompts, models, shown = found
    place = TextPlace(tuple(sessions.split("\0")) if sessions else (), is_final=True)
    if first is not None:
        place.file, place.row, place.run = file, row, run
        place.models = tuple(dict.fromkeys(models.split("\0")))
        some = tuple(prompt or None for prompt in dict.fromkeys(shown.split("\0")))
        place.prompts = some if len(some) < prompts else ()
    return KINDS[kind], id, place
