"""Finds what was edited where two versions of a test file differ: it, or what it uses."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from evalstore.operations.equal_parts import leave_out_same
from evalstore.planning.version_reader import in_batches
from evalstore.reports.case_edits import differ_cases, versions_compared
from evalstore.store.case_files import StoredCases
from evalstore.workspace.data_files import find_data_file

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from evalstore.planning.version_reader import VersionReader
    from evalstore.reports.version_diff import Name
    from evalstore.store.case_finder import CaseFinder
    from evalstore.values import Case, CaseFile
    from evalstore.workspace.folder import WorkspaceFolder

_COMPARED = 5
"""The most pairs of cases of a file whose contents are read."""
_MOST_ROWS = 10_000
"""The most rows of a file that are compared."""
_USED = re.compile(r"(?:conversation \d+, )?((?:file|tool|schema) .+?) changed(?=:|$)", re.DOTALL)
"""Begins a difference that is an edit of something that the test file uses, and names it."""
_IN_CHECK = re.compile(r"check \d+ changed: (schema|evaluator prompt)\b")
"""Begins a difference of a check that uses something which another difference names."""
Key = TypeVar("Key")
_UNNAMED = re.compile(r"schema [0-9a-f]{8}\Z")
"""A version without a name, as its file was edited several times since."""
ROWS = "rows of "
"""Begins the name of a data file that was edited, or of which other rows are used."""


class _Rows(NamedTuple):
    """How the rows of two versions of a test file differ."""

    edited: Sequence[tuple[Case, Case]]
    """Rows with the same values whose cases differ."""
    have_other_values: bool
    """Whether there are other rows, or the same ones in another order."""
    is_any_kept: bool
    """Whether both versions have some of the rows."""


class EditedSources:
    """Tells what was edited where two versions of a test file differ.

    Rows with the same values differ if the test file was edited, or something else that it uses.
    If they do not, and other rows have come, its data file was edited or is used otherwise.
    Of long files only the parts that differ are read.
    """

    def __init__(
        self, workspace: WorkspaceFolder, finder: CaseFinder, versions: VersionReader, name: Name
    ) -> None:
        self._workspace, self._finder = workspace, finder
        self._versions, self._name = versions, name

    def find(
        self, files: Mapping[Key, tuple[str, CaseFile, CaseFile]]
    ) -> dict[Key, tuple[str, ...]]:
        """Return what was edited, such as `rows of tests/data/letters.csv`; by the same keys.

        `files` are the paths of test files with their two versions. The path is the first name
        unless all edits are of what the test file uses.
        """
        compared = {
            key: self._compare(was, now)
            for key, (_, was, now) in files.items()
            if replace(was, cases=()) == replace(now, cases=())
        }
        found = {key: rows for key, rows in compared.items() if rows}
        used = self._find_used({key: rows.edited[:_COMPARED] for key, rows in found.items()})
        return {
            key: self._name_all(path, found[key], used[key]) if key in found else (path,)
            for key, (path, *_) in files.items()
        }

    def _name_all(self, path: str, rows: _Rows, used: Mapping[str, None] | None) -> tuple[str, ...]:
        """Return what was edited; `used` is None if the test file was."""
        names = [f"schema of {path}" if _UNNAMED.match(name) else name for name in used or ()]
        is_edited = used is None
        if rows.have_other_values:
            data = find_data_file(self._workspace, path)
            names += [f"{ROWS}{data.name}"] if data else []
            is_edited = is_edited or not (data and data.is_alone and rows.is_any_kept)
        return (path, *names) if is_edited or not names else tuple(names)

    def _compare(self, was: CaseFile, now: CaseFile) -> _Rows | None:
        """Compare the rows of both versions; None for long files that differ in many parts."""
        if _differs_widely(was, now):
            return None
        old, new = leave_out_same(was, now, self._finder)
        by_key = {case.key: case for case in old.cases}
        pairs = [(by_key[case.key], case) for case in new.cases if case.key in by_key]
        return _Rows(
            [pair for pair in pairs if _without_label(pair[0]) != _without_label(pair[1])],
            [case.key for case in old.cases] != [case.key for case in new.cases],
            bool(pairs) or len(new.cases) < len(now.cases),
        )

    def _find_used(
        self, pairs: Mapping[Key, Sequence[tuple[Case, Case]]]
    ) -> dict[Key, dict[str, None] | None]:
        """Return what was edited of what cases use; None where the test file was edited."""
        used: dict[Key, dict[str, None] | None] = {key: {} for key in pairs}
        for batch in in_batches((key, *pair) for key, listed in pairs.items() for pair in listed):
            self._versions.read_ahead(
                version for _, was, now in batch for version in versions_compared(was, now)
            )
            for key, was, now in batch:
                known = used[key]
                if known is not None:
                    found = self._compare_pair(was, now)
                    used[key] = known | dict.fromkeys(found) if found else None
        return used

    def _compare_pair(self, was: Case, now: Case) -> Collection[str]:
        """Return what was edited of what a case uses; empty if the test file was edited."""
        if _otherwise(was) != _otherwise(now):
            return ()
        used: dict[str, None] = {}
        for kind, old, new in (
            ("system prompt", was.prompts, now.prompts),
            ("evaluator prompt", was.judge_prompts, now.judge_prompts),
        ):
            names = list(self._edited_prompts(old, new)) if len(old) == len(new) else [None]
            if None in names:
                return ()
            used |= dict.fromkeys(f"{kind} {name}" for name in names)
        subjects = [
            difference.subject
            for difference in differ_cases(
                was._replace(prompts=(), judge_prompts=()),
                now._replace(prompts=(), judge_prompts=()),
                self._versions.find,
                self._name,
            )
        ]
        matches = [(subject, _USED.match(subject)) for subject in subjects]
        used |= dict.fromkeys(match[1] for _, match in matches if match)
        others = (subject for subject, match in matches if not match)
        return used if all(is_use_of(subject, used) for subject in others) else ()

    def _edited_prompts(
        self, was: Sequence[str | None], now: Sequence[str | None]
    ) -> Iterator[str | None]:
        """Yield the names of edited prompts, or None for a prompt that another one replaced."""
        for former, id in zip(was, now, strict=True):
            if former != id:
                if not (id and former):
                    yield None
                    continue
                names = {self._name("prompt", former), self._name("prompt", id)} - {None}
                yield names.pop() if len(names) == 1 else None


def is_use_of(subject: str, names: Collection[str]) -> bool:
    """Return whether a difference is that a check uses one of these, which were edited."""
    match = _IN_CHECK.match(subject)
    return match is not None and any(name.startswith(match[1]) for name in names)


def _differs_widely(was: CaseFile, now: CaseFile) -> bool:
    """Return whether a file is long and very many of its cases are in parts that differ."""
    if not (isinstance(was.cases, StoredCases) and isinstance(now.cases, StoredCases)):
        return max(len(was.cases), len(now.cases)) > _MOST_ROWS
    old, new = (list(cases.smallest_parts()) for cases in (was.cases, now.cases))
    same = {part.node for part in old} & {part.node for part in new}
    return any(
        sum(part.size for part in parts if part.node not in same) > _MOST_ROWS
        for parts in (old, new)
    )


def _without_label(case: Case) -> Case:
    """Return a case without its label, which depends on the other rows."""
    return case._replace(row="")


def _otherwise(case: Case) -> Case:
    """Return a case without its label, and without all that changes with what it uses."""
    return _without_label(case)._replace(
        tests=(), evaluation=None, prompts=(), judge_prompts=(), code=(), needs=()
    )
