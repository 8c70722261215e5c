"""YAML that importers write reads back as the same value."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstore.core.values import Json
from evalstore.files.yaml12 import read_yaml, write_yaml

texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)
texts |= st.text("ab: #-'\"\n\t{}[]|>%@`~1.e\u2028", max_size=20)
scalars = texts | st.integers() | st.booleans() | st.none() | st.floats(allow_nan=False, width=32)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


@given(values)
def test_a_value_reads_back_as_the_same(value: Json) -> None:
    written = write_yaml({"key": value}, compact=True)
    assert read_yaml(f"{written}\n").value == {"key": value}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"id": "a/b", "limit": 3}, "id: a/b\nlimit: 3\n"),
        ({"tags": ["one", "two words"]}, "tags: [one, two words]\n"),
        ({"a": "yes", "b": "1.10", "c": "it's"}, "a: 'yes'\nb: '1.10'\nc: it's\n"),
        ({"a": "{{ item.b }}"}, "a: '{{ item.b }}'\n"),
        ({"a": "one\ntwo\n"}, "a: |\n  one\n  two\n"),
        ([{"a": "x\ny", "b": 1}], "- a: |-\n    x\n    y\n  b: 1\n"),
    ],
)
def test_it_looks_as_a_person_would_write_it(value: Json, text: str) -> None:
    assert f"{write_yaml(value, compact=True)}\n" == text
