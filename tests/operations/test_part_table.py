"""Results that are added up all at once have the sums that they have one by one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evalstore.operations.part_sums import keys_with, plain_grouping, without_file
from evalstore.operations.part_table import PartTable, ResultPlaces
from evalstore.reports.group_totals import CallFacts, GroupTotals, Spending
from evalstore.results import Result
from evalstore.values import VERDICTS, Case, Verdict

FILE = "tests/rows.md"
GROUPINGS = [(), ("model",), ("file", "tag"), ("tag", "model", "prompt"), ("file", "file")]
SPENDING = st.tuples(st.sampled_from([None, 0.0, 0.25, 2.5]), st.sampled_from([None, 0.5, 3.0]))
ANSWERS = [f"{number:016x}" * 2 for number in range(6)]
JUDGEMENTS = [f"{number:016x}" * 2 for number in range(10, 16)]


def result(
    row: str, model: str, prompt: str | None, verdict: Verdict | None, *ids: list[str]
) -> Result:
    sessions, evaluations = map(tuple, ids)
    return Result(FILE, row, "k", 0, prompt, model, "t", "e", verdict, None, sessions, evaluations)


RESULTS = st.builds(
    result,
    st.sampled_from(["a", "b", "c"]),
    st.sampled_from(["one", "two"]),
    st.sampled_from([None, "p"]),
    st.sampled_from([*VERDICTS, None]),
    st.lists(st.sampled_from(ANSWERS), max_size=2),
    st.lists(st.sampled_from(JUDGEMENTS), max_size=2),
)
CASES = st.sampled_from([(), ("x",), ("x", "y"), ("y",)]).map(
    lambda tags: Case("", "k", ("t",), "e", tags, (None,))
)
ATTEMPTS: st.SearchStrategy[list[Verdict]] = st.sampled_from(
    [[], [], ["pass"], ["pass", "fail"], ["fail", "pass", "pass"], ["error", "error"]]
)


@given(
    st.lists(st.tuples(RESULTS, CASES, ATTEMPTS), max_size=12),
    st.dictionaries(st.sampled_from(ANSWERS), SPENDING),
    st.dictionaries(st.sampled_from(JUDGEMENTS), SPENDING),
)
def test_the_sums_of_a_table_are_those_of_its_results_one_by_one(
    results: list[tuple[Result, Case, list[Verdict]]],
    answers: dict[str, Spending],
    judgements: dict[str, Spending],
) -> None:
    places, table = ResultPlaces(GROUPINGS), PartTable()
    expected: dict[object, dict[object, GroupTotals]] = {plain_grouping(by): {} for by in GROUPINGS}
    for each, case, attempts in results:
        table.places.append(places.find(each.model, each.prompt, case.tags))
        table.rows.append(each.row)
        table.verdicts.append(each.verdict)
        table.sessions.append(each.sessions)
        table.judgements.append(each.evaluations)
        table.attempts.append(attempts)
        facts = [
            [CallFacts(hash(id), *known[id]) for id in ids if id in known]
            for ids, known in ((each.sessions, answers), (each.evaluations, judgements))
        ]
        for by in map(plain_grouping, GROUPINGS):
            for key in keys_with(by, each.model, each.prompt, case.tags, FILE):
                totals = expected[by].setdefault(without_file(by, key), GroupTotals())
                totals.add_result((FILE, each.row), each.verdict, facts[0], facts[1], attempts)
    sums = table.add_up(places, answers, judgements)
    assert sums.groups == {
        by: {key: totals.sums() for key, totals in groups.items()}
        for by, groups in expected.items()
    }
    assert len(sums.sessions) == len({id for each, _, _ in results for id in each.sessions})
