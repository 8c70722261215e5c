"""Results that are as they were in an earlier run, found with few bytes for each."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstore.operations import earlier_index
from evalstore.operations.earlier_index import ChangedResults, CurrentResult
from evalstore.reports.comparison import ResultIndex
from evalstore.results import Result


def make(row: str, key: str, prompt: str, number: int, verdict: str | None, answer: str) -> Result:
    return Result(
        file="a.md",
        row=row,
        key=key,
        prompt_number=number,
        prompt=prompt,
        model="m",
        test="t",
        conversations=(),
        evaluation="e",
        verdict=verdict,  # type: ignore[arg-type]
        score=None,
        sessions=(answer,),
        evaluations=(),
        required_answers=1,
    )


few = st.sampled_from("ab")
results = st.lists(
    st.builds(make, few, few, few, st.integers(0, 1), st.sampled_from([None, "pass", "fail"]), few),
    max_size=8,
)


@given(results, results)
def test_what_is_left_is_compared_as_with_all_results(
    before: list[Result], now: list[Result]
) -> None:
    prompts = ("a", "b")

    def find(result: Result) -> Result | None:
        judged = [each for each in before if each.verdict] if result.verdict else before
        return ResultIndex(judged).find(result, prompts)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(earlier_index, "_AT_ONCE", 3)
        current = [CurrentResult(result, prompts) for result in now]
        changed = ChangedResults(current, lambda: iter(before))
        left = [each for each in current if not is_same(find(each.result), each.result)]
        assert [*changed] == [(each, find(each.result)) for each in left]
        assert changed.is_any_same == (len(left) < len(now))


def is_same(was: Result | None, now: Result) -> bool:
    return was is not None and (was.verdict, was.sessions, was.evaluations) == (
        now.verdict,
        now.sessions,
        now.evaluations,
    )
