"""The options that all commands share; they can be given before or after the command."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple

import typer

from evalstore.interfaces.cli.options import Table


class GlobalOptions(NamedTuple):
    """The values of the options that all commands share."""

    directory: Path | None = None
    config: Path | None = None
    store: str | None = None
    overrides: tuple[str, ...] = ()
    allow_outside: bool = False
    color: Literal["auto", "always", "never"] = "auto"
    progress: Literal["auto", "plain", "none"] = "auto"
    no_pager: bool = False
    wide: bool = False
    quiet: bool = False
    verbose: bool = False
    show_completion: Literal["bash", "zsh", "fish"] | None = None
    version: bool = False


GLOBAL: Table = {
    "directory": typer.Option(
        "-C", metavar="DIR", help="Run as if started in DIR.", show_default=False
    ),
    "config": typer.Option(
        "-c", "--config", metavar="FILE", help="Settings file (default: evalstore.yaml)."
    ),
    "store": typer.Option(
        "--store", metavar="PATH", help="Path of the store (overrides the settings)."
    ),
    "overrides": typer.Option(
        "--set", metavar="KEY=VALUE", help="Override a setting (repeatable)."
    ),
    "allow_outside": typer.Option(
        "--allow-outside", help="Allow files outside of the workspace (remembered)."
    ),
    "color": typer.Option("--color", help="When to use colours."),
    "progress": typer.Option("--progress", help="How to show progress."),
    "no_pager": typer.Option("--no-pager", help="Do not show long output through a pager."),
    "wide": typer.Option("--wide", help="Show all columns of tables, however long the lines get."),
    "quiet": typer.Option("-q", "--quiet", help="Print less."),
    "verbose": typer.Option("-v", "--verbose", help="Print more."),
    "show_completion": typer.Option(
        "--show-completion",
        metavar="SHELL",
        help="Print a script for bash, zsh or fish.",
    ),
    "version": typer.Option("--version", help="Print the version of this program."),
}
