"""`view`, `serve`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from math import isfinite
from typing import TYPE_CHECKING, Annotated

import typer

from evalstore.core.errors import (
    BUG,
    STORE_UNUSABLE,
    EvalstoreError,
    NoWorkspaceError,
    RevisionError,
)
from evalstore.interfaces.cli import options, output
from evalstore.interfaces.cli.options import Globals, app, argument, here, option

if TYPE_CHECKING:
    from evalstore.interfaces.tui.page_lines import Appearance


_TERMINAL_HINT = "'evalstore log' lists the runs, and 'evalstore show ID' shows what is stored"


@app.command()
def view(
    revision: Annotated[
        str | None,
        argument(
            "REV",
            "The run to open first; @work: the workspace.",
            options.runs,
            envvar="EVALSTORE_VIEW_REVISION",
        ),
    ] = None,
    theme: Annotated[
        str | None, option("--theme NAME", "Colour theme (overrides the settings).")
    ] = None,
    key: Annotated[
        list[str] | None,
        option("--key ID=KEYS", "Rebind an action: history.compare=D,f4 (repeatable)."),
    ] = None,
    web: Annotated[
        bool, option("--web", "Serve it to a local web browser at a secret URL.")
    ] = False,
    port: Annotated[
        int | None,
        option("--port N", "With --web: the port (default: a free one).", min=1, max=65535),
    ] = None,
    offline: Annotated[
        bool, option("--offline", "Make no network calls in runs started here.")
    ] = False,
    max_cost: Annotated[
        float | None, option("--max-cost USD", "Stop each run before it costs more.", min=0)
    ] = None,
) -> None:
    """Browse runs, cases, answers and verdicts.

    In the browser you can also label answers, edit tests and start runs.
    """
    if "TEXTUAL_DRIVER" in os.environ:  # what a page of `--web` has started
        web = False
    else:
        options.need("--port", "--web", port and not web)
        if not web:
            _require_terminal()
        _require_begin(revision)
    if output.color is False:  # passes '--color' and NO_COLOR on to the browser
        os.environ["NO_COLOR"] = "1"
    else:
        os.environ.pop("NO_COLOR", None)
    from evalstore.interfaces.tui.appearance import read_appearance

    look = read_appearance(here(), theme, key or ())
    if web:
        from evalstore.interfaces.web.local_server import serve_browser

        serve_browser(_command(), port or 0, _tell)
        return
    _browse(revision, look, offline=offline, max_cost=max_cost)


def _browse(
    revision: str | None, look: Appearance, *, offline: bool, max_cost: float | None
) -> None:
    """Show the browser until the user leaves it, then print what it could not show."""
    is_of_web = "TEXTUAL_DRIVER" in os.environ
    if not is_of_web:  # the next line replaces it
        sys.stdout.write("opening the browser\r")
        sys.stdout.flush()
    from evalstore.interfaces.tui.app import Browser
    from evalstore.interfaces.tui.data_source import WorkspaceSource

    warnings: list[str] = []  # the screen belongs to the browser until it ends
    location = replace(here(), warn=warnings.append)
    browser = Browser(WorkspaceSource(location, offline=offline, max_cost=max_cost), revision, look)
    if not is_of_web:
        sys.stdout.write("\x1b[K")
        sys.stdout.flush()
    with _drawing_on_a_terminal():
        browser.run()
    for warning in warnings:
        output.warn(warning)
    for label in browser.unsaved_labels:
        output.failure(EvalstoreError(label))
    if browser.return_code or browser.unsaved_labels:
        raise typer.Exit(BUG if browser.return_code else STORE_UNUSABLE)


def _require_begin(revision: str | None) -> None:
    """Raise `EvalstoreError` where there is no workspace, or no run that the revision names.

    All other problems are shown in the browser, which goes on when they are mended.
    """
    from evalstore.planning.open_project import open_store, open_workspace
    from evalstore.store.revisions import WORK, resolve_run

    location = replace(here(), warn=lambda _: None)  # the browser says it
    try:
        if revision in (None, WORK):
            open_workspace(location)
        else:
            with open_store(location) as store:
                resolve_run(store, revision)
    except (NoWorkspaceError, RevisionError):
        raise
    except EvalstoreError:
        pass


def _require_terminal() -> None:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise EvalstoreError("'view' needs an interactive terminal", hint=_TERMINAL_HINT)
    if os.environ.get("TERM", "dumb") in ("dumb", "unknown"):
        raise EvalstoreError(
            "'view' needs a terminal with cursor control, and TERM names one without it",
            hint=_TERMINAL_HINT,
        )
    for name in ("COLUMNS", "LINES"):  # the terminal itself knows, also when it changes
        os.environ.pop(name, None)


@contextmanager
def _drawing_on_a_terminal() -> Iterator[None]:
    """Let Textual, which draws on the original stderr, draw on stdout when stderr is a file."""
    stderr = sys.__stderr__
    if stderr is not None and not stderr.isatty():
        sys.__stderr__ = sys.__stdout__  # type: ignore[misc]
    try:
        yield
    finally:
        sys.__stderr__ = stderr  # type: ignore[misc]


def _tell(address: str, allowed: str = "do everything the browser can") -> None:
    output.line(address)
    output.talk(f"Anybody with this address can {allowed}. Ctrl-C stops it.")


def _command() -> list[str]:
    """Return the command line that serves one page; it imports nothing from the workspace."""
    rest: list[str] = []
    waiting = list(Globals.arguments)
    while waiting and waiting[0] != "--":
        argument = waiting.pop(0)
        if argument == "--port":
            del waiting[:1]
        elif argument != "--web" and not argument.startswith("--port="):
            rest.append(argument)
    return [sys.executable, "-P", "-m", "evalstore", *rest, *waiting]


# --- `serve`


@app.command()
def serve(
    port: Annotated[int, option("--port N", "The port; 0 is a free one.", min=0, max=65535)] = 0,
    mcp: Annotated[bool, option("--mcp", "Serve a coding agent instead.")] = False,
    allow_run: Annotated[
        bool, option("--allow-run", "With --mcp: offer a tool that runs; needs --max-cost.")
    ] = False,
    max_cost: Annotated[
        float | None,
        option(
            "--max-cost USD",
            "With --mcp: the most that all runs of this server may cost.",
            min=0,
        ),
    ] = None,
) -> None:
    """Show the results in a web browser, or serve an agent.

    The first page lists the runs; /run/REV, /case/FILE::ROW and /work (the workspace as it is now)
    are the pages of 'report', and at /label people label answers. The pages are on this machine
    only, at a secret address, and are updated during a run. Ctrl-C stops it.

    With --mcp, it speaks the Model Context Protocol on stdin and stdout, and agents start it
    themselves. They can read results, but not edit files, run code or grant trust.
    """
    if mcp:
        options.exclude("--port", "--mcp", port)
        _serve_agent(max_cost, allow_run=allow_run)
        return
    options.need("--allow-run", "--mcp", allow_run)
    options.need("--max-cost", "--mcp", max_cost is not None)
    from evalstore.interfaces.web import routes

    routes.serve(here(), port, partial(_tell, allowed="read the results and label answers"))


def _serve_agent(max_cost: float | None, *, allow_run: bool) -> None:
    from evalstore.workspace.settings.settings import find_root

    if allow_run and max_cost is None:
        raise EvalstoreError(
            "'--allow-run' needs a limit on the cost", hint="add '--max-cost 1.00' (USD)"
        )
    is_alone = max_cost is not None and not allow_run
    options.need("--max-cost", "--allow-run", is_alone, "add '--allow-run'")
    if max_cost is not None and not isfinite(max_cost):
        raise EvalstoreError("'--max-cost' must be finite", hint="name an amount in USD")
    location = here()
    before = "allow what is there now with 'evalstore --allow-outside check'"
    options.exclude("--allow-outside", "--mcp", location.allow_outside, before)
    find_root(location.directory)
    if find_spec("mcp") is None:
        raise EvalstoreError(
            "'--mcp' needs the package mcp, which is not installed",
            hint="install the extra: pip install 'evalstore[mcp]'",
        )
    from evalstore.interfaces.mcp.server import serve

    if sys.stdin is None or sys.stdout is None:
        raise EvalstoreError("'--mcp' needs a standard input and output")
    if sys.stdin.isatty():
        output.talk("Serving MCP on stdin and stdout; an agent should start this. Ctrl-C stops it.")
    serve(location, max_cost)
