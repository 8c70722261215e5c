"""The plug-in for pytest: with `--evalstore`, the cases of a workspace are items of a session.

pytest loads this module in every session, so it imports nothing of evalstore until it is asked to.
"""

from __future__ import annotations

import sys
from argparse import ArgumentTypeError
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from evalstore.interfaces.api.workspace import CheckCounts

WORKSPACE = "evalstore_workspace"
"""The setting with the folder of the workspace, relative to the file with the setting."""
_COUNTS = "evalstore_checks"
"""The name under which a worker of pytest-xdist passes its counts of `evalstore.check`."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and the setting."""
    group = parser.getgroup("evalstore", "evaluation of language models")
    group.addoption(
        "--evalstore",
        action="store_true",
        help="also run the cases of the evalstore workspace; stored results are reused",
    )
    group.addoption(
        "--evalstore-workspace",
        metavar="DIR",
        help=f"the workspace, instead of the setting '{WORKSPACE}' and the current folder",
    )
    group.addoption(
        "--evalstore-max-cost",
        type=_read_usd,
        metavar="USD",
        help="stop calling models at this cost, and ask for no confirmation below it",
    )
    group.addoption(
        "--evalstore-offline",
        action="store_true",
        help="call no model that needs the network, and skip the cases that lack its answers",
    )
    parser.addini(WORKSPACE, "the folder of the evalstore workspace")


def _read_usd(text: str) -> float:
    """Return an amount of money; raises `ArgumentTypeError` for any other text."""
    try:
        usd = float(text)
    except ValueError:
        usd = -1.0
    if not 0 <= usd < float("inf"):
        raise ArgumentTypeError(f"'{text}' is not an amount in USD")
    return usd


def pytest_configure(config: pytest.Config) -> None:
    """Register the collection of cases if it is asked for."""
    config.addinivalue_line("markers", "evalstore: a case of an evalstore workspace")
    folder = find_workspace(config)
    if folder is not None:
        from evalstore.workspace.default_workspace import set_default_workspace

        set_default_workspace(folder)
    if config.getoption("evalstore"):
        from evalstore.interfaces.pytest_plugin.session import CaseSession

        config.pluginmanager.register(CaseSession(config, folder), "evalstore-cases")


def pytest_unconfigure() -> None:
    """Forget the workspace, as other sessions may follow in this process."""
    if module := sys.modules.get("evalstore.workspace.default_workspace"):
        module.set_default_workspace(None)


def find_workspace(config: pytest.Config) -> Path | None:
    """Return the folder of the workspace; None if no option and no setting names one."""
    option = config.getoption("evalstore_workspace")
    if option:
        return Path(config.invocation_params.dir, option)
    setting = config.getini(WORKSPACE)
    base = config.inipath.parent if config.inipath else config.rootpath
    return base / setting if setting else None


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Pass the counts of `evalstore.check` from a worker of pytest-xdist to its controller."""
    counts = _find_counts()
    output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if output is not None and counts is not None:
        output[_COUNTS] = [counts.checks, counts.judged, counts.usd]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add up the counts of the workers."""
    counted = getattr(node, "workeroutput", {}).get(_COUNTS)
    if counted:
        from evalstore.interfaces.api.workspace import COUNTS

        COUNTS.checks += counted[0]
        COUNTS.judged += counted[1]
        COUNTS.usd += counted[2]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what the calls of `evalstore.check` have cost."""
    counts = _find_counts()
    if counts is not None and counts.judged:
        from evalstore.core.display import money, plural

        calls, judged = plural(counts.checks, "call"), plural(counts.judged, "new verdict")
        terminalreporter.write_line(f"evalstore.check: {calls}, {judged}, {money(counts.usd)}")


def _find_counts() -> CheckCounts | None:
    """Return the counts of `evalstore.check`; None if this process has not imported it."""
    module = sys.modules.get("evalstore.interfaces.api.workspace")
    return None if module is None else module.COUNTS
