"""The scripted provider: a model without a model."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from evalstore.checks.transcript import fence, show_messages
from evalstore.core.errors import EvalstoreError
from evalstore.core.values import Json, OutgoingMessage, Reply, Request, Text, ToolCall, Usage
from evalstore.providers import Provider, ProviderError, open_provider
from evalstore.providers.script import check_responses


def scripted(*responses: dict[str, Json]) -> Provider:
    return open_provider("scripted", responses=responses)


def request(*texts: str, **fields: Any) -> Request:
    """User and assistant in turn."""
    messages = tuple(
        OutgoingMessage("assistant" if turn % 2 else "user", (Text(text),))
        for turn, text in enumerate(texts)
    )
    return Request("parrot", messages, **fields)


def ask(provider: Provider, *texts: str, timeout: float = 5, **fields: Any) -> Reply:
    return asyncio.run(provider.ask(request(*texts, **fields), timeout=timeout))


def failure(provider: Provider, *texts: str, timeout: float = 5) -> ProviderError:
    with pytest.raises(ProviderError) as raised:
        ask(provider, *texts, timeout=timeout)
    return raised.value


# --- which entry -----------------------------------------------------------------------


def test_without_when_it_always_answers() -> None:
    assert ask(scripted({"answer": "Hello"}), "Hi").text == "Hello"


def test_the_first_match_wins() -> None:
    script = scripted(
        {"when": "cat", "answer": "a cat"},
        {"when": "cat|dog", "answer": "an animal"},
        {"answer": "nothing"},
    )
    assert [ask(script, text).text for text in ("my cat", "my dog", "my car")] == [
        "a cat",
        "an animal",
        "nothing",
    ]


@pytest.mark.parametrize(
    ("when", "texts"),
    [
        ("What is 1+1?", ("\n What is 1+1? \n",)),
        ("^Paris$", ("The capital?", "Paris", "Sure?")),
        ("capital.*Sure", ("The capital?", "Paris", "Sure?")),
        ("Paris\n\nSure", ("The capital?", "Paris", "Sure?")),
    ],
    ids=["exact text", "a line of any message", "across messages", "with blank lines between"],
)
def test_when_is_the_last_message_or_found_in_all(when: str, texts: tuple[str, ...]) -> None:
    assert ask(scripted({"when": when, "answer": "yes"}), *texts).text == "yes"


def test_an_entry_serves_as_often_as_it_says() -> None:
    script = scripted({"answer": "first", "times": 2}, {"answer": "then"})
    assert [ask(script, "Hi").text for _ in range(4)] == ["first", "first", "then", "then"]


def test_a_question_the_script_does_not_know_is_not_asked_again() -> None:
    problem = failure(scripted({"when": "dog", "answer": "x"}), "My cat\x1b[31m " + "purrs " * 50)
    assert problem.message == (
        "no response in the script matches "
        "'My cat\\x1b[31m purrs purrs purrs purrs purrs purrs purrs pur…'"
    )
    assert (problem.kind, problem.retry, problem.stops_model) == ("unsupported", False, False)


def test_a_judgement_the_script_does_not_know_is_named_by_what_is_judged() -> None:
    judged = fence("A tandem costs 25 euros.", "5f0c2ab1")
    message = f"Instructions: be brief.\n\n{judged}"
    assert failure(scripted({"when": "dog", "answer": "x"}), message).message == (
        "no response in the script matches the judged response 'A tandem costs 25 euros.'"
    )
    turns = show_messages([OutgoingMessage("user", (Text("Hi"),))], "77aa")
    shown = "".join(part.text for part in turns if isinstance(part, Text))
    whole = failure(scripted({"when": "dog", "answer": "x"}), shown).message
    assert "the judged conversation '" in whole
    both = failure(scripted({"when": "dog", "answer": "x"}), f"{shown}\n\n{judged}").message
    assert both.endswith("the judged response 'A tandem costs 25 euros.'")


# --- what it answers -------------------------------------------------------------------


def test_a_reply_has_all_facts() -> None:
    script = scripted(
        {
            "answer": "Hello",
            "usage": {"inputTokens": 9, "outputTokens": 4, "cachedTokens": 3, "reasoningTokens": 2},
            "latency": 0.001,
            "finishReason": "eos",
            "model": "parrot-2026",
        }
    )
    assert ask(script, "Hi") == Reply(
        text="Hello",
        finish_reason="eos",
        usage=Usage(9, 4, 3, 2),
        resolved_model="parrot-2026",
        latency=0.001,
    )


def test_tokens_are_estimated_by_length() -> None:
    reply = ask(scripted({"answer": "12345"}), "1234")
    assert reply.usage == Usage(input_tokens=1, output_tokens=2)


@pytest.mark.parametrize(
    ("answer", "text"),
    [({"pass": True, "feedback": "ça va"}, '{"pass": true, "feedback": "ça va"}'), (7, "7")],
)
def test_an_answer_that_is_not_text_is_json(answer: Json, text: str) -> None:
    assert ask(scripted({"answer": answer}), "Hi").text == text


def test_tools_are_called() -> None:
    script = scripted(
        {"toolCalls": [{"name": "weather", "arguments": {"city": "Oslo"}}, {"name": "time"}]}
    )
    reply = ask(script, "Hi")
    assert reply.tool_calls == (ToolCall("weather", {"city": "Oslo"}), ToolCall("time", {}))
    assert (reply.text, reply.finish_reason) == (None, "tool_calls")


@pytest.mark.parametrize(
    ("fields", "reason"), [({}, "length"), ({"finishReason": "stop"}, "stop")], ids=["own", "given"]
)
def test_a_long_answer_is_cut_at_the_limit(fields: dict[str, Json], reason: str) -> None:
    reply = ask(scripted({"answer": "123456789", **fields}), "Hi", max_output_tokens=2)
    assert (reply.text, reply.finish_reason) == ("12345678", reason)


def test_an_answer_that_is_broken_off_can_be_rehearsed() -> None:
    problem = failure(scripted({"answer": "The capital of", "finishReason": "error"}), "Hi")
    assert (problem.kind, problem.retry) == ("malformed", True)


def test_an_answer_later_than_the_timeout_is_missed() -> None:
    problem = failure(scripted({"answer": "late", "latency": 60}), "Hi", timeout=0.01)
    assert (problem.kind, problem.retry) == ("timeout", True)
    assert problem.message == "no answer within 0.01 s"


# --- how it fails ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "kind", "status", "retry", "stops_model"),
    [
        (500, "status", 500, True, False),
        (401, "status", 401, False, True),
        ("out of order", "status", None, False, False),
        ({"status": 429, "message": "slow down"}, "status", 429, True, False),
        ({"kind": "connection"}, "connection", None, True, False),
        ({"kind": "timeout", "message": "gone"}, "timeout", None, True, False),
        ({"kind": "context", "status": 400}, "context", 400, False, False),
        ({"kind": "unsupported"}, "unsupported", None, False, False),
    ],
)
def test_an_error_is_raised_as_a_server_would_cause_it(
    error: Json, kind: str, status: int | None, retry: bool, stops_model: bool
) -> None:
    problem = failure(scripted({"error": error}), "Hi")
    assert (problem.kind, problem.status) == (kind, status)
    assert (problem.retry, problem.stops_model) == (retry, stops_model)


def test_an_error_has_the_configured_message() -> None:
    problem = failure(scripted({"error": {"status": 429, "message": "slow", "retryAfter": 2}}), "")
    assert (problem.message, problem.retry_after) == ("the server answered 429: slow", 2)
    assert failure(scripted({"error": "out of order"}), "").message == "out of order"


def test_a_script_can_fail_at_first() -> None:
    script = scripted({"error": 500, "times": 1}, {"answer": "recovered"})
    assert failure(script, "Hi").retry
    assert ask(script, "Hi").text == "recovered"


# --- scripts that are wrong ------------------------------------------------------------


@pytest.mark.parametrize(
    ("response", "problem"),
    [
        ("Hello", "a response is a mapping"),
        ({"anwser": "x", "answer": "y"}, "unknown field 'anwser': did you mean 'answer'?"),
        ({"answer": "y", "zzz": 1}, "unknown field 'zzz'"),
        (
            {"when": "x"},
            "a response has one of 'answer', 'toolCalls' and 'error', not none of them",
        ),
        (
            {"answer": "x", "error": 500},
            "a response has one of 'answer', 'toolCalls' and 'error', not 'answer' and 'error'",
        ),
        (
            {"answer": "x", "when": "(a"},
            "'when' is not a regular expression: missing ) at position 2",
        ),
        ({"answer": "x", "when": 7}, "'when' is a text"),
        ({"answer": "x", "times": 0}, "'times' is a whole number above zero"),
        ({"answer": "x", "times": True}, "'times' is a whole number above zero"),
        ({"answer": "x", "latency": -1}, "'latency' is a number of seconds"),
        ({"answer": "x", "usage": 7}, "'usage' is a mapping"),
        ({"answer": "x", "usage": {"inputTokens": 1.5}}, "'inputTokens' is a whole number"),
        (
            {"answer": "x", "usage": {"inputToken": 1}},
            "unknown field 'inputToken': did you mean 'inputTokens'?",
        ),
        ({"toolCalls": {"name": "f"}}, "'toolCalls' is a list of mappings"),
        ({"toolCalls": [{"arguments": {}}]}, "a tool call has a 'name'"),
        ({"error": 200}, "'error' is a status from 400 to 599, a message or a mapping"),
        (
            {"error": {"kind": ["flood"]}},
            "'kind' is one of connection, context, malformed, status, timeout, unsupported",
        ),
    ],
)
def test_a_malformed_entry_is_reported(response: Json, problem: str) -> None:
    assert check_responses([{"answer": "fine"}, response]) == [(1, problem)]


def test_all_problems_are_reported_together() -> None:
    assert [index for index, _ in check_responses([{}, {"answer": 1}, {"when": 1}])] == [0, 2, 2]


def test_a_malformed_script_is_not_opened() -> None:
    with pytest.raises(EvalstoreError, match="response 2: unknown field 'x'"):
        scripted({"answer": "fine"}, {"answer": "y", "x": 1})


def test_a_tool_call_has_tokens() -> None:
    call = {"name": "find", "arguments": {"city": "Oslo"}}
    reply = ask(scripted({"toolCalls": [call]}), "1234")
    assert reply.usage == Usage(input_tokens=1, output_tokens=len('find{"city": "Oslo"}') // 4)
