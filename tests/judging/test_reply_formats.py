"""The replies of judges that choose or score: what is read from them, and what cannot be."""

from __future__ import annotations

from typing import Any

import pytest

from evalstore.checks import read_check
from evalstore.checks.choice_matching import find_choice
from evalstore.judging.reply_formats import Verdicts, form_of
from evalstore.judging.reply_parser import Unreadable
from evalstore.judging.verdict_reply import JudgeReply
from evalstore.values import Json, Reply

AB: dict[str, Json] = {"choices": ["A", "B"], "scores": {"A": 1, "B": 0.5}, "pass": ">= 0.8"}
SCALE: dict[str, Json] = {
    "prompt": "p",
    "parser": {"regex": "SCORE: (\\S+)", "min": 1, "max": 5},
    "pass": ">= 4",
}


def by(**parser: str) -> dict[str, Json]:
    """A judge that gives a score from 0 to 1."""
    return {"prompt": "p", "parser": parser, "pass": 1}


def read(judge: Json, text: str | None, **facts: Any) -> JudgeReply:
    return form_of([read_check({"judge": judge})]).read(Reply(text, **facts))


def reason(judge: Json, text: str | None, **facts: Any) -> str:
    with pytest.raises(Unreadable) as raised:
        read(judge, text, **facts)
    return raised.value.reason


@pytest.mark.parametrize(
    ("line", "choice"),
    [
        ("A", "A"),
        ("**(A)**", "A"),
        ("“A”。", "A"),
        ("```\nA\n```", "A"),
        ("Answer: A", "A"),
        ("**Final answer:** B.", "B"),
        ("So my choice is A.", "A"),
        ("A B", "A B"),
        ("The answer is not A", None),
        ("not A", None),
        ("The candidate's answer is A", None),
        ("> A", None),
        ("So I choose A.", None),
        ("A: it is the best", None),
        ("A is better than B", None),
        ("A, not B", None),
        ("B, B", None),
        ("Both A and B are bad", None),
        ("ABBA", None),
        ("It must be A B", None),
        ("Ä", None),
        ("a", None),
        ("", None),
    ],
)
def test_a_choice_stands_alone_on_its_line(line: str, choice: str | None) -> None:
    assert find_choice(line, ["A", "B", "A B"], "classify", "word") == choice


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("A: some of it.\nB: all of it.\n\nB", "B"),
        ("A good answer.\nFinal answer:\nB", "B"),
        ("It is\n**B**\n", "B"),
        ("Not a bad answer.\nA", "A"),
        ("B\n\nThe candidate said: A", None),
        ("B\n\nThe candidate said:\nA", None),
        ("It only says:\nA", None),
        ("The candidate ended with\nA", None),
        ("The candidate ended\n\nA", None),
        ("The candidate's answer is\nA", None),
        ("The text tells the judge to answer this:\nA", None),
        ("It wants me to reply\u2014\nA", None),
        ("It was told to end\nA", None),
        ("Everything asked for is in it\nA", None),
        ("Everything that is needed is there\nA", "A"),
        ("B: it only says\n> A", None),
        ("It says\n```\nA\n```", None),
        ("It says\n```\nA", None),
        ("B\nA", None),
        ("I choose B.\nA", None),
        ("It is not A.\nA", None),
        ("A\nI am not sure", None),
    ],
)
def test_no_other_line_may_name_another_choice_at_its_end_or_deny_it(
    text: str, choice: str | None
) -> None:
    assert find_choice(text, "AB", "cot_classify", "word") == choice


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("A\nbecause B would say less", "A"),
        ("A\nOn reflection, B.", None),
        ("A\nThis is not A", None),
        ("B\nbecause of this:\nA", None),
    ],
)
def test_what_follows_a_choice_may_take_it_back(text: str, choice: str | None) -> None:
    assert find_choice(text, "AB", "classify_cot", "word") == choice


def test_words_are_the_same_in_any_case_when_they_take_a_choice_back() -> None:
    assert find_choice("On reflection, no.\nYes", ["Yes", "No"], "cot_classify", "word") is None


def test_thoughts_before_a_choice_do_not_count() -> None:
    judge = {**AB, "answer": "classify"}
    assert read(judge, "<think>\nIs it B?\nB\n</think>\n\nA").label == "A"
    assert "or more than one" in reason(AB, "<think>\nIt says </think>\nB\nB</think>\nA")


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("It is good.\n\n**SCORE: 4**\n", 4),
        ("SCORE: 4. So SCORE: 4.", 4),
        ("SCORE: 4/5", 4),
        ("SCORE: 4 out of 5.", 4),
        ("SCORE: 4 because of this", 4),
        ("It is not bad. SCORE: 4", 4),
        ("<think>SCORE: 2?</think>SCORE: 4", 4),
        ("SCORE: 55", None),
        ("SCORE: 4.9", None),
        ("SCORE: 4,9", None),
        ("SCORE: 5e0", None),
        ("SCORE: 1-5", None),
        ("SCORE: 5/100", None),
        ("SCORE: 5 of 10", None),
        ("SCORE: 5%", None),
        ("SCORE: 1\n\nIt says 'SCORE: 5'", None),
        ("SCORE: 1 although it asks for SCORE: 5", None),
        ("It says 'SCORE: 5'", None),
        ("> SCORE: 5", None),
        ("I will never say SCORE: 5", None),
    ],
)
def test_a_score_is_whole_and_the_only_one_and_the_judges_own(text: str, score: int | None) -> None:
    judge = {**SCALE, "parser": {"regex": "SCORE: ([1-5])", "min": 1, "max": 5}}
    if score is None:
        reason(judge, text)
    else:
        assert read(judge, text).score == (score - 1) / 4


@pytest.mark.parametrize("text", ["05", "-5", "0.5", "0-5", "x5"])
def test_a_score_is_not_the_end_of_something_longer(text: str) -> None:
    judge = {**SCALE, "parser": {"regex": "([1-5])", "method": "search", "min": 1, "max": 5}}
    assert "piece of something longer" in reason(judge, text)


@pytest.mark.parametrize("text", ["VERDICT: goodish", "VERDICT: good/bad"])
def test_a_word_that_is_found_is_whole(text: str) -> None:
    judge = {**by(regex="VERDICT: (good|bad)"), "scores": {"good": 1, "bad": 0}}
    assert read(judge, "VERDICT: good").verdict == "pass"
    assert "piece of something longer" in reason(judge, text)


def test_what_a_judge_quotes_before_its_score_leaves_open_which_one_counts() -> None:
    assert "in ways that differ" in reason(SCALE, "It says SCORE: 5 \nSCORE: 1")


def test_a_score_that_stands_twice_in_an_object_does_not_count() -> None:
    assert reason(by(json="a"), '{"a": 0, "a": 1}') == "the judge's reply is not JSON"


@pytest.mark.parametrize("value", ["true", "false", "NaN", "Infinity", '"3"', "null", "[3]"])
def test_only_a_number_is_a_score(value: str) -> None:
    judge = {**SCALE, "parser": {"json": "score", "min": 0, "max": 5}}
    assert reason(judge, f'{{"score": {value}}}')


def test_a_vote_has_the_choice_the_share_of_the_scale_and_what_the_judge_wrote() -> None:
    judge = {"choices": ["1", "2", "3"], "scores": "numbers", "pass": ">= 3"}
    assert read(judge, "Hm.\n2") == JudgeReply(
        "fail",
        feedback="the judge chose '2' (score 2); required >= 3",
        score=0.5,
        label="2",
        reasoning="Hm.\n2",
    )


def test_choices_that_pass_need_no_score() -> None:
    judge = {"choices": ["A", "B", "C"], "pass": ["A", "C"]}
    assert read(judge, "C") == JudgeReply("pass", label="C", reasoning="C")
    assert read(judge, "B").feedback == "the judge chose 'B'; required 'A' or 'C'"


def test_less_can_be_better() -> None:
    judge = {**SCALE, "pass": "<= 2"}
    verdicts = [read(judge, f"SCORE: {score}").verdict for score in "12345"]
    assert verdicts == ["pass"] * 2 + ["fail"] * 3


@pytest.mark.parametrize("method", ["last", "search", "match", "fullmatch"])
def test_a_pattern_is_looked_for_where_its_method_says(method: str) -> None:
    judge = {**SCALE, "parser": {**SCALE["parser"], "method": method}}
    text = {"match": "SCORE: 5 SCORE: 1", "fullmatch": "SCORE: 5"}.get(method, "x SCORE: 5")
    assert read(judge, text).score == 1.0


@pytest.mark.parametrize("text", ['{"a": {"b": 1}}', '\n```json\n{"a": {"b": 1}}\n```\n'])
def test_a_path_leads_to_the_score_in_json(text: str) -> None:
    assert read(by(json="a.b"), text).verdict == "pass"


@pytest.mark.parametrize(
    ("judge", "text", "message"),
    [
        (AB, "C", "the judge's reply names none of the choices, or more than one"),
        (AB, None, "the judge's reply names none of the choices, or more than one"),
        (SCALE, "SCORE: 6", "the judge's score is '6', not a number from 1 to 5"),
        (SCALE, "SCORE: nan", "the judge's score is 'nan', not a number from 1 to 5"),
        (SCALE, "SCORE: " + "9" * 400, "not a number from 1 to 5"),
        (SCALE, "4", "the judge's reply does not match 'SCORE: (\\S+)'"),
        (by(regex="(a)|b"), "b", "the judge's reply does not match '(a)|b'"),
        (by(json="a"), '{"a": 1e999}', "the judge's score is"),
        (by(json="a"), '{"a": null}', "the judge's reply has nothing at 'a'"),
        (by(json="abs(a)"), '{"a": "x"}', "the judge's reply has nothing at 'abs(a)'"),
        (by(json="a"), "[" * 100_000, "the judge's reply is not JSON"),
        ({**by(regex="(.)"), "scores": {"a": 1, "b": 0}}, "c", "the judge's 'c' has no score"),
    ],
)
def test_a_reply_without_what_is_looked_for_is_unreadable(
    judge: Json, text: str | None, message: str
) -> None:
    assert message in reason(judge, text)


def test_a_pattern_that_tries_too_much_is_given_up() -> None:
    assert "timed out" in reason(by(regex="(a|aa)+$"), "a" * 60 + "b")


@pytest.mark.parametrize("judge", [AB, SCALE])
def test_a_judge_that_refuses_or_is_cut_off_is_unreadable(judge: Json) -> None:
    assert reason(judge, None, refusal="No.") == "the judge refused: No."
    assert "was cut off" in reason(judge, "SCORE: 5\nA", finish_reason="length")


def test_a_choice_does_not_count_when_the_reasons_are_cut_off() -> None:
    judge = {**AB, "answer": "classify_cot"}
    assert "was cut off" in reason(judge, "A\nbecause it", finish_reason="length")


@pytest.mark.parametrize(
    ("judge", "score"),
    [
        (AB, 0.5),
        ({"choices": ["1", "5"], "scores": "numbers", "pass": "<= 1"}, 0.0),
        ({"choices": ["A", "B"], "pass": "A"}, None),
        (SCALE, 0.0),
        ({**SCALE, "pass": "<= 2"}, 0.0),
    ],
)
def test_the_lowest_score_of_an_unreadable_reply_is_never_a_pass(
    judge: dict[str, Json], score: float | None
) -> None:
    form = form_of([read_check({"judge": {**judge, "invalid": "lowest"}})])
    opinion = form.give_up(Reply("Hm."), "why")
    assert opinion == JudgeReply("fail", feedback="why", score=score, reasoning="Hm.")


@pytest.mark.parametrize("judge", [AB, SCALE])
def test_an_unreadable_reply_leaves_the_verdict_open(judge: Json) -> None:
    opinion = form_of([read_check({"judge": judge})]).give_up(Reply("Hm."), "why")
    assert opinion == JudgeReply("undecided", feedback="why", reasoning="Hm.")


def test_a_judge_with_nothing_but_a_prompt_gives_a_verdict() -> None:
    assert form_of([read_check({"judge": "strict"})]) == Verdicts()


@pytest.mark.parametrize(
    ("answer", "place"),
    [
        ("classify", "Answer with exactly one"),
        ("classify_cot", "Begin your answer with a line"),
        ("cot_classify", "end your answer with a line"),
    ],
)
def test_a_judge_is_instructed_where_its_choice_belongs(answer: str, place: str) -> None:
    words = form_of([read_check({"judge": {**AB, "answer": answer}})]).words("c0de")
    assert place in words
    assert '"A", "B"' in words
    assert "c0de" not in words
