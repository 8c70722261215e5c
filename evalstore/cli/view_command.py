"""`view`."""

from __future__ import annotations

from typing import Annotated

import typer

from evalstore.cli.main import app, here


@app.command()
def view(
    revision: Annotated[
        str | None, typer.Argument(metavar="[REV]", help="A run to begin with.")
    ] = None,
) -> None:
    """Browse what is stored: runs, cases, answers, verdicts, and what changed."""
    from evalstore.tui.app import Browser
    from evalstore.tui.source import Workspace

    Browser(Workspace(here()), revision).run()


app.command("tui", hidden=True)(view)
