"""A list in a temporary file: read in its order, several times, and gone with the list."""

from __future__ import annotations

import gc
import tempfile
from pathlib import Path

import pytest

from evalstore.files import temporary_list
from evalstore.files.temporary_list import TemporaryList


@pytest.mark.parametrize("most", [0, 1 << 20])
def test_values_are_read_in_their_order_as_often_as_needed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, most: int
) -> None:
    monkeypatch.setattr(temporary_list, "_IN_MEMORY", most)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    values = TemporaryList()
    assert (len(values), [*values]) == (0, [])
    batches = [[["é\ud800", None, 1.5], {"a": [number]}] for number in range(3)]
    for batch in batches:
        values.extend(batch)
        values.extend([])
    expected = [value for batch in batches for value in batch]
    one, other = iter(values), iter(values)
    assert next(one) == next(other) == expected[0]
    values.extend(["more"])
    assert [*one] == [*other] == [*expected[1:], "more"]
    assert len(values) == len(expected) + 1
    del values, one, other
    gc.collect()
    assert list(tmp_path.iterdir()) == []
