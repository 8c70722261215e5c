"""The application with the groups of commands: their options, their help, what a shell completes.

A folder without a workspace, or one with errors, has no completions: a shell shows no message.
"""

from __future__ import annotations

import errno
import functools
import inspect
import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from inspect import get_annotations
from pathlib import Path, PurePath
from typing import Annotated, Any, Literal, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from evalstore.core.errors import INCOMPLETE, EvalstoreError, NotARevisionError, UnsuitedError
from evalstore.interfaces.cli import output
from evalstore.interfaces.cli.command_line import (
    explain_usage,
    is_set,
    read_plain_values,
    unknown_command,
)
from evalstore.interfaces.cli.render.layout import CommandOutput, Lists, print_found
from evalstore.planning.options import BOUNDS, Location, SelectionOptions
from evalstore.providers.base import EXAMPLE, EXAMPLE_JUDGE

_MOST_RUN_IDS = 50
"""The newest runs that are offered."""
Complete = Callable[[Any, str], list[str]]
"""Returns what can be typed for a value."""


def completes(find: Callable[[Any, str], Iterable[str]]) -> Complete:
    """Return what a shell calls: the names that a function finds and that begin with a text.

    After an error there are none. Names that a shell could run or alter are left out: the scripts
    for zsh evaluate what they are given, and do not escape backslashes in it.
    """

    def complete(ctx: Any, incomplete: str) -> list[str]:
        with suppress(EvalstoreError, OSError):
            safe_names = (name for name in find(ctx, incomplete) if name.isprintable())
            return [name for name in safe_names if name.startswith(incomplete) and "\\" not in name]
        return []

    return complete


@completes
def places(ctx: Any, incomplete: str) -> Iterable[str]:
    """Complete test files; after `::`, the rows of the file.

    After `ls checks`, types of checks; with `check --schema`, the kinds of files that have one.
    """
    from evalstore.planning.selection import split_case

    if ctx.params.get("kind") == "checks":
        from evalstore.checks.parser import known_kinds

        return sorted(known_kinds())
    if ctx.params.get("schema"):
        from evalstore.workspace.schemas import TITLES

        return TITLES
    path, typed = split_case(incomplete)
    rows = _rows(ctx, "cases")
    if typed is None:
        return dict.fromkeys(row["file"] for row in rows)
    return [f"{path}::{row['row']}" for row in rows if row["file"] == path and row["row"]]


@completes
def models(ctx: Any, _incomplete: str) -> Iterable[str]:
    """Complete ids of models."""
    return [row["model"] for row in _rows(ctx, "models")]


@completes
def tags(ctx: Any, _incomplete: str) -> Iterable[str]:
    """Complete tags of cases."""
    return [row["tag"] for row in _rows(ctx, "tags")]


@completes
def runs(ctx: Any, _incomplete: str) -> Iterable[str]:
    """Complete runs: `@`, `@~1`, `@work`, the ids of the newest, and the last of each remote."""
    newest = [row["run"][:8] for row in _rows(ctx, "runs")[:_MOST_RUN_IDS]]
    return ["@", "@~1", "@work", *newest, *(f"{name}/@" for name in remotes(ctx, ""))]


@completes
def stored_runs(ctx: Any, incomplete: str) -> Iterable[str]:
    """Complete runs without `@work`."""
    return [name for name in runs(ctx, incomplete) if name != "@work"]


@completes
def runs_and_places(ctx: Any, incomplete: str) -> Iterable[str]:
    """Complete runs, test files, and after `::` the rows of a file."""
    return [*runs(ctx, incomplete), *places(ctx, incomplete)]


@completes
def trusted_files(ctx: Any, _incomplete: str) -> Iterable[str]:
    """Complete the files that wait for trust, or with `--revoke` those that are trusted."""
    from evalstore.planning.open_project import open_project
    from evalstore.planning.project import files_of
    from evalstore.runs.workspace_checks import trust

    if ctx.params.get("revoke"):
        return [file.path for file in trust.trusted_files()]
    with open_project(_location(ctx)) as project:
        project.code.look_at(files_of(project.reading).items())
        project.code.note_models(project.reading.models)
        return list(dict.fromkeys(file.typed for file in project.code.named))


@completes
def import_formats(_ctx: Any, _incomplete: str) -> Iterable[str]:
    """Complete the formats of `import`, with those of plug-ins."""
    from evalstore.exchange.importers.base import format_names

    return format_names()


@completes
def remotes(ctx: Any, _incomplete: str) -> Iterable[str]:
    """Complete names of remotes."""
    from evalstore.exchange.sync.remotes import list_remotes

    return [remote.name for remote in list_remotes(_location(ctx))]


def _rows(ctx: Any, kind: str) -> Sequence[dict[str, Any]]:
    from evalstore.results.table.list import list_things

    return [*list_things(_location(ctx), kind, SelectionOptions()).rows]


def _location(ctx: Any) -> Location:
    """Locate the workspace and the store that the words before the command, or variables, name."""
    named = ctx.find_root().params
    paths = {
        name: os.path.expanduser(named[name])  # noqa: PTH111 - a shell does not expand these words
        for name in ("directory", "config", "store")
        if named.get(name)
    }
    directory = Path(paths.get("directory", "")).absolute()
    config = paths.get("config")
    return Location(directory, directory / config if config else None, paths.get("store"))


MODELS = "Models"
REUSE = "Stored results"
LIMITS = "Limits"
GATE = "Gate"
EXECUTION = "Execution"
OUTPUT = "Output"
_UNLIMITED = 1_000
"""Characters of a summary, so that it is never cut."""
_MANY = 12
"""More options than these are shown in sections; fewer are one list."""
_ADVANCED = (
    *("--sample", "--seed", "--shard", "--keep-going", "--max-age", "--remote", "--offline"),
    *("--timeout", "--retries", "--max-time", "--threshold", "--baseline", "--executor"),
    *("--workers", "--scheduler", "--join", "--message"),
)
"""The options that such a help only names; `-v` describes them, as docs/cli.md does."""

_OPTION = re.compile(r"'(--[\w-]+)'")
_TYPE = re.compile(r" <[^<>]*>$")
"""The type that typer adds to the name of an argument."""


class SectionedCommand(TyperCommand):
    """A command whose help has a section for each group of options, and examples."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; raises `EvalstoreError` for a wrong one."""
        read_plain_values(self.get_params(ctx))
        try:
            left = super().parse_args(ctx, args)
        except TyperException as error:
            raise explain_usage(error, ctx) from None
        if ctx.params.get("json") and is_set(ctx, "output_format", by="COMMANDLINE"):
            ctx.params["json"] = is_set(ctx, "json", by="COMMANDLINE")  # else a variable has set it
        return left

    def invoke(self, ctx: Any) -> Any:
        """Execute the command; again without an option that a variable sets and that is unsuited.

        A dry run stays one. Other errors name the variables of the options that they name.
        """
        try:
            return super().invoke(ctx)
        except EvalstoreError as error:
            named = _OPTION.findall(str(error))
            by_variable = {
                name: parameter
                for parameter in self.get_params(ctx)
                if is_set(ctx, str(parameter.name), by="ENVIRONMENT")
                for name in parameter.opts
                if name in named
            }
            unsuited = by_variable.get(named[0]) if isinstance(error, UnsuitedError) else None
            if unsuited is None or unsuited.name == "dry_run":
                for option, it in by_variable.items():
                    variable = it.envvar or f"{ctx.auto_envvar_prefix}_{str(it.name).upper()}"
                    sets = f"{variable} sets '{option}'"
                    error.hint = f"{error.hint}; {sets}" if error.hint else sets
                raise
            name = str(unsuited.name)
            ctx.params[name] = unsuited.process_value(ctx, unsuited.get_default(ctx))
            ctx.set_parameter_source(name, type(ctx.get_parameter_source(name)).DEFAULT)
        return self.invoke(ctx)

    def make_parser(self, ctx: Any) -> Any:
        """Return what reads the arguments; it refuses a second expression for names."""
        parser: Any = super().make_parser(ctx)
        if option := parser._short_opt.get("-k"):
            process = option.process

            def process_once(value: Any, state: Any) -> None:
                if option.dest in state.opts:
                    hint = f"write one expression: -k '{state.opts[option.dest]} or {value}'"
                    raise EvalstoreError("'--name' is given twice", hint=hint)
                process(value, state)

            option.process = process_once
        return parser

    def get_short_help_str(self, _limit: int = 0) -> str:
        """Return the summary, which is never cut, neither in the help nor by a shell."""
        return super().get_short_help_str(_UNLIMITED)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Collect the parts of the line of usage; a required argument is written without braces.

        Arguments that say themselves which of their parts are optional are written as they are.
        """
        own = {f"[{param.metavar}]...": str(param.metavar) for param in self.get_params(ctx)}
        return [
            own[piece]
            if piece.startswith("[[") and piece in own
            else piece.removeprefix("{").removesuffix("}")
            for piece in super().collect_usage_pieces(ctx)
        ]

    def format_epilog(self, _ctx: Any, formatter: Any) -> None:
        """Write the examples."""
        if examples := EXAMPLES.get(self.name or ""):
            with formatter.section("Examples"):
                for example in examples:
                    formatter.write(f"  evalstore {self.name} {example}".rstrip() + "\n")

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and the options."""
        write_options(self.get_params(ctx), ctx, formatter)


def write_options(parameters: list[Any], ctx: Any, formatter: Any) -> None:
    """Write a section for each group; environment variables are left to docs/cli.md."""
    has_sections = len(parameters) > _MANY
    sections: dict[str, list[tuple[str, str]]] = {"Arguments": []}
    others: list[tuple[str, str]] = []
    advanced: list[str] = []
    for parameter in parameters:
        parameter.show_envvar = False
        record = parameter.get_help_record(ctx)
        if record is None:
            continue
        if parameter.param_type_name == "argument":
            name, text = record
            sections["Arguments"].append((_TYPE.sub("", name), text))
        elif has_sections and parameter.opts[-1] in _ADVANCED and not output.verbose:
            advanced.append(parameter.opts[-1])
        elif has_sections and parameter.rich_help_panel:
            sections.setdefault(parameter.rich_help_panel, []).append(record)
        else:
            others.append(record)
    for title, records in sections.items():
        if records:
            with formatter.section(title):
                formatter.write_dl(records)
    if advanced:
        with formatter.section("Advanced (described with -v)"):
            for line in output.wrap(", ".join(advanced), formatter.width - 2):
                formatter.write(f"  {line}\n")
    with formatter.section("Options"):
        formatter.write_dl(others)


Command = Callable[..., Any]
Table = Mapping[str, Any]
"""From the name of a field to the option or argument that sets it, in the order of the help."""


def option(
    words: str,
    text: str,
    complete: Complete | None = None,
    *,
    section: str | None = None,
    **settings: Any,
) -> Any:
    """Return an option: `-n, --limit N` are its names, and what its help has for the value."""
    *names, last = words.split(", ")
    name, _, value = last.partition(" ")
    settings |= {"metavar": value or None, "autocompletion": complete, "rich_help_panel": section}
    return typer.Option(*names, name, help=text, **settings)


def in_section(section: str, **options: Any) -> Table:
    """Return options for a table that are in a section of the help."""
    for each in options.values():
        each.rich_help_panel = section
    return options


def argument(value: str, text: str, complete: Complete | None = None, **settings: Any) -> Any:
    """Return an argument: what its help has for the value, and its help."""
    return typer.Argument(metavar=value, help=text, autocompletion=complete, **settings)


JSON = option("--json", "Print JSON (stable schema).", section=OUTPUT)
Json = Annotated[bool, JSON]


def exclude(first: str, second: str, are_given: object, hint: str | None = None) -> None:
    """Raise `UnsuitedError` if two options are given that cannot be combined."""
    if are_given:
        raise UnsuitedError(f"'{first}' cannot be combined with '{second}'", hint=hint)


def need(option: str, other: str, is_alone: object, hint: str | None = None) -> None:
    """Raise `UnsuitedError` if an option is given without another one that it needs."""
    if is_alone:
        raise UnsuitedError(f"'{option}' needs '{other}'", hint=hint)


def require_revision(command: str, text: str) -> None:
    """Raise `EvalstoreError` if the argument of a command that writes is the name of a file."""
    suffix = PurePath(text).suffix
    if suffix and not (text.startswith("@") or suffix[1].isdigit()):  # such as the name v1.0
        written = shlex.join(["evalstore", command, "-o", text])
        raise NotARevisionError(text, f"'{written}' writes a file")


Output = Annotated[
    Literal["table", "json", "jsonl", "csv", "md"],
    option("-o, --output FORMAT", "As table, json, jsonl, csv or md.", section=OUTPUT),
]

SELECTION: Table = {
    "paths": argument("PATH[::ROW]", "Test files, folders, or one row of a file.", places),
    **in_section(
        MODELS,
        models=option(
            "-m, --model ID",
            "Only this candidate, or part of its name (repeatable).",
            models,
        ),
        evaluators=option(
            "-J, --evaluator ID",
            "Only this judge, or part of its name (repeatable).",
            models,
        ),
        attempts=option("-r, --attempts N", "Answers to each question."),
    ),
    **in_section(
        "Selection",
        tags=option("-t, --tag T", "Only tests with this tag (repeatable).", tags),
        exclude_tags=option("--exclude-tag T", "No tests with this tag (repeatable).", tags),
        name=option("-k, --name EXPR", "Only cases whose file::row matches (and, or, not)."),
        changed=option("--changed", "Only cases added or edited since the last run."),
        last_failed=option(
            "--lf, --last-failed", "Only cases that did not pass in their last run."
        ),
        sample=option("--sample N", "N random cases (see --seed)."),
        seed=option("--seed S", "Seed of --sample (default: 0)."),
        shard=option("--shard I/N", "Part I of N of the cases (1-based)."),
        limit=option("--limit N", "Only the first N cases."),
        keep_going=option("--keep-going", "Skip test files with errors (exit code 2)."),
    ),
    **in_section(
        REUSE,
        refresh=option("--refresh", "Ask again in this run."),
        max_age=option("--max-age AGE", "Ignore older answers: 30d, 12h."),
        retry_errors=option(
            "--retry-errors", "Only failed calls, and undecided or failed verdicts."
        ),
    ),
    **in_section(
        LIMITS,
        offline=option("--offline", "Skip everything that needs the network."),
    ),
}
"""The options that select cases, models and answers."""


class OptionGroup:
    """Options whose values make an object; its class has their types and defaults."""

    def __init__(self, make: Callable[..., object], table: Table) -> None:
        self._make = make
        types, declared = get_type_hints(make), inspect.signature(make).parameters
        for name, (least, most) in BOUNDS.items():
            if name in table:
                table[name].min, table[name].max = least, most
        self._lists = {name for name in table if get_origin(types[name]) is tuple}
        self.parameters = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=None if name in self._lists else declared[name].default,
                annotation=Annotated[
                    list[str] | None if name in self._lists else types[name], info
                ],
            )
            for name, info in table.items()
        ]

    def take(self, values: dict[str, Any]) -> object:
        """Return the object for the values of the options, which are removed from the others."""
        taken = {parameter.name: values.pop(parameter.name) for parameter in self.parameters}
        return self._make(**taken | {name: tuple(taken[name] or ()) for name in self._lists})


def selection(*names: str) -> OptionGroup:
    """Return the options that select cases: those of these names, or all."""
    return OptionGroup(SelectionOptions, {name: SELECTION[name] for name in names or SELECTION})


def grouped(**groups: OptionGroup) -> Callable[[Command], Command]:
    """Give a command the options of groups: its parameter of that name is what the group makes.

    The command line, and its help, show the options in the place of the parameter.
    """

    def decorate(command: Command) -> Command:
        own = inspect.signature(command, eval_str=True)

        @functools.wraps(command)
        def with_groups(**values: object) -> Any:
            for name, group in groups.items():
                values[name] = group.take(values)
            return command(**values)

        spread = [
            member
            for name, parameter in own.parameters.items()
            for member in (groups[name].parameters if name in groups else (parameter,))
        ]
        spread = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in spread]
        _declare(with_groups, own.replace(parameters=spread))
        return with_groups

    return decorate


def _declare(command: Command, signature: inspect.Signature) -> None:
    """Give a command a signature; typer reads the annotations, too, and evaluates none of these."""
    command.__signature__ = signature  # type: ignore[attr-defined]
    command.__annotations__ = {it.name: it.annotation for it in signature.parameters.values()}
    command.__annotations__["return"] = signature.return_annotation


def with_format(command: Command) -> Command:
    """Print what a command returns: in JSON with `--json`, lists of it also with `-o`."""
    own = inspect.signature(command, eval_str=True)
    returned = own.return_annotation
    if not (isinstance(returned, type) and issubclass(returned, CommandOutput)):
        return command
    formats = {"output_format": (Output, "table")} if issubclass(returned, Lists) else {}
    parameters = [
        *own.parameters.values(),
        *(
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=value, annotation=kind)
            for name, (kind, value) in {**formats, "json": (Json, False)}.items()
        ),
    ]

    @functools.wraps(command)
    def printing(**values: Any) -> None:
        chosen = values.pop("output_format", "table")
        output.format = "json" if values.pop("json") else chosen
        found: CommandOutput = command(**values)
        output.end_with(found.exit_code)
        print_found(found, command.__name__)
        if found.exit_code:
            raise typer.Exit(found.exit_code)

    _declare(printing, own.replace(parameters=parameters))
    return printing


# --- two examples of each command, which its help shows: what follows its name


EXAMPLES: dict[str, tuple[str, ...]] = {
    "init": ("bikes --example", "tests/refund.md"),
    "import": ("promptfoo promptfooconfig.yaml --dry-run", "otel traces.json"),
    "check": ("tests/late.md", "--format sarif > check.sarif"),
    "doctor": ("", "--no-ping"),
    "trust": ("tests/price.py", "env DESK_KEY localhost:8000"),
    "status": ("", "tests/late.md --explain"),
    "run": (f"tests/late.md --model {EXAMPLE}", "--tag policy --max-cost 2 --watch"),
    "label": ("'tests/price.md::bike=tandem' fail -m 'wrong price'", "tests/late.md --remove"),
    "view": ("", "@~1"),
    "remote": ("add origin /mnt/team/results", "gc --dry-run"),
    "push": ("", "results.bundle --since @~5"),
    "pull": ("", "../laptop/.evalstore/store.db"),
    "clone": ("/mnt/team/results", "/mnt/team/results bikes-results"),
    "sql": (
        "\"SELECT file, feedback FROM results_v WHERE verdict = 'fail'\"",
        "'SELECT * FROM costs_v' -o csv",
    ),
    "log": ("--oneline --graph", "tests/late.md"),
    "show": ("7f3c", "tests/weather.md::city=Oslo"),
    "diff": ("--since monday", f"--model {EXAMPLE_JUDGE} --vs {EXAMPLE}"),
    "tag": ("v1", "before-the-edit @~1"),
    "stats": ("--by model,tag", "@~1 --by file --wide"),
    "report": ("@ --compare @~5 -o report.html", "--markdown -o comment.md"),
    "serve": ("", "--mcp --allow-run --max-cost 1.00"),
    "grep": ("'late fee'", "tandem --in answers"),
    "ls": ("results -m hasty --verdict fail", "checks contains"),
    "export": ("-o results.csv", "@~1 -o evals.junit.xml"),
    "fsck": ("", "--remote origin"),
}


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
