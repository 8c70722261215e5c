"""Replies out of whatever a server may send."""

from __future__ import annotations

import json
from dataclasses import asdict

from hypothesis import given
from hypothesis import strategies as st

from evalstore.providers import ProviderError
from evalstore.providers.chat_format import decode_reply
from evalstore.values import Json

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
