"""The verdicts of a run in a file are found as those in memory."""

from __future__ import annotations

import random

import pytest

from evalstore.operations.filed_verdicts import FiledVerdicts
from evalstore.reports.comparison import ResultIndex
from evalstore.results import Result


def _result(choice: random.Random) -> Result:
    number = choice.randrange(3)
    return Result(
        file=choice.choice(["a.md", "b.md"]),
        row=f"row {choice.randrange(20)}",
        key=f"key {choice.randrange(20)}",
        prompt_number=number,
        prompt=choice.choice([None, "p1", "p2"]),
        model=choice.choice(["one", "two"]),
        test="t",
        evaluation="e",
        verdict=choice.choice(["pass", "fail", "undecided"]),
        score=None,
        sessions=(),
        evaluations=(),
    )


@pytest.mark.parametrize("seed", range(5))
def test_they_are_found_by_the_same_rules(seed: int) -> None:
    choice = random.Random(seed)
    results = [_result(choice) for _ in range(300)]
    index, filed = ResultIndex(results), FiledVerdicts(iter(results))
    found = 0
    for _ in range(300):
        result, prompts = _result(choice), choice.sample([None, "p1", "p2"], 2)
        was, kept = index.find(result, prompts), filed.find(result, prompts)
        assert (kept and (kept.prompt, kept.verdict)) == (was and (was.prompt, was.verdict))
        found += was is not None
    assert 0 < found < 300
    filed.close()
