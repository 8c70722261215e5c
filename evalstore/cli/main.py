"""The command line: finds the command, and turns errors into exit codes."""

from __future__ import annotations

import gc
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.main import get_command

from evalstore.cli import output
from evalstore.cli.resources import explain_resources
from evalstore.errors import BUG, INTERRUPTED, OK, EvalstoreError
from evalstore.operations.orders import Where

app = typer.Typer(
    name="evalstore",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)

_FLAGS = ("-q", "--quiet", "-v", "--verbose")
_VALUED = ("-C", "-c", "--config", "--store", "--color", "--progress")


class Globals:
    """Options that every command knows."""

    directory: Path
    config: Path | None
    store: str | None
    progress: Literal["auto", "plain", "none"]
    arguments: list[str]
    """The whole command line: what stands after `--` are paths."""


@app.callback()
def start(
    directory: Annotated[
        Path | None,
        typer.Option("-C", metavar="DIR", help="Run as if started in DIR.", show_default=False),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("-c", "--config", metavar="FILE", help="Settings, instead of evalstore.yaml."),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option("--store", metavar="PATH", help="The store, instead of the settings' one."),
    ] = None,
    color: Annotated[
        Literal["auto", "always", "never"], typer.Option("--color", help="When to use colours.")
    ] = "auto",
    progress: Annotated[
        Literal["auto", "plain", "none"], typer.Option("--progress", help="How to show progress.")
    ] = "auto",
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Say less.")] = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Say more.")] = False,
) -> None:
    """Incremental evaluation of language models that you can explain, diff and merge.

    Options of this page can stand before or after the command.
    """
    output.use_color(color)
    output.quiet, output.verbose = quiet, verbose
    base = Path.cwd()
    Globals.directory = base if directory is None else (base / directory)
    if not Globals.directory.is_dir():
        raise EvalstoreError(f"there is no folder '{directory}'")
    Globals.directory = Path(os.path.normpath(Globals.directory))
    Globals.config = None if config is None else Globals.directory / config
    Globals.store = store
    Globals.progress = progress


def here() -> Where:
    """The workspace that the global options name."""
    return Where(Globals.directory, Globals.config, Globals.store, warn=output.warn)


def hoist(argv: Sequence[str]) -> list[str]:
    """The arguments with global options moved in front of the command."""
    front: list[str] = []
    rest: list[str] = []
    waiting = list(argv)
    while waiting:
        one = waiting.pop(0)
        if one == "--":
            rest += [one, *waiting]
            break
        if one in _FLAGS or any(
            one.startswith(f"{name}=") for name in _VALUED if name.startswith("--")
        ):
            front.append(one)
        elif one in _VALUED and waiting:
            front += [one, waiting.pop(0)]
        else:
            rest.append(one)
    return front + rest


@lru_cache(maxsize=1)
def commands() -> Callable[..., Any]:
    """All commands, made once however often a process calls `main`."""
    from evalstore.cli import (  # noqa: F401
        doctor_command,
        history_commands,
        import_command,
        label_command,
        run_commands,
        search_command,
        stats_command,
        trust_command,
        view_command,
        workspace_commands,
    )

    return get_command(app)


_GARBAGE = (50_000, 10, 10)
"""Thousands of cases are made at once and kept: looking through them often finds nothing."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    gc.set_threshold(*_GARBAGE)
    arguments = Globals.arguments = hoist(sys.argv[1:] if argv is None else argv)
    try:
        commands()(arguments, prog_name="evalstore", auto_envvar_prefix="EVALSTORE")
    except EvalstoreError as problem:
        output.failure(problem)
        return problem.exit_code
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else OK
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except Exception as error:  # noqa: BLE001 - a bug must not end with 1, which means "tests failed"
        lacking = explain_resources(error)
        if lacking is not None:
            output.failure(lacking)
            return lacking.exit_code
        traceback.print_exc()
        sys.stderr.write("this is a bug in evalstore\n")
        return BUG
    return OK


def run() -> int:
    """The entry point of the program."""
    return main()
