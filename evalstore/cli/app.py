"""The Typer application that the commands are added to, and the options all of them know."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import typer
from typer.core import TyperGroup

from evalstore.cli import output
from evalstore.cli.resources import explain_resources
from evalstore.errors import EvalstoreError
from evalstore.planning.options import Location

COMPLETING = "_EVALSTORE_COMPLETE"
"""The variable by which the script of a shell asks for completions."""
_WRONG_VALUE = "Value error, "
"""What pydantic puts before the message of a choice that is not there."""


_LONGEST_NAME = 80
"""Characters of the name of a file in an error of the system."""


class _Interrupted(Exception):  # noqa: N818 - it is not an error
    """An interruption, which typer would end without a word."""


class _Commands(TyperGroup):
    """All commands; interruptions and errors of the system come out of it as errors of ours."""

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        with _translated():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:
        with _translated():
            return super().invoke(ctx)


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as error:
        raise _Interrupted from error
    except OSError as error:
        raise _explain(error) from error
    except typer.BadParameter as error:
        error.message = error.message.removeprefix(_WRONG_VALUE)
        raise


def _explain(error: OSError) -> EvalstoreError:
    """What the system refused or lacks, with the name of the file if it is about one."""
    lacking = explain_resources(error)
    if lacking is not None:
        return lacking
    reason = error.strerror or str(error)
    if error.filename is None:
        return EvalstoreError(f"the system refuses: {reason}")
    return EvalstoreError(f"'{output.clip(str(error.filename), _LONGEST_NAME)}': {reason}")


app = typer.Typer(
    name="evalstore",
    cls=_Commands,
    invoke_without_command=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


class Globals:
    """Options that every command knows."""

    directory: Path
    config: Path | None
    store: str | None
    overrides: tuple[str, ...]
    allow_outside: bool
    progress: Literal["auto", "plain", "none"]
    arguments: list[str]
    """The whole command line: what stands after `--` are paths."""


def here() -> Location:
    """The workspace that the global options name."""
    return Location(
        Globals.directory,
        Globals.config,
        Globals.store,
        allow_outside=Globals.allow_outside,
        overrides=Globals.overrides,
        warn=output.warn,
    )
