"""A test file with older versions of its cases is what a list of them would be."""

from __future__ import annotations

from random import Random

import pytest

from evalstore.core import batches
from evalstore.core.values import Case, CaseFile
from evalstore.files import temporary_list
from evalstore.files.temporary_list import PackedSequence
from evalstore.results.compare.compared_side import mix_cases
from evalstore.results.edits.edits import restore_case


def _case(random: Random, number: int) -> Case:
    return Case(
        row=f"row {number}",
        key=f"key {random.choice((number, number, random.randrange(20)))}",
        tests=(f"test {random.randrange(2)}", "b"),
        evaluation=None,
        tags=("x",) * random.randrange(2),
        prompts=(None, "brief"),
        temperature=random.choice((None, 1.0)),
    )


def _mixed(file: CaseFile, versions: list[Case]) -> list[Case]:
    """Return the cases of a file with these versions: by key, else by row."""
    by_key = {case.key: case for case in versions}
    by_row = {case.row: case for case in versions}
    return [by_key.get(case.key) or by_row.get(case.row) or case for case in file.cases]


@pytest.mark.parametrize("seed", range(30))
def test_older_versions_take_the_places_of_cases_with_their_keys_or_else_their_rows(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "SIZE", 3)
    monkeypatch.setattr(temporary_list, "_FEW", 4)
    random = Random(seed)
    file = CaseFile([_case(random, number) for number in range(15)], attempts=2, id="a")
    versions: dict[str, Case] = {}
    for number in random.sample(range(36), random.randrange(24)):
        version = random.choice((file.cases[number % 15], _case(random, number % 18)))
        versions.setdefault(version.key, version)
    older = PackedSequence(versions.values(), tuple, restore_case)
    mixed, expected = mix_cases(file, older), _mixed(file, [*older])
    if expected == file.cases:
        assert mixed is None
        return
    assert mixed is not None
    assert [*mixed.cases] == [*mixed.cases] == expected
    assert [mixed.cases[number] for number in range(15)] == mixed.cases[:] == expected
    assert mixed.cases == expected
    assert mixed.cases != file.cases
    assert (len(mixed.cases), mixed.attempts, mixed.id) == (15, 2, "a")


def test_a_file_whose_cases_are_the_older_versions_stays_as_it_is() -> None:
    cases = [_case(Random(1), number)._replace(key=f"key {number}") for number in range(5)]
    assert mix_cases(CaseFile(cases), cases) is None
