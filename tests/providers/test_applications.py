"""What applications are sent, and what their answers come to."""

from __future__ import annotations

from typing import Any

import pytest

from evalstore.core.values import (
    OutgoingMessage,
    Reply,
    Request,
    Text,
    ToolCall,
    ToolVersion,
    Usage,
)
from evalstore.providers.applications import decode_answer, encode_call
from evalstore.providers.base import ProviderError

HI = (OutgoingMessage("user", (Text("Hi"),)),)


def test_only_what_is_set_is_sent() -> None:
    document = encode_call(Request("bot", HI))
    assert document == {"messages": [{"role": "user", "content": "Hi"}], "options": {}}


def test_options_have_the_names_of_openai() -> None:
    tool = ToolVersion("look", "Looks.", {"type": "object"})
    schema = {"type": "object"}
    options = {"style": "short", "tools": [{"type": "web_search"}]}
    request = Request(
        "bot",
        HI,
        tools=(tool,),
        schema=schema,
        temperature=0.5,
        max_output_tokens=9,
        top_p=0.1,
        seed=7,
        stop=("x",),
        provider_options=options,
    )
    form = {
        "type": "json_schema",
        "json_schema": {"name": "response", "schema": schema, "strict": False},
    }
    assert encode_call(request)["options"] == {
        "temperature": 0.5,
        "max_tokens": 9,
        "top_p": 0.1,
        "seed": 7,
        "stop": ["x"],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "look",
                    "description": "Looks.",
                    "parameters": {"type": "object"},
                },
            },
            {"type": "web_search"},
        ],
        "response_format": form,
        "schema": schema,
        "style": "short",
    }


@pytest.mark.parametrize(
    ("answer", "reply"),
    [
        ("Hello", Reply("Hello", finish_reason="stop", latency=1)),
        ({"content": "Hello"}, Reply("Hello", finish_reason="stop", latency=1)),
        (
            {"text": "Hello", "usage": {"input_tokens": 3, "output_tokens": 4}, "cost": 0.5},
            Reply("Hello", finish_reason="stop", latency=1, usage=Usage(3, 4), cost=0.5),
        ),
        (
            {"text": "Hello", "usage": {"prompt_tokens": 3}, "model": "gpt", "cost": 0},
            Reply(
                "Hello",
                finish_reason="stop",
                latency=1,
                usage=Usage(3),
                resolved_model="gpt",
                cost=0.0,
            ),
        ),
        (
            {"tool_calls": [{"name": "look", "arguments": {"at": 1}}]},
            Reply(
                None,
                (ToolCall("look", {"at": 1}),),
                finish_reason="tool_calls",
                latency=1,
            ),
        ),
        (
            {
                "tool_calls": [{"function": {"name": "look", "arguments": '{"at": 1}'}}],
                "finish_reason": "stop",
            },
            Reply(None, (ToolCall("look", {"at": 1}),), finish_reason="stop", latency=1),
        ),
        ({"refusal": "No."}, Reply(None, finish_reason="stop", refusal="No.", latency=1)),
        ({"text": "half \ud800"}, Reply("half \ufffd", finish_reason="stop", latency=1)),
    ],
)
def test_an_answer_is_read(answer: Any, reply: Reply) -> None:
    assert decode_answer(answer, 1) == reply


def test_a_mapping_is_the_answer_where_json_was_asked_for() -> None:
    assert decode_answer({"pass": True}, 1, has_form=True).text == '{"pass": true}'
    assert decode_answer({"text": "{}", "cost": 1}, 1, has_form=True).text == "{}"
    with pytest.raises(ProviderError, match="it returned 'pass'; it may return"):
        decode_answer({"pass": True}, 1)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"text": "a", "content": "b"}, "it returned both 'text' and 'content'"),
        ({"text": "a", "usage": 3}, "the 'usage' that it returned is not a mapping"),
        ({"text": "a", "cost": True}, "the 'cost' that it returned is not a number of USD"),
        ({"text": "a", "cost": "1"}, "the 'cost' that it returned is not a number of USD"),
        ({"text": "a", "tool_calls": 3}, "the tool calls in its answer are not a list"),
        ([1], "it returned list, not a text or a mapping"),
    ],
)
def test_a_malformed_answer_is_a_failed_call(answer: Any, message: str) -> None:
    with pytest.raises(ProviderError) as caught:
        decode_answer(answer, 1)
    assert (caught.value.message, caught.value.kind, caught.value.retry) == (
        message,
        "malformed",
        False,
    )
