"""The Typer application with the groups of commands, and the options that all commands share."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import get_annotations
from pathlib import Path
from typing import Any, Literal

import typer
from typer.core import TyperGroup
from typer.exceptions import TyperException

from evalstore.core.errors import INCOMPLETE, EvalstoreError
from evalstore.interfaces.cli import output
from evalstore.interfaces.cli.command_line import explain_usage, read_plain_values, unknown_command
from evalstore.interfaces.cli.options import Command, SectionedCommand, with_format, write_options
from evalstore.planning.options import Location

COMPLETING = "_EVALSTORE_COMPLETE"
"""The variable by which the script of a shell asks for completions."""
_LONGEST_NAME = 80
"""Characters of a file's name that an error of the system shows."""

GROUPS = {
    "Start": ("init", "import", "check", "ls"),
    "Everyday": ("status", "run", "label", "view", "serve"),
    "History": ("log", "tag", "show", "diff", "stats", "report", "grep", "sql", "export"),
    "Sharing": ("remote", "push", "pull", "clone"),
    "Upkeep": ("doctor", "trust", "fsck"),
}
"""The commands in the order in which `--help` lists them."""


class _Interrupted(Exception):  # noqa: N818 - it is not an error
    """An interruption; typer would end the program silently."""


class _Commands(TyperGroup):
    """The commands in groups; translates interruptions and errors of the system into our own."""

    def list_commands(self, ctx: Any) -> list[str]:
        """List all commands in the order of `GROUPS`; those without a group come last."""
        listed = [name for names in GROUPS.values() for name in names]
        return [*listed, *(name for name in super().list_commands(ctx) if name not in listed)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options that all commands share, then a section for each group of commands.

        A summary is never shortened, it is wrapped.
        """
        write_options(self.get_params(ctx), ctx, formatter)
        widest = max(len(name) for names in GROUPS.values() for name in names)
        for group, names in GROUPS.items():
            commands = [(name, self.get_command(ctx, name)) for name in names]
            rows = [
                (name.ljust(widest), command.get_short_help_str())
                for name, command in commands
                if command is not None
            ]
            with formatter.section(group):
                formatter.write_dl(rows)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the first argument names; raises `EvalstoreError` for another."""
        is_name = args and not args[0].startswith("-") and not ctx.resilient_parsing
        if is_name and self.get_command(ctx, args[0]) is None:
            raise unknown_command(args[0], self.list_commands(ctx), ctx.params.get("config") or "")
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the shared options; raises `EvalstoreError` for a wrong one."""
        read_plain_values(self.get_params(ctx))
        try:
            return super().parse_args(ctx, args)
        except TyperException as error:
            raise explain_usage(error, ctx) from None

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
    except TyperException as error:
        raise explain_usage(error) from None


def _explain(error: OSError) -> EvalstoreError:
    """Return the error for what the system refused or lacks, with the name of the file, if any."""
    lacking = explain_resources(error)
    if lacking is not None:
        return lacking
    reason = error.strerror or str(error)
    if error.filename is None:
        return EvalstoreError(f"the system refuses: {reason}")
    return EvalstoreError(f"'{output.clip(str(error.filename), _LONGEST_NAME)}': {reason}")


class _Program(typer.Typer):
    """The program, whose commands show their options in sections."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Command], Any]:
        """Return a decorator that registers a command; what it returns is printed."""
        register = super().command(name, **{"cls": SectionedCommand, **settings})

        def decorate(command: Command) -> Any:
            printing = with_format(command)
            # Typer reads them four times, and each time it evaluates those that are text.
            printing.__annotations__ = get_annotations(printing, eval_str=True)
            return register(printing)

        return decorate


app = _Program(
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
    """The values of the options that all commands share."""

    location: Location
    folder: Path | None
    """The folder that `-C` names, as it was typed."""
    progress: Literal["auto", "plain", "none"]
    arguments: list[str]
    """The whole command line; the arguments after `--` are paths."""


def here() -> Location:
    """Locate the workspace that the global options name."""
    return Globals.location


# --- resources that the system refuses, such as memory, disk space or open files


_THREAD = "can't start new thread"
_REASONS = {
    errno.EMFILE: ("too many open files", "raise the limit with 'ulimit -n', or lower '-j'"),
    errno.ENFILE: ("too many open files in the whole system", "end some programs and run again"),
    errno.ENOMEM: ("there is not enough memory", "end some programs, or raise 'ulimit -v'"),
    errno.EAGAIN: ("no process or thread can be started", "raise the limit with 'ulimit -u'"),
}


class ResourcesError(EvalstoreError):
    """A resource that a command needs is exhausted; finished work is stored."""

    exit_code = INCOMPLETE


def explain_resources(error: Exception) -> ResourcesError | None:
    """Explain an error if the system lacks something; None when it is something else."""
    if isinstance(error, MemoryError):
        number: int | None = errno.ENOMEM
    elif isinstance(error, RuntimeError) and str(error) == _THREAD:
        number = errno.EAGAIN
    else:
        number = error.errno if isinstance(error, OSError) else None
    if number not in _REASONS:
        return None
    message, hint = _REASONS[number]
    return ResourcesError(message, hint=hint)
