"""Finds what was edited where two versions of a test file differ: it, or what it uses."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from evalstore.comparison.case_edits import differ_cases, exchanged_prompts, versions_compared
from evalstore.comparison.version_diff import Name
from evalstore.core.batches import in_batches
from evalstore.core.values import Case, CaseFile
from evalstore.planning.path_history import ROWS, SourceChanges
from evalstore.results.equal_parts import leave_out_same
from evalstore.store.trees.tree_nodes import StoredCases

if TYPE_CHECKING:
    from evalstore.planning.version_reader import VersionReader
    from evalstore.store.trees.tree_nodes import CaseFinder

CASES = "cases of "
"""Begins the name of a test file of which it is not known what was edited."""
_COMPARED = 5
"""The most pairs of cases of a file whose contents are read."""
_MOST_ROWS = 10_000
"""The most rows of a file that are compared."""
_USED = re.compile(r"(?:conversation \d+, )?((?:file|tool|schema) .+?) changed(?=:|$)", re.DOTALL)
"""Begins a difference that is an edit of something that the test file uses, and names it."""
_IN_CHECK = re.compile(r"check \d+ changed: (schema|judge prompt)\b")
"""Begins a difference of a check that uses something which another difference names."""
Key = TypeVar("Key")
Prompts = tuple["str | None", ...]
_UNNAMED = re.compile(r"schema [0-9a-f]{8}\Z")
"""A version without a name, as its file was edited several times since."""


class Versions(NamedTuple):
    """Two versions of a test file."""

    path: str
    was: CaseFile
    now: CaseFile
    changes: SourceChanges | None = None
    """Whose bytes differ; None where that is not known."""


class _Rows(NamedTuple):
    """How the rows of two versions of a test file differ."""

    edited: Sequence[tuple[Case, Case]]
    """Rows with the same values whose cases differ."""
    have_other_values: bool
    """Whether there are other rows, or the same ones in another order."""


class EditedSources:
    """Tells what was edited where two versions of a test file differ.

    A name of a file is given only if its bytes differ, as far as runs have noted them. How the
    cases differ says which of these edits they come from: rows with the same values differ if the
    test file was edited, or something else that it uses but its data.
    Of long files only the parts that differ are read.
    """

    def __init__(self, finder: CaseFinder, versions: VersionReader, name: Name) -> None:
        self._finder, self._versions, self._name = finder, versions, name

    def find(self, files: Mapping[Key, Versions]) -> dict[Key, tuple[str, ...]]:
        """Return what was edited, such as `rows of tests/data/letters.csv`; by the same keys.

        The path of a test file is its first name unless all edits are of what it uses. If neither
        is known, it is `rows of` its path, or `cases of` it.
        """
        compared = {
            key: self._compare(each.was, each.now)
            for key, each in files.items()
            if replace(each.was, cases=()) == replace(each.now, cases=())
        }
        found = {key: rows for key, rows in compared.items() if rows}  # the others are not read
        used = self._find_used(files, {key: it.edited[:_COMPARED] for key, it in found.items()})
        return {
            key: _name_known(each.path, each.changes, found.get(key), used.get(key))
            if each.changes
            else _name_likely(each.path, found.get(key), used.get(key))
            if found.get(key) or key not in compared
            else (f"{CASES}{each.path}",)
            for key, each in files.items()
        }

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
        )

    def _find_used(
        self, files: Mapping[Key, Versions], pairs: Mapping[Key, Sequence[tuple[Case, Case]]]
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
                    found = self._compare_pair(was, now, files[key].changes)
                    used[key] = known | dict.fromkeys(found) if found else None
        return used

    def _compare_pair(self, was: Case, now: Case, changes: SourceChanges | None) -> Collection[str]:
        """Return what was edited of what a case uses; empty if the test file was edited."""
        if _otherwise(was) != _otherwise(now):
            return ()
        used: dict[str, None] = {}
        for kind, old, new in (
            ("system prompt", was.prompts, now.prompts),
            ("judge prompt", was.judge_prompts, now.judge_prompts),
        ):
            names = self._edited_prompts(old, new)
            if moved := exchanged_prompts(old, new):  # if the files were edited, their contents
                names = [self._name("prompt", id) for id in moved]
                edited = changes.names_of(f"{kind} ") if changes else ()
                names = names if {*names} <= {*edited} else [None]
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

    def find_prompts(self, file: Versions) -> tuple[str, ...]:
        """Return the system prompts that were edited, also if the test file was."""
        both = pair_prompts(file.was, file.now)
        named = (name for pair in both for name in self._edited_prompts(*pair) if name)
        prompts = {f"system prompt {name}" for name in named}
        return tuple(prompts & {*file.changes.edited} if file.changes else prompts)

    def _edited_prompts(self, was: Prompts, now: Prompts) -> list[str | None]:
        """Return the names of edited prompts; None where one was added, removed or replaced."""
        if len(was) != len(now):
            return [None]
        edited = [both for both in zip(was, now, strict=True) if both[0] != both[1]]
        named = [
            {self._name("prompt", id) for id in both if id} - {None} if all(both) else set()
            for both in edited
        ]
        return [names.pop() if len(names) == 1 else None for names in named]


def pair_prompts(before: CaseFile, after: CaseFile) -> set[tuple[Prompts, Prompts]]:
    """Return the system prompts of the cases at the same places of two versions of a file."""
    if isinstance(before.cases, StoredCases) and isinstance(after.cases, StoredCases):
        # All cases of a long file are rows of one test file, so they have the same ones.
        return {(before.cases[0].prompts, after.cases[0].prompts)}
    pairs = zip(before.cases, after.cases, strict=False)
    return {(was.prompts, now.prompts) for was, now in pairs}


def name_by_bytes(path: str, changes: SourceChanges | None) -> tuple[str, ...]:
    """Return what was edited, by whose bytes differ, without reading cases."""
    test = (path,) if changes and changes.is_test_edited else ()
    return (*test, *(changes.edited if changes else ())) or (f"{CASES}{path}",)


def _name_known(
    path: str, changes: SourceChanges, rows: _Rows | None, used: Collection[str] | None
) -> tuple[str, ...]:
    """Return which of the files whose bytes differ were edited, as the cases show it.

    `used` is None if the cases do not show that it was only what the test file uses.
    """
    names = [name for name in used or () if name in changes.edited]
    is_explained = used is not None and len(names) == len(used)
    have_other_values = rows is None or rows.have_other_values
    names += changes.data if have_other_values else []
    if changes.is_test_edited:
        is_needed = have_other_values or not (is_explained and names)
        return (path, *names) if is_needed else tuple(names)
    if not is_explained:
        names += [name for name in changes.edited if name not in names]
    return tuple(names) or (f"{CASES}{path}",)


def _name_likely(path: str, rows: _Rows | None, used: Collection[str] | None) -> tuple[str, ...]:
    """Return what was edited where it is not known whose bytes differ.

    `used` is None if it was the test file.
    """
    names = [f"schema of {path}" if _UNNAMED.match(name) else name for name in used or ()]
    names += [f"{ROWS}{path}"] if rows and rows.have_other_values else []
    return (path, *names) if used is None or not names else tuple(names)


def is_use_of(subject: str, names: Collection[str]) -> bool:
    """Return whether a difference is that a check uses one of these, which were edited."""
    match = _IN_CHECK.match(subject)
    return match is not None and any(name.startswith(match[1]) for name in names)


def _differs_widely(was: CaseFile, now: CaseFile) -> bool:
    """Return whether a file is long and many of its cases are in parts that differ."""
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
