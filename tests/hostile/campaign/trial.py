"""One attack on one workspace: its folder, its server, and what was found to be wrong."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tests import endpoint
from tests.builders import tree
from tests.hostile.campaign import oracles
from tests.hostile.campaign.oracles import DOCUMENTED, Wrong
from tests.hostile.campaign.processes import (
    ADDRESS_SPACE,
    LARGEST_FILE,
    ROOT,
    Ended,
    Launcher,
    Order,
    Running,
)
from tests.hostile.databases import STORE, tables_with

KEY_VARIABLE = "CAMPAIGN_KEY"
"""The variable of the key that workspaces here have in their `.env`."""
OTHER_VARIABLE = "UNRELATED_SECRET"
"""A variable with a secret that no workspace has anything to do with."""


@dataclass
class Trial:
    """One attack while it is carried out."""

    name: str
    """Of a hand-written case; `random` for one that is drawn."""
    chance: random.Random
    folder: Path
    server: endpoint.Endpoint
    launcher: Launcher
    patience: float = 1
    """How many times longer than usual everything may take."""
    is_short: bool = False
    """Whether less is tried than usual."""
    store: str | None = None
    """The address of the store on a server; None for a file in the workspace."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """How the programs divide their work."""
    wrong: list[Wrong] = field(default_factory=list)
    figures: Counter[str] = field(default_factory=Counter)
    commands: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.marker = f"canary-{self.chance.getrandbits(64):016x}"
        self.key = f"key-{self.chance.getrandbits(64):016x}"
        self.workspace, self.outside = self.folder / "workspace", self.folder / "outside"
        self.ran = self.folder / "ran"
        for path in (self.workspace, self.ran, self.folder / "home", self.folder / "streams"):
            path.mkdir(parents=True)
        tree(self.outside, canaries(self.marker))
        self._before = oracles.fingerprint(self.outside)

    # --- what an attack does

    def start(
        self,
        *argv: str,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        limits: Mapping[str, int] | None = None,
        streams: Mapping[int, str | None] | None = None,
        **order: Any,
    ) -> Running:
        """Start evalstore in the workspace."""
        number = len(self.commands)
        self.commands.append(" ".join(order.get("execute", ("evalstore",))) + " " + " ".join(argv))
        usual = {0: "/dev/null"} | {
            descriptor: str(self.folder / "streams" / f"{number}.{name}")
            for descriptor, name in ((1, "out"), (2, "err"))
        }
        return self.launcher.start(
            Order(
                argv,
                str(folder or self.workspace),
                self._environment() | dict(environment or {}),
                {**usual, **(streams or {})},
                {"AS": ADDRESS_SPACE, "FSIZE": LARGEST_FILE, "CORE": 0} | dict(limits or {}),
                sizes=self.sizes,
                **order,
            )
        )

    def finish(
        self,
        running: Running,
        *,
        allowed: Collection[int] = DOCUMENTED,
        limit: float = oracles.LONGEST,
    ) -> Ended:
        """Wait for a program, and judge how it ended."""
        ended = running.wait(oracles.WAITED * limit * self.patience, self.patience)
        self.figures["programs"] += 1
        self.report(oracles.judge_end(ended, allowed=allowed, patience=self.patience))
        if any(secret in ended.stdout + ended.stderr for secret in self._secrets):
            self.note("a secret is shown", " ".join(ended.argv))
        return ended

    def run(
        self,
        *argv: str,
        allowed: Collection[int] = DOCUMENTED,
        limit: float = oracles.LONGEST,
        **order: Any,
    ) -> Ended:
        """Run evalstore in the workspace to its end, and judge how it ended."""
        return self.finish(self.start(*argv, **order), allowed=allowed, limit=limit)

    def document(self, *argv: str, **order: Any) -> dict[str, Any]:
        """What a command prints with `--json`; empty when it prints no document."""
        ended = self.run(*argv, "--json", **order)
        try:
            actual = json.loads(ended.stdout)
        except ValueError:
            actual = None
        if not isinstance(actual, dict):
            if ended.code in (0, 1, 3):
                self.note("prints no document", f"{' '.join(argv)}: {ended.stdout[:200]}")
            return {}
        return actual

    def note(self, description: str, detail: str = "") -> None:
        """Note that something is wrong."""
        self.wrong.append(Wrong(description, detail))

    def report(self, wrong: Iterable[Wrong]) -> None:
        """Note all that is wrong."""
        self.wrong += wrong

    # --- what holds in the end

    def judge_surroundings(self) -> None:
        """Find what was changed, shown or started outside the workspace."""
        changed = oracles.differences(self._before, oracles.fingerprint(self.outside))
        if changed:
            self.note("changes files outside the workspace", ", ".join(changed[:5]))
        if names := sorted(path.name for path in self.ran.iterdir()):
            self.note("runs what the workspace says", ", ".join(names))
        known = {"workspace", "outside", "ran", "home", "streams"}
        if strange := sorted({path.name for path in self.folder.iterdir()} - known):
            self.note("makes files outside the workspace", ", ".join(strange))
        for received in self.server.received:
            if self.marker in json.dumps([received.path, received.body, dict(received.headers)]):
                self.note("sends what is outside the workspace", received.path)
                break
        folder = self.workspace / ".evalstore"
        stored = [] if folder.is_symlink() else folder.rglob("*")
        secrets = [secret.encode() for secret in self._secrets]
        holding = [path.name for path in stored if oracles.holds(path, secrets)]
        if self.store:
            holding += [
                table for secret in self._secrets for table in tables_with(secret, self.store)
            ]
        if holding:
            self.note("stores a secret", ", ".join(holding))

    @property
    def _secrets(self) -> tuple[str, str]:
        return self.marker, self.key

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": str(self.folder / "home"),
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(ROOT),
            "GIT_CEILING_DIRECTORIES": str(self.folder),
            OTHER_VARIABLE: self.marker,
            **({STORE: self.store} if self.store else {}),
        }


def canaries(marker: str) -> dict[str, str]:
    """Files outside the workspace that would be of use in it, each with a marker."""
    return {
        "secret.txt": f"{marker}\n",
        "secret.md": f"# 👤\n\n{marker}\n\n---\n\n~~~checks\n- contains: a\n~~~\n",
        "secret.yaml": f"id: secret\n{marker}: [}}\n",
        "secret.json": json.dumps([{"q": marker, "answer": marker}]),
        "secret.jsonl": json.dumps({"q": marker, "input": marker, "ideal": marker}) + "\n",
        "tests/secret.md": f"# 👤\n\n{marker}\n\n---\n\n~~~checks\n- contains: a\n~~~\n",
    }


class Attack(NamedTuple):
    """A kind of attack: hand-written cases first, and then as many as are drawn."""

    name: str
    description: str
    attempt: Callable[[Trial], None]
    share: float = 1
    """Of the time, against those of the others."""
    names: tuple[str, ...] = ()
    """Of the hand-written cases."""
    is_for_servers: bool = False
    """Whether it can be carried out with a store on a server, too."""
