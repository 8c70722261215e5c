"""Finds the edits of test files: the first difference of each kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from evalstore.display import plural
from evalstore.operations.edited_sources import is_use_of
from evalstore.operations.equal_parts import leave_out_same
from evalstore.planning.source_changes import ROWS, as_replaced
from evalstore.planning.version_reader import in_batches
from evalstore.reports.case_edits import (
    PairedCases,
    differ_otherwise,
    differ_pair,
    versions_compared,
)

if TYPE_CHECKING:
    from evalstore.planning.source_changes import SourceChanges
    from evalstore.planning.version_reader import VersionReader
    from evalstore.reports.version_diff import Difference
    from evalstore.store.case_finder import CaseFinder
    from evalstore.values import Case, CaseFile

_OF_USED = re.compile(
    r"(?:conversation \d+, )?(?P<name>(?:file|tool|schema) .+?) changed(?:: (?P<rest>.*))?$",
    re.DOTALL,
)
"""A difference that is an edit of something that the test file uses."""
_TOLD = re.compile(r"(?P<kind>schema|evaluator prompt) .+?(?: changed)?: (?P<rest>.+)", re.DOTALL)
_TOLD_BY_CHECK = re.compile(
    r"check \d+ changed: (?P<kind>schema|evaluator prompt)(?:, (?P<rest>.+))?$", re.DOTALL
)
"""An edit of something that checks use, and the same as an edit of a check."""
PROMPT_EDITS = ("system prompt ", "evaluator prompt ")
"""Beginnings of the differences that are edits of a prompt and not of the test file."""
Name = Callable[[str, str], "str | None"]
"""From a kind and an id to the current name of a version."""


@dataclass
class _FirstEdit:
    """The first difference of a kind in the rows of a file."""

    difference: Difference
    row: str
    rows: int = 1
    """How many rows have a difference of this kind."""
    is_same: bool = True
    """Whether the values are the same in all of them."""

    def named(self, cases: int) -> Difference:
        """Return the difference; with its row, if other rows have other values or none at all.

        `cases` are those of the file.
        """
        is_alone = self.rows == 1 < cases and not self.difference.subject.startswith("row ")
        if not self.row or (self.is_same and not is_alone):
            return self.difference
        others = "" if is_alone else f" and {plural(self.rows - 1, 'other row')}"
        return replace(
            self.difference, subject=f"{self.difference.subject} in [{self.row}]{others}"
        )


def find_edits(
    versions: VersionReader,
    files: Mapping[str, tuple[CaseFile, CaseFile]],
    finder: CaseFinder,
    name: Name = lambda _kind, _id: None,
    changes: Mapping[str, SourceChanges | None] | None = None,
) -> dict[str, list[Difference]]:
    """Return the differences between two versions of each file, reading contents in batches.

    Parts of a long file that both versions have are not read.

    Of equal edits of several rows only the first is listed. One that is filled in otherwise in
    other rows names its row. `changes` tell whose bytes differ.
    """
    known = changes or {}
    sizes = {file: len(now.cases) for file, (_, now) in files.items()}
    files = {file: leave_out_same(*pair, finder) for file, pair in files.items()}
    edits: dict[str, dict[str, _FirstEdit]] = {file: {} for file in files}
    others: dict[str, list[Difference]] = {}

    def pairs() -> Iterator[tuple[str, Case | None, Case]]:
        for file, (was, now) in files.items():
            paired = PairedCases(was, now)
            yield from ((file, *pair) for pair in paired)
            others[file] = [*differ_otherwise(was, now, paired.gone())]

    for batch in in_batches(pairs()):
        versions.read_ahead(
            version for _, old, case in batch if old for version in versions_compared(old, case)
        )
        for file, old, case in batch:
            for found in differ_pair(old, case, versions.find, name):
                difference = as_replaced(found, known.get(file))
                first = edits[file].get(difference.subject)
                if first is None:
                    edits[file][difference.subject] = _FirstEdit(difference, case.row)
                else:
                    first.rows += 1
                    first.is_same = first.is_same and first.difference == difference
    listed = {
        file: [edit.named(sizes[file]) for edit in kinds.values()] for file, kinds in edits.items()
    }
    for file, differences in others.items():
        listed[file] += [other for other in differences if other.subject not in edits[file]]
        listed[file] = _without_repeated(listed[file])
    return listed


def _without_repeated(edits: Sequence[Difference]) -> list[Difference]:
    """Return edits without those of checks that say again how a prompt or a schema was edited.

    A check names no lines of its schema, so it is left out only where nothing else was edited.
    """
    told = {
        (match["kind"], match["rest"], each.was, each.now)
        for each in edits
        if (match := _TOLD.match(each.subject))
    }
    is_schema_alone = len(edits) == 2 and {kind for kind, *_ in told} == {"schema"}
    return [
        each
        for each in edits
        if not (match := _TOLD_BY_CHECK.match(each.subject))
        or not (
            (match["kind"], match["rest"], each.was, each.now) in told
            or (is_schema_alone and match["kind"] == "schema")
        )
    ]


def by_subject(
    edits: Mapping[str, Iterable[Difference]], sources: Mapping[str, Sequence[str]]
) -> dict[str, list[Difference]]:
    """Return the edits by what was edited: a test file, or a named prompt, once for all files.

    `sources` are the names of what was edited, by test file. Where it was not the test file, the
    edits are those of what it uses: a `tool`, or `rows of tests/data/letters.csv`.
    """
    subjects: dict[str, dict[Difference, None]] = {}
    prompts: dict[str, dict[Difference, None]] = {}
    for file, differences in edits.items():
        names = sources.get(file, (file,))
        for difference in differences:
            prompt, colon, rest = difference.subject.partition(": ")
            if colon and difference.subject.startswith(PROMPT_EDITS):
                edit = replace(difference, subject=rest)
                prompts.setdefault(prompt, {})[edit] = None
            elif file in names or not is_use_of(difference.subject, names):
                subject, of_subject = _place(file, names, difference)
                subjects.setdefault(subject, {})[of_subject] = None  # several files may use it
    return {subject: list(listed) for subject, listed in (subjects | prompts).items()}


def _place(file: str, names: Sequence[str], difference: Difference) -> tuple[str, Difference]:
    """Return what of these names a difference is of, with the difference as it stands below it."""
    if file in names or not names:
        return file, difference
    used = _OF_USED.match(difference.subject)
    if used and used["name"] in names:
        return used["name"], replace(difference, subject=used["rest"] or "changed")
    rows = (name for name in names if name.startswith(ROWS))
    return next(rows, names[0]), difference
