"""Reads all that a clean-up must know of a remote: every index file, pack and mark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from evalstore.core.errors import RemoteError
from evalstore.remotes.indexes.indexes import (
    LARGEST_INDEX,
    DamagedIndexError,
    IndexedRecord,
    IndexHeader,
    read_index,
)
from evalstore.remotes.packs.signatures import LARGEST_SIGNATURE
from evalstore.remotes.places.layout import (
    INDEXES,
    PACKS,
    RETIRED,
    SIGNATURE,
    digest_of_index,
    digest_of_pack,
    read_parts_name,
)
from evalstore.remotes.places.layout import sha256 as hash_bytes
from evalstore.remotes.places.remote_files import ListedFile, MissingFileError, UnreadableFileError
from evalstore.remotes.retirement import CLOCK, Mark, read_marks

if TYPE_CHECKING:
    from evalstore.remotes.acceptance import Acceptance
    from evalstore.remotes.places.remote_files import RemoteFiles


class PushGroup(NamedTuple):
    """Pushes that count for the same people, so that one index may replace them."""

    writer: str
    """Who has written them, as it is verified; without signatures, as they say themselves."""
    named: str
    """Who has written them, as they say themselves."""
    is_signed: bool


class SurveyedIndex(NamedTuple):
    """An index file of a remote."""

    name: str
    size: int
    """Bytes."""
    header: IndexHeader

    @property
    def records(self) -> int:
        """Return how many records it lists."""
        return self.header.records


class RemoteSurvey:
    """What a remote has. Reading raises `RemoteError`, also for any index that is damaged."""

    def __init__(self, files: RemoteFiles, rules: Acceptance) -> None:
        self._files = files
        self._rules = rules
        self._groups: dict[str, PushGroup | None] = {}
        # Packs first: of a push that ends meanwhile, the index is seen.
        packs = ((digest_of_pack(file.name), file) for file in files.iterate(PACKS))
        self.packs: dict[str, ListedFile] = {digest: file for digest, file in packs if digest}
        retired = list(files.iterate(RETIRED))
        self.marks: list[Mark] = read_marks(files, retired)
        self.has_clock = any(file.name == CLOCK for file in retired)
        """Whether a clean-up was killed while it read the time."""
        self.indexes: dict[str, SurveyedIndex] = {}
        self.signatures: dict[str, int] = {}
        """The bytes of the signatures, by the names of their indexes."""
        self.parts: dict[str, list[ListedFile]] = {}
        """The files with the parts of indexes, by the names of these, which may be missing."""
        self.read_indexes()

    def read_indexes(self) -> None:
        """Read the index files that are new, and forget those that are gone."""
        listed = list(self._files.iterate(INDEXES))
        self.parts = {}
        for file in listed:
            if of := read_parts_name(file.name):
                self.parts.setdefault(of[0], []).append(file)
        sizes = {file.name: file.size for file in listed}
        names = [name for name in sizes if digest_of_index(name)]
        self.signatures = {
            name.removesuffix(SIGNATURE): size
            for name, size in sizes.items()
            if digest_of_index(name.removesuffix(SIGNATURE)) and name.endswith(SIGNATURE)
        }
        self.indexes = {name: self.indexes[name] for name in names if name in self.indexes}
        for name in names:
            if name not in self.indexes:
                try:
                    data = self._read(name)
                except MissingFileError:
                    continue  # another clean-up has deleted it
                header, _ = self._parse(name, data)
                self.indexes[name] = SurveyedIndex(name, len(data), header)

    def _read(self, name: str) -> bytes:
        data = self._files.read(name, LARGEST_INDEX)
        if hash_bytes(data) != digest_of_index(name):
            raise self._damaged(name, "it has other bytes than when it was written")
        return data

    def _parse(self, name: str, data: bytes) -> tuple[IndexHeader, Iterator[IndexedRecord]]:
        try:
            header, records = read_index(data)
        except DamagedIndexError as error:
            raise self._damaged(name, str(error)) from error
        return header, self._iterate(name, records)

    def _iterate(self, name: str, records: Iterator[IndexedRecord]) -> Iterator[IndexedRecord]:
        try:
            yield from records
        except DamagedIndexError as error:
            raise self._damaged(name, str(error)) from error

    def read_records(self, name: str) -> Iterator[IndexedRecord]:
        """Yield the records of an index."""
        yield from self._parse(name, self._read(name))[1]

    def _damaged(self, name: str, problem: str) -> RemoteError:
        return RemoteError(
            f"the remote '{self._files.address}' is damaged: '{name}': {problem}",
            hint="'evalstore fsck --remote' lists what is wrong; nothing of it was changed",
        )

    def find_group(self, name: str) -> PushGroup | None:
        """Return the group of an index; None where that cannot be verified, or it does not count.

        A signature means nothing without a file of allowed signers: then its index has no group.
        """
        if name not in self._groups:
            self._groups[name] = self._verify(name)
        return self._groups[name]

    def _verify(self, name: str) -> PushGroup | None:
        header, signature = self.indexes[name].header, None
        is_signed = name in self.signatures
        if is_signed != self._rules.requires_signatures:
            return None
        data = b""
        if is_signed:
            data = self._read(name)
            try:
                signature = self._files.read(name + SIGNATURE, LARGEST_SIGNATURE)
            except (MissingFileError, UnreadableFileError):
                return None
        decision = self._rules.decide(data, header, signature)
        if decision.refusal is not None:
            return None
        return PushGroup(decision.writer, header.writer, is_signed)

    def find_lone_parts(self) -> list[ListedFile]:
        """Return the files with parts of indexes that are not there, or no longer."""
        return [
            file
            for name, files in sorted(self.parts.items())
            if name not in self.indexes
            for file in files
        ]

    def size_beside(self, name: str) -> int:
        """Return the bytes of the files that only belong to an index: signature and parts."""
        parts = sum(file.size for file in self.parts.get(name, ()))
        return self.signatures.get(name, 0) + parts

    def find_replaced(self) -> set[str]:
        """Return the indexes that others of their group replace, as these say themselves."""
        return {
            name
            for index in self.indexes.values()
            if index.header.replaces and (group := self.find_group(index.name))
            for name in index.header.replaces
            if name in self.indexes and self.find_group(name) == group
        }

    def find_living(self) -> list[SurveyedIndex]:
        """Return the indexes that no other replaces, by name."""
        replaced = self.find_replaced()
        return [index for name, index in sorted(self.indexes.items()) if name not in replaced]

    def find_listed_packs(self) -> set[str]:
        """Return the SHA-256 of the packs that any index lists."""
        return {pack.digest for index in self.indexes.values() for pack in index.header.packs}
