"""Measures whole runs against a loopback endpoint, beside minimal programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import count
from math import ceil
from typing import TYPE_CHECKING

from benches import endpoint, workspaces
from benches.measure import KIB, Cost, compare_once, program, repeat, run
from benches.table import Figure, figure

if TYPE_CHECKING:
    from pathlib import Path

    from benches.benches import Setting

_LATENCY = 0.05
_AT_ONCE = (32, 128)


def script(setting: Setting) -> Iterator[Figure]:
    """A whole run of small files, beside a script with a cache: first, again, and after an edit."""
    files = setting.sizes[0]
    root, store = setting.folder / "files", setting.folder / "script.db"
    with endpoint.running(0) as url:
        workspaces.make_files(root, files, url)
        ours = program(root, "run", "--quiet")
        module = [sys.executable, "-m", "benches.script_floor"]
        floor = [*module, str(root / "tests"), url, str(store)]
        editions = count(1)

        def forget() -> None:
            workspaces.forget(root)
            store.unlink(missing_ok=True)

        def edit() -> None:
            workspaces.edit_file(root, 0, next(editions))
            workspaces.settle()

        for title, prepare, times, most in (
            ("first", forget, setting.first_times, 3),
            ("again", None, setting.times, 2),
            ("one question edited", edit, setting.first_times, 2),
        ):
            costs = [compare_once([floor, ours], prepare) for _ in range(times)]
            least, cost = (
                sorted(each.cpu for each in side)[times // 2] for side in zip(*costs, strict=True)
            )
            yield figure("script", f"{files:,} files, {title}", cost, "s", floor=least, most=most)


def engine(setting: Setting) -> Iterator[Figure]:
    """Many questions with one message, each judged by one check."""
    memory: dict[int, int] = {}
    with endpoint.running(0) as fast, endpoint.running(_LATENCY) as slow:
        for url, latency in ((fast, 0.0), (slow, _LATENCY)):
            for questions in setting.loads:
                root = setting.folder / f"load-{questions}-{latency}"
                workspaces.make_load(root, questions, url)
                for at_once in _AT_ONCE:
                    load = Load(root, questions, latency, at_once)
                    yield from load.measure(url, setting)
                    memory[questions] = max(memory.get(questions, 0), load.memory)
        yield from _edit(setting)
        if setting.largest_load:
            root = setting.folder / "load-largest"
            workspaces.make_load(root, setting.largest_load, fast)
            run(program(root, "status", "--limit", "1"))
            memory[setting.largest_load] = run(_asking(root, _AT_ONCE[0])).memory
    small, large = sorted(memory)[-2:]
    yield figure(
        "engine",
        f"memory, {large:,} questions beside {small:,}",
        memory[large] / KIB**2,
        "MiB",
        floor=memory[small] / KIB**2,
        most=1.3,
    )


class Load:
    """A run of a number of questions, with a number of calls at once."""

    def __init__(self, root: Path, questions: int, latency: float, at_once: int) -> None:
        self.root = root
        self.questions = questions
        self.latency = latency
        self.at_once = at_once
        self.memory = 0

    def measure(self, url: str, setting: Setting) -> Iterator[Figure]:
        """CPU of each further question, beside the floor; with latency also the time.

        The time is compared with that of the floor, and with the ideal, in which as many calls
        as allowed are always in flight.
        """
        workspaces.forget(self.root)
        workspaces.write_question(self.root, "Rome")
        run(program(self.root, "status", "--limit", "1"))  # creates the store
        report = setting.folder / "report.json"
        cost = run(_asking(self.root, self.at_once), report)
        result = json.loads(report.read_text(encoding="utf-8"))
        if (result["asked"], result["verdicts"]["pass"]) != (self.questions, self.questions):
            raise RuntimeError(f"not all of {self.questions} questions were answered and passed")
        self.memory = cost.memory
        # The cost of asking one question is the cost of the start, for both.
        cities = (f"Turin {number}" for number in count())
        started = repeat(
            _asking(self.root, self.at_once),
            setting.first_times,
            lambda: workspaces.write_question(self.root, next(cities)),
        )
        floor = self._floor(url, setting, self.questions)
        floor_started = self._floor(url, setting, 1, setting.first_times)
        title = f"{self.questions:,} questions, {1000 * self.latency:.0f} ms, -j {self.at_once}"
        yield figure(
            "engine",
            f"{title}: CPU of each",
            self._each(cost.cpu - started.cpu),
            "ms",
            floor=self._each(floor.cpu - floor_started.cpu),
            most=3,
        )
        seconds = cost.wall - started.wall
        if self.latency:
            ideal = (ceil(self.questions / self.at_once) - 1) * self.latency
            least = floor.wall - floor_started.wall
            # With many calls at once the ideal is out of reach: one core has to send them all.
            yield figure(
                "engine", f"{title}: time", seconds, "s", floor=max(ideal, least), most=1.3
            )
            yield figure("engine", f"{title}: time, beside the ideal", seconds, "s", floor=ideal)
        setting.notes.append(
            f"engine: {title}: the whole run {cost.cpu:.2f} s CPU (floor {floor.cpu:.2f}), "
            f"{cost.wall:.2f} s (floor {floor.wall:.2f}), {cost.memory / KIB**2:.0f} MiB; "
            f"one more question {started.cpu:.2f} s CPU (floor {floor_started.cpu:.2f})"
        )

    def _each(self, seconds: float) -> float:
        return 1000 * seconds / (self.questions - 1)

    def _floor(self, url: str, setting: Setting, questions: int, times: int = 1) -> Cost:
        store = setting.folder / "floor.db"
        module = [sys.executable, "-m", "benches.floor"]
        command = [*module, url, str(questions), str(self.at_once), str(store)]
        return repeat(command, times, lambda: store.unlink(missing_ok=True))


def _asking(root: Path, at_once: int) -> list[str]:
    return program(root, "run", "--json", "-j", str(at_once))


def _edit(setting: Setting) -> Iterator[Figure]:
    """A run after an edit of one instruction: nothing is asked, one answer is judged."""
    questions = setting.loads[-1]
    root = setting.folder / f"load-{questions}-{0.0}"
    report = setting.folder / "report.json"
    workspaces.write_question(root, "Rome", "Expect a JSON object.")
    run(_asking(root, _AT_ONCE[0]))
    workspaces.write_question(root, "Rome", "Expect an object that passes.")
    cost = run(_asking(root, _AT_ONCE[0]), report)
    result = json.loads(report.read_text(encoding="utf-8"))
    yield figure("engine", "run after one edit: asked", result["asked"], "", most=0)
    yield figure("engine", "run after one edit: judged", result["judged"], "", most=1)
    yield figure("engine", f"run after one edit, {questions:,} questions", cost.wall, "s")
