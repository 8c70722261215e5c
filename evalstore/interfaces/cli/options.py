"""Options that several commands share, in tables."""

from __future__ import annotations

import functools
import inspect
import shlex
from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Annotated, Any, Literal, get_origin, get_type_hints

import typer

from evalstore.core.errors import NotARevisionError
from evalstore.interfaces.cli import completions, help
from evalstore.planning.options import SelectionOptions

Command = Callable[..., None]
Table = Mapping[str, Any]
"""From the name of a field to the option or argument that sets it, in the order of the help."""


def option(
    words: str,
    text: str,
    complete: completions.Complete | None = None,
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


def argument(
    value: str, text: str, complete: completions.Complete | None = None, **settings: Any
) -> Any:
    """Return an argument: what its help has for the value, and its help."""
    return typer.Argument(metavar=value, help=text, autocompletion=complete, **settings)


JSON = option("--json", "Print JSON (stable schema).", section=help.OUTPUT)
Json = Annotated[bool, JSON]
RunOrWorkspace = Annotated[
    str,
    argument(
        "REV", "A run (default: the last), or @work: the workspace as it is now.", completions.runs
    ),
]
WorkspaceOrRun = Annotated[
    str,
    argument(
        "REV",
        "A run, such as @, the last one. Without it: @work, the workspace as it is now.",
        completions.runs,
        show_default=False,
    ),
]


def require_revision(command: str, text: str) -> None:
    """Raise `EvalstoreError` if the argument of a command that writes is the name of a file."""
    suffix = PurePath(text).suffix
    if suffix and not (text.startswith("@") or suffix[1].isdigit()):  # such as the name v1.0
        written = shlex.join(["evalstore", command, "-o", text])
        raise NotARevisionError(text, f"'{written}' writes a file")


Output = Annotated[
    Literal["table", "json", "jsonl", "csv", "md"],
    option("-o, --output FORMAT", "As table, json, jsonl, csv or md.", section=help.OUTPUT),
]

SELECTION: Table = {
    "paths": argument(
        "PATH[::ROW]", "Test files, folders, or one row of a file.", completions.places
    ),
    **in_section(
        help.MODELS,
        models=option(
            "-m, --model ID",
            "Only this candidate, or part of its name (repeatable).",
            completions.models,
        ),
        evaluators=option(
            "-J, --evaluator ID",
            "Only this judge, or part of its name (repeatable).",
            completions.models,
        ),
        attempts=option("-r, --attempts N", "Answers to each question.", min=1, max=10_000),
    ),
    **in_section(
        help.SELECTION,
        tags=option("-t, --tag T", "Only tests with this tag (repeatable).", completions.tags),
        exclude_tags=option(
            "--exclude-tag T", "No tests with this tag (repeatable).", completions.tags
        ),
        name=option("-k, --name EXPR", "Only cases whose file::row matches (and, or, not)."),
        changed=option("--changed", "Only cases added or edited since the last run."),
        last_failed=option(
            "--lf, --last-failed", "Only cases that did not pass in their last run."
        ),
        sample=option("--sample N", "N random cases (see --seed).", min=1),
        seed=option("--seed S", "Seed of --sample (default: 0)."),
        shard=option("--shard I/N", "Part I of N of the cases (1-based)."),
        limit=option("--limit N", "Only the first N cases.", min=1),
        keep_going=option("--keep-going", "Skip test files with errors (exit code 2)."),
    ),
    **in_section(
        help.REUSE,
        refresh=option("--refresh", "Ask again for stored answers."),
        max_age=option("--max-age AGE", "Ignore older answers: 30d, 12h."),
        retry_errors=option(
            "--retry-errors", "Only failed calls, and undecided or failed verdicts."
        ),
    ),
    **in_section(
        help.LIMITS,
        offline=option("--offline", "Skip everything that needs the network."),
    ),
}
"""The options that select cases, models and answers."""


class OptionGroup:
    """Options whose values make an object; its class has their types and defaults."""

    def __init__(self, make: Callable[..., object], table: Table) -> None:
        self._make = make
        types, declared = get_type_hints(make), inspect.signature(make).parameters
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
        def with_groups(**values: object) -> None:
            for name, group in groups.items():
                values[name] = group.take(values)
            command(**values)

        spread = [
            member
            for name, parameter in own.parameters.items()
            for member in (groups[name].parameters if name in groups else (parameter,))
        ]
        spread = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in spread]
        with_groups.__signature__ = own.replace(parameters=spread)  # type: ignore[attr-defined]
        # Typer reads these, too: nothing is left for it to evaluate.
        with_groups.__annotations__ = {member.name: member.annotation for member in spread}
        return with_groups

    return decorate
