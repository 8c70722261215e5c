"""Reads records of whole packs as they are, after each was checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from evalstore.errors import RemoteError, StoreError
from evalstore.sharing.indexes import NO_KEY
from evalstore.sharing.layout import pack_name, sha256
from evalstore.sharing.packs import DamagedPackError, read_record
from evalstore.store.records import check_record

if TYPE_CHECKING:
    from evalstore.sharing.indexes import IndexedPack
    from evalstore.sharing.packs import PackEntry
    from evalstore.sharing.remote_files import RemoteFiles


class PackedRecord(NamedTuple):
    """A record as a pack has it."""

    entry: PackEntry
    key: bytes
    """Its lookup key."""
    data: bytes


def read_checked(
    files: RemoteFiles, pack: IndexedPack, entries: Iterable[tuple[PackEntry, bytes]]
) -> Iterator[PackedRecord]:
    """Yield records of a pack, which are given with their lookup keys.

    Those of a newer program are not checked. Raises `RemoteError` for a pack that is damaged.
    """
    name = pack_name(pack.digest)
    content = files.read(name, pack.size)
    if sha256(content) != pack.digest:
        raise _damaged(files, name, "it has other bytes than when it was written")
    for entry, key in entries:
        data = content[entry.offset : entry.offset + entry.length]
        try:
            record = read_record(data, entry)
            if record is not None:
                checked = check_record(record)
                if key != (bytes.fromhex(checked.key) if checked.key else NO_KEY):
                    raise DamagedPackError("its index has another lookup key")
        except DamagedPackError as error:
            raise _damaged(files, name, f"the record {entry.id.hex()}: {error}") from error
        except StoreError as error:
            problem = str(error).removeprefix("the store is damaged: ")
            raise _damaged(files, name, problem) from error
        yield PackedRecord(entry, key, data)


def _damaged(files: RemoteFiles, name: str, problem: str) -> RemoteError:
    return RemoteError(
        f"the remote '{files.address}' is damaged: '{name}': {problem}",
        hint="'evalstore fsck --remote' lists what is wrong; nothing of it was deleted",
    )
