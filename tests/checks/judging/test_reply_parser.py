"""A judge's reply is one object and nothing else; why another one cannot be read."""

from __future__ import annotations

import pytest

from evalstore.checks.judge_replies import (
    Unreadable,
    Verdicts,
    finished_text,
    keys_in,
    read_object,
    without_thinking,
)
from evalstore.core.values import FilePart, Reply, Text
from tests.checks.judging.test_verdict_reply import BAD_WITH_CODE, CODE, GOOD, GOOD_WITH_CODE

NOT_ONE = "the judge's reply is not one JSON object and nothing else"


@pytest.mark.parametrize(
    ("reply", "code", "reason"),
    [
        (Reply("x"), None, NOT_ONE),
        (Reply("x"), CODE, NOT_ONE),
        (Reply(GOOD), CODE, "the judge's object does not have the code that was asked for"),
        (Reply(GOOD_WITH_CODE + BAD_WITH_CODE), CODE, NOT_ONE),
        (Reply(f"{GOOD_WITH_CODE} or not"), CODE, NOT_ONE),
        (Reply(f"It is right. {GOOD_WITH_CODE}"), CODE, NOT_ONE),
        (Reply('{"feedback": ""}'), None, "the judge's object has no 'pass'"),
        (
            Reply('{"pass": true, "\\ud83d": 1}'),
            None,
            "the judge's object has '\ufffd', which was not asked for",
        ),
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
    ],
)
def test_why_no_verdict_is_read(reply: Reply, code: str | None, reason: str) -> None:
    with pytest.raises(Unreadable) as caught:
        Verdicts().read(reply, code)
    assert caught.value.reason == str(caught.value) == reason


@pytest.mark.parametrize(
    ("score", "passed", "reason"),
    [
        ("2", "true", "the judge's 'score' is 2, not a number from 0 to 1"),
        ("true", "true", "the judge's 'score' is true, not a number from 0 to 1"),
        (
            "0",
            "true",
            "the judge's 'score' is 0, and its 'pass' is true: one contradicts the other",
        ),
        (
            "1.0",
            "false",
            "the judge's 'score' is 1.0, and its 'pass' is false: one contradicts the other",
        ),
        ("NaN", "true", NOT_ONE),
        ("-Infinity", "false", NOT_ONE),
    ],
)
def test_why_a_score_is_not_read(score: str, passed: str, reason: str) -> None:
    with pytest.raises(Unreadable) as caught:
        Verdicts(["score"]).read(Reply(f'{{"pass": {passed}, "score": {score}}}'))
    assert caught.value.reason == reason


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
        Verdicts().read(Reply(GOOD, finish_reason=reason))


@pytest.mark.parametrize(
    ("text", "code", "is_structured"),
    [
        ("Well.", None, False),
        (f"Well. {GOOD}", None, False),
        ("", None, True),
        ("```json\n```", None, False),
        ('{"pass": true, "more": 1}', None, False),
        ("{}", None, False),
        ('{"pass": 1}', None, True),
    ],
)
def test_a_reply_that_its_server_did_not_hold_to_the_schema_is_known(
    text: str, code: str | None, is_structured: bool
) -> None:
    with pytest.raises(Unreadable) as caught:
        Verdicts().read(Reply(text), code)
    assert caught.value.is_structured is is_structured


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        ' \n{"a": 1}\r\n',
        '\ufeff{"a": 1}',
        '```json\n{"a": 1}\n```',
        '```\n{"a": 1}\n```\n',
        '````JSON\r\n{"a": 1}\r\n````',
    ],
)
@pytest.mark.parametrize("code", [None, CODE])
def test_blanks_and_one_block_of_code_may_surround_an_object(text: str, code: str | None) -> None:
    if code:
        text = text.replace('{"a": 1', f'{{"code": "{code}", "a": 1')
    assert read_object(text, ["a"], code) == {"a": 1}


@pytest.mark.parametrize(
    "around", ["<think>\nIs it 2?\n</think>\n\n{}", "\n<thought>2</thought>```\n{}\n```"]
)
def test_finished_thoughts_may_stand_before_an_object_with_a_code(around: str) -> None:
    text = around.replace("{}", '{"code": "c0de", "a": 1}')
    assert read_object(text, ["a"], CODE) == {"a": 1}
    with pytest.raises(Unreadable):
        read_object(around.replace("{}", '{"a": 1}'), ["a"])


@pytest.mark.parametrize(
    "around",
    [
        "* {}",
        "**{}**",
        "`{}`",
        "~~{}~~",
        "> {}",
        "<!-- {} -->",
        "{}.",
        "[{}]",
        "```fail\n{}\n```",
        "```json\n{}\n```\n```json\n{}\n```",
        "```json\n{}",
        "<think>{}",
        "<think>{}</think>",
        "<think>a</think>b</think>{}",
        "thoughts</think>{}",
        "{}</think>",
        "\u00a0{}",
        "\u200b{}",
        "no: {}",
        "{}, no",
        "{}{}",
    ],
)
def test_anything_else_around_an_object_makes_it_no_reply(around: str) -> None:
    text = around.replace("{}", '{"code": "c0de", "a": 1}')
    with pytest.raises(Unreadable, match="is not one JSON object and nothing else"):
        read_object(text, ["a"], CODE)


@pytest.mark.parametrize(
    "text", ['{"a": 1, "a": 1}', '{"a": NaN}', '{"a": -Infinity}', "[" * 100_000, "{'a': 1}"]
)
def test_what_is_no_json_is_no_object(text: str) -> None:
    with pytest.raises(Unreadable, match="is not one JSON object"):
        read_object(text, ["a"])


def test_the_keys_of_a_prompt_are_those_before_a_colon_and_in_backticks() -> None:
    text = """{"pass": true, 'score' : 1} with `label`; "pass" is "final", and it's 'done'."""
    assert keys_in([Text(text), FilePart("f", "m", b"`no`")]) == {"pass", "score", "label"}
