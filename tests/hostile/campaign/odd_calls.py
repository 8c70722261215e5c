"""Attack: odd arguments, streams, folders and limits."""

from __future__ import annotations

import shlex
import sys
from random import Random

from tests.builders import tree
from tests.hostile.campaign import generate, stores
from tests.hostile.campaign.processes import Ended
from tests.hostile.campaign.trial import Attack, Trial
from tests.hostile.campaign.workspaces import write_example

PROGRAM = f"{shlex.quote(sys.executable)} -m evalstore"
SCRIPTS = {
    "closed-stdin": "{program} run --fail-on none <&-",
    "closed-stdout": "{program} run --fail-on none >&-",
    "closed-stderr": "{program} run --fail-on none 2>&-",
    "closed-all": "{program} run --fail-on none <&- >&- 2>&-",
    "full-stdout": "{program} run --fail-on none > /dev/full",
    "full-stderr": "{program} run --fail-on none 2> /dev/full",
    "full-status": "{program} status > /dev/full",
    "full-json": "{program} ls cases --json > /dev/full",
    "no-reader": "{program} ls cases --full --json | true",
    "deleted-folder": "mkdir gone && cd gone && rmdir ../gone && {program} status",
    "no-home": "HOME=/nonexistent {program} run --fail-on none",
    "no-environment": "env -i {program} run --fail-on none",
    "no-path": "PATH= {program} run --fail-on none",
    "plain-ascii": "LC_ALL=C PYTHONUTF8=0 PYTHONIOENCODING=ascii {program} run --fail-on none",
    "odd-variables": "COLUMNS=-1 LINES=x NO_COLOR=1 TERM=nope TZ=nowhere {program} status",
    "odd-columns": "COLUMNS=99999999 {program} status --explain",
}
"""Lines of a shell in the workspace."""
ALLOWED = {0, 1, 2, 3, 5, 6}
OF_SCRIPTS = {0, 2, 3, 5, 6}
"""Not 1, which is for tests that fail: `run` is told not to mind these."""
LONG = "a" * 5000
CALLS: dict[str, tuple[str, ...]] = {
    "long-diff": ("diff", LONG),
    "long-log": ("log", LONG),
    "long-show": ("show", LONG),
    "raw-byte-log": ("log", "\udc80.md"),
    "raw-byte-label": (
        *("label", "tests/availability.md::bike=cargo bike", "pass"),
        *("--as", "\udc80", "--model", "scripted/careful"),
    ),
    "raw-byte-grep": ("grep", "\udc80"),
    "long-store": ("status", "--store", LONG),
    "folder-as-store": ("status", "--store", "tests"),
    "nul-like": ("show", "@~99999999999999999999"),
    "large-limit": ("ls", "cases", "-k", "(" * 2000),
    "huge-number": ("log", "-n", "9" * 30),
}
LIMITS: dict[str, dict[str, int]] = {
    "files-of-150-kb": {"FSIZE": 150_000},
    "files-of-300-kb": {"FSIZE": 300_000},
    "sixteen-open-files": {"NOFILE": 16},
    "address-space-of-500-mb": {"AS": 500 << 20},
    "processor-time": {"CPU": 40},
    "no-processes": {"NPROC": 1},
}
CHECK = "def good(answer):\n    return True\n"
WITH_CHECK = "# 👤\n\nHi\n\n---\n\n~~~checks\n- python: {file: good.py, function: good}\n~~~\n"
COMMANDS = (
    *("run", "status", "diff", "log", "show", "grep", "label", "ls", "stats", "trust"),
    *("check", "fsck", "doctor", "init", "push", "pull"),
)
OPTIONS = (
    *(
        "--json",
        "--explain",
        "-n",
        "--judge-only",
        "--schema",
        "-k",
        "-t",
        "--limit",
        "--sample",
        "--shard",
        "--seed",
    ),
    *("--refresh", "--lf", "--max-age", "--threshold", "--max-cost", "--max-time", "-j", "-v"),
    *("--by", "--in", "--answers", "--stat", "--model", "--vs", "-C", "-c", "--store", "--"),
    *("-r", "--timeout", "--retries", "--fail-on", "--color", "--progress", "-m", "-J", "--as"),
)
VALUES = (
    *("@", "@~1", "@~99", "@{yesterday}", "0", "-1", "1e999", "nan", "1/0", "3/2", "pass", "'"),
    *("tests/price.md", "tests/price.md::1", "::", "/etc/passwd", "../outside", "*", "none", "1h"),
    *("not not", "(", "a or", "\udcff", "%", "_", "price" * 400, "2020-01-01", "A..B", ""),
)


def attempt(trial: Trial) -> None:
    """Call the program oddly, and look whether it still works afterwards."""
    write_example(trial)
    if trial.name in SCRIPTS:
        script = SCRIPTS[trial.name].format(program=PROGRAM)
        trial.run(execute=("/bin/sh", "-c", script), allowed=OF_SCRIPTS)
    elif trial.name in CALLS:
        trial.run("run", "--fail-on", "none", "--limit", "2")
        trial.run(*CALLS[trial.name])
    else:
        if trial.chance.random() < 0.5:
            trial.run("run", "--fail-on", "none", "--limit", "4")
        name = trial.name if trial.name in LIMITS else trial.chance.choice(sorted(LIMITS))
        if trial.name in LIMITS or trial.chance.random() < 0.2:
            _run_limited(trial, name)
        for _ in range(4 if trial.name == "random" else 0):
            _call(trial, trial.chance)
    if trial.run("fsck", allowed={0, 6} if not stores.is_there(trial) else {0}).code:
        trial.figures["without a store"] += 1


def _run_limited(trial: Trial, name: str) -> None:
    """Run under a limit, and then without: the second one must bring what is missing."""
    tree(trial.workspace, {"tests/good.py": CHECK, "tests/python.md": WITH_CHECK})
    model = "id: scripted/hasty\nprovider: scripted\nresponses: [{answer: Hello}]\n"
    tree(trial.workspace, {"models/hasty.yaml": model})
    trial.run("trust", "tests/good.py", allowed={0})
    first = _limited(trial, name)
    if first.code == 0:
        trial.figures["runs despite a limit"] += 1
    arguments = ("run", "--fail-on", "none", "--model", "scripted/hasty", "tests/python.md")
    report = trial.document(*arguments, limit=30, allowed={0, 1, 3})
    verdicts = [case["verdict"] for case in report.get("cases", [])]
    if verdicts != ["pass"]:
        trial.note("a limit is stored as a verdict", f"{name}: {verdicts}")


def _limited(trial: Trial, name: str) -> Ended:
    argv = ("run", "--fail-on", "none")
    execute = (sys.executable, "-m", "evalstore", *argv)
    codes = {0, 1, 3, 6}
    return trial.run(*argv, limits=LIMITS[name], execute=execute, limit=30, allowed=codes)


def _call(trial: Trial, chance: Random) -> None:
    argv = [chance.choice(COMMANDS)]
    if argv == ["trust"]:
        argv.append("--list")
    for _ in range(chance.randint(0, 4)):
        argv.append(chance.choice(OPTIONS if chance.random() < 0.5 else VALUES))
    if chance.random() < 0.1:
        text = str(generate.scalar(chance))
        argv.append(text.replace("\x00", "").encode("utf-8", "replace").decode())
    if "-C" in argv and "init" in argv:  # it may make files wherever -C points
        return
    trial.run(*argv, limit=20, allowed={*ALLOWED, 4})


ATTACK = Attack(
    "calls",
    "odd arguments, streams, folders and limits",
    attempt,
    names=(*SCRIPTS, *CALLS, *LIMITS),
    is_for_servers=True,
)
