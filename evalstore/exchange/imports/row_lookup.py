"""Finds the rows of a test file by their values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalstore.core import hashing
from evalstore.core.display import as_text
from evalstore.core.values import Case, Json
from evalstore.files.access import LARGEST_TEXT, normalise
from evalstore.workspace.testfiles.case_builder import CaseBuilder
from evalstore.workspace.testfiles.parser import parse_test

if TYPE_CHECKING:
    from evalstore.planning.project import Project

_LONGEST = 80
"""Characters of values in a message."""


class NotPlacedError(Exception):
    """An answer does not match a case, for this reason."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The cases of a test file, indexed by their values."""

    cases: Sequence[Case]
    numbers: Mapping[str, list[int]]
    """Key -> the numbers of the cases that have it."""
    columns: tuple[str, ...]
    """Columns of the data that a text or a check uses."""
    names: frozenset[str]
    """Names of the replacements."""

    def find(self, values: Mapping[str, Json]) -> list[int]:
        """Return the numbers of the cases with these values; raises `NotPlacedError` for none."""
        key_values = {name: values[name] for name in self.columns if name in values}
        key_values |= {name: as_text(values[name]) for name in self.names if name in values}
        matches = self.numbers.get(hashing.row_key(key_values), [])
        if not matches:
            text = json.dumps(key_values, ensure_ascii=False)
            text = text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
            raise NotPlacedError(f"no row of the test has the values {text}")
        return matches


def read_test_rows(project: Project, file: str) -> Rows:
    """Return the rows of a test file of the workspace; raises `NotPlacedError` for errors."""
    case_file, library = project.reading.files.get(file), project.reading.library
    if case_file is None or library is None:
        raise NotPlacedError("the test file has errors: 'evalstore check' lists them")
    test = parse_test(file, normalise(project.workspace.read_bytes(file, LARGEST_TEXT)))
    data = library.open_data(test.dataset, file)[0] if test.dataset else None
    filler = CaseBuilder(test, data, (), None).filler
    numbers: dict[str, list[int]] = {}
    for number, case in enumerate(case_file.cases):
        numbers.setdefault(case.key, []).append(number)
    return Rows(case_file.cases, numbers, tuple(filler.used_columns), frozenset(filler.known))
