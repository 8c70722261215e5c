"""Measures what the plug-in adds to a session of pytest when there is nothing to ask or judge."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from benches import workspaces
from benches.measure import compare, program, run
from benches.table import Figure, figure
from benches.workspaces import ROWS

if TYPE_CHECKING:
    from pathlib import Path

    from benches.benches import Setting

_CASES = 1_000
_SECONDS = 1
_FLOOR = """\
import pytest

@pytest.mark.parametrize("number", range({count}))
def test_nothing(number):
    pass
"""


def pytest_sessions(setting: Setting) -> Iterator[Figure]:
    """Run a session with one test, with many, and with one and many cases."""
    root = setting.folder / "pytest"
    workspaces.make_workspace(root / "evals", _CASES // ROWS)
    for _ in range(2):  # the second run has nothing to do
        run(program(root / "evals", "run"))
        workspaces.settle()
    (root / "pytest.ini").write_text("[pytest]\nevalstore_workspace = evals\ntestpaths = one\n")
    for name, count in (("one", 1), ("many", _CASES)):
        (root / name).mkdir()
        (root / name / "test_it.py").write_text(_FLOOR.format(count=count), encoding="utf-8")
    alone, tests, cases = compare(
        [_session(root), _session(root, str(root / "many")), _session(root, "--evalstore")],
        setting.times,
    )
    title = f"{_CASES:,} cases, nothing to do: adds"
    yield figure("pytest", title, cases.cpu - alone.cpu, "s", most=_SECONDS)
    yield figure(
        "pytest",
        f"{title}, beside as many empty tests",
        cases.cpu - alone.cpu,
        "s",
        floor=tests.cpu - alone.cpu,
    )


def _session(root: Path, *arguments: str) -> list[str]:
    """Return the command of a session with no other plug-in than that of evalstore."""
    start = [
        "env",
        "-C",
        str(root),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD=1",
        sys.executable,
        "-m",
        "pytest",
    ]
    options = ["-p", "evalstore.interfaces.pytest_plugin", "-p", "no:cacheprovider", "-q"]
    return [*start, *options, *arguments]
