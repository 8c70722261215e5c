"""The columns of the table of cases."""

from __future__ import annotations

import pytest

from evalstore.comparison.statistics import Rate
from evalstore.interfaces.tui.case_filter import FilteredCases
from evalstore.interfaces.tui.case_listing import CaseListing
from evalstore.interfaces.tui.grid import fit_columns
from evalstore.interfaces.tui.screens.case_panels import case_columns
from evalstore.results.table.cases import CaseRow, Cases
from tests.comparison.test_comparison import result as a_result

MODELS = ("acme/careful", "acme/of-a-long-name", "recorded")
RATES = (Rate(8, 10, 0.8, 0.5, 0.94), Rate(5, 10, 0.5, 0.24, 0.76), Rate(10, 10, 1.0, 0.2, 1.0))


def listed(cases: Cases) -> CaseListing:
    listing = CaseListing()
    listing.load(cases, FilteredCases(cases))
    return listing


def heads(
    width: int, rates: tuple[Rate, ...] = RATES, models: tuple[str, ...] = MODELS
) -> list[str]:
    """The texts above the candidates that can be seen."""
    cases = Cases(None, models, ())
    columns = case_columns(listed(cases), 0, rates[: len(models)])
    visible = fit_columns(columns, width, 0, 0)
    return [column.title for column in visible.columns if column.picks]


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (140, ["careful\n80% 50-94", "of-a-long-name\n50% 24-76", "recorded\n100% 20-100"]),
        (38, ["careful\n80% 50-94", "of-a-lon…\n50% 24-76", "recorded\n100% 20-100"]),
    ],
)
def test_the_rate_of_a_candidate_is_below_its_name(width: int, expected: list[str]) -> None:
    assert heads(width) == expected


def test_short_names_above_columns_are_whole_in_a_narrow_terminal() -> None:
    models = ("acme/atlas-large", "acme/atlas-small", "acme/nimbus-mini")
    names = [head.split("\n")[0] for head in heads(60, models=models)]
    assert names == ["atlas-large", "atlas-small", "nimbus-mini"]


def test_cases_that_verdicts_have_chosen_are_counted_beside_the_rate_of_all() -> None:
    cases = Cases(None, MODELS, ())
    chosen = (Rate(0, 3, 0.0, 0.0, 0.56), Rate(0, 5, 0.0, 0.0, 0.43), Rate(0, 0, None, None, None))
    columns = case_columns(listed(cases), 0, chosen, RATES)
    visible = fit_columns(columns, 140, 0, 0)
    assert [column.title for column in visible.columns if column.picks] == [
        "careful\n0 of 3 (80%)",
        "of-a-long-name\n0 of 5 (50%)",
        "recorded\n(100%)",
    ]


def test_a_candidate_without_a_rate_does_not_hide_those_of_others() -> None:
    unjudged = Rate(0, 0, None, None, None)
    assert heads(140, (*RATES[:2], unjudged)) == [
        "careful\n80% 50-94",
        "of-a-long-name\n50% 24-76",
        "recorded",
    ]
    assert heads(140, (unjudged,) * 3) == ["careful", "of-a-long-name", "recorded"]


def test_a_candidate_with_fewer_verdicts_than_another_is_marked_as_partial() -> None:
    rates = (Rate(22, 48, 0.46, 0.3, 0.6), Rate(7, 8, 0.88, 0.35, 0.99))
    models = ("a/careful", "a/hasty")
    assert heads(120, rates, models) == ["careful\n46% 30-60", "hasty\n~88% 35-99"]


def test_the_last_verdicts_name_their_candidate() -> None:
    cases = Cases(None, MODELS, ())
    for picked, name in enumerate(("careful", "of-a-long-name")):
        columns = case_columns(listed(cases), picked, RATES, with_history=True)
        assert fit_columns(columns, 140, picked, 0).columns[-1].title == f"last runs\n{name}"


NAMED = ("claude-3-5-sonnet-20241022", "gpt-4.1-mini-2025-04-14", "recorded")


@pytest.mark.parametrize("models", [MODELS, NAMED])
@pytest.mark.parametrize("width", range(40, 260, 5))
def test_a_rate_and_its_interval_are_never_left_out(width: int, models: tuple[str, ...]) -> None:
    shown = [head.replace(" ›", "").split() for head in heads(width, models=models)]
    rates = {"80%": "50-94", "50%": "24-76", "100%": "20-100"}
    assert all(rates[rate] == interval for *_, rate, interval in shown), shown


def test_long_names_above_columns_can_be_told_apart() -> None:
    models = ("claude-3-5-sonnet-20241022", "claude-3-5-haiku-20241022")
    one, other = (head.split("\n")[0] for head in heads(44, models=models))
    assert "sonnet"[:3] in one
    assert "haiku"[:3] in other


ROWS = ("bike=cargo bike", "bike=tandem", "language=English, time=morning")


@pytest.mark.parametrize("width", range(88, 260, 3))
def test_three_candidates_leave_room_for_the_last_verdicts_and_name_theirs(width: int) -> None:
    results = tuple(a_result(model=model, verdict="fail") for model in MODELS)
    rows = [CaseRow("tests/availability.md", row, "", (), tuple(results)) for row in ROWS]
    cases = Cases(None, MODELS, rows)
    columns = case_columns(listed(cases), 0, RATES, with_history=True)
    title = fit_columns(columns, width, 0, 0).columns[-1].title
    assert title == "last runs\ncareful"
