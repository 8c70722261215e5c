"""Finds cases of test files by name, reading few of the cases of a very long file."""

from __future__ import annotations

import re
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from evalstore.canonical_json import canonical_json
from evalstore.deserialize import restore_case_file
from evalstore.store.case_files import CasePart, StoredCases
from evalstore.store.contents import decode_content

if TYPE_CHECKING:
    from evalstore.store import Store
    from evalstore.values import Case, CaseFile

_AT_ONCE = 256
_STRING = r'"([^"\\]*(?:\\.[^"\\]*)*)"'
_KEYS = re.compile(f'"key":{_STRING}').findall
_ROWS = re.compile(f'"row":{_STRING}').findall
_JUDGED_BY = re.compile(r'"judgedBy":\[([^\]]*)\]').findall
"""These find fields of cases in canonical JSON, where a quote inside of a string is escaped."""


class CaseTraits(NamedTuple):
    """What at least one of some cases has."""

    judged_by_models: bool
    default_temperature: bool
    """The temperature of the candidate, as it sets none."""


class CaseFinder:
    """Finds cases by their names: their keys and their labels.

    Of the nodes of a very long file it keeps digests of the names, so that it decodes only those
    with the cases that are looked for. Each node is searched once, in whichever files it is.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._digests: dict[str, array[int]] = {}
        """The digests of the names in a node, by its id."""
        self._traits: dict[str, CaseTraits] = {}
        """The traits of the cases in a node, by its id."""

    def find(self, file: CaseFile, names: Collection[str]) -> Iterator[Case]:
        """Yield the cases of a file that have one of these names, in their order."""
        cases: Iterable[Case] = file.cases
        if isinstance(file.cases, StoredCases):
            cases = file.cases.read(self.parts_with(list(file.cases.smallest_parts()), names))
        for case in cases:
            if case.key in names or case.row in names:
                yield case

    def long_parts_with(self, file: CaseFile, names: Collection[str]) -> set[str]:
        """Return those of the parts of a very long file that may have cases with these names."""
        if not isinstance(file.cases, StoredCases) or not names:
            return set()
        found = self.parts_with(list(file.cases.smallest_parts()), names)
        return {
            long.node
            for long in file.cases.parts()
            if any(long.first <= part.first < long.first + long.size for part in found)
        }

    def find_traits(self, file: CaseFile) -> CaseTraits:
        """Return what some of the cases of a file have."""
        if not isinstance(file.cases, StoredCases):
            return _traits_of(file.cases)
        nodes = [part.node for part in file.cases.smallest_parts()]
        for id, text in self._texts(id for id in nodes if id not in self._traits):
            self._traits[id] = _traits_in(id, text)
        known = [self._traits[id] for id in nodes]
        return CaseTraits(*(any(values) for values in zip(*known, strict=True)))

    def parts_with(self, parts: Sequence[CasePart], names: Collection[str]) -> list[CasePart]:
        """Return those of these smallest parts that may have cases with one of these names."""
        if not names:
            return []
        self._read_names(parts)
        wanted = {hash(canonical_json(name)[1:-1]) for name in names}
        return [part for part in parts if not wanted.isdisjoint(self._digests[part.node])]

    def parts_sharing(
        self, parts: Sequence[CasePart], others: Sequence[CasePart]
    ) -> list[CasePart]:
        """Return those of these smallest parts that may have cases with names of the others."""
        self._read_names([*parts, *others])
        wanted = {digest for other in others for digest in self._digests[other.node]}
        return [part for part in parts if not wanted.isdisjoint(self._digests[part.node])]

    def _read_names(self, parts: Sequence[CasePart]) -> None:
        """Keep the digests of the names in these parts."""
        nodes = (part.node for part in parts)
        for id, text in self._texts(id for id in nodes if id not in self._digests):
            self._digests[id] = array("q", map(hash, names_in(id, text)))

    def _texts(self, nodes: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Yield the canonical JSON of these nodes by id."""
        left = iter(list(dict.fromkeys(nodes)))
        while batch := list(islice(left, _AT_ONCE)):
            yield from self._store.load_texts(batch)


def names_in(id: str, text: str) -> Iterable[str]:
    """Return the keys and the labels of the cases of a node, as they stand in its JSON."""
    keys, rows = _KEYS(text), _ROWS(text)
    if len(keys) == len(rows):
        return chain(keys, rows)
    cases = decode_content("nodes", id, text, "cases")["cases"]  # some have no label
    names = (name for case in cases for name in (case["key"], case.get("row", "")))
    return (canonical_json(name)[1:-1] for name in names)


def _traits_in(id: str, text: str) -> CaseTraits:
    """Return the traits of the cases of a node, whose canonical JSON is the text."""
    count, judged_by = text.count('"key":"'), _JUDGED_BY(text)
    temperatures = text.count('"temperature":')
    if len(judged_by) == count and temperatures in (0, count):
        by_models = any('"models"' in names for names in judged_by)
        return CaseTraits(by_models, default_temperature=not temperatures)
    content = decode_content("nodes", id, text, "cases")
    return _traits_of(restore_case_file(content).cases)


def _traits_of(cases: Iterable[Case]) -> CaseTraits:
    judged_by_models = default_temperature = False
    for case in cases:
        judged_by_models = judged_by_models or "models" in case.judged_by
        default_temperature = default_temperature or case.temperature is None
    return CaseTraits(judged_by_models, default_temperature)
