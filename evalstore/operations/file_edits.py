"""Finds the edits of test files: the first difference of each kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from evalstore.planning.version_reader import VersionReader, in_batches
from evalstore.reports.case_edits import (
    differ_otherwise,
    differ_pair,
    pair_cases,
    versions_compared,
)

if TYPE_CHECKING:
    from evalstore.reports.version_diff import Difference
    from evalstore.values import CaseFile


def find_edits(
    versions: VersionReader, files: Mapping[str, tuple[CaseFile, CaseFile]]
) -> dict[str, list[Difference]]:
    """Return the differences between two versions of each file, reading contents in batches."""
    edits: dict[str, dict[str, Difference]] = {name: {} for name in files}
    pairs = ((name, *pair) for name, (was, now) in files.items() for pair in pair_cases(was, now))
    for batch in in_batches(pairs):
        versions.read_ahead(
            version for _, old, case in batch if old for version in versions_compared(old, case)
        )
        for name, old, case in batch:
            for difference in differ_pair(old, case, versions.find, lambda _kind, _id: None):
                edits[name].setdefault(difference.subject, difference)
    for name, (was, now) in files.items():
        for difference in differ_otherwise(was, now):
            edits[name].setdefault(difference.subject, difference)
    return {name: list(differences.values()) for name, differences in edits.items()}
