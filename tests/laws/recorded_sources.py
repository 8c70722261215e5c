"""Random recordings of conversations by other tools, with texts that look like ours."""

from __future__ import annotations

import json

from hypothesis import strategies as st

from tests.laws.repositories import (
    ASSERTIONS,
    Repository,
    any_of,
    ideals,
    inputs,
    lists_of,
    messages,
    odd,
    texts,
    values,
    words,
)

_recorded = st.lists(
    any_of(
        role=st.sampled_from(("system", "user", "user", "assistant", "tool", "x")),
        content=st.one_of(texts, odd, lists_of(any_of(type=st.just("text"), text=texts))),
        parts=lists_of(any_of(type=st.sampled_from(("text", "tool_call")), content=odd, name=odd)),
        tool_calls=odd,
    ),
    max_size=3,
)
_answers = lists_of(st.fixed_dictionaries({"content": texts}))


@st.composite
def _otel(draw: st.DrawFn) -> Repository:
    """Spans whose messages are texts in JSON."""
    spans = []
    for _ in range(draw(st.integers(1, 3))):
        attributes = {
            "gen_ai.request.model": draw(odd),
            "gen_ai.input.messages": json.dumps(draw(st.one_of(_recorded, inputs))),
            "gen_ai.output.messages": json.dumps(draw(st.one_of(_recorded, _answers))),
        }
        pairs = [
            {"key": name, "value": {"stringValue": value}} for name, value in attributes.items()
        ]
        spans.append({"spanId": draw(odd), "attributes": pairs})
    return {"t.json": json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})}


@st.composite
def _inspect(draw: st.DrawFn) -> Repository:
    """A log."""
    sample = any_of(
        id=odd,
        epoch=odd,
        input=st.one_of(inputs, odd),
        target=ideals,
        messages=st.one_of(_recorded, messages),
        output=any_of(choices=lists_of(any_of(message=any_of(content=texts)))),
        scores=odd,
    )
    evaluation = {"model": draw(odd), "task": "t"}
    return {"l.json": json.dumps({"eval": evaluation, "samples": draw(lists_of(sample))})}


@st.composite
def _promptfoo(draw: st.DrawFn) -> Repository:
    """Results with the name of a configuration, so that they are found in the folder."""
    result = st.fixed_dictionaries(
        {
            "prompt": any_of(raw=texts),
            "provider": odd,
            "response": any_of(output=odd),
            "vars": st.dictionaries(words, values, max_size=2),
            "testCase": st.fixed_dictionaries({"assert": ASSERTIONS, "description": odd}),
        }
    )
    return {"promptfooconfig.json": json.dumps({"results": {"results": draw(lists_of(result))}})}


RECORDED: dict[str, tuple[str, st.SearchStrategy[Repository]]] = {
    "spans": ("otel", _otel()),
    "logs": ("inspect", _inspect()),
    "results": ("promptfoo", _promptfoo()),
}
"""By a name: the format, and the files."""
