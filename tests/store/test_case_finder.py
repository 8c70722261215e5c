"""Cases of long files are found by name as in a list of all cases, and few of them are decoded."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from evalstore.core.values import Case, CaseFile
from evalstore.results.edits.edits import leave_out_same
from evalstore.store import Store
from evalstore.store.contents import decode_content
from evalstore.store.trees.case_chunks import build_case_tree, collect
from evalstore.store.trees.tree_nodes import StoredCases
from tests.small_parts import store as store

pytestmark = pytest.mark.extended

ODD = ['a "b"', "back\\slash", 'x","row":"row 3', "…", "é\n", '"key":"0"', "\\", 'ends with \\"']


def case_of(number: int, chance: random.Random) -> Case:
    """A case; keys and labels of some are equal, odd, or missing."""
    row = f"row {number}" if chance.random() < 0.7 else chance.choice([*ODD, f"row {number % 7}"])
    return Case(
        row=row if chance.random() < 0.98 else "",
        key=f"{chance.choice([number, number % 9]):016x}",
        tests=(f"{number:032x}",),
        evaluation=None,
        tags=tuple(chance.sample(ODD, chance.randrange(2))),
        prompts=(None,),
        temperature=chance.choice([None, 0.5]),
        judged_by=chance.choice([("models",), ("checks",), ("checks", "models")]),
    )


def stored(store: Store, file: CaseFile) -> CaseFile:
    contents: dict[str, tuple[str, str]] = {}
    root = build_case_tree(file, collect(contents))
    store.ensure_versions(contents, {})
    (found,) = store.load_case_files([root]).values()
    assert isinstance(found.cases, StoredCases)
    return found


@pytest.mark.parametrize("seed", range(8))
def test_cases_are_found_by_name_as_among_all(store: Store, seed: int) -> None:
    chance = random.Random(seed)
    cases = [case_of(number, chance) for number in range(300)]
    edited = [*cases]
    edited[chance.randrange(300)] = case_of(1_000, chance)
    for listed in (cases, edited):
        file = stored(store, CaseFile(tuple(listed)))
        assert tuple(file.cases) == tuple(listed)
        for _ in range(20):
            some = chance.sample(listed, chance.randrange(4))
            names = {chance.choice([case.key, case.row]) for case in some}
            names |= set(chance.sample([*ODD, "", "no such row"], 2))
            expected = [case for case in listed if case.key in names or case.row in names]
            assert list(store.find_named_cases(file, names)) == expected


@pytest.mark.parametrize(
    ("temperature", "judged_by"),
    [
        (None, ("checks",)),
        (0.5, ("checks",)),
        (0.5, ("checks", "models")),
        (None, ("models",)),
    ],
)
def test_traits_are_those_of_the_cases(
    store: Store, temperature: float | None, judged_by: tuple[str, ...]
) -> None:
    chance = random.Random(1)
    plain = [
        case_of(number, chance)._replace(temperature=0.5, judged_by=("checks",))
        for number in range(200)
    ]
    assert store.find_traits(stored(store, CaseFile(tuple(plain)))) == (False, False)
    plain[170] = plain[170]._replace(temperature=temperature, judged_by=judged_by)
    expected = "models" in judged_by, temperature is None
    assert store.find_traits(CaseFile(tuple(plain))) == expected
    assert store.find_traits(stored(store, CaseFile(tuple(plain)))) == expected


def test_few_nodes_are_decoded_to_find_a_case(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = tuple(case_of(number, random.Random(number)) for number in range(300))
    cases = tuple(case._replace(key=f"{n:016x}", row=f"r{n}") for n, case in enumerate(cases))
    file = stored(store, CaseFile(cases))
    assert list(store.find_named_cases(file, {"r7"})) == [cases[7]]
    decoded: list[str] = []

    def count(table: str, id: str, *arguments: object) -> object:
        decoded.append(id)
        return decode_content(table, id, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("evalstore.store.trees.tree_nodes.decode_content", count)
    assert list(store.find_named_cases(file, {"r8", cases[200].key})) == [cases[8], cases[200]]
    assert isinstance(file.cases, StoredCases)
    inner = list(file.cases.parts())
    assert len(decoded) < 10 + 3 * len(inner) < 300 / 2


def test_edited_parts_of_a_long_file_are_each_read_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where they are too many to be in memory together."""
    monkeypatch.setattr("evalstore.files.temporary_list._FEW", 10)
    monkeypatch.setattr("evalstore.core.batches.SMALL_SIZE", 2)
    cases = [
        case_of(number, random.Random(number))._replace(key=f"{number:016x}", row=f"r{number}")
        for number in range(400)
    ]
    edited = [*(case._replace(seed=7) for case in cases[:300]), *cases[300:]]
    old, new = (stored(store, CaseFile(tuple(listed))) for listed in (cases, edited))
    decoded: Counter[str] = Counter()

    def count(table: str, id: str, *arguments: object) -> object:
        decoded[id] += 1
        return decode_content(table, id, *arguments)  # type: ignore[arg-type]

    assert isinstance(old.cases, StoredCases)
    assert isinstance(new.cases, StoredCases)
    parts = {part.node for each in (old.cases, new.cases) for part in each.smallest_parts()}
    monkeypatch.setattr("evalstore.store.trees.tree_nodes.decode_content", count)
    was, now = leave_out_same(old, new, store)
    assert 300 <= len(was.cases) == len(now.cases) < 320
    assert list(now.cases) == edited[: len(now.cases)]
    assert [was.cases[number] for number in range(300)] == cases[:300]
    assert {decoded[id] for id in parts & decoded.keys()} == {1}


@pytest.mark.parametrize("seed", range(8))
def test_long_files_are_equal_when_all_their_cases_are(store: Store, seed: int) -> None:
    chance = random.Random(seed)
    cases = [case_of(number, chance) for number in range(200)]
    other = [*cases]
    number = chance.randrange(200)
    one = stored(store, CaseFile(tuple(cases)))
    assert one == stored(store, CaseFile(tuple(cases), code=()))
    other[number] = other[number]._replace(seed=7)
    assert one.cases != stored(store, CaseFile(tuple(other))).cases
    other = [*cases]
    other.insert(chance.randrange(200), other.pop(number))
    assert (one.cases == stored(store, CaseFile(tuple(other))).cases) == (other == cases)


@pytest.mark.parametrize("seed", range(8))
def test_cases_are_found_by_their_labels_as_among_all(store: Store, seed: int) -> None:
    chance = random.Random(seed)
    cases = [case_of(number, chance) for number in range(300)]
    found = stored(store, CaseFile(tuple(cases))).cases
    assert isinstance(found, StoredCases)
    labels = {"", *chance.sample([case.row for case in cases], 5), "no such row"}
    wanted = [(number, case) for number, case in enumerate(cases) if case.row in labels]
    assert list(found.labelled(labels)) == wanted
    assert list(found.labels()) == [case.row for case in cases]
    assert list(found.labelled(labels)) == wanted
