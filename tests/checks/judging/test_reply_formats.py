"""The replies of judges that choose or score: what is read from them, and what cannot be."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from evalstore.checks.judge_replies import JudgeReply, Unreadable, Verdicts, form_of
from evalstore.checks.parser import read_check
from evalstore.core.values import Json, Reply, Text

AB: dict[str, Json] = {"choices": ["A", "B"], "scores": {"A": 1, "B": 0.5}, "pass": ">= 0.8"}
SCALE: dict[str, Json] = {
    "prompt": "p",
    "parser": {"regex": "SCORE: (\\S+)", "min": 1, "max": 5},
    "pass": ">= 4",
}


def by(**parser: str) -> dict[str, Json]:
    """A judge that gives a score from 0 to 1."""
    return {"prompt": "p", "parser": parser, "pass": 1}


def read(judge: Json, text: str | None, code: str | None = None, **facts: Any) -> JudgeReply:
    return form_of([read_check({"judge": judge})]).read(Reply(text, **facts), code)


def chose(choice: Any, reasoning: str = "r", **more: Any) -> str:
    return json.dumps({**more, "reasoning": reasoning, "choice": choice})


def scored(score: Any, reasoning: str = "r", **more: Any) -> str:
    return json.dumps({**more, "reasoning": reasoning, "score": score})


def reason(judge: Json, text: str | None, **facts: Any) -> str:
    with pytest.raises(Unreadable) as raised:
        read(judge, text, **facts)
    return raised.value.reason


@pytest.mark.parametrize("answer", ["cot_classify", "classify_cot", "classify"])
@pytest.mark.parametrize("code", [None, "c0de"])
def test_a_choice_is_read_from_an_object_that_is_the_whole_reply(
    answer: str, code: str | None
) -> None:
    judge = {**AB, "answer": answer}
    value = {"reasoning": "It is not B.", "choice": "A", "code": code}
    if answer == "classify":
        del value["reasoning"]
    text = json.dumps({name: each for name, each in value.items() if each})
    assert read(judge, text, code).label == "A"
    thoughts = "<think>B</think>\n" if code else ""
    assert read(judge, f"{thoughts}```json\n{text}\n```", code).label == "A"
    for around in (f"B wins.\n{text}", f"{text}\nNo way.", f"> {text}", f"{text}\n{text}", "A"):
        with pytest.raises(Unreadable, match="is not one JSON object and nothing else"):
            read(judge, around, code)


@pytest.mark.parametrize(
    "choice", ["a", "(A)", "A.", "!A", "not A", "A or B", "", None, True, ["A"], {"A": 1}]
)
def test_a_choice_is_one_of_the_choices_to_the_letter(choice: Any) -> None:
    assert "which is none of the choices" in reason(AB, chose(choice))


def test_a_choice_may_be_a_number_or_have_blanks_around_it() -> None:
    judge = {"choices": ["1", "2"], "scores": "numbers", "pass": ">= 2"}
    assert read(judge, chose(2)).verdict == "pass"
    assert read(judge, chose(" 1\n")).verdict == "fail"


def test_an_object_of_a_choice_has_no_other_keys_and_the_code() -> None:
    assert "'verdict', which was not asked for" in reason(AB, chose("A", verdict="incorrect"))
    assert "'reasoning', which" in reason({**AB, "answer": "classify"}, chose("A"))
    with pytest.raises(Unreadable, match="does not have the code"):
        read(AB, chose("A"), "c0de")
    with pytest.raises(Unreadable, match="does not have the code"):
        read(AB, chose("A", code="0000"), "c0de")


SCORE: dict[str, Json] = {**SCALE, "parser": {"regex": "SCORE: ([1-5])", "min": 1, "max": 5}}


@pytest.mark.parametrize(
    ("judge", "reply"),
    [
        (AB, '{"reasoning": {"choice": "B"}, "choice": "A"}'),
        (SCORE, '{"reasoning": [1], "score": 4}'),
    ],
)
def test_reasons_are_no_object(judge: Json, reply: str) -> None:
    assert "the judge's 'reasoning' is a" in reason(judge, reply)


@pytest.mark.parametrize("score", [4, 4.0, "4", "SCORE: 4", " SCORE: 4\n"])
def test_a_score_is_a_number_or_what_a_pattern_captures_in_all_of_the_text(score: Any) -> None:
    assert read(SCORE, scored(score)).score == 0.75
    assert read(SCORE, scored(score, code="c0de"), "c0de").score == 0.75


@pytest.mark.parametrize(
    "score",
    [
        *("SCORE: 55", "SCORE: 4.9", "SCORE: 5/100", "not SCORE: 5", "SCORE: 1\nSCORE: 5"),
        *("It wrote SCORE: 5", "", "five", "5_0", "٥", "nan", True, None, [5], 0, 6, 10**400),
    ],
)
def test_anything_else_is_no_score(score: Any) -> None:
    reason(SCORE, scored(score))


@pytest.mark.parametrize(
    "text", ["SCORE: 5", f"It is bad.\n{scored(5)}", f"{scored(5)}\nNo.", scored(5, grade="bad")]
)
def test_a_score_in_a_text_or_beside_something_else_is_not_read(text: str) -> None:
    reason(SCORE, text)


@pytest.mark.parametrize("score", ["good", "VERDICT: good"])
def test_a_word_with_a_score_is_found_whole(score: str) -> None:
    judge = {**by(regex="VERDICT: (good|bad)"), "scores": {"good": 1, "bad": 0}}
    assert read(judge, scored(score)).verdict == "pass"
    for wrong in ("goodish", "VERDICT: goodish", "VERDICT: good or bad", "not good"):
        assert "has no score" in reason(judge, scored(wrong))


@pytest.mark.parametrize("value", ["true", "NaN", "1e999", '"1"', "[1]", "null"])
def test_a_value_at_a_path_that_is_no_number_is_unreadable(value: str) -> None:
    reason(by(json="a"), f'{{"a": {value}}}')


def test_a_path_reads_an_object_with_the_keys_that_the_prompt_names() -> None:
    check = read_check({"judge": by(json="a.b")})
    plain, asking = form_of([check]), form_of([check], [Text('{"a": {"b": 1}, "why": "…"}')])
    told = form_of([check], [], [Text('Add "why": "…".')])
    text = '{"code": "c0de", "a": {"b": 1}, "why": "wrong"}'
    assert asking.read(Reply(text), "c0de").verdict == "pass"
    assert told.read(Reply(text), "c0de").verdict == "pass"
    with pytest.raises(Unreadable, match="'why', which was not asked for"):
        plain.read(Reply(text), "c0de")
    with pytest.raises(Unreadable, match="does not have the code"):
        plain.read(Reply('{"a": {"b": 1}}'), "c0de")


@pytest.mark.parametrize("value", ["true", "false", "NaN", "Infinity", '"3"', "null", "[3]"])
def test_only_a_number_is_a_score(value: str) -> None:
    judge = {**SCALE, "parser": {"json": "score", "min": 0, "max": 5}}
    assert reason(judge, f'{{"score": {value}}}')


def test_a_vote_has_the_choice_the_share_of_the_scale_and_what_the_judge_wrote() -> None:
    judge = {"choices": ["1", "2", "3"], "scores": "numbers", "pass": ">= 3"}
    assert read(judge, chose("2", "Hm.")) == JudgeReply(
        "fail",
        feedback="the judge chose '2' (score 2); required >= 3",
        score=0.5,
        label="2",
        reasoning="Hm.",
    )


def test_choices_that_pass_need_no_score() -> None:
    judge = {"choices": ["A", "B", "C"], "pass": ["A", "C"]}
    assert read(judge, chose("C")) == JudgeReply("pass", label="C", reasoning="r")
    assert read(judge, chose("B")).feedback == "the judge chose 'B'; required 'A' or 'C'"


def test_less_can_be_better() -> None:
    judge = {**SCALE, "pass": "<= 2"}
    verdicts = [read(judge, scored(int(score))).verdict for score in "12345"]
    assert verdicts == ["pass"] * 2 + ["fail"] * 3


@pytest.mark.parametrize("text", ['{"a": {"b": 1}}', '\n```json\n{"a": {"b": 1}}\n```\n'])
def test_a_path_leads_to_the_score_in_json(text: str) -> None:
    assert read(by(json="a.b"), text).verdict == "pass"


@pytest.mark.parametrize(
    ("judge", "text", "message"),
    [
        (AB, chose("C"), "the judge's choice is 'C', which is none of the choices"),
        (AB, None, "the judge's reply is not one JSON object and nothing else"),
        (SCALE, scored("SCORE: 6"), "the judge's score is '6.0', not a number from 1 to 5"),
        (SCALE, scored("SCORE: nan"), "the judge's score is 'nan', not a number from 1 to 5"),
        (SCALE, scored("SCORE: " + "9" * 400), "not a number from 1 to 5"),
        (by(regex="(a)|b"), scored("b"), "the judge's score is 'b', not a number from 0 to 1"),
        (by(json="a"), '{"a": true}', "the judge's score is 'true', not a number from 0 to 1"),
        (by(json="a"), '{"a": null}', "the judge's object has nothing at 'a'"),
        (by(json="abs(a)"), '{"a": "x"}', "the judge's object has nothing at 'abs(a)'"),
        (by(json="a"), "[" * 100_000, "the judge's reply is not one JSON object"),
        ({**by(regex="(.)"), "scores": {"a": 1, "b": 0}}, scored("c"), "the judge's 'c' has no"),
    ],
)
def test_a_reply_without_what_is_looked_for_is_unreadable(
    judge: Json, text: str | None, message: str
) -> None:
    assert message in reason(judge, text)


def test_a_pattern_that_tries_too_much_is_given_up() -> None:
    assert "timed out" in reason(by(regex="(a|aa)+$"), scored("a" * 60 + "b"))


@pytest.mark.parametrize("judge", [AB, SCALE])
def test_a_judge_that_refuses_or_is_cut_off_is_unreadable(judge: Json) -> None:
    assert reason(judge, None, refusal="No.") == "the judge refused: No."
    assert "was cut off" in reason(judge, chose("A"), finish_reason="length")


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
    assert form_of([read_check({"judge": "strict"})]) == Verdicts(frozenset())


@pytest.mark.parametrize(
    ("judge", "told"),
    [
        (
            {**AB, "answer": "classify"},
            '{"code": "c0de", "choice": one of these choices: "A", "B"}',
        ),
        (
            {**AB, "answer": "classify_cot"},
            '{"code": "c0de", "choice": one of these choices: "A", "B", '
            '"reasoning": "your reasons, step by step"}',
        ),
        (
            AB,
            '{"code": "c0de", "reasoning": "your reasons, step by step", '
            '"choice": one of these choices: "A", "B"}',
        ),
        (
            SCALE,
            '{"code": "c0de", "reasoning": "your reasons, step by step", '
            '"score": a number from 1 to 5}. "score" is what this pattern captures: '
            r"SCORE: (\S+)",
        ),
        (
            {**by(regex="(.)"), "scores": {"good": 1, "bad": 0}},
            '{"code": "c0de", "reasoning": "your reasons, step by step", '
            '"score": one of "good", "bad"}. "score" is what this pattern captures: (.)',
        ),
    ],
)
def test_a_judge_is_told_which_object_counts(judge: Json, told: str) -> None:
    form = form_of([read_check({"judge": judge})])
    alone = f"Answer with one JSON object and nothing else: {told}"
    assert form.words("c0de").endswith(f"is the one that counts. {alone}")
    assert form.again("c0de") == alone
    assert form.words(None) == form.words("c0de").replace('"code": "c0de", ', "")


@pytest.mark.parametrize(
    ("judge", "value", "names"),
    [
        ({**AB, "answer": "classify"}, {"choice": "A"}, ["choice"]),
        (
            {**AB, "answer": "classify_cot"},
            {"choice": "A", "reasoning": ""},
            ["choice", "reasoning"],
        ),
        (AB, {"reasoning": "", "choice": "A"}, ["reasoning", "choice"]),
        (SCALE, {"reasoning": "", "score": 5}, ["reasoning", "score"]),
        (
            {**by(regex="(.)"), "scores": {"g": 1, "b": 0}},
            {"reasoning": "", "score": "g"},
            ["reasoning", "score"],
        ),
    ],
)
def test_the_schema_has_what_is_read(judge: Json, value: Json, names: list[str]) -> None:
    form = form_of([read_check({"judge": judge})])
    assert form.strictest == "schema"
    assert list(form.schema["properties"]) == names == form.schema["required"]
    assert Draft202012Validator(form.schema).is_valid(value)
    assert form.read(Reply(json.dumps(value))).verdict == "pass"


def test_an_object_of_the_prompt_is_asked_for_in_json_mode_with_the_code() -> None:
    form = form_of([read_check({"judge": by(json="a")})])
    assert form.strictest == "json"
    assert form.words(None) == "Answer with one JSON object and nothing else."
    assert 'Put "code": "c0de" into it' in form.words("c0de") == form.again("c0de")
