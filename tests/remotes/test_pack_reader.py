"""The packs that a reader of a remote keeps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from evalstore.remotes import download
from evalstore.remotes.download import PackReader
from evalstore.remotes.index_cache import IndexCache
from evalstore.remotes.layout import FolderFiles
from evalstore.remotes.packs import TABLE_NUMBERS
from evalstore.store.records import CheckedRecord, CopyListener
from tests.remotes import stores


class Measured(bytes):
    """The bytes of a pack; counts how often their length is asked for."""

    lookups = 0

    def __len__(self) -> int:
        Measured.lookups += 1
        return super().__len__()


class MeasuredFiles(FolderFiles):
    """A remote that notes what is read."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.sizes: list[int] = []

    def read(self, name: str, most: int) -> bytes:
        content = super().read(name, most)
        if not name.startswith("packs/"):
            return content
        self.sizes.append(len(content))
        return Measured(content)


def _expected(sizes: Sequence[int], order: Sequence[int], most: int) -> list[int]:
    """Return the sizes of the packs that are read when those used last are kept."""
    kept: list[int] = []
    read: list[int] = []
    for pack in order:
        if pack in kept:
            kept.remove(pack)
        else:
            read.append(sizes[pack])
        kept.append(pack)
        while len(kept) > 1 and sum(sizes[each] for each in kept) > most:
            kept.pop(0)
    return read


@pytest.mark.parametrize("share", [0, 0.5, 1])
def test_packs_used_last_are_kept_and_not_measured_at_each_read(
    whole_records: list[CheckedRecord],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    share: float,
) -> None:
    root = tmp_path / "remote"
    stores.push_parts(whole_records, FolderFiles(root), tmp_path, 8)
    files, wanted = MeasuredFiles(root), [bytes.fromhex(each.record.id) for each in whole_records]
    with IndexCache.open(None, files.address) as cache:
        cache.refresh(files)
        by_pack = {
            place.pack: place
            for table in TABLE_NUMBERS.values()
            for place in cache.find_places(table, wanted)
        }
        places = [*by_pack.values()]
        sizes = [cache.find_pack(pack).size for pack in by_pack]
        monkeypatch.setattr(download, "_MOST_KEPT", int(share * sum(sizes)))
        order = Random(1).choices(range(len(places)), k=200)
        reader = PackReader(files, cache, CopyListener())
        Measured.lookups = 0
        assert len([*reader.read_places(places[pack] for pack in order)]) == len(order)
    assert len(places) > 4
    assert files.sizes == _expected(sizes, order, int(share * sum(sizes)))
    assert reader.bytes_received == sum(files.sizes)
    assert Measured.lookups <= 2 * len(files.sizes)
