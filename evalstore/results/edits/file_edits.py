"""Finds the edits of test files: the first difference of each kind."""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import starmap
from typing import TYPE_CHECKING, Any, NamedTuple

from evalstore.comparison.case_edits import (
    PairedCases,
    differ_otherwise,
    differ_pair,
    versions_compared,
)
from evalstore.comparison.version_diff import Difference
from evalstore.core.batches import in_batches
from evalstore.core.display import plural
from evalstore.files.filed_sequence import FiledSequence, keep_values
from evalstore.files.temporary_list import TemporaryList
from evalstore.planning.reasons.source_changes import ROWS, as_replaced
from evalstore.results.edits.edited_sources import is_use_of
from evalstore.results.equal_parts import leave_out_same
from evalstore.workspace.digest_set import DigestMap, DigestSet, ValueSet, digest_of_value

if TYPE_CHECKING:
    from evalstore.core.values import Case, CaseFile
    from evalstore.planning.reasons.source_changes import SourceChanges
    from evalstore.planning.reasons.version_reader import VersionReader
    from evalstore.store.trees.case_finder import CaseFinder


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
    other rows names its row. `changes` tell whose bytes differ. Many are in temporary files.
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
    return {file: _without_repeated(kinds) for file, kinds in found.items()}


def _without_repeated(edits: Sequence[Difference]) -> Sequence[Difference]:
    """Return edits without those of checks that say again how a prompt or a schema was edited.

    A check names no lines of its schema, so it is left out only where nothing else was edited.
    """
    told, kinds = ValueSet(), set[str]()
    for each in edits:
        if match := _TOLD.match(each.subject):
            told.update([(match["kind"], match["rest"], each.was, each.now)])
            kinds.add(match["kind"])
    if not kinds:
        return edits
    is_schema_alone = len(edits) == 2 and kinds == {"schema"}
    return keep_differences(
        each
        for each in edits
        if not (match := _TOLD_BY_CHECK.match(each.subject))
        or not (
            (match["kind"], match["rest"], each.was, each.now) in told
            or (is_schema_alone and match["kind"] == "schema")
        )
    )


def by_subject(
    edits: Mapping[str, Iterable[Difference]], sources: Mapping[str, Sequence[str]]
) -> Mapping[str, Sequence[Difference]]:
    """Return the edits by what was edited: a test file, or a named prompt, once for all files.

    `sources` are the names of what was edited, by test file. Where it was not the test file, the
    edits are those of what it uses: a `tool`, or `rows of tests/data/letters.csv`.
    """
    subjects: dict[str, DistinctEdits] = defaultdict(DistinctEdits)
    prompts: dict[str, DistinctEdits] = defaultdict(DistinctEdits)
    for file, differences in edits.items():
        names = sources.get(file, (file,))
        for difference in differences:
            prompt, colon, rest = difference.subject.partition(": ")
            if colon and difference.subject.startswith(PROMPT_EDITS):
                edit = replace(difference, subject=rest)
                prompts[prompt].add(edit)
            elif file in names or not is_use_of(difference.subject, names):
                subject, of_subject = _place(file, names, difference)
                subjects[subject].add(of_subject)  # several files may use it
    return subjects | prompts


def _place(file: str, names: Sequence[str], difference: Difference) -> tuple[str, Difference]:
    """Return what of these names a difference is of, with the difference as it stands below it."""
    if file in names or not names:
        return file, difference
    used = _OF_USED.match(difference.subject)
    if used and used["name"] in names:
        return used["name"], replace(difference, subject=used["rest"] or "changed")
    rows = (name for name in names if name.startswith(ROWS))
    return next(rows, names[0]), difference


# --- lists of the edits of test files, of which many are in temporary files


class EditKinds(FiledSequence[Difference]):
    """The first difference of each kind in the rows of a file, then differences besides these.

    Of each, some bytes are in memory.
    """

    def __init__(self, cases: int) -> None:
        """`cases` are how many the file has."""
        self._cases = cases
        self._numbers = DigestMap()
        """The number of each kind, by its subject."""
        self._firsts = TemporaryList()
        """The first difference of each kind, and its row."""
        self._digests = array("Q")
        """Those of the first differences."""
        self._rows = array("L")
        """How many rows have a difference of each kind."""
        self._differ = bytearray()
        """1 where not all of these have the same values."""

    def add(self, difference: Difference, row: str) -> None:
        """Add a difference of a row."""
        digest, next_number = digest_of_value(difference), len(self._digests)
        number = self._numbers.add(digest_of_value(difference.subject), next_number)
        if number == next_number:
            self._digests.append(digest)
            self._file(difference, row)
            return
        self._rows[number] += 1
        if self._digests[number] != digest:
            self._differ[number] = 1

    def append(self, difference: Difference) -> None:
        """Add a difference besides those of rows, unless one of these is of its kind."""
        if self._numbers.get(digest_of_value(difference.subject)) is None:
            self._file(difference, "")

    def _file(self, difference: Difference, row: str) -> None:
        self._rows.append(1)
        self._differ.append(0)
        self._firsts.append((*_pack(difference), row))

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Difference]:
        return map(self._named, self._firsts, self._rows, self._differ)

    def read_one(self, number: int) -> Difference:
        """Return the difference with a number."""
        return self._named(self._firsts[number], self._rows[number], self._differ[number])

    def _named(self, values: Sequence[Any], rows: int, differ: int) -> Difference:
        """Return a difference; with its row, if other rows have other values or none at all."""
        *fields, row = values
        difference = Difference(*fields)
        is_alone = rows == 1 < self._cases and not difference.subject.startswith("row ")
        if not row or not (differ or is_alone):
            return difference
        others = "" if is_alone else f" and {plural(rows - 1, 'other row')}"
        return replace(difference, subject=f"{difference.subject} in [{row}]{others}")


class DistinctEdits(FiledSequence[Difference]):
    """Differences in the order in which they were added, each once."""

    def __init__(self) -> None:
        self._known = DigestSet()
        self._edits = TemporaryList()

    def add(self, difference: Difference) -> None:
        """Add a difference, unless it is known."""
        if self._known.add(digest_of_value(difference)):
            self._edits.append(_pack(difference))

    def __len__(self) -> int:
        return len(self._edits)

    def __iter__(self) -> Iterator[Difference]:
        return starmap(Difference, self._edits)

    def read_one(self, number: int) -> Difference:
        """Return the difference with a number."""
        return Difference(*self._edits[number])


def keep_differences(differences: Iterable[Difference]) -> Sequence[Difference]:
    """Return differences as a list, or if there are many in a temporary file."""
    return keep_values(differences, _pack, lambda values: Difference(*values))


def _pack(difference: Difference) -> tuple[str, str | None, str | None]:
    return difference.subject, difference.was, difference.now
