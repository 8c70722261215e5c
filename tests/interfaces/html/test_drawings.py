"""Charts are SVG with a name; data within the page cannot end its element."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import pytest

from evalstore.interfaces.html.charts import (
    TrendPoint,
    interval_chart,
    share_bar,
    trend_chart,
    verdict_bar,
)
from evalstore.interfaces.html.embedding import data_block
from evalstore.interfaces.html.templates import render


def test_an_interval_is_drawn_to_scale() -> None:
    chart = ElementTree.fromstring(interval_chart(0.5, (0.25, 0.9)))
    assert chart.get("aria-label") == "50.0%, 95% interval 25.0% to 90.0%"
    bar, dot = chart.find("rect"), chart.find("circle")
    assert bar is not None
    assert dot is not None
    assert (bar.get("x"), bar.get("width"), dot.get("cx")) == ("50.0", "130.0", "100.0")
    assert interval_chart(None, None) == ""


def test_the_bar_of_verdicts_has_their_shares() -> None:
    chart = ElementTree.fromstring(verdict_bar({"pass": 3, "fail": 1, "pending": 0}))
    assert [part.get("width") for part in chart] == ["750.00", "250.00"]
    assert [part.get("x") for part in chart] == ["0.00", "750.00"]
    assert chart.get("aria-label") == "3 pass, 1 fail"
    assert verdict_bar({"pass": 0}) == ""


def test_the_trend_marks_the_current_run_and_leaves_out_runs_without_a_rate() -> None:
    points = [
        TrendPoint("a <run>", 0.5, None, False),
        TrendPoint("b", None, None, False),
        TrendPoint("c", 1.0, None, True),
    ]
    chart = ElementTree.fromstring(trend_chart(points))
    dots = chart.findall("circle")
    assert [dot.get("class") for dot in dots] == ["rate", "rate current"]
    assert [dot.findtext("title") for dot in dots] == ["a <run>: 50.0%", "c: 100.0%"]
    assert chart.get("aria-label") == "Pass rates of 2 runs, from 50.0% to 100.0%"
    assert [text.text for text in chart.findall("text")] == ["0%", "50%", "100%"]
    assert trend_chart(points[1:]) == ""


def test_a_share_is_at_most_the_whole_bar() -> None:
    bar = ElementTree.fromstring(share_bar(1.5)).find("rect")
    assert bar is not None
    assert bar.get("width") == "100.0"


@pytest.mark.parametrize(
    "text",
    ["</script>", "<!-- <script>", "\u2028\u2029", "é😀", "\ud800", "a\x00b", '"\\', "]]>"],
    ids=ascii,
)
def test_data_is_read_back_and_has_no_markup(text: str) -> None:
    block = data_block("x", {"text": text}).decode()
    match = re.fullmatch(r'<script type="application/json" id="x">([^<]*)</script>\n', block)
    assert match
    assert json.loads(match[1]) == {"text": text}


def test_templates_escape_values_and_insert_drawings() -> None:
    macro = render("parts.html")
    assert macro.strip() == b""
    row = {
        "name": "<b>", "rate": "", "interval": "", "chart": share_bar(0.5), "judged": "",
        "cost": "", "cost_bar": "", "latency": "", "latency_bar": "",
    }  # fmt: skip
    table = {"id": "x", "title": "<i>", "unit": "", "note": "", "rows": [row]}
    from evalstore.interfaces.html.templates import _environment

    module = _environment().get_template("parts.html").module
    text = str(module.group_table(table))  # type: ignore[attr-defined]
    assert "&lt;b&gt;" in text
    assert "&lt;i&gt;" in text
    assert "<svg" in text
