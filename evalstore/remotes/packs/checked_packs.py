"""Reads records of whole packs as they are, after each was checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from evalstore.core.errors import NewerError, RemoteError
from evalstore.remotes.packs.packed_records import check_packed
from evalstore.remotes.packs.packs import DamagedPackError
from evalstore.remotes.places.layout import pack_name, sha256

if TYPE_CHECKING:
    from evalstore.remotes.indexes.indexes import IndexedPack, IndexedRecord
    from evalstore.remotes.places.remote_files import RemoteFiles


def read_checked(
    files: RemoteFiles, pack: IndexedPack, records: Iterable[IndexedRecord]
) -> Iterator[tuple[IndexedRecord, bytes]]:
    """Yield records of a pack with their bytes.

    Those in tables of a newer program are not checked. Raises `RemoteError` for a pack that is
    damaged, and `NewerError` for a record of a newer program.
    """
    name = pack_name(pack.digest)
    content = files.read(name, pack.size)
    if sha256(content) != pack.digest:
        raise _damaged(files, name, "it has other bytes than when it was written")
    for record in records:
        entry = record.entry
        data = content[entry.offset : entry.offset + entry.length]
        try:
            check_packed(data, entry, record.key)
        except NewerError as error:
            raise NewerError(f"the remote '{files.address}'", error.problem) from error
        except DamagedPackError as error:
            raise _damaged(files, name, f"the record {entry.id.hex()}: {error}") from error
        yield record, data


def _damaged(files: RemoteFiles, name: str, problem: str) -> RemoteError:
    return RemoteError(
        f"the remote '{files.address}' is damaged: '{name}': {problem}",
        hint="'evalstore fsck --remote' lists what is wrong; nothing of it was deleted",
    )
