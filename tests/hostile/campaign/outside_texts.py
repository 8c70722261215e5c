"""Attack: what comes from outside the workspace: keys in answers, and names of any bytes.

A key of the environment or of `.env` that an answer repeats leaves the machine through no door.
A name in git's files ends no command, whatever its bytes are, and starts no program.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.builders import tree
from tests.hostile.campaign.trial import Attack, Trial

NAMES_OF_KEYS = (
    *("PGPASSWORD", "OPENAI_APIKEY", "GITLABTOKEN", "SSHKEY", "MYSQL_PWD", "CI_JOB_JWT", "API_KEY"),
    *("DB_PASSWD", "CLIENT_SECRET", "MY_CREDENTIALS", "passphrase", "KEYS", "X_TOKEN_2"),
)
OTHER_NAMES = ("DATABASE_URL", "REDIS", "BROKER", "HTTPS_PROXY_OF_OURS")
LETTERS = "abcdefghijkmnpqrstuvwxyz"
DOORS = (("push",), ("push", "../secret.bundle"))
SETTINGS = {"candidates": ["one"], "remotes": {"origin": {"address": "../team"}}}
TEST = "# 👤\n\nHow is it?\n\n---\n\n~~~checks\n- notEmpty\n~~~\n"
ENDS = frozenset({0, 1, 2, 3, 6})


def attempt(trial: Trial) -> None:
    """Either kind."""
    name = trial.name if trial.name in KINDS else trial.chance.choice(tuple(KINDS))
    KINDS[name](trial)


def _leak(trial: Trial) -> None:
    """Let an answer repeat a key, and look for it behind each door."""
    chance = trial.chance
    word = "".join(chance.choices(LETTERS, k=chance.randint(7, 30)))
    secret = f"{chance.randrange(10)}{word}"
    place = chance.choice(("environment", "file", "url"))
    environment, file = {}, ""
    if place == "environment":
        environment[chance.choice(NAMES_OF_KEYS)] = secret
    elif place == "file":
        file = f"{chance.choice((*NAMES_OF_KEYS, *OTHER_NAMES))}={secret}\n"
    else:
        environment[chance.choice(OTHER_NAMES)] = f"scheme://user:{secret}@host:1/x"
    desk = _desk(trial, f"It is {secret}.", file)
    order: dict[str, Any] = {"folder": desk, "environment": environment, "limit": 30}
    trial.run("run", "--fail-on", "none", "-q", allowed=ENDS, **order)
    for door in DOORS:
        trial.run("--allow-outside", *door, allowed=ENDS - {0}, **order)
    team = [path for path in (desk.parent / "team").rglob("*") if path.suffix in (".pack", ".idx")]
    if team or (desk.parent / "secret.bundle").exists():
        trial.note("a key has left the machine", f"{place} {environment} {file}")
    trial.figures["keys"] += 1


def _name(trial: Trial) -> None:
    """Give the user a name of random bytes, an `[include]` of a pipe, and a `git` of others."""
    chance = trial.chance
    desk = _desk(trial, "Fine.", "")
    name = chance.randbytes(chance.randint(1, 40)).replace(b"\n", b" ")
    config = b"[include]\n\tpath = pipe\n[user]\n\tname = " + name + b"\n"
    tree(desk, {".git/HEAD": "ref: refs/heads/main\n", ".git/refs/.k": "", ".git/objects/.k": ""})
    os.mkfifo(desk / ".git/pipe")
    where = chance.choice((desk / ".git/config", trial.folder / "home/.gitconfig"))
    where.write_bytes(config)
    stub = desk / "git"
    stub.write_text(f"#!/bin/sh\ntouch {trial.ran}/git\n", "utf-8")
    stub.chmod(0o755)
    environment = {"PATH": f".:{os.environ.get('PATH', '/usr/bin:/bin')}"}
    for argv in (
        ("run", "--fail-on", "none", "-q"),
        ("label", "tests/t.md", "fail"),
        *DOORS,
        ("log",),
        ("fsck",),
    ):
        trial.run(
            *("--allow-outside", *argv),
            folder=desk,
            environment=environment,
            allowed={0},
            limit=30,
        )
    trial.figures["names"] += 1


def _desk(trial: Trial, answer: str, env: str) -> Path:
    model = {"id": "one", "provider": "scripted", "responses": [{"answer": answer}]}
    files = {
        "evalstore.yaml": json.dumps(SETTINGS),
        "models/one.yaml": json.dumps(model),
        "tests/t.md": TEST,
        **({".env": env} if env else {}),
    }
    (trial.workspace / "team").mkdir()
    return tree(trial.workspace / "desk", files)


KINDS: dict[str, Callable[[Trial], None]] = {"key": _leak, "name": _name}

ATTACK = Attack(
    "outside",
    "keys in answers, and names of any bytes",
    attempt,
    share=0.5,
    names=tuple(KINDS),
)
