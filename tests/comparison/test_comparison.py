"""Two sides paired cell by cell."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstore.comparison.comparison import (
    CellIndex,
    Comparison,
    EqualPart,
    former_prompts,
    numbers_now,
    pair_results,
    sort_pairs,
)
from evalstore.comparison.pair_groups import PlacedResults
from evalstore.comparison.statistics import Counts, tango
from evalstore.core.values import Case, Result, Verdict


def compare(
    was: Iterable[Result], now: Iterable[Result], candidates: Callable[[str], Any] = str
) -> Comparison:
    """The results of two sides, paired and sorted."""
    old, new = PlacedResults(was), PlacedResults(now)
    return sort_pairs(pair_results(old, new, range(len(old)), range(len(new)), candidates))


GROUPS = ("broke", "fixed", "changed", "new", "gone", "unchanged")


def result(verdict: Verdict | None = "pass", **fields: Any) -> Result:
    settings: dict[str, Any] = {
        "file": "a.md",
        "row": "",
        "key": "k",
        "prompt_number": 0,
        "prompt": None,
        "model": "m",
        "test": "t",
        "evaluation": "e",
        "verdict": verdict,
        "score": None,
        "sessions": ("s",),
        "evaluations": ("v",),
    }
    return Result(**{**settings, **fields})


def groups(comparison: Comparison) -> dict[str, int]:
    return {name: len(getattr(comparison, name)) for name in GROUPS if getattr(comparison, name)}


@pytest.mark.parametrize(
    ("was", "now", "group"),
    [
        ("pass", "pass", "unchanged"),
        ("pass", "fail", "broke"),
        ("pass", "undecided", "changed"),
        ("pass", "error", "broke"),
        ("fail", "pass", "fixed"),
        ("undecided", "pass", "changed"),
        ("error", "pass", "fixed"),
        ("fail", "undecided", "changed"),
        ("fail", None, "changed"),
        (None, "pass", "changed"),
        ("pass", None, "changed"),
        (None, None, "unchanged"),
    ],
)
def test_what_happened_to_a_verdict(was: Verdict | None, now: Verdict | None, group: str) -> None:
    assert groups(compare([result(was)], [result(now)])) == {group: 1}


def test_another_answer_with_the_same_verdict_is_a_change() -> None:
    assert groups(compare([result()], [result(sessions=("other",))])) == {"changed": 1}


def test_what_is_on_one_side_only_is_new_or_gone() -> None:
    assert groups(compare([], [result()])) == {"new": 1}
    assert groups(compare([result()], [])) == {"gone": 1}


def test_rows_are_paired_by_their_values_whatever_their_label() -> None:
    was = [result(row="1", key="a"), result("fail", row="2", key="b")]
    now = [result("fail", row="1", key="b"), result(row="2", key="a")]
    assert groups(compare(was, now)) == {"unchanged": 2}


def test_rows_left_over_are_paired_by_their_label() -> None:
    was = [result(row="Oslo", key="a")]
    now = [result("fail", row="Oslo", key="changed values")]
    assert groups(compare(was, now)) == {"broke": 1}


def test_different_models_and_prompts_are_never_paired() -> None:
    was = [result(model="m1"), result(prompt_number=1)]
    assert groups(compare(was, [result(model="m2")])) == {"new": 1, "gone": 2}


def test_system_prompts_that_changed_places_are_paired_by_their_content() -> None:
    was = [result("pass", prompt="A", prompt_number=0), result("fail", prompt="B", prompt_number=1)]
    now = [result("fail", prompt="B", prompt_number=0), result("pass", prompt="A", prompt_number=1)]
    assert groups(compare(was, now)) == {"unchanged": 2}
    assert [find(was, each, ("B", "A")) for each in now] == [was[1], was[0]]


def test_a_system_prompt_that_was_edited_is_paired_by_its_place() -> None:
    was = [result("pass", prompt="A", prompt_number=0), result("fail", prompt="B", prompt_number=1)]
    now = [result("pass", prompt="A", prompt_number=0), result("pass", prompt="C", prompt_number=1)]
    assert groups(compare(was, now)) == {"unchanged": 1, "fixed": 1}
    assert find(was, now[1], ("A", "C")) == was[1]


def test_of_swapped_system_prompts_one_that_was_edited_is_paired_with_what_is_left() -> None:
    was = [result("pass", prompt="A", prompt_number=0), result("fail", prompt="B", prompt_number=1)]
    now = [result("fail", prompt="B", prompt_number=0), result("fail", prompt="C", prompt_number=1)]
    assert groups(compare(was, now)) == {"unchanged": 1, "broke": 1}
    assert [find(was, each, ("B", "C")) for each in now] == [was[1], was[0]]
    assert find(was[1:], now[1], ("B", "C")) is None
    assert former_prompts(("A", "B", "D"), ("B", "C", "E")) == {"B": "B", "C": "A", "E": "D"}


def test_a_system_prompt_that_was_put_first_is_new() -> None:
    was = [result("fail", prompt="A", prompt_number=0)]
    now = [result("pass", prompt="N", prompt_number=0), result("fail", prompt="A", prompt_number=1)]
    assert groups(compare(was, now)) == {"unchanged": 1, "new": 1}
    assert find(was, now[0], ("N", "A")) is None


def find(was: list[Result], now: Result, prompts: tuple[str, ...]) -> Result | None:
    """The same cell among results, by the system prompts of its case."""
    before = tuple(dict.fromkeys(each.prompt for each in was))
    case = Case("", "", ("0" * 32,), None, (), before)
    found = CellIndex((each, case) for each in was).find(now, prompts)
    return found and found[0]


def test_different_files_are_never_paired() -> None:
    assert groups(compare([result()], [result(file="b.md")])) == {"new": 1, "gone": 1}


def test_equal_rows_are_paired_one_by_one() -> None:
    assert groups(compare([result()] * 2, [result()] * 3)) == {"unchanged": 2, "new": 1}


def test_rates_and_the_p_value_are_about_pairs_judged_on_both_sides() -> None:
    was = [result(row=str(n), key=str(n)) for n in range(10)]
    now = [result("fail" if n < 6 else "pass", row=str(n), key=str(n)) for n in range(9)]
    now += [result(None, row="9", key="9"), result("fail", row="new", key="new")]
    comparison = compare(was, now)
    before, after = comparison.rates
    assert (before.passed, before.judged, after.passed, after.judged) == (9, 9, 3, 9)
    change = comparison.change()
    assert (change.pairs, change.files, change.unit, change.moved) == (9, 1, "row", 6)
    assert change.finding == (
        "significant for further rows of this file"
        " (p = 0.031, sign-flip test over the 6 rows whose pass rate changed)"
    )


def spread(verdict: Verdict, rows: int, files: int) -> list[Result]:
    """Results of rows in so many files, the same number in each."""
    return [
        result(verdict, file=f"{number % files}.md", row=str(number), key=str(number))
        for number in range(rows)
    ]


@pytest.mark.parametrize(
    ("files", "moved", "p", "method"),
    [(1, 1, 1.0, "cluster-t"), (2, 2, 0.5, "cluster-t"), (8, 8, 0.0078125, "tango")],
)
def test_rows_of_one_file_are_not_a_sample_of_files(
    files: int, moved: int, p: float, method: str
) -> None:
    was = [*spread("pass", 8, files), result(file="x")]
    now = [*spread("fail", 8, files), result(file="x")]
    change = compare(was, now).change()
    assert (change.unit, change.moved) == ("file", moved)
    assert change.p == pytest.approx(p)
    assert change.method == method


def test_rows_of_a_file_that_is_compared_alone_are_a_sample_of_its_rows() -> None:
    was = [result("fail" if n < 3 else "pass", row=str(n), key=str(n)) for n in range(20)]
    now = [result("pass" if n < 12 else "fail", row=str(n), key=str(n)) for n in range(20)]
    change = compare(was, now).change()
    assert (change.unit, change.files, change.moved) == ("row", 1, 11)
    assert change.p == pytest.approx(0.2265625)  # McNemar: 3 fixed, 8 broke
    assert change.points == "-25.0 points (95% interval -52.5 to +7.9)"
    assert (change.low, change.high) == pytest.approx(tango(3, 8, 20))


def test_results_of_a_row_are_one_cluster_where_rows_are_compared() -> None:
    was = [result(row=str(n), key=str(n), model=model) for n in range(4) for model in "ab"]
    now = [each._replace(verdict="fail") for each in was]
    change = compare(was, now).change()
    assert (change.pairs, change.moved, change.p) == (8, 4, 0.125)


def test_a_file_with_a_single_row_has_no_rows_to_compare() -> None:
    change = compare([result(), result(model="b")], [result("fail"), result(model="b")]).change()
    assert change.finding == "the pass rate of one file changed: too few files to test significance"
    two = [result(row=name, key=name) for name in "ab"]
    change = compare(two, [two[0]._replace(verdict="fail"), two[1]]).change()
    assert change.finding == "the pass rate of one row changed: too few rows to test significance"
    assert compare(two, two).change().finding == "the pass rate of no row changed"


def test_candidates_that_move_in_opposite_directions_are_tested_one_by_one() -> None:
    was = [result(file=f"{n}.md", model="a") for n in range(7)]
    was += [result("fail", file=f"{n}.md", model="b") for n in range(7)]
    swapped = [each._replace(verdict="fail" if each.model == "a" else "pass") for each in was]
    comparison = compare(was, swapped)
    change = comparison.change()
    assert change.moved == 0
    test = "significant (p = {}sign-flip test over the 7 files whose pass rate changed)"
    both = test.format("0.031, Holm-corrected for 2 candidates, ")
    assert comparison.findings(change) == {"a": both, "b": both}
    test = test.format("0.016, ")
    less = [*swapped[:7], *was[7:]]
    assert compare(was, less).findings(compare(was, less).change()) == {"": test}
    few = "the pass rate of one file changed: too few files to test significance"
    two = [*swapped[:7], swapped[7], *was[8:]]
    assert compare(was, two).findings(compare(was, two).change()) == {"a": test, "b": few}
    three = [*swapped[:3], *was[3:7], *swapped[7:10], *was[10:]]
    change = compare(was, three).change()
    few = "too few files changed to test whether it is chance"
    assert (change.moved, compare(was, three).findings(change)) == (0, {"": few})


def test_one_of_many_candidates_is_not_significant_by_chance() -> None:
    """Of ten, `a` broke in seven files, which is significant alone; each other fixed five of ten.

    A candidate that cannot be significant is not counted among the tests.
    """
    moves = {"a": 7 * [-1], "z": 2 * [1]} | {name: 5 * [1, -1] for name in "bcdefghi"}
    was: list[Result] = []
    now: list[Result] = []
    for model, gains in moves.items():
        for number, gain in enumerate(gains):
            passed = result(file=f"{number}.md", model=model)
            pair = (passed, passed._replace(verdict="fail"))[::-gain]
            was.append(pair[0])
            now.append(pair[1])
    comparison = compare(was, now)
    found = comparison.findings(comparison.change())
    words = "(p = {}, Holm-corrected for 9 candidates, sign-flip test over the {} files"
    assert found["a"].startswith(f"not significant {words.format('0.14', 7)}")
    assert found["b"].startswith(f"not significant {words.format('1', 10)}")
    assert found["z"] == "the pass rate of 2 files changed: too few files to test significance"


def test_the_number_of_a_prompt_now_is_that_of_what_it_was_edited_to() -> None:
    assert numbers_now(("A", "B"), ("B", "C")) == {"A": 1, "B": 0}
    assert numbers_now(("A", "B"), ("B",)) == {"B": 0}
    assert numbers_now((None,), ("A", None)) == {None: 1}


def test_equal_parts_count_as_rows_of_a_single_file() -> None:
    rows = [result(row=str(n), key=str(n)) for n in range(6)]
    comparison = compare(rows, [row._replace(verdict="fail") for row in rows])
    alone = comparison.change()
    comparison.equal = [EqualPart("a.md", 94, ((Counts(1, 1), 94),))]
    change = comparison.change()
    assert (change.pairs, change.moved, change.p) == (100, 6, alone.p)
    assert (change.low, change.high) == pytest.approx(tango(0, 6, 100))


def test_candidates_and_prompts_that_answer_the_same_questions_are_not_more_questions() -> None:
    was = [
        result(each.verdict, file=each.file, model=model, prompt=prompt, prompt_number=number)
        for each in spread("pass", 6, 6)
        for model in "mn"
        for number, prompt in enumerate("AB")
    ]
    now = [
        result(
            "fail",
            file=each.file,
            model=each.model,
            prompt=each.prompt,
            prompt_number=each.prompt_number,
        )
        for each in was
    ]
    comparison = compare(was, now)
    assert len(comparison.broke) == 24
    assert comparison.change().p == pytest.approx(0.03125)
    half = compare(was, [*was[:12], *now[12:]]).rates[1]
    alone = compare(was[::4], [*was[:12:4], *now[12::4]]).rates[1]
    assert (half.judged, alone.judged) == (24, 6)
    assert (half.low, half.high) == pytest.approx((0.170424, 0.829576), abs=1e-6)
    assert half.effective == pytest.approx(5)
    assert alone.effective == 6


results = st.lists(
    st.builds(
        result,
        st.sampled_from(["pass", "fail", "undecided", "error", None]),
        file=st.sampled_from(["a.md", "b.md"]),
        row=st.sampled_from("12"),
        key=st.sampled_from("xy"),
        model=st.sampled_from("mn"),
        sessions=st.sampled_from([("s",), ("t",), ()]),
    ),
    max_size=8,
)


@given(results, results)
def test_every_cell_is_in_exactly_one_pair(was: list[Result], now: list[Result]) -> None:
    comparison = compare(was, now)
    pairs = [pair for name in GROUPS for pair in getattr(comparison, name)]
    assert sorted(map(repr, was)) == sorted(repr(pair.was) for pair in pairs if pair.was)
    assert sorted(map(repr, now)) == sorted(repr(pair.now) for pair in pairs if pair.now)


@given(results)
def test_compared_with_itself_nothing_differs(side: list[Result]) -> None:
    assert groups(compare(side, side)).keys() <= {"unchanged"}


@given(results, results)
def test_seen_from_the_other_side_what_broke_is_fixed(was: list[Result], now: list[Result]) -> None:
    forward, other = compare(was, now), compare(now, was)
    assert len(forward.broke) - len(forward.fixed) == len(other.fixed) - len(other.broke)
    assert (len(forward.new), len(forward.gone)) == (len(other.gone), len(other.new))
    assert 0 <= forward.change().p == other.change().p <= 1
    assert (forward.change().difference or 0) == -(other.change().difference or 0)
