"""Why no verdict is read from a judge's reply, and what hides none."""

from __future__ import annotations

import pytest

from evalstore.judging.reply_parser import (
    Unreadable,
    finished_text,
    parse_unique_json,
    without_thinking,
)
from evalstore.judging.verdict_reply import JudgeReply, read_verdict
from evalstore.values import Reply
from tests.judging.test_verdict_reply import BAD_WITH_CODE, CODE, GOOD, GOOD_WITH_CODE, NO, YES


@pytest.mark.parametrize(
    "name",
    [
        *("pass", "passed", "passes", "verdict", "result", "ok", "success", "correct", "outcome"),
        *("Verdict", "ＯＫ"),
    ],
)
@pytest.mark.parametrize("value", ["false", '"no"', '"False"'])
def test_a_member_that_says_no_contradicts_a_pass(name: str, value: str) -> None:
    with pytest.raises(Unreadable, match=r"^the judge's 'pass' is true, and another member says"):
        read_verdict(Reply(f'{{"pass": true, "more": {{"{name}": {value}}}}}'))


@pytest.mark.parametrize(
    "member",
    [
        '"colour": false',
        '"colour": "no"',
        '"passing": false',
        '"reasoning": "Failing would be too strict. It holds."',
        '"feedback": "fails to be brief, but that was not asked"',
        '"Feedback": "not passed on, but used"',
        '"verdict": true',
        '"label": "good, not a fail"',
        '"list": ["fine", {"ok": true}]',
    ],
)
def test_a_member_that_says_something_else_contradicts_nothing(member: str) -> None:
    assert read_verdict(Reply(f'{{"pass": true, {member}}}')).verdict == "pass"


@pytest.mark.parametrize("name", ["reasoning", "feedback"])
@pytest.mark.parametrize("value", ["fail", "Fails", "FAILED", " *fail*. ", "`failed`"])
def test_reasons_that_say_no_more_than_fail_contradict_a_pass(name: str, value: str) -> None:
    with pytest.raises(Unreadable, match="another member says otherwise"):
        read_verdict(Reply(f'{{"pass": true, "{name}": "{value}"}}'))


@pytest.mark.parametrize(
    ("reply", "code", "reason"),
    [
        (Reply("x"), None, "the judge's reply is not one JSON object with 'pass' and nothing else"),
        (Reply("x"), CODE, "the judge's reply holds no JSON object with 'pass'"),
        (Reply(GOOD), CODE, "the judge's verdict does not have the code that was asked for"),
        (
            Reply(GOOD_WITH_CODE + BAD_WITH_CODE),
            CODE,
            "the judge's reply holds verdicts that differ",
        ),
        (
            Reply(f"{GOOD_WITH_CODE} or not"),
            CODE,
            "the judge's reply goes on after a pass, which may take it back",
        ),
        (
            Reply(f"It can ’t  be: not a pass. {GOOD_WITH_CODE}"),
            CODE,
            "the judge's 'pass' is true, and the text around it says 'not a pass'",
        ),
        (Reply("{}" * 5_001), CODE, "the judge's reply holds too many objects"),
        (Reply(GOOD, refusal="No.\ud83d"), None, "the judge refused: No.\ufffd"),
        (
            Reply(GOOD, finish_reason="length"),
            None,
            "the judge's reply was cut off by the token limit",
        ),
        (
            Reply(GOOD, finish_reason="max_tokens"),
            None,
            "the judge's reply was cut off by the token limit",
        ),
        (
            Reply(GOOD, finish_reason="Max_Output_Tokens"),
            None,
            "the judge's reply was cut off: its finish reason is 'Max_Output_Tokens'",
        ),
        (Reply('{"pass": 1}'), None, "the judge's 'pass' is 1, not true or false"),
        (Reply('{"pass": "né"}'), None, "the judge's 'pass' is \"né\", not true or false"),
        (Reply('{"pass": [1]}'), None, "the judge's 'pass' is a list, not true or false"),
        (Reply('{"pass": {}}'), None, "the judge's 'pass' is an object, not true or false"),
        (
            Reply('{"pass": "' + "x" * 99 + '"}'),
            None,
            f"the judge's 'pass' is \"{'x' * 39}, not true or false",
        ),
        (
            Reply('{"pass": true, "score": 2}'),
            None,
            "the judge's 'score' is 2, not a number from 0 to 1",
        ),
        (
            Reply('{"pass": true, "score": 0}'),
            None,
            "the judge's 'score' is 0, and its 'pass' is true: one contradicts the other",
        ),
        (
            Reply('{"pass": false, "score": 1.0}'),
            None,
            "the judge's 'score' is 1.0, and its 'pass' is false: one contradicts the other",
        ),
    ],
)
def test_why_no_verdict_is_read(reply: Reply, code: str | None, reason: str) -> None:
    with pytest.raises(Unreadable) as caught:
        read_verdict(reply, code)
    assert caught.value.reason == str(caught.value) == reason


def test_a_pass_that_another_member_denies_has_this_message() -> None:
    with pytest.raises(Unreadable) as caught:
        read_verdict(Reply('{"pass": true, "ok": false}'))
    words = "the judge's 'pass' is true, and another member says otherwise"
    assert str(caught.value) == words


@pytest.mark.parametrize("text", [None, ""])
def test_a_reply_without_a_text_is_not_an_object(text: str | None) -> None:
    assert finished_text(Reply(text)) == ""


def test_thoughts_may_have_several_lines_and_must_end_once() -> None:
    assert without_thinking("<think>a\nb</think>c") == "c"
    twice = "<think>a</think>b</think>c"
    assert without_thinking(twice) == twice
    assert without_thinking("<think>a</think>b</thinking>") == "b</thinking>"
    assert without_thinking("a <think>b</think>") == "a <think>b</think>"


@pytest.mark.parametrize("reason", ["abort", "cancelled", "Incomplete", "recitation", "refusal"])
def test_each_reason_for_an_unfinished_reply_is_known(reason: str) -> None:
    with pytest.raises(Unreadable, match=f"its finish reason is '{reason}'"):
        read_verdict(Reply(GOOD, finish_reason=reason))


@pytest.mark.parametrize("before", ["x] y} ", "{a} ", "[1, 2] ", "((", "{[}] "])
def test_brackets_that_are_closed_hide_no_verdict(before: str) -> None:
    assert read_verdict(Reply(before + GOOD_WITH_CODE), CODE) == YES


@pytest.mark.parametrize("before", ["[", "{", "[{}", "[[]"])
def test_a_verdict_inside_of_a_bracket_is_not_the_judges_own(before: str) -> None:
    with pytest.raises(Unreadable, match="holds no JSON object"):
        read_verdict(Reply(before + GOOD_WITH_CODE), CODE)


@pytest.mark.parametrize(
    ("text", "opinion"),
    [
        (f"I {GOOD_WITH_CODE} {GOOD_WITH_CODE}", YES),
        (f'It {{"fail": 1}} {GOOD_WITH_CODE}', None),
        (
            f'Did not {{"code": "c0de", "pass": true, "feedback": "fine"}} pass {GOOD_WITH_CODE}',
            None,
        ),
    ],
)
def test_the_text_around_a_pass_is_all_but_the_verdicts(
    text: str, opinion: JudgeReply | None
) -> None:
    if opinion:
        assert read_verdict(Reply(text), CODE) == opinion
    else:
        with pytest.raises(Unreadable, match="the text around it says"):
            read_verdict(Reply(text), CODE)


@pytest.mark.parametrize(
    ("text", "code", "is_structured"),
    [
        ("Well.", None, False),
        (f"Well. {GOOD}", None, False),
        ("", None, True),
        ("```json\n```", None, False),
        ('{"pass": 1}', None, True),
        ("Well.", CODE, True),
    ],
)
def test_a_reply_that_its_server_did_not_hold_to_the_schema_is_known(
    text: str, code: str | None, is_structured: bool
) -> None:
    with pytest.raises(Unreadable) as caught:
        read_verdict(Reply(text), code)
    assert caught.value.is_structured is is_structured


@pytest.mark.parametrize(
    ("text", "opinion"),
    [
        (f"<think>{BAD_WITH_CODE}</think>{GOOD_WITH_CODE}", YES),
        (f" \n<thinking>It fails.</thinking>\n{GOOD_WITH_CODE}", YES),
        (f"<thought>x</thought>{BAD_WITH_CODE}", NO),
        (f"<reasoning>fail</reasoning>{GOOD_WITH_CODE}", YES),
        (f"] }} {GOOD_WITH_CODE}", YES),
        (f"[] [x [y] z] {GOOD_WITH_CODE}", YES),
        (f"{{ {{ }} }} {GOOD_WITH_CODE}", YES),
        ('{"pass": true, "feedback": "fine", "code": "c0de"} ' + GOOD_WITH_CODE, YES),
        ("{}" * 4_999 + GOOD_WITH_CODE, YES),
        (f"It passes, I think.\u200b {GOOD_WITH_CODE}", YES),
    ],
)
def test_a_verdict_is_found_behind_thoughts_and_brackets(text: str, opinion: JudgeReply) -> None:
    assert read_verdict(Reply(text), CODE) == opinion


@pytest.mark.parametrize(
    "text",
    [
        f"<think>a</think> it said </think> fail {GOOD_WITH_CODE}",
        f"<think>It fails.</thinking>{GOOD_WITH_CODE}",
        f"It doesn’t pass. {GOOD_WITH_CODE}",
        f"It never will pass. {GOOD_WITH_CODE}",
        f"A f\u00adail. {GOOD_WITH_CODE}",
        f"pass: false. {GOOD_WITH_CODE}",
        f"[ [ ] {GOOD_WITH_CODE}",
        f"[ {{}} {GOOD_WITH_CODE}",
        f"{GOOD_WITH_CODE} fails {GOOD_WITH_CODE}",
    ],
)
def test_a_pass_that_the_text_takes_back_is_not_a_pass(text: str) -> None:
    with pytest.raises(Unreadable):
        read_verdict(Reply(text), CODE)


def test_json_of_a_judge_names_nothing_twice_and_is_not_too_deep() -> None:
    with pytest.raises(ValueError, match=r"^a name appears twice$"):
        parse_unique_json('{"a": [{"b": 1, "b": 1}]}')
    with pytest.raises(ValueError, match=r"^it is nested too deeply$"):
        parse_unique_json("[" * 100_000)
