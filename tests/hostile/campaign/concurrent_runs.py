"""Attack: several runs of one store at once, stopped, killed, or with other clocks."""

from __future__ import annotations

import signal
import time
from typing import Any

from tests.builders import tree
from tests.hostile.campaign import stores
from tests.hostile.campaign.judge_model import verdict
from tests.hostile.campaign.trial import Attack, Trial
from tests.hostile.campaign.workspaces import loopback, numbered

QUESTIONS = 24
AT_ONCE = 4
LONG = 130
"""Seconds after which the others take a runner for dead."""
CLOCKS = (0, 0, 400 * 86_400, -4000 * 86_400, 30_000 * 86_400)
"""Seconds by which a runner's clock may be ahead."""


def attempt(trial: Trial) -> None:
    """Start several runs of one workspace, and count what was paid."""
    chance = trial.chance

    def reply(body: dict[str, Any]) -> str:
        trial.server.closing.wait(0.02)
        if body["model"] == "judge":
            return verdict(body, True)
        return f"Answer to {body['messages'][-1]['content']}"

    trial.server.reply = reply
    files = {**loopback(trial, concurrency=AT_ONCE, timeout=60), **numbered(QUESTIONS)}
    tree(trial.workspace, files)
    if chance.random() < 0.5:
        trial.run("init", allowed={0})
    clocks = [
        chance.choice(CLOCKS) if trial.name in ("clocks", "random") else 0
        for _ in range(chance.randint(2, 4))
    ]
    running = []
    for clock in clocks:
        running.append(trial.start("run", "--json", clock=clock))
        running[-1].has_ended(chance.choice((0, 0, 0.1, 0.3)))
    hurt = trial.name if trial.name != "random" else chance.choice(("", "stopped", "killed"))
    if hurt.startswith("stopped"):
        running[0].send(signal.SIGSTOP)
        # It is paused for so long; there is nothing to wait for.
        time.sleep(chance.uniform(0.5, 2) if hurt == "stopped" else LONG)
        running[0].send(signal.SIGCONT)
    elif hurt == "killed":
        running[1].has_ended(chance.uniform(0, 0.3))
        running[0].send(signal.SIGKILL)
    for number, item in enumerate(running):
        codes = {0, 3}
        if hurt == "killed" and number == 0:
            codes.add(-signal.SIGKILL)
        if hurt == "stopped-long":  # the store is locked for good if it was stopped while writing
            codes.add(6)
        trial.finish(item, allowed=codes, limit=60)
    trial.figures["runners"] += len(running)
    report = trial.document("run", limit=60, allowed={0})
    paid = len(trial.server.received) - 2 * QUESTIONS
    # The others ask again what one that is dead, or taken for dead, had asked both models.
    if paid > (2 * AT_ONCE if hurt in ("killed", "stopped-long") else 0):
        trial.note("calls are paid twice", f"{paid} of {2 * QUESTIONS}, {hurt or 'nobody hurt'}")
    more = len(stores.rows(trial, "sessions", "evaluations")) - 2 * QUESTIONS
    if not 0 <= more <= (paid if hurt == "stopped-long" else 0):  # it stores them when it wakes
        trial.note("results are missing or too many")
    if report.get("status") != "complete" or trial.document("status").get("items"):
        trial.note("the plan is not empty in the end")
    if hurt != "killed" and stores.all_rows(trial, *stores.PASSING):
        trial.note("leases are left")
    if (ended := trial.run("fsck")).code:
        trial.note("fsck finds problems", ended.stdout[:300])


ATTACK = Attack(
    "runners",
    "several runs at once, stopped, killed, with other clocks",
    attempt,
    names=("stopped", "killed", "clocks", "stopped-long"),
    is_for_servers=True,
)
