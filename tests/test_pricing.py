"""What calls cost, and which price is in force."""

from __future__ import annotations

import pytest

from evalstore.catalogue import Cost as ModelCost
from evalstore.catalogue import Currency, Model, ProviderFile
from evalstore.pricing import Price, find
from evalstore.values import Usage

DAY = "2026-06-01"


def model(*costs: ModelCost, kind: str = "fake", code: str = "m") -> Model:
    return Model("m", ProviderFile(kind, kind), code, costs=costs)


def test_every_kind_of_price_counts() -> None:
    price = Price("costs", 0.01, 0.1, None, per_call=1.0, per_hour=3600.0)
    assert price.cost(Usage(100, 10), seconds=2.0).usd == 1.0 + 1.0 + 1.0 + 2.0


def test_tokens_from_the_cache_have_their_own_price() -> None:
    usage = Usage(100, 0, cached_tokens=80)
    assert Price("t", 0.01, per_cached_token=0.001).cost(usage).usd == pytest.approx(0.28)
    assert Price("t", 0.01, per_cached_token=0.0).cost(usage).usd == pytest.approx(0.2)
    assert Price("t", 0.01).cost(usage).usd == pytest.approx(1.0)


def test_more_cached_tokens_than_tokens_never_cost_less_than_nothing() -> None:
    usage = Usage(10, 0, cached_tokens=80)
    assert Price("t", 0.01, per_cached_token=0.001).cost(usage).usd == pytest.approx(0.08)


def test_tokens_that_were_not_counted_cost_nothing() -> None:
    assert Price("t", 0.01, 0.01, per_call=0.5).cost(Usage()).usd == 0.5


def test_the_price_is_stored_with_what_it_costs() -> None:
    cost = Price("costs", per_input_token=0.01, per_call=0.5).cost(Usage(1, 1))
    assert cost.price == {"source": "costs", "inputToken": 0.01, "call": 0.5}


@pytest.mark.parametrize(
    ("day", "per_call"),
    [("2026-01-01", 1.0), ("2026-05-31", 1.0), ("2026-06-01", 2.0), ("2027-01-01", 2.0)],
)
def test_the_newest_price_in_force_counts(day: str, per_call: float) -> None:
    costs = (ModelCost("USD", "2026-01-01", per_call=1.0), ModelCost("USD", "2026-06-01", 2.0))
    price = find(model(*costs), {}, day)
    assert price is not None
    assert price.per_call == per_call


def test_a_currency_is_counted_in_dollars_of_the_day() -> None:
    euro = Currency("EUR", (("2026-01-01", 1.1), ("2026-06-01", 1.2)))
    one = model(ModelCost("EUR", "2026-01-01", 1.0, 2.0, 3.0, 4.0))
    price = find(one, {"EUR": euro}, DAY)
    assert price is not None
    assert (price.per_call, price.per_input_token) == (1.2, 2.4)
    assert price.per_output_token == pytest.approx(3.6)
    assert price.per_hour == 4.8


def test_a_currency_without_a_rate_has_no_price() -> None:
    one = model(ModelCost("EUR", "2026-01-01", 1.0))
    assert find(one, {}, DAY) is None
    assert find(one, {"EUR": Currency("EUR", (("2027-01-01", 1.1),))}, DAY) is None


def test_a_script_costs_nothing() -> None:
    price = find(model(kind="scripted"), {}, DAY)
    assert price == Price("scripted")
    assert price.cost(Usage(1_000, 1_000), 60).usd == 0


def test_a_model_of_the_public_table_has_the_price_of_the_table() -> None:
    price = find(model(kind="openai", code="gpt-4o-mini"), {}, DAY)
    assert price is not None
    assert 0 < price.per_input_token < price.per_output_token < 1e-5


def test_a_model_nobody_knows_has_no_price() -> None:
    assert find(model(kind="openai", code="gpt-unheard-of"), {}, DAY) is None
