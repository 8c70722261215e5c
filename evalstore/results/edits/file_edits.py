"""Finds the edits of test files: the first difference of each kind."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from evalstore.comparison.case_edits import (
    EXCHANGED,
    PairedCases,
    differ_otherwise,
    differ_pair,
    versions_compared,
)
from evalstore.comparison.version_diff import Difference
from evalstore.core.batches import in_batches
from evalstore.core.display import plural
from evalstore.core.values import Case, CaseFile
from evalstore.planning.path_history import ROWS, SourceChanges, as_replaced
from evalstore.results.edits.edited_sources import is_use_of
from evalstore.results.equal_parts import leave_out_same

if TYPE_CHECKING:
    from evalstore.planning.version_reader import VersionReader
    from evalstore.store.trees.tree_nodes import CaseFinder


_OF_USED = re.compile(
    r"(?:conversation \d+, )?(?P<name>(?:file|tool|schema) .+?) changed(?:: (?P<rest>.*))?$",
    re.DOTALL,
)
"""A difference that is an edit of something that the test file uses."""
_TOLD = re.compile(r"(?P<kind>schema|judge prompt) .+?(?: changed)?: (?P<rest>.+)", re.DOTALL)
_TOLD_BY_CHECK = re.compile(
    r"check \d+ changed: (?P<kind>schema|judge prompt)(?:, (?P<rest>.+))?$", re.DOTALL
)
"""An edit of something that checks use, and the same as an edit of a check."""
PROMPT_EDITS = ("system prompt ", "judge prompt ")
"""Beginnings of the differences that are edits of a prompt and not of the test file."""
Name = Callable[[str, str], "str | None"]
"""From a kind and an id to the current name of a version."""


class _Compared(NamedTuple):
    """Two versions of a case of a file, or a difference of the file besides these."""

    file: str
    was: Case | None = None
    now: Case | None = None
    other: Difference | None = None


def find_edits(
    versions: VersionReader,
    files: Mapping[str, tuple[CaseFile, CaseFile]],
    finder: CaseFinder,
    name: Name = lambda _kind, _id: None,
    changes: Mapping[str, SourceChanges | None] | None = None,
) -> dict[str, Sequence[Difference]]:
    """Return the differences between two versions of each file, reading contents in batches.

    Parts of a long file that both versions have are not read.

    Of equal edits of several rows only the first is listed. One that is filled in otherwise in
    other rows names its row. `changes` tell whose bytes differ.
    """
    known = changes or {}
    found = {file: EditKinds(len(now.cases)) for file, (_, now) in files.items()}

    def compared() -> Iterator[_Compared]:
        for file, pair in files.items():
            was, now = leave_out_same(*pair, finder)
            paired = PairedCases(was, now)
            yield from (_Compared(file, *cases) for cases in paired)
            others = differ_otherwise(was, now, paired.gone())
            yield from (_Compared(file, other=other) for other in others)

    for batch in in_batches(compared()):
        versions.read_ahead(
            version
            for each in batch
            if each.was and each.now
            for version in versions_compared(each.was, each.now)
        )
        for file, was, now, other in batch:
            if other:
                found[file].append(other)
            if now:
                for difference in differ_pair(was, now, versions.find, name):
                    found[file].add(as_replaced(difference, known.get(file)), now.row)
    return {file: _without_repeated(kinds.listed()) for file, kinds in found.items()}


def _without_repeated(edits: Sequence[Difference]) -> Sequence[Difference]:
    """Return edits without those of checks that say again how a prompt or a schema was edited.

    A check names no lines of its schema, so it is left out only where nothing else was edited.
    """
    told, kinds = set[tuple[str | None, ...]](), set[str]()
    for each in edits:
        if match := _TOLD.match(each.subject):
            told.add((match["kind"], match["rest"], each.was, each.now))
            kinds.add(match["kind"])
    if not kinds:
        return edits
    is_schema_alone = len(edits) == 2 and kinds == {"schema"}
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
) -> Mapping[str, Sequence[Difference]]:
    """Return the edits by what was edited: a test file, or a named prompt, once for all files.

    `sources` are the names of what was edited, by test file. Where it was not the test file, the
    edits are those of what it uses: a `tool`, or `rows of tests/data/letters.csv`.
    """
    subjects: dict[str, dict[Difference, None]] = defaultdict(dict)
    prompts: dict[str, dict[Difference, None]] = defaultdict(dict)
    for file, differences in edits.items():
        names = sources.get(file, (file,))
        for difference in differences:
            prompt, colon, rest = difference.subject.partition(": ")
            if colon and difference.subject.startswith(PROMPT_EDITS):
                edit = replace(difference, subject=rest)
                prompts[prompt][edit] = None
            elif file in names or not is_use_of(difference.subject, names):
                subject, of_subject = _place(file, names, difference)
                subjects[subject][of_subject] = None  # several files may use it
    return {subject: list(listed) for subject, listed in (subjects | prompts).items()}


def _place(file: str, names: Sequence[str], difference: Difference) -> tuple[str, Difference]:
    """Return what of these names a difference is of, with the difference as it stands below it."""
    if file in names or not names:
        return file, difference
    if difference.subject.endswith(EXCHANGED):
        subject = difference.subject.removesuffix(EXCHANGED)
        return subject, replace(difference, subject=f"contents{EXCHANGED}")
    used = _OF_USED.match(difference.subject)
    if used and used["name"] in names:
        return used["name"], replace(difference, subject=used["rest"] or "changed")
    rows = (name for name in names if name.startswith(ROWS))
    return next(rows, names[0]), difference


# --- lists of the edits of test files


@dataclass(slots=True)
class _Kind:
    """The first difference of a kind in the rows of a file."""

    first: Difference
    row: str
    rows: int = 1
    """How many rows have a difference of this kind."""
    differ: bool = False
    """Whether not all of these have the same values."""


class EditKinds:
    """The first difference of each kind in the rows of a file, then differences besides these."""

    def __init__(self, cases: int) -> None:
        """`cases` are how many the file has."""
        self._cases = cases
        self._kinds: dict[str, _Kind] = {}
        self._others: list[Difference] = []

    def add(self, difference: Difference, row: str) -> None:
        """Add a difference of a row."""
        kind = self._kinds.get(difference.subject)
        if kind is None:
            self._kinds[difference.subject] = _Kind(difference, row)
            return
        kind.rows += 1
        kind.differ = kind.differ or kind.first != difference

    def append(self, difference: Difference) -> None:
        """Add a difference besides those of rows, unless one of these is of its kind."""
        if difference.subject not in self._kinds:
            self._others.append(difference)

    def listed(self) -> list[Difference]:
        """Return all; each with its row, if other rows have other values or none at all."""
        return [*map(self._named, self._kinds.values()), *self._others]

    def _named(self, kind: _Kind) -> Difference:
        difference = kind.first
        is_alone = kind.rows == 1 < self._cases and not difference.subject.startswith("row ")
        if not kind.row or not (kind.differ or is_alone):
            return difference
        others = "" if is_alone else f" and {plural(kind.rows - 1, 'other row')}"
        return replace(difference, subject=f"{difference.subject} in [{kind.row}]{others}")
