"""A test file with older versions of some of its cases; many are in a temporary file."""

from __future__ import annotations

from array import array
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from evalstore.core.values import Case
from evalstore.files.filed_sequence import keep_values
from evalstore.files.temporary_list import TemporaryList
from evalstore.workspace.digest_set import digest_of_value

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evalstore.core.values import CaseFile

_OWN = -1
"""Stands for a case that has no older version, or the same one."""


class CaseVersions:
    """Versions of cases, which are found by their keys, else by the labels of their rows."""

    def __init__(self) -> None:
        self._keys, self._rows = array("Q"), array("Q")
        self._digests = array("Q")
        """Those of the whole cases."""
        self._cases = TemporaryList()

    def append(self, case: Case) -> None:
        """Add a version; of several with one key the first counts."""
        self._keys.append(digest_of_value(case.key))
        self._rows.append(digest_of_value(case.row))
        self._digests.append(digest_of_value(case))
        self._cases.append(tuple(case))

    def mix_into(self, file: CaseFile) -> CaseFile | None:
        """Return a file with these versions of its cases; None if it has no others itself."""
        by_key: dict[int, int] = {}
        by_row: dict[int, int] = {}
        for place, (key, row) in enumerate(zip(self._keys, self._rows, strict=True)):
            if by_key.setdefault(key, place) == place:
                by_row[row] = place

        def find(case: Case) -> int:
            place = by_key.get(digest_of_value(case.key), by_row.get(digest_of_value(case.row)))
            if place is None or self._digests[place] == digest_of_value(case):
                return _OWN
            return place

        places = array("l", map(find, file.cases))
        if all(place == _OWN for place in places):
            return None
        cases = zip(file.cases, places, strict=True)
        mixed = (own if place == _OWN else _restore(self._cases[place]) for own, place in cases)
        return replace(file, cases=keep_values(mixed, tuple, _restore))


def _restore(values: Sequence[Any]) -> Case:
    return Case._make(tuple(each) if isinstance(each, list) else each for each in values)
