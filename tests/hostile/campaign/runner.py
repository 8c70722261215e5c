"""Carries out attacks, one trial after the other, and keeps what is needed to repeat them."""

from __future__ import annotations

import random
import shutil
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests import endpoint, work_sizes
from tests.hostile.campaign.processes import Launcher
from tests.hostile.campaign.trial import Attack, Trial

KEPT = 3
"""Folders that are kept of one and the same finding."""


class Finding(NamedTuple):
    """Something wrong that a trial has found."""

    attack: str
    case: str
    number: int
    description: str
    detail: str
    times: int
    """In this trial."""
    folder: str = ""
    """Where everything is that led to it; empty when enough such folders are kept."""


@dataclass
class Result:
    """What became of one attack."""

    attack: Attack
    trials: int = 0
    seconds: float = 0
    figures: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)

    @property
    def due(self) -> float:
        """The smaller, the sooner it is tried again."""
        return self.seconds / self.attack.share


class Campaign:
    """All attacks of one seed."""

    def __init__(
        self,
        folder: Path,
        launcher: Launcher,
        seed: int,
        attacks: Iterable[Attack],
        *,
        patience: float = 1,
        is_short: bool = False,
        new_store: Callable[[], str] | None = None,
    ) -> None:
        """`new_store` returns the address of a new store on a server for each trial."""
        self.folder, self.launcher, self.seed = folder, launcher, seed
        self.patience, self.is_short = patience, is_short
        self.new_store = new_store
        self.results = [Result(attack) for attack in attacks]
        self._kept: Counter[tuple[str, str]] = Counter()

    def go_round(self, seconds: float) -> Iterator[Finding]:
        """Try all in turn, by their shares of the time, until it is up; what is found."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            result = min(self.results, key=lambda candidate: candidate.due)
            yield from self.attempt(result, result.trials)

    def go_through(self, case: str | None) -> Iterator[Finding]:
        """Try one case, by its number or its name, or all hand-written ones; what is found."""
        for result in self.results:
            names = result.attack.names
            numbers = [number for number, name in enumerate(names) if case in (None, name)]
            if case is not None and case.isdigit():
                numbers = [int(case)]
            for number in numbers:
                yield from self.attempt(result, number)

    def attempt(self, result: Result, number: int) -> list[Finding]:
        """Carry out one trial; its number and the seed decide everything in it."""
        attack = result.attack
        case = attack.names[number] if number < len(attack.names) else "random"
        folder = self.folder / "trials" / f"{attack.name}-{number}"
        shutil.rmtree(folder, ignore_errors=True)
        chance = random.Random(f"{self.seed}/{attack.name}/{number}")
        divided = random.Random(f"{self.seed}/{attack.name}/{number}/sizes")
        sizes = {**work_sizes.draw_trees(divided), **work_sizes.draw(divided)}
        began = time.monotonic()
        with endpoint.running() as server:
            store = self.new_store() if self.new_store else None
            trial = Trial(
                case,
                chance,
                folder,
                server,
                self.launcher,
                self.patience,
                self.is_short,
                store,
                sizes,
            )
            try:
                attack.attempt(trial)
                trial.judge_surroundings()
            except Exception:  # noqa: BLE001 - one broken trial must not end the others
                trial.note("the campaign itself fails", traceback.format_exc()[-1500:])
        result.trials += 1
        result.seconds += time.monotonic() - began
        result.figures += trial.figures
        findings = self._keep(trial, attack.name, number)
        result.findings += findings
        return findings

    def _keep(self, trial: Trial, attack: str, number: int) -> list[Finding]:
        """Keep the folder of a trial that found something; remove any other."""
        new = [wrong for wrong in trial.wrong if self._kept[attack, wrong.description] < KEPT]
        place = ""
        if new:
            self._kept.update({(attack, wrong.description) for wrong in trial.wrong})
            kept = self.folder / "findings" / f"{attack}-{number}"
            shutil.rmtree(kept, ignore_errors=True)
            kept.parent.mkdir(parents=True, exist_ok=True)
            trial.folder.rename(kept)
            place = str(kept)
            text = [f"{trial.name}, seed {self.seed}", *trial.commands]
            text += [f"\nevalstore.{name} = {size}" for name, size in trial.sizes.items()]
            text += [f"\n{wrong.description}\n{wrong.detail}" for wrong in trial.wrong]
            again = f"--only {attack} --seed {self.seed} --case {number}"
            again += " --postgresql" if self.new_store else ""
            text.append(f"\nagain: .venv/bin/python -m tests.hostile.campaign {again}\n")
            (kept / "README.txt").write_text("\n".join(text), "utf-8", "backslashreplace")
        shutil.rmtree(trial.folder, ignore_errors=True)
        details: dict[str, list[str]] = {}
        for description, detail in trial.wrong:
            details.setdefault(description, []).append(detail)
        return [
            Finding(attack, trial.name, number, description, item[0], len(item), place)
            for description, item in details.items()
        ]
