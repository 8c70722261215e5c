"""What is written quickly is what the dumper writes."""

from __future__ import annotations

from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from evalstore.files import yaml12
from evalstore.files.simple_yaml import write_simple
from evalstore.values import Json

WORDS = ["yes", "No", "off", "Null", "true", "y", "N", "nan", "inf", "e1", "_", "0x1", "1e3", "2"]
TEXTS = st.one_of(
    st.text("aZ09_ :.,!?()", max_size=8),
    st.lists(st.sampled_from([*WORDS, ":", ": ", " ", "  ", "?", "-", "#", "é"]), max_size=5).map(
        "".join
    ),
)
VALUES = st.dictionaries(TEXTS, st.one_of(TEXTS, st.booleans(), st.integers()), max_size=3)


@settings(max_examples=500)
@given(VALUES)
def test_simple_values_are_written_as_by_the_dumper(value: dict[str, Json]) -> None:
    assert write_simple(value) in ("", _dump(value))


def test_checks_are_written_so() -> None:
    value = {"contains": "0: Paris 25", "not": True}
    assert write_simple(value) == _dump(value) == "contains: '0: Paris 25'\nnot: true"
    assert write_simple({"equals": "Where is it"}) == "equals: Where is it"
    assert write_simple({"equals": "off"}) == write_simple({}) == write_simple("a") == ""
    assert write_simple({"y": "off"}) == write_simple({"a": [1]}) == ""


def _dump(value: Json) -> str:
    with patch.object(yaml12, "write_simple", return_value=""):
        return yaml12.write_yaml(value, compact=True)
