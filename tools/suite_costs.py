"""What the tests cost: CPU seconds of each, with those of all programs that it has started.

`python -m pytest -p tools.suite_costs --costs=FILE` adds a line for each test to the file, and
`python -m tools.suite_costs FILE` sums them up; with `--extended SECONDS` it prints what
`tests/extended.txt` should list: the tests that take longer than that, and were not listed
because they were not run. Seconds of a shared program, such as a database server, belong to the
test that ran while they passed.
"""

from __future__ import annotations

import argparse
import ast
import ctypes
import os
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).parents[1]
EXTENDED = ROOT / "tests/extended.txt"
"""Tests and files with tests that `make test` leaves out."""
_TICKS = os.sysconf("SC_CLK_TCK")
_ADOPT = 36
"""`PR_SET_CHILD_SUBREAPER`: servers that leave their parents stay children of this process."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the file."""
    parser.addoption("--costs", metavar="FILE", help="add the CPU seconds of each test to a file")


def pytest_configure(config: pytest.Config) -> None:
    """Measure when a file is named, in the process that runs tests."""
    named = config.getoption("costs")
    if named and (hasattr(config, "workerinput") or not config.getoption("numprocesses", None)):
        ctypes.CDLL(None).prctl(_ADOPT, 1, 0, 0, 0)
        config.pluginmanager.register(_Costs(Path(config.invocation_params.dir) / named))


class _Costs:
    """Writes down what has passed since the test before."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._before = 0.0
        self._of_measuring = 0.0

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._note("collecting")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown":
            self._note(report.nodeid)

    def _note(self, name: str) -> None:
        began = time.thread_time()
        now = _cpu_seconds() - self._of_measuring
        self._of_measuring += time.thread_time() - began
        with self._path.open("a", encoding="utf-8") as out:
            out.write(f"{now - self._before:.3f}\t{name}\n")
        self._before = now


def _cpu_seconds() -> float:
    """Seconds of this process, of those that have ended, and of those that it has now."""
    own = os.times()
    return (
        own.user
        + own.system
        + sum(_ticks(pid) for pid in _descendants(os.getpid())) / _TICKS
        + (own.children_user + own.children_system)
    )


def _descendants(pid: int) -> Iterator[int]:
    for task in _list(Path(f"/proc/{pid}/task")):
        try:
            children = (task / "children").read_text().split()
        except OSError:
            continue
        for child in map(int, children):
            yield child
            yield from _descendants(child)


def _list(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _ticks(pid: int) -> int:
    """Ticks of a process and of its children that have ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return sum(int(field) for field in fields[11:15])


def find_extended(costs: Iterable[tuple[str, float]], seconds: float) -> list[str]:
    """The tests whose cases take more seconds in the mean, or the file when all of its tests do.

    What is listed and has no cost stays. Cases in PostgreSQL are left out in any case.
    """
    taken: dict[str, list[float]] = defaultdict(list)
    for name, cost in costs:
        if "::" in name and "postgresql" not in name.partition("[")[2]:
            taken[name.split("[")[0].split("@")[0]].append(cost)
    listed = set(EXTENDED.read_text(encoding="utf-8").split()) if EXTENDED.exists() else set()
    dear = {name for name in taken if sum(taken[name]) / len(taken[name]) > seconds}
    dear |= {line for line in listed if line not in taken and "::" in line}
    dear = {
        name for name in dear if name.split("::")[1] in everyday_tests(ROOT / name.split("::")[0])
    }
    files = {line for line in listed if not any(name.startswith(f"{line}::") for name in taken)}
    for path in {name.split("::")[0] for name in dear}:
        if everyday_tests(ROOT / path) <= {name.split("::")[1] for name in dear if path in name}:
            files.add(path)
    files = {path for path in files if "::" not in path}
    inside = tuple(f"{path}{end}" for path in files for end in ("/", "::"))
    return sorted(line for line in files | dear if not line.startswith(inside))


@cache
def everyday_tests(path: Path) -> set[str]:
    """The names of the tests of a file that no mark leaves out."""
    found: set[str] = set()
    if not path.exists():
        return found
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
            if "mark.extended" in ast.unparse(node.value):
                return set()
        elif isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            marks = " ".join(map(ast.unparse, node.decorator_list))
            if "mark.extended" not in marks and "mark.slow" not in marks:
                found.add(node.name)
    return found


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{text}\n")


def main() -> None:
    """Print the dearest files and tests."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("costs", type=Path, nargs="+")
    parser.add_argument("--first", type=int, default=40, help="so many of each")
    parser.add_argument("--extended", type=float, metavar="SECONDS", help="list dearer tests")
    given = parser.parse_args()
    tests: dict[str, float] = defaultdict(float)
    files: dict[str, float] = defaultdict(float)
    counts: Counter[str] = Counter()
    lines = [line for path in given.costs for line in path.read_text("utf-8").splitlines()]
    for line in lines:
        seconds, _, name = line.partition("\t")
        tests[name] += float(seconds)
        files[name.split("::")[0]] += float(seconds)
        counts[name.split("::")[0]] += 1
    if given.extended:
        say("\n".join(find_extended(tests.items(), given.extended)))
        return
    say(f"{sum(tests.values()):.0f} s of {len(tests)} tests")
    for title, sums in (("files", files), ("tests", tests)):
        say(f"\n{title}")
        for name, total in sorted(sums.items(), key=lambda item: -item[1])[: given.first]:
            number = f" ({counts[name]})" if title == "files" else ""
            say(f"{total:8.1f}  {name}{number}")


if __name__ == "__main__":
    main()
