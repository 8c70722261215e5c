"""Finds cases of test files by name, reading few of the cases of a very long file."""

from __future__ import annotations

import re
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING

from evalstore.canonical_json import canonical_json
from evalstore.store.case_files import CasePart, StoredCases
from evalstore.store.contents import decode_content

if TYPE_CHECKING:
    from evalstore.store import Store
    from evalstore.values import Case, CaseFile

_AT_ONCE = 256
_STRING = r'"((?:[^"\\]|\\.)*)"'
_KEYS = re.compile(f'"key":{_STRING}').findall
_ROWS = re.compile(f'"row":{_STRING}').findall
"""These find the names of cases in canonical JSON, where a quote inside of a string is escaped."""


class CaseFinder:
    """Finds cases by their names: their keys and their labels.

    Of the nodes of a very long file it keeps digests of the names, so that it decodes only those
    with the cases that are looked for. Each node is searched once, in whichever files it is.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._digests: dict[str, array[int]] = {}
        """The digests of the names in a node, by its id."""

    def find(self, file: CaseFile, names: Collection[str]) -> Iterator[Case]:
        """Yield the cases of a file that have one of these names, in their order."""
        cases: Iterable[Case] = file.cases
        if isinstance(file.cases, StoredCases):
            cases = file.cases.read(self.parts_with(list(file.cases.smallest_parts()), names))
        for case in cases:
            if case.key in names or case.row in names:
                yield case

    def parts_with(self, parts: Sequence[CasePart], names: Collection[str]) -> list[CasePart]:
        """Return those of these smallest parts that may have cases with one of these names."""
        if not names:
            return []
        self._search(part.node for part in parts)
        wanted = {hash(canonical_json(name)[1:-1]) for name in names}
        return [part for part in parts if not wanted.isdisjoint(self._digests[part.node])]

    def _search(self, nodes: Iterable[str]) -> None:
        """Keep the digests of the names in these nodes."""
        unknown = iter([id for id in dict.fromkeys(nodes) if id not in self._digests])
        while batch := list(islice(unknown, _AT_ONCE)):
            for id, text in self._store.load_texts(batch):
                self._digests[id] = array("q", map(hash, _names_in(id, text)))


def _names_in(id: str, text: str) -> Iterable[str]:
    """Return the keys and the labels of the cases of a node, as they stand in its JSON."""
    keys, rows = _KEYS(text), _ROWS(text)
    if len(keys) == len(rows):
        return chain(keys, rows)
    cases = decode_content("nodes", id, text, "cases")["cases"]  # some have no label
    names = (name for case in cases for name in (case["key"], case.get("row", "")))
    return (canonical_json(name)[1:-1] for name in names)
