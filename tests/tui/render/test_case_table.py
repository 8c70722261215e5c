"""The columns of the table of cases."""

from __future__ import annotations

import pytest

from evalstore.operations.views.cases import Cases
from evalstore.reports.statistics import Rate
from evalstore.tui.render.case_table import case_columns
from evalstore.tui.state.case_filter import FilteredCases
from evalstore.tui.widgets.grid_columns import fit_columns

MODELS = ("acme/careful", "acme/of-a-long-name", "recorded")
RATES = (Rate(8, 10, 0.8, 0.5, 0.94), Rate(5, 10, 0.5, 0.24, 0.76), Rate(10, 10, 1.0, 0.2, 1.0))


def heads(
    width: int, rates: tuple[Rate, ...] = RATES, models: tuple[str, ...] = MODELS
) -> list[str]:
    """The texts above the candidates that can be seen."""
    cases = Cases(None, models, ())
    columns = case_columns(cases, FilteredCases(cases), rates[: len(models)])
    visible = fit_columns(columns, width, 0, 0)
    return [column.title for column in visible.columns if column.picks]


@pytest.mark.parametrize(
    ("width", "expected"),
    [
        (140, ["careful 80% 50-94", "of-a-long-name 50% 24-76", "recorded 100% 20-100"]),
        (75, ["careful 80%", "of-a-long-name 50%", "recorded 100%"]),
        (68, ["careful", "of-a-long-name", "recorded"]),
    ],
)
def test_all_candidates_are_headed_alike(width: int, expected: list[str]) -> None:
    assert heads(width) == expected


def test_a_candidate_without_a_rate_does_not_hide_those_of_others() -> None:
    unjudged = Rate(0, 0, None, None, None)
    assert heads(140, (*RATES[:2], unjudged)) == [
        "careful 80% 50-94",
        "of-a-long-name 50% 24-76",
        "recorded",
    ]
    assert heads(140, (unjudged,) * 3) == [*MODELS]


def test_a_candidate_with_fewer_verdicts_than_another_is_marked_as_partial() -> None:
    rates = (Rate(22, 48, 0.46, 0.3, 0.6), Rate(7, 8, 0.88, 0.35, 0.99))
    models = ("a/careful", "a/hasty")
    assert heads(120, rates, models) == ["a/careful 46% 30-60", "a/hasty 88% of 8 35-99"]
    assert heads(60, rates, models) == ["a/careful 46%", "a/hasty ~88%"]


def test_the_last_verdicts_name_their_candidate_where_there_is_room() -> None:
    cases = Cases(None, MODELS, ())
    found = {}
    for picked, width in ((0, 140), (1, 140), (0, 104)):
        columns = case_columns(cases, FilteredCases(cases), RATES, with_history=True, picked=picked)
        titles = [column.title for column in fit_columns(columns, width, picked, 0).columns]
        found[picked, width] = (titles[-1], "careful 80% 50-94" in titles)
    assert found == {
        (0, 140): ("last runs: careful", True),
        (1, 140): ("last runs: of-a-long-name", True),
        (0, 104): ("last: careful", True),
    }


def test_short_names_of_candidates_are_shown_whole() -> None:
    assert heads(120, models=("a/careful", "a/hasty"))[0] == "a/careful 80% 50-94"
    assert heads(60, models=("a/careful", "a/hasty"))[0] == "careful 80% 50-94"


def test_the_texts_above_all_that_is_seen_have_the_same_parts() -> None:
    for width in range(40, 150):
        shown = [head.strip("‹› ") for head in heads(width)]
        assert len({len(head.split()) for head in shown}) == 1, (width, shown)
