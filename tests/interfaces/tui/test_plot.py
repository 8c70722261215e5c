"""Small pictures of numbers."""

from __future__ import annotations

import pytest

from evalstore.core.display import columns_of
from evalstore.interfaces.tui.render.charts import (
    PlottedLine,
    Series,
    plot_lines,
    series_line,
    spark_spans,
    spark_words,
    verdict_strip,
)
from evalstore.results.report_overview import TrendPoint

RATES = Series([0.0, 0.5, 1.0], "0.0%", "100.0%")
SOME = True


def line_of(name: str, *shares: float | tuple[float, bool]) -> PlottedLine:
    points = [share if isinstance(share, tuple) else (share, False) for share in shares]
    plotted = [TrendPoint(run, *point) for run, point in enumerate(points)]
    return PlottedLine(name, plotted, f"{100 * points[-1][0]:.0f}%")


def drawn(
    lines: list[PlottedLine], width: int, height: int, dates: tuple[str, ...] = ("1", "2", "3")
) -> list[str]:
    return [line.text for line in plot_lines(lines, dates, width, height)]


def test_each_name_stands_at_the_end_of_its_line_with_its_number() -> None:
    assert drawn([line_of("large", 1, 1, 1), line_of("mini", 0, 0.5, 1)], 32, 6) == [
        "100% ┤●⠒⠒⠒⠒⠒●⠒⠒⠒⠒⣒⠶● large 100%",
        "     │       ⢀⡠⠔⠉    mini 100%",
        " 50% ┤    ⢀⠤●⠁      ",
        "     │ ⢀⠤⠊⠁         ",
        "  0% ┤●⠁            ",
        "      1     2      3",
    ]


def test_a_hollow_point_is_not_joined_and_has_its_name() -> None:
    lines = drawn([line_of("mini", 1, 1, (0, SOME))], 30, 4)
    assert lines[0].count("●") == 2
    assert lines[1].strip() == "│"
    assert lines[2].split() == ["0%", "┤", "○", "mini", "0%"]
    alone = drawn([line_of("mini", (0.5, SOME))], 30, 4, ("1",))
    assert [text.endswith(" mini 50%") for text in alone if "○" in text] == [True]


def test_numbers_above_one_half_have_the_whole_height() -> None:
    lines = drawn([line_of("mini", 1, 0.51, 0.75)], 30, 6)
    assert [line.split()[0] for line in lines[:-1]] == ["100%", "│", "75%", "│", "50%"]
    assert [line.count("●") for line in lines] == [1, 0, 1, 0, 1, 0]
    whole = drawn([line_of("mini", 1, 0.5, 0.75)], 30, 6)
    assert whole[4].split()[0] == "0%"


def test_names_do_not_cover_each_other_and_dates_are_shown_once() -> None:
    lines = drawn([line_of(name, 0.9, 0.9) for name in "abc"], 30, 6, ("05-01", "05-01"))
    ends = [line[-5:] for line in lines if line.endswith("90%")]
    assert ends == ["a 90%", "b 90%", "c 90%"]
    assert lines[-1].split() == ["05-01"]


@pytest.mark.parametrize("shares", [(0.0,), (0.3,) * 500, (1.0, 0.0)])
@pytest.mark.parametrize(("width", "height"), [(1, 1), (7, 3), (120, 9)])
def test_a_plot_has_its_height_whatever_the_numbers(
    shares: tuple[float, ...], width: int, height: int
) -> None:
    lines = drawn([line_of("mini", *shares)], width, height, ("05-01",) * len(shares))
    assert len(lines) == max(3, height)
    assert all(columns_of(line) <= max(width, 20) for line in lines)


def test_a_series_is_one_line_of_bars() -> None:
    assert series_line(RATES, 60).text == "0.0% ▁▅█ 100.0%  (0% to 100%)"
    alone = Series([0.5], "50.0%", "50.0% in one run")
    assert series_line(alone, 60).text == "50.0% in one run"


def test_72_and_64_percent_do_not_look_alike() -> None:
    first, second = (Series([1.0, rate], "", "") for rate in (0.72, 0.64))
    assert series_line(first, 40) != series_line(second, 40)
    assert drawn([line_of("", 1, 0.72)], 20, 6) != drawn([line_of("", 1, 0.64)], 20, 6)


STRIPS = {
    "one cell for each result": ({"pass": 2, "fail": 1}, "██░"),
    "in proportion": ({"pass": 50, "fail": 50}, "█████░░░░░"),
    "each verdict is seen": ({"pass": 9_997, "fail": 1, "undecided": 1, "error": 1}, "███████░?!"),
    "signs of the others": ({"pass": 1, "pending": 2, "no reply": 1, "answered": 1}, "█……!·"),
    "nothing": ({"pass": 0}, ""),
}


@pytest.mark.parametrize("case", STRIPS)
def test_a_strip_shows_the_shares_of_verdicts_without_colours(case: str) -> None:
    verdicts, expected = STRIPS[case]
    strip = verdict_strip(verdicts, 10)
    assert "".join(span.text for span in strip) == expected
    assert all(span.colour for span in strip)


@pytest.mark.parametrize(
    ("passed", "total", "strip"),
    [
        (13, 16, "████████░░"),
        (14, 16, "█████████░"),
        (15, 20, "███████░░░"),
        (999, 1000, "█████████░"),
        (1, 1000, "█░░░░░░░░░"),
        (1000, 1000, "██████████"),
    ],
)
def test_a_strip_is_rounded_to_the_nearest_and_shows_any_failure(
    passed: int, total: int, strip: str
) -> None:
    spans = verdict_strip({"pass": passed, "fail": total - passed}, 10)
    assert "".join(span.text for span in spans) == strip


@pytest.mark.parametrize("passed", range(0, 101, 7))
def test_a_strip_is_as_wide_as_it_is_to_be(passed: int) -> None:
    counts = {"pass": passed, "fail": 100 - passed, "error": 3}
    assert sum(len(span.text) for span in verdict_strip(counts, 12)) == 12


def test_the_last_verdicts_are_signs_and_words() -> None:
    words = ("pass", "pass", "fail", "pass")
    assert "".join(span.text for span in spark_spans(words)) == "✓✓✗✓"
    assert spark_words(words) == "2 pass, then 1 fail, then 1 pass"
