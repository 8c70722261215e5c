"""Checks of how alike two texts are."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstore.checks.parser import read_check
from evalstore.checks.types.text import edit_ratio, token_f1
from evalstore.core.errors import FileProblem
from evalstore.core.values import Json
from tests.checks.checking import judged, score, verdict

words = st.lists(st.sampled_from(["a", "the", "red", "fox", "Fox!", "é", "-"]), max_size=6).map(
    " ".join
)
texts = st.text(max_size=20) | words


@pytest.mark.parametrize(
    ("check", "passing", "failing"),
    [
        ({"exact": "The Eiffel Tower"}, "eiffel tower!", "tower"),
        ({"exact": ["one", "1"]}, "1.", "2"),
        ({"fuzzy": "a blue whale"}, "whale", "shark"),
        ({"fuzzy": "whale"}, "It is a blue wha-le.", "It is a w hale."),
        ({"fuzzy": ["the", "red"]}, "The", "x"),
        ({"fuzzy": "blue"}, "Blue!", ""),
        ({"f1": "red fox jumps", "pass": ">= 0.8"}, "the red fox", "the fox"),
        ({"similar": "kitten", "pass": ">= 0.6"}, "sitting", "siting on"),
    ],
    ids=str,
)
def test_a_text_is_alike_or_not(check: Json, passing: str, failing: str) -> None:
    assert (verdict(check, passing), verdict(check, failing)) == ("pass", "fail")


@pytest.mark.parametrize("kind", ["exact", "fuzzy", "f1", "similar", "bleu"])
def test_nothing_is_like_one_of_no_texts(kind: str) -> None:
    check = {"type": kind, "expected": [], "allowEmpty": True, "pass": ">= 0.1"}
    assert verdict(check, "a") == "fail"


@pytest.mark.parametrize(
    ("check", "answer", "expected"),
    [
        ({"f1": ["green", "red blue"]}, "blue red red", 0.8),
        ({"f1": "x"}, "", 0.0),
        ({"f1": "the"}, "", 0.0),
        ({"similar": "abc"}, "abc", 1.0),
        ({"similar": "abc"}, "xyz", 0.0),
        ({"similar": ["xyz", "ABD"], "ignoreCase": True}, "abc", 2 / 3),
    ],
    ids=str,
)
def test_a_score_is_that_of_the_best_text(check: Json, answer: str, expected: float) -> None:
    assert score(check, answer) == pytest.approx(expected)


def test_a_score_that_is_not_enough_is_reported() -> None:
    assert judged({"f1": ["red fox", "x"], "pass": ">= 0.9"}, "red dog") == (
        "fail",
        "the score is 0.5, required >= 0.9: expected 'red fox', found 'red dog'",
    )


@pytest.mark.parametrize("kind", ["f1", "similar", "bleu", "rouge"])
def test_a_score_needs_a_bound(kind: str) -> None:
    with pytest.raises(FileProblem, match="so it needs 'pass'"):
        read_check({kind: "a"})


@given(texts, texts)
def test_f1_is_symmetric(first: str, other: str) -> None:
    assert token_f1(first.split(), other.split()) == token_f1(other.split(), first.split())


@given(texts, texts)
def test_f1_lies_between_0_and_1(first: str, other: str) -> None:
    assert 0 <= token_f1(first.split(), other.split()) <= 1


@given(texts)
def test_f1_of_a_text_with_itself_is_1(text: str) -> None:
    assert token_f1(text.split(), text.split()) == 1


@given(texts, texts)
def test_the_edit_ratio_is_symmetric_and_between_0_and_1(first: str, other: str) -> None:
    assert 0 <= edit_ratio(first, other) == edit_ratio(other, first) <= 1


# --- levenshtein


@pytest.mark.parametrize(
    ("answer", "most", "expected"),
    [("sitting", 3, "pass"), ("sitting", 2, "fail"), ("kitten", 0, "pass"), ("mitten", 1, "pass")],
)
def test_edits_are_counted_to_the_nearest_text(answer: str, most: int, expected: str) -> None:
    check = {"levenshtein": ["kitten", "quite another"], "max": most}
    assert verdict(check, answer) == expected


def test_too_many_edits_are_reported() -> None:
    words = "expected 'a' or at most 1 edit from it, found 'bcd', 3 edits away"
    assert judged({"levenshtein": "a", "max": 1}, "bcd") == ("fail", words)
    check = {"levenshtein": "A", "max": 1, "ignoreCase": True}
    assert judged(check, "BCD") == ("fail", words.replace("'a'", "'A'").replace("bcd", "BCD"))


def test_edits_need_a_bound() -> None:
    with pytest.raises(FileProblem, match="needs 'max'"):
        read_check({"levenshtein": "a"})


# --- bleu and rouge


@pytest.mark.parametrize(
    ("kind", "module"), [("bleu", "sacrebleu.metrics"), ("rouge", "rouge_score.rouge_scorer")]
)
def test_without_its_package_a_check_says_how_to_get_it(
    kind: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evalstore.checks.types import text

    text._bleu_scorer.cache_clear()
    text._rouge_scorer.cache_clear()
    monkeypatch.setitem(sys.modules, module, None)
    assert judged({kind: "a", "pass": 0.5}, "a") == (
        "error",
        f"the check failed: the check '{kind}' needs more packages: "
        "pip install 'evalstore[similarity]'",
    )


def test_the_variant_of_rouge_is_a_known_one() -> None:
    with pytest.raises(FileProblem, match="'variant' cannot be"):
        read_check({"rouge": "a", "variant": "rouge9", "pass": 0.5})


@pytest.mark.parametrize(
    ("answer", "least", "most"),
    [("the small dog sleeps on the rug", 1, 1), ("the small dog sleeps", 0.1, 0.9), ("zzz", 0, 0)],
)
def test_bleu_is_a_share(answer: str, least: float, most: float) -> None:
    pytest.importorskip("sacrebleu")
    assert least <= round(score({"bleu": "the small dog sleeps on the rug"}, answer), 6) <= most


def test_rouge_takes_the_best_text() -> None:
    pytest.importorskip("rouge_score")
    check = {"rouge": ["x", "one two three four"], "variant": "rouge1"}
    assert score(check, "one two five four") == pytest.approx(0.75)


def test_rouge_compares_words_unless_stems_are_asked_for() -> None:
    plain, stems = (
        {"rouge": "a", "pass": 0.5, **more} for more in ({"stem": False}, {"stem": True})
    )
    assert read_check(plain) == read_check({"rouge": "a", "pass": 0.5})
    assert read_check(stems)["stem"] is True
    with pytest.raises(FileProblem, match="'stem' must be true or false"):
        read_check({"rouge": "a", "pass": 0.5, "stem": "yes"})


@pytest.mark.parametrize(("stem", "expected"), [(False, 0.0), (True, 0.571428)])
def test_rouge_takes_stems_as_its_package_does(stem: bool, expected: float) -> None:
    pytest.importorskip("rouge_score")
    check = {"rouge": "the dogs were running", "stem": stem}
    assert score(check, "a dog runs") == pytest.approx(expected, abs=1e-6)
