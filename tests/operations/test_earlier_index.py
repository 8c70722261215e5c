"""Results that are as they were in an earlier run, found with few bytes for each."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evalstore.operations.earlier_index import leave_out_same
from evalstore.reports.comparison import ResultIndex
from evalstore.results import Result
from evalstore.values import Case


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
    case = Case("", "", ("t",), "e", (), ("a", "b"))
    left, met, is_any_same = leave_out_same(
        iter([(result, case) for result in now]), lambda: iter(before)
    )

    def find(known: list[Result], result: Result) -> Result | None:
        judged = [each for each in known if each.verdict] if result.verdict else known
        return ResultIndex(judged).find(result, case.prompts)

    same = [result for result in now if is_same(find(before, result), result)]
    assert [result for result, _ in left] == [
        result for result in now if not is_same(find(before, result), result)
    ]
    assert is_any_same == bool(same)
    for result, _ in left:
        assert find(met, result) == find(before, result)


def is_same(was: Result | None, now: Result) -> bool:
    return was is not None and (was.verdict, was.sessions, was.evaluations) == (
        now.verdict,
        now.sessions,
        now.evaluations,
    )
