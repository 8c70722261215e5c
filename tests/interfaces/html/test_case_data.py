"""The results of a case stay together, whatever the size of the batches."""

from __future__ import annotations

from typing import Any

import pytest

from evalstore.core.values import Result
from evalstore.interfaces.html.case_data import _whole_cases


def result(file: str, row: str, model: str, prompt: int = 0) -> tuple[Any, Any]:
    """A result with its case, which does not matter here."""
    return (
        Result(file, row, "", prompt, None, model, "t", None, None, None, (), ()),
        None,
    )


RESULTS = [
    result(file, row, model, prompt)
    for file in "ab" for row in "12" for model in "xyz" for prompt in (0, 1)
]  # fmt: skip


@pytest.mark.parametrize("size", range(1, len(RESULTS) + 2))
def test_the_results_of_a_case_are_in_one_batch(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalstore.core.batches.SMALL_SIZE", size)
    whole = list(_whole_cases(RESULTS))
    assert all(len(batch) < size + 6 for batch in whole)
    assert [entry for batch in whole for entry in batch] == RESULTS
    places = [{(entry[0].file, entry[0].row) for entry in batch} for batch in whole]
    assert sum(map(len, places)) == 4
