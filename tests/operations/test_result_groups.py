"""Groups of results that are read again for each grouping are those of all groupings together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstore.files import temporary_list
from evalstore.operations.result_groups import ResultGroups, keys_with
from evalstore.reports.group_totals import CallFacts, GroupTotals, MeasuredResult, ResultGroup
from evalstore.results import Result
from evalstore.values import VERDICTS, Verdict

GROUPINGS = [("model",), ("prompt",), ("tag",), ("file",), ("tag", "model"), ()]
WORDS = st.sampled_from([*VERDICTS, None])
CALLS = st.lists(
    st.builds(
        CallFacts,
        st.integers(1, 5),
        st.sampled_from([None, 0.1, 0.2, 0.7]),
        st.sampled_from([None, 0.3, 1.1]),
    ),
    max_size=2,
)
ATTEMPTS: st.SearchStrategy[list[Verdict]] = st.sampled_from([[], ["pass"], ["pass", "fail"]])


@st.composite
def measured(draw: st.DrawFn) -> tuple[MeasuredResult, tuple[str, ...]]:
    file, row = draw(st.sampled_from("ab")), draw(st.sampled_from("xyz"))
    model, prompt = draw(st.sampled_from("mn")), draw(st.sampled_from([None, "p"]))
    verdict = draw(WORDS)
    result = Result(file, row, "k", 0, prompt, model, "t", "e", verdict, None, (), ())
    facts = draw(CALLS), draw(CALLS), draw(ATTEMPTS)
    tags = draw(st.sampled_from([(), ("one",), ("one", "two")]))
    return MeasuredResult(result, verdict, *facts), tags


def expected(
    results: list[tuple[MeasuredResult, tuple[str, ...]]], by: tuple[str, ...]
) -> dict[tuple[str | None, ...], GroupTotals]:
    groups: dict[tuple[str | None, ...], GroupTotals] = {}
    for each, tags in results:
        file, row = each.result.file, each.result.row
        for key in keys_with(by, each.result.model, each.result.prompt, tags, file):
            groups.setdefault(key, GroupTotals()).add_result((file, hash(row)), *each[1:])
    return groups


def shown(groups: dict[tuple[str | None, ...], ResultGroup]) -> list[object]:
    return [(key, group.document(), group.interval) for key, group in groups.items()]


@given(st.lists(measured(), max_size=20))
def test_the_groups_are_those_of_results_that_are_added_once(
    results: list[tuple[MeasuredResult, tuple[str, ...]]],
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(temporary_list, "_AT_ONCE", 3)
        groups = ResultGroups()
        for each in results:
            groups.add(*each)
        for by in GROUPINGS:
            totals = expected(results, by)
            found = {key: group.group(key, "") for key, group in totals.items()}
            assert shown(groups.find(by)) == shown(found)
        everything = shown(groups.find(()))
        total = groups.total("all")
        assert (total.name, total.results) == ("all", len(results))
        assert len(everything) == bool(total.results)
