"""Small pictures of numbers."""

from __future__ import annotations

import pytest

from evalstore.core.display import columns_of
from evalstore.interfaces.tui.render.plot import (
    Series,
    plot,
    series_line,
    series_lines,
    spark_spans,
    spark_words,
    verdict_strip,
)

RATES = Series("rate", [0.0, 0.5, 1.0], "0.0%", "100.0%", middle="50%")


def test_a_line_goes_through_its_numbers() -> None:
    assert plot([0, 1], 4, 2) == ["  ⡠⠔", "⠔⠊  "]
    assert plot([1, 1], 3, 1) == ["⠉⠉⠉"]
    assert plot([0, 0], 3, 1) == ["⣀⣀⣀"]
    assert plot([0.5], 2, 1) == ["⠄ "]


def test_a_missing_number_is_a_gap_and_the_last_numbers_are_shown() -> None:
    assert plot([1, None, 1], 3, 1) == ["⠁ ⠈"]
    assert plot([0] * 50 + [1] * 4, 2, 1) == ["⠉⠉"]


@pytest.mark.parametrize("shares", [[], [None], [-1.0, 2.0], [0.3] * 500])
@pytest.mark.parametrize(("width", "height"), [(1, 1), (7, 3), (120, 9)])
def test_a_plot_has_its_size_whatever_the_numbers(
    shares: list[float | None], width: int, height: int
) -> None:
    rows = plot(shares, width, height)
    assert [len(row) for row in rows] == [width] * height


def test_the_axis_goes_from_0_to_100_percent_with_the_first_and_the_last_value() -> None:
    lines = [line.text for line in series_lines(RATES, 30, 6)]
    assert [line[:6] for line in lines] == [
        *("100% ┤", "     │", " 50% ┤", "     │", "  0% ┤", "      "),
    ]
    assert lines[-1] == "      0.0%     rate     100.0%"
    assert {columns_of(line) <= 30 for line in lines} == {True}


def test_with_little_room_a_series_is_one_line() -> None:
    expected = "rate  0.0% ▁▅█ 100.0%  (0% to 100%)"
    assert series_line(RATES, 60).text == expected
    assert [line.text for line in series_lines(RATES, 60, 2)] == [expected]
    alone = Series("rate", [0.5], "50.0%", "50.0% in one run")
    assert series_line(alone, 60).text == "rate  50.0% in one run"


def test_72_and_64_percent_do_not_look_alike() -> None:
    first, second = (Series("", [1.0, rate], "", "") for rate in (0.72, 0.64))
    assert series_line(first, 40) != series_line(second, 40)
    assert plot([1, 0.72], 10, 4) != plot([1, 0.64], 10, 4)


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


@pytest.mark.parametrize("height", [2, 3, 9])
def test_the_ends_of_the_axis_are_as_high_as_their_ticks(height: int) -> None:
    """A tick is in the middle of its line: between the second and the third of four dots."""
    assert plot([1, 1], 1, height) == ["⠒", *" " * (height - 1)]
    assert plot([0, 0], 1, height) == [*" " * (height - 1), "⠤"]
