"""What was edited in test files: the first difference of each kind of edit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from evalstore.operations.contents import Contents, in_portions
from evalstore.report.difference import Difference, differ_evaluations, differ_tests

if TYPE_CHECKING:
    from evalstore.values import Case, CaseFile


def find_edits(
    contents: Contents, files: Mapping[str, tuple[CaseFile, CaseFile]]
) -> dict[str, list[Difference]]:
    """What differs between the two versions under each of these names."""
    found: dict[str, dict[str, Difference]] = {name: {} for name in files}
    rows = (
        (path, old, case) for path, (was, now) in files.items() for old, case in _pairs(was, now)
    )
    for some in in_portions(rows):
        contents.read_ahead(
            one for _, old, case in some if old is not None for one in _compared(old, case)
        )
        for path, old, case in some:
            for name, difference in _differences(contents, old, case):
                found[path].setdefault(name, difference)
    for path, (was, now) in files.items():
        kept = {case.key for case in now.cases} | {case.row for case in now.cases}
        for case in was.cases:
            if case.key not in kept and case.row not in kept:
                gone = Difference(f"row {case.row or case.key} is gone")
                found[path].setdefault(f"gone {case.row}", gone)
    return {path: list(differences.values()) for path, differences in found.items()}


def _pairs(was: CaseFile, now: CaseFile) -> Iterator[tuple[Case | None, Case]]:
    """The rows of the newer version, each with the same row of the older one."""
    old_by_key = {case.key: case for case in was.cases}
    old_by_row = {case.row: case for case in was.cases}
    for case in now.cases:
        yield old_by_key.get(case.key) or old_by_row.get(case.row), case


def _compared(old: Case, case: Case) -> Iterator[tuple[str, str | None]]:
    """The versions that are compared, by kind and id."""
    for one in (old, case):
        if old.tests != case.tests:
            yield "test", one.tests[0]
        if old.evaluation != case.evaluation:
            yield "evaluation", one.evaluation


def _differences(
    contents: Contents, old: Case | None, case: Case
) -> Iterator[tuple[str, Difference]]:
    """What differs between two versions of a row, each with what kind of edit it is."""
    if old is None:
        yield f"row {case.row}", Difference(f"row {case.row or case.key} is new")
        return
    find = contents.find
    if old.tests != case.tests:
        was_test, now_test = (find("test", one.tests[0]) or {} for one in (old, case))
        for one in differ_tests(was_test, now_test, find, lambda _kind, _id: None):
            yield one.what, one
    if old.evaluation != case.evaluation:
        was_told, now_told = (
            (find("evaluation", one.evaluation) or {}) if one.evaluation else {}
            for one in (old, case)
        )
        for one in differ_evaluations(was_told, now_told, find):
            yield one.what, one
    if old.prompts != case.prompts:
        yield "system prompts", Difference("system prompts changed")
