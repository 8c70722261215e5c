"""What calls cost, and which price is in force."""

from __future__ import annotations

import pytest

from evalstore.core.values import Usage
from evalstore.planning.participants import find, find_unpriced
from evalstore.providers.price_table import Price
from evalstore.workspace.model_files import Currency, Model, ProviderFile
from evalstore.workspace.model_files import ModelPrice as ModelCost

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
    ("base_url", "free"),
    [
        ("http://localhost:8000/v1", True),
        ("http://127.0.0.1:8000/v1", True),
        ("http://[::1]:8000/v1", True),
        ("http://10.1.2.3/v1", True),
        ("http://192.168.0.7:1234/v1", True),
        ("http://172.20.0.2/v1", True),
        ("http://[fd00::1]/v1", True),
        ("http://vllm:8000/v1", True),
        ("http://gpu.local/v1", True),
        ("http://host.docker.internal/v1", True),
        ("https://8.8.8.8/v1", False),
        ("https://api.acme.com/v1", False),
        ("https://localhost.acme.com/v1", False),
    ],
)
def test_a_server_in_the_own_network_costs_nothing_without_a_price(
    base_url: str, free: bool
) -> None:
    provider = ProviderFile("desk", "openai-compatible", base_url)
    assert find(Model("m", provider, "m"), {}, DAY) == (Price("local") if free else None)
    priced = find(Model("m", provider, "m", costs=(ModelCost("USD", "2026-01-01", 1.0),)), {}, DAY)
    assert priced is not None
    assert priced.per_call == 1.0


def test_ollama_costs_nothing_at_its_usual_address() -> None:
    assert find(model(kind="ollama_chat", code="m"), {}, DAY) == Price("local")


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
    priced = model(ModelCost("EUR", "2026-01-01", 1.0, 2.0, 3.0, 4.0))
    price = find(priced, {"EUR": euro}, DAY)
    assert price is not None
    assert (price.per_call, price.per_input_token) == (1.2, 2.4)
    assert price.per_output_token == pytest.approx(3.6)
    assert price.per_hour == 4.8


def test_a_currency_without_a_rate_has_no_price() -> None:
    priced = model(ModelCost("EUR", "2026-01-01", 1.0))
    assert find(priced, {}, DAY) is None
    assert find(priced, {"EUR": Currency("EUR", (("2027-01-01", 1.1),))}, DAY) is None


def test_a_script_costs_nothing() -> None:
    price = find(model(kind="scripted"), {}, DAY)
    assert price == Price("scripted", is_simulated=True)
    assert price.cost(Usage(1_000, 1_000), 60).usd == 0


def test_a_model_of_the_public_table_has_the_price_of_the_table() -> None:
    price = find(model(kind="openai", code="gpt-4o-mini"), {}, DAY)
    assert price is not None
    assert 0 < price.per_input_token < price.per_output_token < 1e-5


def test_a_model_nobody_knows_has_no_price() -> None:
    assert find(model(kind="openai", code="gpt-unheard-of"), {}, DAY) is None


def test_a_price_from_the_cache_that_is_not_given_is_that_of_any_token() -> None:
    price = find(model(ModelCost("USD", "2026-01-01", per_prompt_token=0.01)), {}, DAY)
    assert price is not None
    assert price.cost(Usage(100, 0, cached_tokens=80)).usd == pytest.approx(1.0)


def test_a_price_from_the_cache_is_converted_like_the_others() -> None:
    cost = ModelCost("EUR", "2026-01-01", per_prompt_token=0.01, per_cached_prompt_token=0.001)
    price = find(model(cost), {"EUR": Currency("EUR", (("2026-01-01", 2.0),))}, DAY)
    assert price is not None
    assert price.per_cached_token == 0.002
    assert price.cost(Usage(100, 0, cached_tokens=50)).usd == pytest.approx(1.1)


def test_tokens_that_are_free_in_the_cache_are_stored_as_free() -> None:
    cost = ModelCost("USD", "2026-01-01", per_prompt_token=0.01, per_cached_prompt_token=0.0)
    price = find(model(cost), {}, DAY)
    assert price is not None
    assert price.cost(Usage(100, 0, cached_tokens=80)).usd == pytest.approx(0.2)
    assert price.describe() == {"source": "costs", "inputToken": 0.01, "cachedToken": 0.0}


def test_an_hour_is_an_hour_of_the_call() -> None:
    price = find(model(ModelCost("USD", "2026-01-01", per_hour=7.2)), {}, DAY)
    assert price is not None
    assert price.cost(Usage(1_000, 1_000), seconds=30).usd == pytest.approx(0.06)


def test_a_converted_price_is_stored_with_its_currency_and_rate() -> None:
    euro = {"EUR": Currency("EUR", (("2026-01-01", 1.5),))}
    price = find(model(ModelCost("EUR", "2026-01-01", per_call=2.0)), euro, DAY)
    assert price is not None
    assert price.describe() == {"source": "costs", "currency": "EUR", "rate": 1.5, "call": 3.0}


EURO = {"EUR": Currency("EUR", (("2026-06-01", 1.2),))}


@pytest.mark.parametrize(
    ("costs", "unpriced"),
    [
        ([("USD", "2026-01-01")], []),
        ([("EUR", "2026-01-01")], []),
        ([("CHF", "2026-01-01")], [("CHF", DAY)]),
        ([("CHF", "2027-01-01")], [("CHF", "2027-01-01")]),
        ([("CHF", "2026-01-01"), ("EUR", "2026-05-01")], []),
        ([("EUR", "2026-01-01"), ("CHF", "2026-07-01")], [("CHF", "2026-07-01")]),
    ],
)
def test_prices_without_a_rate_are_found_unless_they_are_history(
    costs: list[tuple[str, str]], unpriced: list[tuple[str, str]]
) -> None:
    priced = model(*(ModelCost(currency, start) for currency, start in costs))
    without_rate = [(cost.currency, day) for cost, day in find_unpriced(priced, EURO, DAY)]
    assert without_rate == unpriced


def test_a_rate_that_begins_later_is_not_a_rate_yet() -> None:
    priced = model(ModelCost("EUR", "2026-01-01"))
    assert [day for _, day in find_unpriced(priced, EURO, "2026-05-31")] == ["2026-05-31"]
