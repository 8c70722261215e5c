"""Servers in one's own network, services with several addresses, and prices that come later."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalstore.planning import participants
from tests.builders import tree
from tests.interfaces.cli.run.test_run import edit

if TYPE_CHECKING:
    from tests.interfaces.cli.conftest import Echo, Evalstore

TEST = "# User\n\nHow are you?\n\n---\n\n~~~checks\n- contains: fine\n~~~\n"


@pytest.fixture
def desk(echo: Echo, tmp_path: Path) -> Path:
    """A workspace with a candidate on the server of the tests."""
    echo.reply = lambda _text: "fine"
    return tree(
        tmp_path / "echo",
        {
            "evalstore.yaml": "candidates: [mini]\n",
            "providers/desk.yaml": "code: desk\ntype: openai-compatible\nbaseURL: http://127.0.0.1:9/v1\n",
            "models/mini.yaml": "id: mini\nprovider: desk\nproviderModelCode: mini-1\n",
            "tests/a.md": TEST,
        },
    )


def test_a_local_server_costs_nothing_and_says_so(desk: Path, evalstore: Evalstore) -> None:
    ran = evalstore("run", "--max-cost", "0.01")
    assert ran.exit_code == 0
    assert ran.stdout.splitlines()[1].endswith("$0  local")
    assert ", $0\n" in ran.stdout
    assert "local: costs nothing" in evalstore("doctor").stdout
    [spent] = json.loads(evalstore("show", "@", "--json").stdout)["spending"]
    assert (spent["cost"], spent["local"]) == (0, True)


def test_the_addresses_of_a_service_share_answers(desk: Path, evalstore: Evalstore) -> None:
    provider = desk / "providers/desk.yaml"
    edit(provider, "type:", "service: acme\ntype:")
    evalstore("run")
    edit(provider, "127.0.0.1", "localhost")
    assert "Nothing to do: 1 answer" in evalstore("status").stdout
    edit(provider, "service: acme", "service: other")
    stdout = evalstore("status", "--explain").stdout
    assert "would ask for 1 answer" in stdout
    assert "service: acme -> other" in stdout


def test_a_price_that_comes_later_prices_what_is_stored(
    desk: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(participants, "is_local", lambda _url: False)
    assert "price unknown" in evalstore("run").stdout
    before = json.loads(evalstore("stats", "--json").stdout)
    assert (before["total"]["cost"]["unpriced"], before["pricedLater"]) == (1, 0)
    (desk / "models/mini.yaml").write_text(
        (desk / "models/mini.yaml").read_text() + "costs: [{costPerCall: 0.25}]\n"
    )
    after = json.loads(evalstore("stats", "--json").stdout)
    assert (after["total"]["cost"]["unpriced"], after["pricedLater"]) == (0, 1)
    assert after["total"]["cost"]["all"]["total"] == 0.25
    assert "note: the price of 1 call was unknown then; today's price is used" in (
        evalstore("stats").stdout + evalstore("stats").stderr
    )
    with closing(sqlite3.connect(desk / ".evalstore/store.db")) as store:
        [[session]] = store.execute("SELECT lower(hex(id)) FROM sessions").fetchall()
    assert "$0.2500 at today's price" in evalstore("show", session).stdout
    [row] = json.loads(evalstore("export", "--format", "json").stdout)["results"]
    assert (row["cost"], row["pricedLater"]) == (0.25, 1)
    assert "at today's price: 1" in evalstore("export", "--format", "junit").stdout
    evalstore("report", "-o", "report.html")
    assert "$0.2500 at today's price" in (desk / "report.html").read_text()
