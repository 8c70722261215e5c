"""The parts of other systems' templates."""

from __future__ import annotations

import re
import time

import pytest

from evalstore.exchange.importers import nemo_metrics
from evalstore.exchange.importers.base import (
    expression_in,
    find_parts,
    replace_parts,
    without_filter,
)
from evalstore.exchange.importers.promptfoo import files

pytestmark = pytest.mark.extended


@pytest.mark.parametrize(
    ("template", "parts"),
    [
        ("a {{ b }} c", ["{{ b }}"]),
        ("{% if a %}b{% endif %}", ["{% if a %}", "{% endif %}"]),
        ("{# a {{ b }} #}{{c}}", ["{# a {{ b }} #}", "{{c}}"]),
        ("<!-- {{ a }} -->", ["<!--", "{{ a }}"]),
        ("{{ a {% b %}", ["{% b %}"]),
        ("{{{ a }} }", ["{{{ a }}"]),
        ("{%{{ a }}", ["{{ a }}"]),
        ("no parts } }} %}", []),
    ],
)
def test_parts_are_found_in_their_order(template: str, parts: list[str]) -> None:
    assert [part.text for part in find_parts(template)] == parts
    assert all(template[part.start : part.end] == part.text for part in find_parts(template))
    assert replace_parts(template, lambda text: text) == template


@pytest.mark.parametrize(
    ("part", "inner"),
    [
        ("{{ a }}", "a"),
        (" {{- a | b -}}\n", "a | b"),
        ("{{a}} and {{b}}", None),
        ("{{ }}", None),
        ("{{}}", None),
        ("a", None),
    ],
)
def test_a_lone_expression(part: str, inner: str | None) -> None:
    assert expression_in(part) == inner


def test_a_filter_at_the_end_is_taken_off() -> None:
    assert without_filter("a | b | tojson", re.compile("tojson")) == "a | b"
    assert without_filter("a | tojson | b", re.compile("tojson")) is None
    assert without_filter("tojson", re.compile("tojson")) is None


@pytest.mark.parametrize(
    "unit", ["{{", "{{ ", "{%", "{#", "<!--", "{{ a | ", '"', "{{ '", '\\"', " "]
)
def test_a_template_of_any_form_is_read_in_one_pass(unit: str) -> None:
    """One that is read once from each beginning takes minutes."""
    before = time.process_time()
    many = unit * (100_000 // len(unit))
    for text in (many, f"{{{{{many}}}}}"):
        nemo_metrics.convert_template(text)
        nemo_metrics.template_value(text)
        list(nemo_metrics.judge_pieces(text))
        files.as_template(text, ["a"])
        files._mark_templates(text, [])
    assert time.process_time() - before < 3
