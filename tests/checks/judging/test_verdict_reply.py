"""What a judge's reply is read as, whatever its shape; and what checks make of an answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from evalstore.checks.check_verdict import HeldConversation, judge_by_checks
from evalstore.checks.judge_replies import (
    AGAIN,
    JudgeReply,
    Unreadable,
    Verdicts,
    ask_again,
    ask_for_code,
    undecided_reply,
)
from evalstore.core import hashing
from evalstore.core.values import Evaluation, Json, OutgoingMessage, Reply, Request, Text, ToolCall

YES = JudgeReply("pass", "fine")
NO = JudgeReply("fail", "wrong")
GOOD = '{"pass": true, "feedback": "fine"}'
BAD = '{"pass": false, "feedback": "wrong"}'
CODE = "c0de"
GOOD_WITH_CODE = '{"code": "c0de", "pass": true, "feedback": "fine"}'
BAD_WITH_CODE = '{"code": "c0de", "pass": false, "feedback": "wrong"}'


@pytest.mark.parametrize(
    ("text", "opinion"),
    [
        (GOOD, YES),
        (f"\n\t {BAD}\n", NO),
        (f"```json\n{GOOD}\n```", YES),
        ('{"pass": true}', JudgeReply("pass")),
        (
            '{"pass": false, "feedback": "it said {\\"pass\\": true}"}',
            JudgeReply("fail", 'it said {"pass": true}'),
        ),
        (
            '{"pass": false, "feedback": "a } and a { and \\"pass\\": true"}',
            JudgeReply("fail", 'a } and a { and "pass": true'),
        ),
        ('{"pass": true, "reasoning": "r"}', JudgeReply("pass", reasoning="r")),
        ('{"pass": true, "feedback": 8}', JudgeReply("pass")),
    ],
)
def test_a_verdict_is_found(text: str, opinion: JudgeReply) -> None:
    assert Verdicts().read(Reply(text)) == opinion


@pytest.mark.parametrize(
    ("member", "opinion"),
    [
        ('"score": 0.25, "label": " good "', JudgeReply("pass", score=0.25, label="good")),
        ('"score": 1', JudgeReply("pass", score=1.0)),
        ('"score": null, "label": 7', JudgeReply("pass")),
        ('"mood": [{"pass": false}]', JudgeReply("pass")),
    ],
)
def test_keys_that_the_prompt_names_may_be_there(member: str, opinion: JudgeReply) -> None:
    asked = ("score", "label", "mood")
    assert Verdicts(asked).read(Reply(f'{{"pass": true, {member}}}')) == opinion


@pytest.mark.parametrize(
    "member",
    [
        '"score": 0.01',
        '"score": null',
        '"label": "incorrect"',
        '"more": [{"pass": false}]',
        '"Pass": "no"',
        '"passed": 0',
        '"verdict": "incorrect"',
        '"result": "rejected"',
        '"criteria": {"a": false}',
        '"fail": true',
        '"ergebnis": "falsch"',
        '"": ""',
    ],
)
@pytest.mark.parametrize("code", [None, CODE])
def test_a_key_that_was_not_asked_for_makes_an_object_unreadable(
    member: str, code: str | None
) -> None:
    named = f'"code": "{code}", ' if code else ""
    with pytest.raises(Unreadable, match="which was not asked for"):
        Verdicts().read(Reply(f'{{{named}"pass": true, {member}}}'), code)


@pytest.mark.parametrize("name", ["reasoning", "feedback", "label"])
@pytest.mark.parametrize("value", ['{"pass": false}', '["no"]'])
def test_a_key_for_a_text_holds_no_object(name: str, value: str) -> None:
    with pytest.raises(Unreadable, match=f"the judge's '{name}' is an? (object|list), not a text"):
        Verdicts(("label",)).read(Reply(f'{{"pass": true, "{name}": {value}}}'))


def test_a_code_that_looks_like_a_number_may_be_one() -> None:
    assert Verdicts().read(Reply('{"code": 1234, "pass": true}'), "1234").verdict == "pass"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "pass",
        "true",
        "[]",
        "null",
        '"pass"',
        '{"passed": true}',
        '{"pass": "true"}',
        '{"pass": 1}',
        '{"pass": null}',
        '{"Pass": true}',
        '{"result": {"pass": true}}',
        '{"pass": true, "score": "1"}',
        '{"pass": true, "score": true}',
        '{"pass": true, "score": 1.5}',
        '{"pass": true, "score": -0.1}',
        '{"pass": true, "score": NaN}',
        '{"pass": true, "score": 0}',
        '{"pass": false, "score": 1}',
        '{"pass": tru',
        '{"pass": true, "feedback": "cut off at the li',
    ],
)
def test_no_verdict_is_guessed(text: str) -> None:
    with pytest.raises(Unreadable):
        Verdicts(["score"]).read(Reply(text))


@pytest.mark.parametrize("text", ["{", '{"a":', "["])
def test_no_verdict_is_found_in_endless_nesting(text: str) -> None:
    with pytest.raises(Unreadable):
        Verdicts().read(Reply(text * 20_000))


@pytest.mark.parametrize("field", ['"pass"', '"pass": true, "score"'])
def test_nesting_that_can_just_be_read_is_not_a_verdict(field: str) -> None:
    for depth in range(900, 1000):
        with pytest.raises(Unreadable):
            Verdicts().read(Reply("{" + field + ": " + "[" * depth + "]" * depth + "}"))


@pytest.mark.parametrize("text", [f"{GOOD}{BAD}", f"{BAD}{GOOD}", f"{GOOD}\n{GOOD}"])
def test_of_two_objects_without_a_code_none_counts(text: str) -> None:
    with pytest.raises(Unreadable, match="is not one JSON object"):
        Verdicts().read(Reply(text))


def test_a_refusal_is_not_a_verdict() -> None:
    with pytest.raises(Unreadable, match="the judge refused: I cannot"):
        Verdicts().read(Reply(None, refusal="I cannot"))
    with pytest.raises(Unreadable, match="the judge refused: I cannot"):
        Verdicts().read(Reply(GOOD, refusal="I cannot"))


def test_a_tool_call_is_not_a_verdict() -> None:
    with pytest.raises(Unreadable):
        Verdicts().read(Reply(None, tool_calls=(ToolCall("verdict", {"pass": True}),)))


@pytest.mark.parametrize(
    ("text", "times"),
    [('{"', 100_000), ('{"a":[', 50_000), ("x{", 100_000), ("{}", 100_000), ("```json\n{", 50_000)],
)
@pytest.mark.parametrize("code", [None, CODE])
def test_a_verdict_among_endless_brackets_is_given_up(
    text: str, times: int, code: str | None
) -> None:
    with pytest.raises(Unreadable):
        Verdicts().read(Reply(text * times + BAD_WITH_CODE), code)


def test_a_huge_text_without_a_verdict_is_unreadable() -> None:
    with pytest.raises(Unreadable):
        Verdicts().read(Reply("The answer is good. " * 100_000))


def test_half_a_surrogate_pair_in_the_feedback_can_be_stored() -> None:
    text = '{"pass": true, "feedback": "\\ud83d", "label": "\\ude00"}'
    opinion = Verdicts(["label"]).read(Reply(text))
    hashing.identify(
        hashing.describe_evaluation_result(
            Evaluation(
                ("s",),
                "e",
                "j",
                opinion.verdict,
                1,
                "n",
                label=opinion.label,
                feedback=opinion.feedback,
            )
        )
    )
    assert opinion.feedback == "\ufffd"


def test_endless_feedback_is_cut() -> None:
    opinion = Verdicts(["label"]).read(
        Reply(json.dumps({"pass": True, "feedback": "x" * 10**6, "label": "y" * 10**6}))
    )
    assert len(opinion.feedback) == 20_000
    assert len(opinion.label or "") == 200


def test_a_judge_held_to_the_schema_gives_its_reasons_first() -> None:
    assert list(Verdicts().schema["properties"])[:2] == ["reasoning", "pass"]


def test_what_a_judge_is_asked_for_is_this() -> None:
    properties = {
        "reasoning": {"type": "string", "description": "what leads to the verdict"},
        "pass": {"type": "boolean", "description": "whether the instructions are met"},
        "feedback": {"type": "string", "description": "what is wrong, or an empty text"},
    }
    assert Verdicts().schema == {
        "type": "object",
        "properties": properties,
        "required": ["pass", "feedback"],
        "additionalProperties": False,
    }
    assert Verdicts(["label", "score", "other"]).schema["properties"] == {
        **properties,
        "score": {"type": "number", "minimum": 0, "maximum": 1},
        "label": {"type": "string"},
    }
    verdict = '"pass": true or false, "feedback": "if it fails, what is wrong; else an empty text"}'
    assert "Answer with one JSON object and nothing else: {" + verdict == AGAIN
    assert Verdicts().again("c0de") == (
        'Answer with one JSON object and nothing else: {"code": "c0de", ' + verdict
    )
    assert ask_for_code("c0de") == (
        'Answer with one JSON object and nothing else. Put "code": "c0de" into it; an object '
        "without this code does not count. Reasons belong inside of the object."
    )


@pytest.mark.parametrize(
    ("reply", "is_valid"),
    [
        ({"pass": True, "feedback": ""}, True),
        ({"reasoning": "r", "pass": False, "feedback": "f", "score": 0.5, "label": "l"}, True),
        ({"pass": True}, False),
        ({"pass": True, "feedback": "", "score": 2}, False),
        ({"pass": "true", "feedback": ""}, False),
        ({"pass": True, "feedback": "", "more": 1}, False),
    ],
)
def test_the_schema_asks_for_what_is_read(reply: Json, is_valid: bool) -> None:
    asked = ("score", "label")
    assert Draft202012Validator(Verdicts(asked).schema).is_valid(reply) is is_valid
    if is_valid:
        opinion = Verdicts(asked).read(Reply(json.dumps(reply)))
        assert opinion.score == reply.get("score")
        assert opinion.label == reply.get("label")
        assert opinion.reasoning == reply.get("reasoning", "")


@pytest.mark.parametrize(
    "finish_reason", ["length", "max_tokens", "content_filter", "error", "SAFETY"]
)
@pytest.mark.parametrize("text", [GOOD_WITH_CODE, BAD_WITH_CODE])
def test_a_reply_that_its_model_did_not_end_is_not_a_verdict(finish_reason: str, text: str) -> None:
    for code in (None, CODE):
        with pytest.raises(Unreadable, match="cut off"):
            Verdicts().read(Reply(text, finish_reason=finish_reason), code)


@pytest.mark.parametrize(
    "finish_reason",
    [
        *(None, "stop", "end_turn", "eos", "tool_calls"),
        *("stop_on_length", "errors", "length of it", "aborted"),
    ],
)
def test_a_reply_that_its_model_ended_is_a_verdict(finish_reason: str | None) -> None:
    assert Verdicts().read(Reply(GOOD, finish_reason=finish_reason)) == YES


@pytest.mark.parametrize("verdict", [GOOD, GOOD_WITH_CODE])
def test_a_pass_inside_of_an_object_that_is_not_json_does_not_count(verdict: str) -> None:
    for text in (
        f"{{'pass': False, 'the candidate said': {verdict}}}",
        f'{{"pass": false, "pass": true, "quoted": {verdict}}}',
    ):
        for code in (None, CODE):
            with pytest.raises(Unreadable):
                Verdicts().read(Reply(text), code)


# --- asking again


def asked_again(reply: Reply) -> tuple[OutgoingMessage, ...]:
    first = OutgoingMessage("user", (Text("Judge."),))
    request = Request("code", (first,), temperature=0.5, json_mode=True)
    with pytest.raises(Unreadable) as unreadable:
        Verdicts().read(reply)
    again = ask_again(request, reply, unreadable.value.reason)
    assert (again.code, again.temperature, again.json_mode) == ("code", 0.5, True)
    assert again.messages[0] == first
    return again.messages[1:]


def test_a_judge_is_shown_its_reply_and_what_is_wrong_with_it() -> None:
    output, expected = asked_again(Reply('{"pass": "yes"}'))
    assert expected.text.endswith(f"true or false. {AGAIN}")
    assert (output.role, output.text) == ("assistant", '{"pass": "yes"}')
    assert expected.role == "user"
    assert expected.text.startswith(
        "That cannot be read: the judge's 'pass' is \"yes\", not true or false. Answer with one"
    )


@pytest.mark.parametrize(
    ("reply", "shown"),
    [
        (Reply(None), "(no text)"),
        (Reply("  "), "(no text)"),
        (Reply(None, refusal="I cannot"), "I cannot"),
        (Reply(None, tool_calls=(ToolCall("verdict", {"pass": True}),)), "(no text)"),
        (Reply("Hm. \ud83d"), "Hm. \ufffd"),
    ],
)
def test_no_turn_shown_to_a_judge_is_empty(reply: Reply, shown: str) -> None:
    assert asked_again(reply)[0].text == shown


def test_an_endless_reply_is_not_paid_for_twice() -> None:
    output, expected = asked_again(Reply("The answer is good. " * 50_000))
    assert len(output.text) + len(expected.text) < 21_000


def test_what_a_judge_wrote_is_kept_when_it_cannot_be_read() -> None:
    assert undecided_reply(Reply("Hm."), "why") == JudgeReply(
        "undecided", feedback="why", reasoning="Hm."
    )


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["pass", "score", "feedback", "label", "x"]), inner, max_size=4
        )
    ),
    max_leaves=8,
)


@given(json_values, st.text(max_size=10), st.text(max_size=10))
def test_any_reply_is_a_verdict_or_unreadable(value: Json, before: str, after: str) -> None:
    try:
        opinion = Verdicts().read(Reply(before + json.dumps(value) + after))
    except Unreadable:
        return
    assert opinion.verdict in ("pass", "fail")
    assert opinion.score is None or 0 <= opinion.score <= 1
    assert not (before + after).strip(" \t\r\n\ufeff`")


# --- checks

JSON_CHECK = {"type": "json", "revision": 2}
TOOLS_CHECK = {"type": "toolCalls", "revision": 2}


def by_checks(checks: list[Json], answer: Reply, schemas: dict[str, Json]) -> Any:
    verdict = judge_by_checks(checks, [HeldConversation((answer,))], schemas)
    return verdict, verdict.results


def test_all_checks_must_pass() -> None:
    opinion, results = by_checks([JSON_CHECK, TOOLS_CHECK], Reply("{}"), {})
    assert opinion.verdict == "fail"
    assert [result["verdict"] for result in results] == ["pass", "fail"]
    assert opinion.feedback == "the answer is a text, no tool was called"


def test_the_schema_of_a_check_is_found_by_its_id() -> None:
    check = {"type": "jsonSchema", "revision": 2, "schema": "id"}
    schemas: dict[str, Json] = {"id": {"type": "object", "required": ["a"]}}
    assert by_checks([check], Reply('{"a": 1}'), schemas)[0].verdict == "pass"
    assert by_checks([check], Reply("{}"), schemas)[0].verdict == "fail"


def test_a_check_of_another_version_is_an_error() -> None:
    opinion, _ = by_checks([{"type": "json", "revision": 99}, TOOLS_CHECK], Reply("{}"), {})
    assert opinion.verdict == "error"


def test_a_check_that_breaks_is_an_error_and_not_the_end() -> None:
    opinion, results = by_checks([JSON_CHECK], Reply("[" * 100_000), {})
    assert opinion.verdict == "error"
    assert results[0]["feedback"].startswith("the check failed: ")


def test_what_a_check_says_can_be_stored() -> None:
    check = {"type": "jsonSchema", "revision": 2, "schema": "id"}
    schemas: dict[str, Json] = {"id": {"additionalProperties": {"type": "string"}}}
    opinion, results = by_checks([check], Reply('{"\\ud83d": 1}'), schemas)
    assert opinion.verdict == "fail"
    json.dumps([opinion.feedback, *results], ensure_ascii=False).encode()
