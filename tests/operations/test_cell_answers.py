"""Cells are found by their digests as by their names."""

from __future__ import annotations

from random import Random

import pytest

from evalstore.errors import StoreError
from evalstore.operations.cell_answers import CellAnswers
from evalstore.reports.comparison import ResultIndex
from evalstore.results import Result

PROMPTS = (("a",), ("a", "b"), ("b", "a", "c"), (None,))


def _result(random: Random) -> tuple[Result, tuple[str | None, ...]]:
    prompts = random.choice(PROMPTS)
    number = random.randrange(len(prompts))
    result = Result(
        file=random.choice(("x.md", "y.md")),
        row=random.choice(("first", "second", "third")),
        key=random.choice(("k1", "k2", "k3", "k4")),
        prompt_number=number,
        prompt=prompts[number],
        model=random.choice(("one", "two")),
        test="0" * 32,
        evaluation=None,
        verdict=random.choice((None, "pass", "fail", "undecided", "error")),
        score=None,
        sessions=tuple(f"{random.randrange(40):032x}" for _ in range(random.randrange(3))),
        evaluations=(),
    )
    return result, prompts


@pytest.mark.parametrize("seed", range(30))
def test_the_same_cells_are_found_as_in_an_index_of_results(seed: int) -> None:
    random = Random(seed)
    old, new = ([_result(random) for _ in range(random.randrange(40))] for _ in range(2))
    sides = CellAnswers(), CellAnswers()
    for side, results in zip(sides, (old, new), strict=True):
        for number, (result, prompts) in enumerate(results):
            side.add(result, prompts, number)
    was, now = sides
    index = ResultIndex(result for result, _ in old)
    expected = {
        number: found
        for number, (result, prompts) in enumerate(new)
        if (found := index.find(result, prompts))
    }
    actual = dict(now.find_same(was, range(len(new))))
    assert {number: old[earlier][0] for number, earlier in actual.items()} == expected
    assert [*now.find_same(was, [])] == []
    for number, (result, _) in enumerate(new):
        assert now.answers(number) == {*result.sessions}
        assert (now.verdict(number), now.file(number)) == (result.verdict, number)


def test_the_id_of_an_answer_that_is_none_is_refused() -> None:
    result, prompts = _result(Random(1))
    with pytest.raises(StoreError, match="'no id' is not an id"):
        CellAnswers().add(result._replace(sessions=("no id",)), prompts, 0)
