"""Replies out of whatever a server may send."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstore.core.values import Json, Reply, Request, ToolCall
from evalstore.providers import ProviderError
from evalstore.providers.chat_completions import decode_reply, encode_request

TEXT = st.text(st.characters(), max_size=9)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | TEXT
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=5
)
CALLS = st.fixed_dictionaries(
    {}, optional={"function": st.fixed_dictionaries({"name": TEXT, "arguments": VALUES}) | VALUES}
)
MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "content": VALUES | st.lists(st.fixed_dictionaries({"text": VALUES})),
        "refusal": VALUES,
        "tool_calls": st.lists(CALLS) | VALUES,
    },
)
CHOICES = st.fixed_dictionaries({"message": MESSAGES | VALUES, "finish_reason": VALUES})
DOCUMENTS = VALUES | st.fixed_dictionaries(
    {"choices": st.lists(CHOICES) | VALUES}, optional={"usage": VALUES, "model": VALUES}
)


@given(DOCUMENTS)
def test_any_document_is_malformed_or_a_reply_that_can_be_stored(document: Json) -> None:
    try:
        reply = decode_reply(document, latency=0.0)
    except ProviderError:
        return
    json.dumps(asdict(reply), ensure_ascii=False, allow_nan=False).encode()


KEY = "sk-secret-12"
ECHOING: dict[str, Any] = {
    "choices": [
        {
            "finish_reason": KEY,
            "message": {
                "content": f"it is {KEY}{KEY}",
                "refusal": f"not {KEY}",
                "tool_calls": [
                    {"function": {"name": KEY, "arguments": json.dumps({KEY: [1, {"a": KEY}]})}},
                    {"function": {"name": "f", "arguments": f"no json {KEY}"}},
                ],
            },
        }
    ],
    "model": f"model-{KEY}",
}


def test_a_reply_that_repeats_the_key_has_stars_in_its_place() -> None:
    reply = decode_reply(ECHOING, latency=0.0, request_id=KEY, api_key=KEY)
    assert reply == Reply(
        text="it is ******",
        tool_calls=(ToolCall("***", {"***": [1, {"a": "***"}]}), ToolCall("f", "no json ***")),
        finish_reason="***",
        refusal="not ***",
        resolved_model="model-***",
        request_id="***",
    )


@pytest.mark.parametrize("api_key", [None, "none", "sk-secr"])
def test_without_a_key_or_with_one_that_may_be_a_word_a_reply_stays(api_key: str | None) -> None:
    reply = decode_reply(ECHOING, latency=0.0, api_key=api_key)
    assert reply.text == f"it is {KEY}{KEY}"
    assert reply.tool_calls[0].name == KEY


def test_tools_in_the_options_must_be_a_list() -> None:
    request = Request("dummy", (), provider_options={"tools": {"type": "web_search"}})
    with pytest.raises(ProviderError, match="'tools' must be a list"):
        encode_request(request)
