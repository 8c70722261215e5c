"""The check of a record of a pack against its index, its id and its kind."""

from __future__ import annotations

from evalstore.errors import StoreError
from evalstore.sharing.indexes import NO_KEY
from evalstore.sharing.packs import DamagedPackError, PackEntry, read_record
from evalstore.store.records import CheckedRecord, check_record


def check_packed(data: bytes, entry: PackEntry, key: bytes) -> CheckedRecord | None:
    """Return the record in these bytes; None for one of a table of a newer program.

    `entry` and the lookup key are those of the index. Raises `DamagedPackError` with what is wrong
    with the record.
    """
    record = read_record(data, entry)
    if record is None:
        return None
    try:
        checked = check_record(record)
        own_key = bytes.fromhex(checked.key) if checked.key else NO_KEY
    except StoreError as error:
        place = f"the store is damaged: row {record.id} of the table '{record.table}': "
        raise DamagedPackError(str(error).removeprefix(place)) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedPackError("its content is not that of its kind") from error
    if key != own_key:
        raise DamagedPackError("its index has another lookup key")
    return checked
