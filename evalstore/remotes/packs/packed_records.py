"""The check of a record of a pack against its index, its id and its kind."""

from __future__ import annotations

from evalstore.core.errors import NewerError, StoreError
from evalstore.remotes.indexes.indexes import NO_KEY
from evalstore.remotes.packs.packs import DamagedPackError, PackEntry, read_record
from evalstore.store.contents import not_readable
from evalstore.store.records import CheckedRecord, check_record
from evalstore.store.schema.newer_contents import find_unknown


def check_packed(data: bytes, entry: PackEntry, key: bytes) -> CheckedRecord | None:
    """Return the record in these bytes; None for one of a table of a newer program.

    `entry` and the lookup key are those of the index. Raises `DamagedPackError` with what is wrong
    with the record, and `NewerError` for one of a newer program that is in a table of today.
    """
    record = read_record(data, entry)
    if record is None:
        return None
    try:
        checked = check_record(record)
        own_key = bytes.fromhex(checked.key) if checked.key else NO_KEY
    except NewerError:
        raise
    except StoreError as error:
        place = f"the store is damaged: row {record.id} of the table '{record.table}': "
        raise DamagedPackError(str(error).removeprefix(place)) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedPackError("its content is not that of its kind") from error
    if key != own_key:
        problem = "its index has another lookup key"
        if find_unknown(checked.content):
            raise not_readable(record.table, record.id, checked.content, problem)
        raise DamagedPackError(problem)
    return checked
