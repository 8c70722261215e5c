"""Charts are SVG with a name; data within the page cannot end its element."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from evalstore.interfaces.html.charts import interval_chart, trend_chart
from evalstore.interfaces.html.report import run_row
from evalstore.interfaces.html.templates import data_block, render
from evalstore.results.report_overview import CandidateCounts, TrendRun, make_trend


def test_an_interval_is_drawn_to_scale() -> None:
    chart = ElementTree.fromstring(interval_chart(0.5, (0.25, 0.9)))
    assert chart.get("aria-label") == "50.0%, 95% interval 25.0% to 90.0%"
    parts = {part.get("class"): part for part in chart.findall("rect")}
    bar, mark = parts["interval"], parts["rate"]
    assert (bar.get("x"), bar.get("width"), mark.get("x")) == ("50.0", "130.0", "99.2")
    assert interval_chart(None, None) == ""


def run_of(number: int, passed: int, *, is_partial: bool = False, edit: str = "") -> TrendRun:
    """A run of four results of two candidates, one of which passes all of them."""
    rates = {"atlas/<big>": CandidateCounts(4, 4, 4), "mini": CandidateCounts(passed, 4, 4)}
    edits = ((edit, 2),) if edit else ()
    return TrendRun(f"{number}abc", number * 86_400_000_000, is_partial, rates, breaks=edits)


def test_the_trend_has_a_line_for_each_candidate_and_hollow_points_that_none_joins() -> None:
    runs = [run_of(3, 0, is_partial=True), run_of(2, 2, edit="tests/<a>.md"), run_of(1, 3)]
    trend = make_trend(runs)
    assert trend.notes == ["○ partial run, or over 10% of verdicts missing"]
    chart = ElementTree.fromstring(trend_chart(trend))
    plot, beside = chart.findall("svg")
    lines = plot.findall("g")
    names = [text.text for text in beside.findall("g/text")]
    assert names == ["<big> 4 of 4", "mini 0 of 4"]
    for line in lines:
        (path,) = line.findall("line")
        assert (path.get("x1"), path.get("x2")) == ("0.00%", "50.00%")
        assert [dot.get("class") for dot in line.findall("circle")] == ["dot", "dot", "hollow"]
    title = lines[1].findall("circle/title")[-1].text
    assert title == "mini: 0.0%, 0 of 4 (partial), run 3abc, 1970-01-04 00:00 UTC"
    texts = [text.text for text in plot.findall("text")]
    assert texts == ["0%", "50%", "100%", "01-04", "01-02", "01-03"]
    assert [name.text for name in plot.findall("foreignObject/p")] == ["tests/<a>.md: 2 broke"]
    assert trend_chart(make_trend(runs[1:2])) == ""


def test_a_run_that_was_stopped_has_counts_and_says_so() -> None:
    rates = {"mini": CandidateCounts(6, 6, 32)}
    stopped = TrendRun("2abc", 2, False, rates, status="over budget")
    row = run_row(stopped, ["mini"], ())
    assert (row["status"], row["rates"], row["is_partial"]) == ("at limit", ("6 of 6",), False)
    page = ElementTree.fromstring(trend_chart(make_trend([stopped, run_of(1, 3)])))
    titles = [title.text or "" for title in page.findall("svg/g/circle/title")]
    assert [title.partition(", run")[0] for title in titles if "2abc" in title] == [
        "mini: 100.0%, 6 of 6 (26 pending)"
    ]
    assert "mini 6 of 6" in [text.text for text in page.findall("svg/g/text")]


def test_equal_lines_and_points_are_seen_around_those_that_cover_them() -> None:
    runs = [run_of(3, 4), run_of(2, 4), run_of(1, 2)]
    below, above = ElementTree.fromstring(trend_chart(make_trend(runs)))[0].findall("g")
    for line, widths, radii in ((below, ["2", "5"], "466"), (above, ["2", "2"], "444")):
        assert [part.get("stroke-width") for part in line.findall("line")] == widths
        assert "".join(dot.get("r", "") for dot in line.findall("circle")) == radii


def test_a_date_is_below_the_first_run_of_its_day() -> None:
    rates = {"mini": CandidateCounts(1, 2, 2)}
    days = (24, 25, 26, 28, 28, 29, 30)
    at = [days[number] * 86_400_000_000 for number in range(7)]
    runs = [TrendRun(f"{number}", at[number], False, rates) for number in reversed(range(7))]
    plot = ElementTree.fromstring(trend_chart(make_trend(runs)))[0]
    dates = {each.text: each.get("x") for each in plot.findall("text") if "-" in str(each.text)}
    assert dates == {"01-25": "0.00%", "01-27": "33.33%", "01-29": "50.00%", "01-31": "100.00%"}


def test_a_candidate_has_one_colour_and_only_rates_of_the_last_run_are_beside_the_trend() -> None:
    runs = [run_of(2, 2), run_of(1, 3)]
    rates = {"mini": CandidateCounts(1, 2, 2)}
    runs = [TrendRun("3abc", 259_200_000_000, True, rates), *runs]
    for listed, names in (
        (runs, ["<big>", "mini 1 of 2"]),
        (runs[1:], ["<big> 100.0%", "mini 50.0%"]),
    ):
        chart = ElementTree.fromstring(trend_chart(make_trend(listed, str, ["aaa", "mini"])))
        groups = chart.findall("svg")[1].findall("g")
        assert [group.get("class") for group in groups] == ["line-1", "line-2"]
        assert [text.text for group in groups for text in group.findall("text")] == names
        ended = [len(line.findall("line[@class='leader']")) for line in chart[0].findall("g")]
        assert ended == ["%" not in name and " of " not in name for name in names]


def test_the_name_of_an_edit_ends_at_its_mark() -> None:
    runs = [
        run_of(number, 2, edit="rows of data.csv" * (number == 2)) for number in range(9, 0, -1)
    ]
    chart = ElementTree.fromstring(trend_chart(make_trend(runs)))[0]
    (box,) = chart.findall("foreignObject")
    assert (box.get("x"), box.get("width")) == ("0.00%", "12.50%"), "a browser cuts it off"
    late = [run_of(number, 2, edit="tests/delivery.md" * (number == 8))
            for number in range(9, 0, -1)]  # fmt: skip
    chart = ElementTree.fromstring(trend_chart(make_trend(late)))[0]
    (box,) = chart.findall("foreignObject")
    left, width = (float(box.get(key, "")[:-1]) for key in ("x", "width"))
    assert round(left + width, 1) == 87.5
    assert box[0].text == "tests/delivery.md: 2 broke"


@pytest.mark.parametrize("count", [13, 30])
def test_of_two_close_edits_the_newer_has_a_name_that_no_line_crosses(count: int) -> None:
    names = {count - 1: "model of mini", count: "tests/prices.md"}
    runs = [run_of(number, 2, edit=names.get(number, "")) for number in range(count, 0, -1)]
    chart = ElementTree.fromstring(trend_chart(make_trend(runs)))[0]
    assert int(chart.get("height", "")) <= 160
    (box,) = chart.findall("foreignObject")
    assert box[0].text == "tests/prices.md: 2 broke"
    newer, older = chart.findall("line[@class='edit']")
    assert older[0].text == "model of mini: 2 broke"
    assert int(newer.get("y1", "")) < int(older.get("y1", "")) >= int(box.get("height", ""))


def test_a_date_is_on_the_axis_once() -> None:
    runs = [run_of(2, 1), *(run_of(1, 1) for _ in range(9))]
    plot = ElementTree.fromstring(trend_chart(make_trend(runs)))[0]
    dates = {text.text: text.get("x") for text in plot.findall("text") if "-0" in str(text.text)}
    assert dates == {"01-02": "0.00%", "01-03": "100.00%"}
    assert len([text for text in plot.findall("text") if "-0" in str(text.text)]) == 2


def test_recorded_answers_have_a_line_only_where_their_rate_changes() -> None:
    def trend(*passed: int, parts: tuple[int, ...] = ()) -> list[str]:
        rates = [{"mini": CandidateCounts(1, 4, 4), "recorded": CandidateCounts(each, 4, 4)}
                 for each in passed]  # fmt: skip
        runs = [
            TrendRun("a", number, each in parts, rates[number])
            for number, each in enumerate(passed)
        ]
        return [line.candidate for line in make_trend(runs).lines]

    assert trend(2, 2, 2) == ["mini"]
    assert trend(2, 2, 3) == ["mini", "recorded"]
    assert trend(2, 2, 3, parts=(3,)) == ["mini"]


def test_names_and_edits_of_the_trend_do_not_cover_each_other() -> None:
    many = {f"model-{number:02}": CandidateCounts(1, 2, 2) for number in range(20)}
    runs = [
        TrendRun(f"{number}", number, False, many, breaks=(("tests/a-long-name.md", 10),))
        for number in range(30)
    ]
    chart, names = ElementTree.fromstring(trend_chart(make_trend(runs)))
    heights = sorted(float(text.get("y", "0")) for text in names.findall("g/text"))
    assert all(below - above >= 14.9 for above, below in pairwise(heights))
    assert heights[0] > 0
    assert heights[-1] < 160
    boxes = [
        [float(box.get(key, "0%")[:-1]) for key in ("x", "width")]
        for box in chart.findall("foreignObject[@class='edit-name']")
    ]
    assert len(boxes) > 2
    spans = sorted((x, x + width) for x, width in boxes)
    assert all(end <= start + 0.02 for (_, end), (start, _) in pairwise(spans))
    assert spans[-1][1] <= 100.5
    assert len(chart.findall("line[@class='edit']")) == 30


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
    group = {"pass_rate": 0.5, "rate": {"judged": 1}, "results": 2}
    row = {
        "name": "<b>", "rate": "", "interval": (0.2, 0.8), "cost": "", "latency": "", "group": group
    }  # fmt: skip
    table = {"id": "x", "title": "<i>", "count": 1, "note": "", "rows": [row]}
    from evalstore.interfaces.html.templates import _environment

    module = (
        _environment().get_template("parts.html").make_module({"interval_chart": interval_chart})
    )
    text = str(module.group_table(table))  # type: ignore[attr-defined]
    assert "&lt;b&gt;" in text
    assert "&lt;i&gt;" in text
    assert "<svg" in text
    assert "20.0% to 80.0%" in text
