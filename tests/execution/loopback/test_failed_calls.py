"""A call that fails for a runner of a shared run is not made again by another one."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from evalstore.store import Store
from evalstore.store.fsck import check_store
from evalstore.store.location import StoreLocation
from tests import endpoint
from tests.builders import tree
from tests.execution.loopback.team import SECONDS, Team, team_at, wait_until

pytestmark = pytest.mark.extended

LAUNCH = ("--executor", "processes", "--workers", "2", "-j", "2")
ROWS = 60
CANDIDATE, JUDGE = "one", "two"


@pytest.fixture
def team(tmp_path: Path, location: StoreLocation) -> Iterator[Team]:
    """A workspace with a candidate and a judge, and a store in each database."""
    with team_at(tmp_path / "w", location) as made:
        model = (made.root / f"models/{CANDIDATE}.yaml").read_text(encoding="utf-8")
        tree(
            made.root,
            {
                "evalstore.yaml": f"candidates: [{CANDIDATE}]\nevaluators: [{JUDGE}]\n",
                f"models/{JUDGE}.yaml": model.replace(f"id: {CANDIDATE}", f"id: {JUDGE}"),
            },
        )
        made.write(ROWS, below="It must be warm.\n")
        yield made
    with closing(Store.open(location)) as store:
        assert check_store(store)[1] == []


def refusing(model: str, opened: threading.Event) -> endpoint.Reply:
    """All calls are held until then; those of a model are errors that are not tried again."""

    def reply(request: dict[str, Any]) -> str | endpoint.Answer:
        assert opened.wait(SECONDS)
        if request["model"] == model:
            return endpoint.Answer(400, {"error": {"message": "no"}})
        return "Lima"

    return reply


def all_are_at_work(team: Team) -> bool:
    runners = team.runners()
    return len(runners) == 3 and all(runner.leases for runner in runners)


@pytest.mark.parametrize("model", [CANDIDATE, JUDGE])
@pytest.mark.parametrize("earlier", [False, True], ids=["new", "failed in an earlier run"])
def test_a_call_that_fails_is_made_once_by_all_runners(
    team: Team, model: str, *, earlier: bool
) -> None:
    opened = threading.Event()
    team.server.reply = refusing(model, opened)
    if earlier:
        opened.set()
        team.run()
        opened.clear()
        team.server.received.clear()
    process = team.start("run", "--json", *LAUNCH)
    wait_until(lambda: all_are_at_work(team))
    opened.set()
    out, err = process.communicate(timeout=SECONDS)
    assert err == ""
    assert json.loads(out)["failed"] == ROWS
    made = [received for received in team.server.received if received.body["model"] == model]
    assert len(made) == ROWS
