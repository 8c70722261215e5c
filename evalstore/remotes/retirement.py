"""Marks in a remote: which of its files are no longer needed, and since when.

A mark is `retired/<sha256>.json`, named by its content: the index files that others replace, and
the packs that only these list. It is written once, and the time of the file is that of the
retirement. Readers need no marks. A push reads them when it finds a pack that it wants to use.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from evalstore.core.canonical_json import canonical_json
from evalstore.core.errors import RemoteError
from evalstore.remotes.places.layout import (
    RETIRED,
    ListedFile,
    MissingFileError,
    RemoteFiles,
    digest_of_index,
    digest_of_pack,
    pack_name,
    sha256,
)

LONGEST_FAST = 3_600_000_000
"""Microseconds that a mark may be in the future: clocks differ, and listings are rounded."""
_LARGEST_MARK = 64 * 2**20
_MARK = re.compile(rf"{RETIRED}/([0-9a-f]{{64}})\.json\Z")
CLOCK = f"{RETIRED}/clock"
"""The file with which the time of a remote is read."""
_ATTEMPTS = 3
"""Another clean-up may delete that file."""


class Mark(NamedTuple):
    """Files of a remote that are no longer needed."""

    name: str
    modified: int
    """Microseconds since 1970, by the clock of the remote."""
    indexes: Sequence[str]
    """Names of index files."""
    packs: Sequence[str]
    """SHA-256 of packs that no other index listed at that time."""


def write_mark(files: RemoteFiles, indexes: Iterable[str], packs: Iterable[str]) -> None:
    """Mark files as no longer needed; those that are marked so already keep their time."""
    content = {"indexes": sorted(indexes), "packs": sorted(packs)}
    data = canonical_json(content).encode()
    files.create(f"{RETIRED}/{sha256(data)}.json", data)


def read_marks(files: RemoteFiles, listed: Iterable[ListedFile]) -> list[Mark]:
    """Return the marks among the files of a remote, oldest first.

    Raises `RemoteError` for a damaged one.
    """
    marks: list[Mark] = []
    for file in listed:
        match = _MARK.match(file.name)
        if match is None:
            continue
        try:
            data = files.read(file.name, _LARGEST_MARK)
        except MissingFileError:
            continue  # another clean-up has finished it
        indexes, packs = _read_mark(files, file.name, match[1], data)
        marks.append(Mark(file.name, _time_of(files, file), indexes, packs))
    return sorted(marks, key=lambda mark: (mark.modified, mark.name))


def _read_mark(
    files: RemoteFiles, name: str, digest: str, data: bytes
) -> tuple[list[str], list[str]]:
    try:
        content = json.loads(data)
        indexes, packs = list(content["indexes"]), list(content["packs"])
        sound = (
            sha256(data) == digest
            and all(digest_of_index(index) for index in indexes)
            and all(digest_of_pack(pack_name(pack)) for pack in packs)
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        sound, indexes, packs = False, [], []
    if not sound:
        raise RemoteError(
            f"the remote '{files.address}' is damaged: '{name}' has changed since it was written",
            hint=f"remove '{name}'; 'evalstore remote gc' writes it again",
        )
    return indexes, packs


def find_retired_packs(files: RemoteFiles) -> frozenset[str]:
    """Return the SHA-256 of the packs that may be deleted at any time."""
    marks = read_marks(files, files.iterate(RETIRED))
    return frozenset(digest for mark in marks for digest in mark.packs)


def require_past(files: RemoteFiles, marks: Iterable[Mark], time: int) -> None:
    """Raise `RemoteError` if a mark is later than `time`: then the age of none can be told."""
    for mark in marks:
        if mark.modified > time + LONGEST_FAST:
            raise RemoteError(
                f"the remote '{files.address}' has a mark dated in the future: '{mark.name}'",
                hint="correct the clock that is wrong; if the mark is wrong, remove it, and "
                "'evalstore remote gc' writes it again",
            )


def read_time(files: RemoteFiles) -> int:
    """Return the time of the remote, in microseconds since 1970: that of a file written now."""
    for _ in range(_ATTEMPTS):
        if not files.create(CLOCK, b""):  # left by a killed clean-up, or of one at work
            files.delete(CLOCK)
            files.create(CLOCK, b"")
        found = [_time_of(files, file) for file in files.iterate(RETIRED) if file.name == CLOCK]
        files.delete(CLOCK)
        if found:
            return found[0]
    raise RemoteError(
        f"the remote '{files.address}' does not list a file that was written to it",
        hint="try again in a moment",
    )


def _time_of(files: RemoteFiles, file: ListedFile) -> int:
    if file.modified is None:
        raise RemoteError(f"the remote '{files.address}' has no time of '{file.name}'")
    return file.modified
