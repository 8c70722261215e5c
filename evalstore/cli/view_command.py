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
    from evalstore.tui.app import Browser
    from evalstore.tui.source import Workspace

    source = Workspace(here(), offline=offline, max_cost=max_cost)
    Browser(source, revision).run()


app.command("tui", hidden=True)(view)
