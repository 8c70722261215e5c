"""Votes to verdicts: a tie is undecided, and undecided never passes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evalstore.checks.aggregation import JudgedSession, combine_votes, judge_session, wants_models
from evalstore.core.values import VERDICTS, Verdict, Vote, Word

RULES = ["majority", "all", "any", ">= 0", ">= 0.5", ">=0.8", ">= 1"]

scores = st.none() | st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0])
votes = st.lists(st.tuples(st.sampled_from(VERDICTS), scores), min_size=1, max_size=6)
rules = st.sampled_from(RULES)


def words(text: str) -> list[tuple[Verdict, float | None]]:
    names: dict[str, Verdict] = {"p": "pass", "f": "fail", "u": "undecided", "e": "error"}
    return [(names[letter], None) for letter in text]


@pytest.mark.parametrize(
    ("cast", "rule", "verdict"),
    [
        ("p", "majority", "pass"),
        ("f", "majority", "fail"),
        ("u", "majority", "undecided"),
        ("pf", "majority", "undecided"),
        ("ppf", "majority", "pass"),
        ("pff", "majority", "fail"),
        ("pu", "majority", "undecided"),
        ("ppu", "majority", "pass"),
        ("pfu", "majority", "undecided"),
        ("pe", "majority", "error"),
        ("pp", "all", "pass"),
        ("pf", "all", "fail"),
        ("pu", "all", "undecided"),
        ("fu", "all", "fail"),
        ("ff", "any", "fail"),
        ("pf", "any", "pass"),
        ("fu", "any", "undecided"),
        ("u", "any", "undecided"),
        ("pe", "any", "error"),
        ("pf", ">= 0.5", "pass"),
        ("pff", ">= 0.5", "fail"),
        ("pu", ">= 0.5", "pass"),
        ("pu", ">= 0.8", "undecided"),
        ("fu", ">= 0.8", "fail"),
        ("u", ">= 0", "undecided"),
        ("f", ">= 0", "fail"),
        ("pppppppfff", ">= 0.7", "pass"),
    ],
)
def test_the_rule_decides(cast: str, rule: str, verdict: Verdict) -> None:
    assert combine_votes(words(cast), rule).verdict == verdict


def test_scores_count_where_the_rule_asks_for_a_mean() -> None:
    graded: list[tuple[Verdict, float | None]] = [("pass", 0.6), ("fail", 0.3)]
    assert combine_votes(graded, ">= 0.4").verdict == "pass"
    assert combine_votes(graded, ">= 0.4").score == pytest.approx(0.45)
    assert combine_votes(graded, ">= 0.5").verdict == "fail"


def test_the_rounding_of_floats_costs_nobody_the_pass() -> None:
    graded: list[tuple[Verdict, float | None]] = [("pass", 0.1), ("pass", 0.2), ("pass", 0.3)]
    assert combine_votes(graded, ">= 0.2").verdict == "pass"


def test_the_score_is_the_mean_of_the_votes_that_have_one() -> None:
    assert combine_votes([("pass", 1.0), ("pass", None), ("fail", 0.5)]) == ("pass", 0.75)


def test_under_a_mean_votes_without_a_score_are_part_of_the_score() -> None:
    cast: list[tuple[Verdict, float | None]] = [("pass", 0.2), ("pass", None)]
    assert combine_votes(cast, ">= 0.5").verdict == "pass"
    assert combine_votes(cast, ">= 0.5").score == pytest.approx(0.6)
    assert combine_votes(cast).score == pytest.approx(0.2)


def test_an_unreadable_vote_is_neither_for_nor_against() -> None:
    assert combine_votes([("pass", 0.9), ("undecided", None)], ">= 0.4") == ("pass", 0.9)
    assert combine_votes([("pass", 0.9), ("undecided", None)], ">= 0.5").verdict == "undecided"
    assert combine_votes([("fail", 0.9), ("undecided", None)], ">= 0.4").verdict == "undecided"
    assert combine_votes([("fail", 0.1), ("undecided", None)], ">= 0.9").verdict == "fail"


def test_an_undecided_session_stays_undecided_whatever_its_score() -> None:
    session = combine_votes([("pass", 1.0), ("undecided", None)], ">= 0.9")
    assert session == ("undecided", 1.0)
    assert combine_votes([session], ">= 0.9").verdict == "undecided"


def test_a_failed_vote_without_a_score_lowers_the_mean() -> None:
    cast: list[tuple[Verdict, float | None]] = [("pass", 0.8), ("fail", None)]
    assert combine_votes(cast, ">= 0.4") == ("pass", 0.4)


def test_the_score_of_an_undecided_vote_does_not_help_to_pass() -> None:
    cast: list[tuple[Verdict, float | None]] = [("pass", 0.5), ("undecided", 1.0)]
    assert combine_votes(cast, ">= 0.6").verdict == "undecided"
    assert combine_votes(cast, ">= 0.2").verdict == "pass"


def test_a_bound_needs_no_blank_before_it() -> None:
    assert combine_votes(words("ppf"), ">=1").verdict == "fail"
    assert combine_votes(words("pp"), ">=1").verdict == "pass"


def test_there_is_no_verdict_without_votes() -> None:
    with pytest.raises(ValueError, match=r"^there are no votes to combine$"):
        combine_votes([])


@given(votes, rules, st.randoms(use_true_random=False))
def test_the_order_of_votes_never_counts(
    cast: list[tuple[Verdict, float | None]], rule: str, random: object
) -> None:
    shuffled = list(cast)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert combine_votes(shuffled, rule) == combine_votes(cast, rule)


@given(votes, rules)
def test_without_a_vote_for_it_nothing_passes(
    cast: list[tuple[Verdict, float | None]], rule: str
) -> None:
    without = [("fail" if verdict == "pass" else verdict, score) for verdict, score in cast]
    assert combine_votes(without, rule).verdict != "pass"


@given(votes, rules)
def test_an_undecided_vote_never_helps_to_pass(
    cast: list[tuple[Verdict, float | None]], rule: str
) -> None:
    with_one = combine_votes([*cast, ("undecided", None)], rule).verdict
    if combine_votes(cast, rule).verdict != "pass":
        assert with_one != "pass"


@given(votes, rules)
@example([("pass", 0.2), ("pass", None)], ">= 0.5")
def test_a_verdict_combined_by_itself_stays_what_it_is(
    cast: list[tuple[Verdict, float | None]], rule: str
) -> None:
    once = combine_votes(cast, rule)
    assert combine_votes([once], rule).verdict == once.verdict


@given(votes, rules)
def test_a_verdict_lies_between_what_an_undecided_vote_might_have_been(
    cast: list[tuple[Verdict, float | None]], rule: str
) -> None:
    if any(verdict == "error" for verdict, _ in cast):
        return
    order: list[Verdict] = ["fail", "undecided", "pass"]
    low, here, high = (
        order.index(combine_votes([*cast, (verdict, None)], rule).verdict) for verdict in order
    )
    assert low <= here <= high


@given(votes, rules)
def test_an_error_is_never_outvoted(cast: list[tuple[Verdict, float | None]], rule: str) -> None:
    assert combine_votes([*cast, ("error", None)], rule).verdict == "error"


def vote(evaluator: str, verdict: Verdict, score: float | None = None) -> Vote:
    return Vote(1, "id", "evaluation", evaluator, verdict, score)


def judged(
    votes: Sequence[Vote], judged_by: Sequence[str], checks: str, rule: str = "majority"
) -> JudgedSession:
    found = judge_session(votes, judged_by, checks, rule)
    assert found is not None
    return found


def test_checks_that_fail_decide() -> None:
    cast = [vote("checks", "fail"), vote("judge", "pass")]
    assert judged(cast, ("checks", "models"), "checks").verdict == "fail"


def test_checks_that_pass_leave_the_verdict_to_the_models() -> None:
    cast = [vote("checks", "pass"), vote("judge", "fail", 0.25)]
    assert judged(cast, ("checks", "models"), "checks") == ("fail", 0.25)


def test_checks_alone_decide_when_nobody_else_judges() -> None:
    assert judged([vote("checks", "pass")], ("checks",), "checks").verdict == "pass"


def test_checks_that_cannot_be_computed_are_an_error() -> None:
    assert judged([vote("checks", "error")], ("checks", "models"), "checks").verdict == "error"


def by(person: str, verdict: Word) -> Vote:
    return Vote(1, "id", "evaluation", person, verdict, None, human=True)


def test_people_decide_by_majority_whatever_checks_and_models_say() -> None:
    others = [vote("checks", "fail"), vote("judge", "fail")]
    both = ("checks", "models")
    assert judged([*others, by("ada", "pass")], both, "checks").verdict == "pass"
    split = [*others, by("ada", "pass"), by("bob", "fail")]
    assert judged(split, both, "checks", "any").verdict == "undecided"
    most = [*split, by("eve", "pass")]
    assert judged(most, both, "checks", "all").verdict == "pass"


def test_a_label_that_was_taken_back_is_not_a_vote() -> None:
    cast = [vote("judge", "fail"), by("ada", "none")]
    assert judged(cast, ("models",), "checks").verdict == "fail"
    assert judged([*cast, by("bob", "pass")], ("models",), "checks").verdict == "pass"


@pytest.mark.parametrize(
    ("judged_by", "checked", "model", "verdict"),
    [
        (("checks", "models"), "pass", "fail", "fail"),
        (("checks", "models"), "fail", "pass", "fail"),
        (("checks", "models"), "error", "pass", "error"),
        (("checks", "models", "on_fail"), "fail", "pass", "pass"),
        (("checks", "models", "on_fail"), "pass", "fail", "pass"),
        (("checks", "models", "always"), "pass", "fail", "fail"),
        (("checks", "models", "always"), "fail", "pass", "fail"),
        (("checks", "models", "always"), "undecided", "pass", "undecided"),
    ],
)
def test_who_decides_is_a_matter_of_what_the_checks_say(
    judged_by: tuple[str, ...], checked: Verdict, model: Verdict, verdict: Verdict
) -> None:
    cast = [vote("checks", checked), vote("judge", model)]
    assert judged(cast, judged_by, "checks").verdict == verdict


@pytest.mark.parametrize(
    ("judged_by", "expected"),
    [
        (("checks",), ()),
        (("checks", "always"), ()),
        (("models",), ("pass",)),
        (("checks", "models"), ("pass",)),
        (("checks", "models", "on_fail"), ("fail",)),
        (("checks", "models", "always"), VERDICTS),
    ],
)
def test_models_are_asked_about_what_the_checks_leave_to_them(
    judged_by: tuple[str, ...], expected: tuple[Verdict, ...]
) -> None:
    assert [verdict for verdict in VERDICTS if wants_models(judged_by, verdict)] == list(expected)


def test_several_models_judge_by_the_rule() -> None:
    cast = [vote("judge", "pass"), vote("other", "fail")]
    for rule, verdict in (("any", "pass"), ("all", "fail"), ("majority", "undecided")):
        assert judged(cast, ("models",), "checks", rule).verdict == verdict
    assert judged(cast, ("models",), "checks").verdict == "undecided"
