"""Many runners of one run in virtual time: killed, asleep, cut off, and within all limits.

`benches.simulated_runners` simulates them; it is a program of its own because what it kills must
not clean up.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.postgresql_server import PostgreSQLServer
from tests.zygote import Popen

pytestmark = pytest.mark.extended
FEW = {"killed": 0, "stopped": 0, "asleep": 0, "offline": 0}
LIMIT = 0.4
MOST = 1.0
"""The calls in any minute, of the limit."""


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the path or the address of a new store."""
    if request.param == "sqlite":
        return str(tmp_path / "store.db")
    server: PostgreSQLServer = request.getfixturevalue("postgresql_server")
    return server.url()


_EACH_DATABASE_ONCE = pytest.mark.parametrize(
    ("place", "seed"), [("sqlite", 1), ("postgresql", 2)], indirect=["place"]
)
"""What a seed decides, the kills and sleeps, does not depend on the database."""


def simulate(place: str, **scenario: float) -> dict[str, Any]:
    """Return what came of a simulation."""
    words = [f"--{name.replace('_', '-')}={value}" for name, value in scenario.items()]
    with Popen(
        [sys.executable, "-m", "benches.simulated_runners", place, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    came: dict[str, Any] = json.loads(out)
    assert came["problems"] == []
    return came


def test_two_runs_keep_to_the_limit_a_minute_of_one_account(place: str) -> None:
    came = simulate(place, runners=2, cases=150, per_minute=60, **FEW)
    assert came["peak"] <= MOST
    assert (came["left"], came["paid"]) == (0, 150)
    assert came["calls"] / came["answered"] > 0.8  # of one a second


@_EACH_DATABASE_ONCE
def test_runners_that_are_lost_cost_their_calls_in_flight_at_most(place: str, seed: int) -> None:
    came = simulate(
        place,
        seed=seed,
        runners=10,
        cases=240,
        per_minute=240,
        judged_per_minute=160,
        killed=3,
        stopped=1,
        asleep=4,
        offline=3,
    )
    assert (came["left"], came["paid_again"], came["uncounted"]) == (0, 0, 0)
    assert 240 <= came["judged"] <= 240 + came["lost"]
    assert max(came["peak"], came["judged_peak"]) <= MOST


@pytest.mark.parametrize("seed", [1, 2])
def test_runners_that_are_lost_spend_no_more_than_all_may(
    postgresql_server: PostgreSQLServer, seed: int
) -> None:
    came = simulate(
        postgresql_server.url(),
        seed=seed,
        runners=10,
        cases=240,
        per_minute=240,
        judged_per_minute=160,
        limit=LIMIT,
        killed=3,
        stopped=1,
        asleep=4,
        offline=3,
    )
    assert LIMIT * 0.9 < came["spent"] <= came["known"] + 1e-9 <= LIMIT + 1e-9
    assert came["judged"] > 0
    assert (came["paid_again"], came["uncounted"], came["is_recorded"]) == (0, 0, True)


@pytest.mark.parametrize("limit", [{"limit": 0.1}, {"max_time": 30}, {}])
def test_a_run_is_recorded_though_the_one_that_has_begun_it_is_killed_when_it_ends(
    postgresql_server: PostgreSQLServer, limit: dict[str, float]
) -> None:
    came = simulate(
        postgresql_server.url(),
        seed=1,
        runners=6,
        cases=80,
        per_minute=120,
        **limit,
        killed=5,
        stopped=1,
        asleep=2,
        offline=1,
    )
    assert (came["is_recorded"], came["paid_again"], came["uncounted"]) == (True, 0, 0)
