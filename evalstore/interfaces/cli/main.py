"""The command line: finds the command, and turns errors into exit codes."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple

import typer
from typer.main import get_command

from evalstore import __version__
from evalstore.core.errors import (
    BUG,
    INTERRUPTED,
    OK,
    USAGE,
    EvalstoreError,
    NotARevisionError,
    describe_bug,
)
from evalstore.interfaces.cli import output
from evalstore.interfaces.cli.command_line import hint_on_file, is_set
from evalstore.interfaces.cli.options import (
    COMPLETING,
    GROUPS,
    Globals,
    OptionGroup,
    Table,
    _Interrupted,
    app,
    explain_resources,
    grouped,
    here,
    option,
)
from evalstore.interfaces.cli.output import PAGED, find_pager, use_folder
from evalstore.planning.options import Location


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
    "directory": option("-C DIR", "Run as if started in DIR.", show_default=False),
    "config": option("-c, --config FILE", "Settings file (default: evalstore.yaml)."),
    "store": option("--store PATH", "Path of the store (overrides the settings)."),
    "overrides": option("--set KEY=VALUE", "Override a setting (repeatable)."),
    "allow_outside": option("--allow-outside", "Allow files outside the workspace (remembered)."),
    "color": option("--color", "When to use colours."),
    "progress": option("--progress", "How to show progress."),
    "no_pager": option("--no-pager", "Do not show long output through a pager."),
    "wide": option("--wide", "Show all columns of tables, however long the lines get."),
    "quiet": option("-q, --quiet", "Print less."),
    "verbose": option("-v, --verbose", "Print more."),
    "show_completion": option("--show-completion SHELL", "Print a script for bash, zsh or fish."),
    "version": option("--version", "Print the version of this program."),
}


_NOT_UTF8 = re.compile("[\ud800-\udfff]")
_FLAGS = ("-q", "--quiet", "-v", "--verbose", "--allow-outside", "--no-pager", "--wide")
_VALUED = ("-C", "-c", "--config", "--set", "--store", "--color", "--progress", "--show-completion")


@app.callback()
@grouped(options=OptionGroup(GlobalOptions, GLOBAL))
def start(context: typer.Context, options: GlobalOptions) -> None:
    """Version-controlled evaluation of language models: run only what changed, and see why.

    These options can be given before or after the command. Every option also has an environment
    variable, such as EVALSTORE_RUN_CONCURRENCY; docs/cli.md lists them.
    'evalstore COMMAND --help' shows examples.
    """
    if options.version:
        typer.echo(f"evalstore {__version__}")
        raise typer.Exit(OK)
    if options.show_completion:
        output.data_line(completion_script(options.show_completion, COMPLETING))
        raise typer.Exit(OK)
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(OK)
    output.use_color(options.color)
    output.quiet, output.verbose, output.wide = options.quiet, options.verbose, options.wide
    is_paged = context.invoked_subcommand in PAGED and not options.no_pager
    output.use_pager(find_pager() if is_paged else None)
    if is_set(context, "directory", by="COMMANDLINE"):
        use_folder(options.directory, chain.from_iterable(GROUPS.values()))
    Globals.folder, Globals.progress = options.directory, options.progress
    directory = _find_folder(options.directory)
    Globals.location = Location(
        directory,
        None if options.config is None else directory / options.config,
        options.store,
        allow_outside=options.allow_outside,
        overrides=options.overrides,
        warn=output.warn,
    )


def _find_folder(named: Path | None) -> Path:
    """Return the absolute path of a folder; without a name, that of the current one."""
    folder = named or Path()
    if not folder.is_absolute():
        try:
            folder = Path.cwd() / folder
        except FileNotFoundError as error:
            raise EvalstoreError(
                "the current folder has been removed", hint="change to another one with 'cd'"
            ) from error
    if not folder.is_dir():
        from evalstore.files.fields import suggest_beside

        raise EvalstoreError(f"folder '{named}' not found", hint=suggest_beside(folder, str(named)))
    return Path(os.path.normpath(folder))


def hoist(argv: Sequence[str]) -> list[str]:
    """Move global options in front of the command."""
    front: list[str] = []
    rest: list[str] = []
    waiting = list(argv)
    while waiting:
        argument = waiting.pop(0)
        if argument == "--":
            rest += [argument, *waiting]
            break
        if argument in _FLAGS or any(
            argument.startswith(f"{name}=") for name in _VALUED if name.startswith("--")
        ):
            front.append(argument)
        elif argument in _VALUED and waiting:
            front += [argument, waiting.pop(0)]
        else:
            rest.append(argument)
    return front + rest


@lru_cache(maxsize=1)
def commands() -> Callable[..., Any]:
    """Return all commands, created once however often a process calls `main`."""
    from evalstore.interfaces.cli.commands import (  # noqa: F401
        history,
        queries,
        remotes,
        run,
        upkeep,
        view,
        workspace,
    )

    return get_command(app)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; 0 only if the whole output was written.

    A reader such as `head` that closes its pipe has read what it wants.
    """
    try:
        exit_code = _run(argv)
    finally:
        is_shown = output.close_pager()
    if not is_shown:
        hint = "name another one in EVALSTORE_PAGER or PAGER, or add --no-pager"
        output.failure(EvalstoreError("the pager cannot be started", hint=hint))
        return exit_code or USAGE
    lost = output.lost_output()
    if lost is None or isinstance(lost, BrokenPipeError):
        return exit_code
    output.failure(EvalstoreError(f"the standard output cannot be written: {lost.strerror}"))
    return exit_code or USAGE


def _run(argv: Sequence[str] | None) -> int:
    arguments = Globals.arguments = hoist(sys.argv[1:] if argv is None else argv)
    use_folder(None)
    output.use_color("auto")  # until `--color` is read, also for errors of the command line
    try:
        if any("\0" in argument for argument in arguments):
            raise EvalstoreError("an argument holds a NUL character")
        if COMPLETING in os.environ:
            from typer.completion import completion_init  # type: ignore[attr-defined]

            completion_init()
        commands()(arguments, prog_name="evalstore", auto_envvar_prefix="EVALSTORE")
    except EvalstoreError as problem:
        if isinstance(problem, NotARevisionError):
            problem.hint = hint_on_file(here(), problem.text, arguments) or problem.hint
        output.failure(problem)
        return problem.exit_code
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else OK
    except (_Interrupted, KeyboardInterrupt):
        output.to_stderr("interrupted")
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - a bug must not end with 1, which means "tests failed"
        if isinstance(error, UnicodeEncodeError) and _NOT_UTF8.search("".join(arguments)):
            output.failure(EvalstoreError("an argument is not UTF-8"))
            return USAGE
        lacking = explain_resources(error)
        if lacking is not None:
            output.failure(lacking)
            return lacking.exit_code
        output.to_stderr(describe_bug(error) + "this is a bug in evalstore")
        return BUG
    return OK


# --- the completion scripts of shells


BASH = r"""_evalstore_completion() {
    local IFS=$'\n' line=${COMP_LINE:0:COMP_POINT} word=${COMP_WORDS[COMP_CWORD]}
    local known breaks= prefix= reply
    known=${line//\\ /$'\1'}
    known=${known##*[[:space:]]}
    known=${known//$'\1'/\\ }
    [[ $COMP_WORDBREAKS == *:* ]] && breaks+=:
    [[ $COMP_WORDBREAKS == *=* ]] && breaks+==
    [[ -n $breaks ]] && prefix=${known%"${known##*[$breaks]}"}
    [[ $word != [\'\"]* && -z $known ]] && line+="''"
    COMPREPLY=()
    [[ $known == *::* ]] && compopt +o default 2>/dev/null
    while read -r reply || [[ -n $reply ]]; do
        if [[ $word == \'* ]]; then
            [[ $reply == *\'* ]] && continue
        elif [[ $word == \"* ]]; then
            [[ $reply == *[\"\$\`\\!]* ]] && continue
        else
            printf -v reply %q "$reply"
            reply=${reply//\\,/,}
            reply=${reply#"$prefix"}
        fi
        COMPREPLY+=("$reply")
    done < <(COMP_WORDS=$line COMP_CWORD=-1 _EVALSTORE_COMPLETE=complete_bash "$1")
}

complete -o default -F _evalstore_completion evalstore"""
_ZSH = re.compile(r"^ +eval (?P<call>\$\(.*\))$", re.MULTILINE)
"""Matches the line of the script for zsh that asks the program and carries out its answer."""
_FISH = '--condition "'
"""How the script for fish begins to say when no files are offered."""


def completion_script(shell: str, variable: str) -> str:
    """Return the script of bash, zsh or fish, which asks the program by an environment variable."""
    if shell == "bash":
        return BASH
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    script = str(get_completion_script(prog_name="evalstore", complete_var=variable, shell=shell))
    fish = f"{_FISH}string match -q '*::*' -- (commandline -ct); or "
    return _ZSH.sub(_guarded, script).replace(_FISH, fish)


def _guarded(match: re.Match[str]) -> str:
    return (
        f'  local answer="{match["call"]}"\n'
        "  [[ ${words[CURRENT]} == *::* && $answer == _files ]] && return\n"
        "  eval ${answer//$'\\n'/ }"
    )
