"""`view`."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import Annotated

import typer

from evalstore.cli import output
from evalstore.cli.app import Globals, app, here
from evalstore.errors import BUG, STORE_UNUSABLE, EvalstoreError

_TERMINAL_HINT = "'evalstore log' lists the runs, and 'evalstore show ID' shows what is stored"


def _own(name: str) -> str:
    """The environment variable of an option, the same for `tui`."""
    return f"EVALSTORE_VIEW_{name}"


@app.command()
def view(
    revision: Annotated[
        str | None,
        typer.Argument(
            metavar="[REV]",
            help="A run to begin with.",
            envvar=_own("REVISION"),
            show_envvar=False,
        ),
    ] = None,
    theme: Annotated[
        str | None,
        typer.Option(
            "--theme",
            metavar="NAME",
            help="Colours, instead of the settings' ones.",
            envvar=_own("THEME"),
            show_envvar=False,
        ),
    ] = None,
    key: Annotated[
        list[str] | None,
        typer.Option(
            "--key",
            metavar="ID=KEYS",
            help="Other keys for an action: history.compare=D,f4; again for more.",
            envvar=_own("KEY"),
            show_envvar=False,
        ),
    ] = None,
    web: Annotated[
        bool,
        typer.Option(
            "--web",
            help="In a web browser of this machine, at an address with a secret in it.",
            envvar=_own("WEB"),
            show_envvar=False,
        ),
    ] = False,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            metavar="N",
            min=1,
            max=65535,
            help="With --web: the port, else a free one.",
            envvar=_own("PORT"),
            show_envvar=False,
        ),
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Runs started here call nothing over the network.")
    ] = False,
    max_cost: Annotated[
        float | None,
        typer.Option(
            "--max-cost", metavar="USD", min=0, help="Stop each run before it costs more."
        ),
    ] = None,
) -> None:
    """Browse what is stored: runs, cases, answers, verdicts, and what changed.

    From there answers can be labelled, tests edited, and what is missing run.
    """
    if "TEXTUAL_DRIVER" in os.environ:  # what a page of `--web` has started
        web = False
    elif port and not web:
        raise EvalstoreError("'--port' goes with '--web'")
    elif not web:
        _require_terminal()
    _set_colours()
    from evalstore.tui.appearance import read_appearance

    look = read_appearance(here(), theme, key or ())
    if web:
        from evalstore.tui.web import serve

        serve(_command(), port or 0, _tell)
        return
    from evalstore.tui.app import Browser
    from evalstore.tui.state.data_source import WorkspaceSource

    warnings: list[str] = []  # the screen belongs to the browser until it ends
    where = replace(here(), warn=warnings.append)
    browser = Browser(WorkspaceSource(where, offline=offline, max_cost=max_cost), revision, look)
    browser.run()
    for warning in warnings:
        output.warn(warning)
    for label in browser.unsaved_labels:
        output.failure(EvalstoreError(label))
    if browser.return_code or browser.unsaved_labels:
        raise typer.Exit(BUG if browser.return_code else STORE_UNUSABLE)


def _require_terminal() -> None:
    if not all(one.isatty() for one in (sys.stdin, sys.stdout, sys.stderr)):
        raise EvalstoreError("'view' needs a terminal, and this is none", hint=_TERMINAL_HINT)
    if os.environ.get("TERM", "dumb") in ("dumb", "unknown"):
        raise EvalstoreError(
            "'view' needs a terminal that can be drawn on, and TERM says it cannot",
            hint=_TERMINAL_HINT,
        )
    for name in ("COLUMNS", "LINES"):  # the terminal itself knows, also when it changes
        os.environ.pop(name, None)


def _set_colours() -> None:
    """Hand on what `--color` and `NO_COLOR` say."""
    if output.color is False:
        os.environ["NO_COLOR"] = "1"
    else:
        os.environ.pop("NO_COLOR", None)


def _tell(address: str) -> None:
    output.line(address)
    output.talk("Whoever has this address can do what the browser can. Ctrl-C ends it.")


def _command() -> list[str]:
    """This command line for one page, whatever it says; nothing of the workspace is imported."""
    rest: list[str] = []
    waiting = list(Globals.arguments)
    while waiting and waiting[0] != "--":
        one = waiting.pop(0)
        if one == "--port":
            del waiting[:1]
        elif one != "--web" and not one.startswith("--port="):
            rest.append(one)
    return [sys.executable, "-P", "-m", "evalstore", *rest, *waiting]


app.command("tui", hidden=True)(view)
