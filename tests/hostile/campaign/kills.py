"""Attack: commands that are killed or interrupted at a random moment."""

from __future__ import annotations

import json
import re
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from evalstore.core.errors import OK, USAGE
from tests.builders import tree
from tests.hostile.campaign import oracles, stores
from tests.hostile.campaign.import_sources import INSTANCE, LVE
from tests.hostile.campaign.judge_model import verdict
from tests.hostile.campaign.trial import Attack, Trial
from tests.hostile.campaign.workspaces import example_files, loopback, numbered, write_example

QUESTIONS = 24
AT_ONCE = 4
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM)
INTERRUPTED = "-interrupted"
"""The end of the names of the cases in which the signal is SIGINT."""
_OURS = re.compile(r"evalstore/(?:__main__|cli)\b")
DEATHS = {-signal.SIGKILL, -signal.SIGTERM, 130}
"""How a program may end that was sent a signal."""
ENDS = {0, 1, 3} | DEATHS
RESULTS = ("sessions", "evaluations")


Signals = Sequence[signal.Signals]


def attempt(trial: Trial) -> None:
    """Kill one command, look at what it left, and let it run again to its end."""
    names = [name for name in NAMES if not (trial.store and name.startswith(OF_FILES))]
    name = trial.name if trial.name in names else trial.chance.choice(names)
    signals = (signal.SIGINT,) if name.endswith(INTERRUPTED) else SIGNALS
    COMMANDS[name.removesuffix(INTERRUPTED)](trial, signals)
    _check_store(trial)


def _kill(
    trial: Trial,
    signals: Signals,
    *argv: str,
    window: float,
    at_call: int | None = None,
    module: str = "evalstore.interfaces.cli.main",
) -> signal.Signals:
    """Start a command and send it a signal: within so many seconds, or after so many calls."""
    chance = trial.chance
    number = chance.choice(signals)
    received = len(trial.server.received)
    starts_anew = at_call is None and chance.random() < 0.3
    execute = (sys.executable, "-m", "evalstore", *argv) if starts_anew else ()
    running = trial.start(*argv, execute=execute, module=module)
    if at_call is not None:
        while len(trial.server.received) < received + at_call:
            if running.has_ended(0.002):
                break
    running.has_ended(chance.uniform(0, window * (3 if starts_anew else 1)))
    running.send(number)
    known = len(trial.wrong)
    ended = trial.finish(running, allowed=ENDS)
    if starts_anew and number == signal.SIGINT and not _OURS.search(ended.stderr):
        del trial.wrong[known:]  # Python itself was not ready to hear it
    trial.figures["kills"] += 1
    return number


def _check_store(trial: Trial) -> None:
    if stores.is_there(trial) and (ended := trial.run("fsck")).code:
        trial.note("fsck finds problems", ended.stdout[:300])


def _run(trial: Trial, signals: Signals, *, judge_only: bool = False) -> None:
    """Kill `run` or `judge` several times, then let it finish."""

    def reply(body: dict[str, Any]) -> str:
        trial.server.closing.wait(0.01)
        if body["model"] != "candidate":
            return verdict(body, True)
        return f"Answer to {body['messages'][-1]['content']}"

    trial.server.reply = reply
    files = {**loopback(trial, concurrency=AT_ONCE, timeout=60), **numbered(QUESTIONS)}
    tree(trial.workspace, files)
    total, command = 2 * QUESTIONS, ["run"]
    if judge_only:
        other = json.dumps({**json.loads(files["evalstore.yaml"]), "evaluators": ["other"]})
        (trial.workspace / "other.yaml").write_text(other)
        tree(
            trial.workspace,
            {"models/other.yaml": files["models/judge.yaml"].replace("judge", "other")},
        )
        trial.run("run", "-c", "other.yaml", allowed={0, 3})
        total, command = QUESTIONS, ["run", "--judge-only"]
    begun, in_flight, before = len(trial.server.received), 0, stores.rows(trial, *RESULTS)
    first = len(before)
    for _ in range(trial.chance.randint(1, 3)):
        calls = len(trial.server.received)
        at_call = trial.chance.choice((None, trial.chance.randint(1, total)))
        number = _kill(
            trial, signals, *command, window=0.4 if at_call is None else 0.03, at_call=at_call
        )
        after = stores.rows(trial, *RESULTS)
        if not before.items() <= after.items():
            trial.note("stored rows have vanished")
        lost = len(trial.server.received) - calls - (len(after) - len(before))
        if lost > (0 if number == signal.SIGINT else AT_ONCE):
            trial.note("more calls are lost than were in flight", f"{number.name}: {lost}")
        in_flight, before = in_flight + max(0, lost), after
        _check_store(trial)
    trial.figures["calls lost"] += in_flight
    report = trial.document(*command, limit=30)
    if report.get("status") != "complete":
        trial.note("does not finish after a kill", str(report.get("status")))
    if len(stores.rows(trial, *RESULTS)) != first + total:
        trial.note("results are missing or too many after a kill")
    if len(trial.server.received) - begun > total + in_flight:
        trial.note("calls are paid twice", f"{len(trial.server.received) - begun} of {total}")
    if trial.document("status").get("items"):
        trial.note("the plan is not empty in the end")


def _judge(trial: Trial, signals: Signals) -> None:
    _run(trial, signals, judge_only=True)


def _init(trial: Trial, signals: Signals) -> None:
    """Kill the first opening of a store."""
    write_example(trial)
    commands = (("init", "--example"), ("run" if trial.store else "status",))
    _kill(trial, signals, *trial.chance.choice(commands), window=0.3)
    trial.run("init", "--example", allowed={0})
    trial.run("run", "--fail-on", "none", allowed={0})


def _import(trial: Trial, signals: Signals) -> None:
    """Kill an import; what it wrote must be whole, and importing again must finish it."""
    places = [f"source/repository/trust/a/acme--m{number}" for number in range(30)]
    instances = "".join(
        json.dumps({**INSTANCE, "response": f"a{number}"}) + "\n" for number in range(20)
    )
    source = {
        name: text
        for place in places
        for name, text in (
            (f"{place}/test.json", json.dumps(LVE)),
            (f"{place}/instances/all.jsonl", instances),
        )
    }
    model = "id: dummy/dummy\nprovider: scripted\nresponses: [{answer: aaa}]\n"
    settings = {"evalstore.yaml": "candidates: []\n", "models/dummy.yaml": model}
    tree(trial.workspace, {**settings, **source})
    command = ("import", "lve", "source/repository", "--into", "lve")
    sessions = ("--sessions",) if trial.chance.random() < 0.5 else ()
    wall = trial.run(*command, allowed={0}).wall
    tests = trial.workspace / "tests"
    whole = oracles.fingerprint(tests)
    tests.rename(trial.workspace / "reference")
    _kill(trial, signals, *command, *sessions, window=wall)
    left = oracles.fingerprint(tests) if tests.exists() else {}
    broken = [name for name in left.keys() & whole.keys() if left[name] != whole[name]]
    if broken:
        trial.note("leaves files half written", ", ".join(broken))
    if trial.run(*command, *sessions).code != 0:
        trial.note("does not import what a killed import has left")
    if {name: oracles.fingerprint(tests).get(name) for name in whole} != whole:
        trial.note("an import that was killed is never complete")


def _label(trial: Trial, signals: Signals) -> None:
    """Kill `label`, and repeat it."""
    write_example(trial)
    trial.run("run", "--fail-on", "none", "--limit", "2")
    before = stores.rows(trial)
    case = trial.document("ls", "cases", "tests/availability.md")["cases"][0]["row"]
    words = ("fail", "--as", "me", "--model", "scripted/careful")
    command = ("label", f"tests/availability.md::{case}", *words)
    _kill(trial, signals, *command, window=0.15)
    if not before.items() <= stores.rows(trial).items():
        trial.note("stored rows have vanished")
    trial.run(*command, allowed={0})


def _migrate(trial: Trial, signals: Signals) -> None:
    """Kill the migration of an older store."""
    write_example(trial)
    trial.run("run", "--fail-on", "none", "--limit", "4")
    stores.make_older(trial)
    before = stores.rows(trial, *RESULTS, "tests", "nodes", "runs")
    _kill(trial, signals, "status", window=0.25)
    trial.run("status", allowed={0})
    if before != stores.rows(trial, *RESULTS, "tests", "nodes", "runs"):
        trial.note("a killed migration changes rows")
    strays = [path.name for path in stores.path_of(trial).parent.iterdir() if ".tmp" in path.name]
    if strays:
        trial.note("a killed migration leaves files for good", ", ".join(strays))


def _copy(trial: Trial, signals: Signals, name: str) -> None:
    """Kill a command that copies rows: what it leaves is sound, and once more completes it."""
    other = trial.workspace / "other"
    tree(other, example_files())
    trial.run("run", "--fail-on", "none", "-q", folder=other)
    trial.run("push", "../all.bundle", folder=other, allowed={0})
    trial.run("remote", "add", "team", "../team", folder=other, allowed={0})
    trial.run("push", "team", "--allow-outside", folder=other, allowed={0})
    trial.run("init", "--bare", allowed={0})
    trial.run("remote", "add", "team", "team", allowed={0})
    whole = stores.all_rows(trial, path=other / ".evalstore/store.db")
    command = COPIES[name]
    if name == "bundle":
        trial.run(*COPIES["merge"], allowed={0})
    store = (
        trial.workspace / "copy" if name.startswith("clone") else trial.workspace
    ) / ".evalstore"
    for _ in range(trial.chance.randint(1, 4)):
        _kill(trial, signals, *command, window=0.3, module=SMALL_BATCHES)
        if (store / "store.db").exists() and (ended := trial.run("fsck", folder=store.parent)).code:
            trial.note("a killed copy leaves a damaged store", ended.stdout[:300])
        # A folder has its name when it is complete, and a second clone into it is refused.
        if is_made := name.startswith("clone") and store.parent.exists():
            break
    trial.run(*command, allowed={USAGE if is_made else OK})
    rows = stores.all_rows(trial, path=store / "store.db")
    lacking = [key for key in whole if key[0] not in LEFT and rows.get(key) != whole[key]]
    if lacking:
        trial.note("a copy that was killed is never complete", repr(lacking[:3]))
    if strays := [path.name for path in trial.workspace.iterdir() if ".tmp" in path.name]:
        trial.note("a killed copy leaves files for good", ", ".join(strays))


COPIES = {
    "merge": ("pull", "other/.evalstore/store.db"),
    "pull": ("pull", "team"),
    "unbundle": ("pull", "all.bundle"),
    "clone": ("clone", "team", "copy"),
    "clone-bundle": ("clone", "all.bundle", "copy"),
    "bundle": ("push", "made.bundle"),
}
"""Commands that copy rows."""
LEFT = ("failures", *stores.PASSING)
"""Tables that are not shared."""
SMALL_BATCHES = "tests.hostile.campaign.small_batches"

COMMANDS: dict[str, Callable[[Trial, Signals], None]] = {
    "run": _run,
    "judge": _judge,
    "init": _init,
    "import": _import,
    "label": _label,
    "migrate": _migrate,
    **{name: partial(_copy, name=name) for name in COPIES},
}

OF_FILES = ("migrate", *COPIES)
"""Those with a store in a file of their own."""
NAMES = (*COMMANDS, *(name + INTERRUPTED for name in COMMANDS))

ATTACK = Attack(
    "kills",
    "SIGKILL, SIGINT and SIGTERM at random moments",
    attempt,
    share=2,
    names=NAMES,
    is_for_servers=True,
)
