"""Options that several commands share, spelled once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Literal

import typer

from evalstore.cli import completions, help
from evalstore.planning.options import SelectionOptions

Command = Callable[..., None]

Paths = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="PATH[::ROW]",
        help="Test files, folders, or one row of a file.",
        autocompletion=completions.places,
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print JSON (stable schema).", rich_help_panel=help.OUTPUT)
]
Output = Annotated[
    Literal["table", "json", "jsonl", "csv", "md"],
    typer.Option(
        "-o",
        "--output",
        metavar="FORMAT",
        help="As table, json, jsonl, csv or md.",
        rich_help_panel=help.OUTPUT,
    ),
]
Models = Annotated[
    list[str] | None,
    typer.Option(
        "-m",
        "--model",
        metavar="ID",
        help="Only this candidate (repeatable); any model.",
        autocompletion=completions.models,
        rich_help_panel=help.MODELS,
    ),
]
Evaluators = Annotated[
    list[str] | None,
    typer.Option(
        "-J",
        "--evaluator",
        metavar="ID",
        help="Only this evaluator (repeatable).",
        autocompletion=completions.models,
        rich_help_panel=help.MODELS,
    ),
]
Tags = Annotated[
    list[str] | None,
    typer.Option(
        "-t",
        "--tag",
        metavar="T",
        help="Only tests with this tag (repeatable).",
        autocompletion=completions.tags,
        rich_help_panel=help.SELECTION,
    ),
]
ExcludeTags = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude-tag",
        metavar="T",
        help="No tests with this tag (repeatable).",
        autocompletion=completions.tags,
        rich_help_panel=help.SELECTION,
    ),
]
Name = Annotated[
    str | None,
    typer.Option(
        "-k",
        "--name",
        metavar="EXPR",
        help="Only cases whose file::row matches (and, or, not).",
        rich_help_panel=help.SELECTION,
    ),
]
Attempts = Annotated[
    int | None,
    typer.Option(
        "-r",
        "--attempts",
        metavar="N",
        min=1,
        max=10_000,
        help="Answers to each question.",
        rich_help_panel=help.MODELS,
    ),
]
Changed = Annotated[
    bool,
    typer.Option(
        "--changed",
        help="Only cases added or edited since the last run.",
        rich_help_panel=help.SELECTION,
    ),
]
LastFailed = Annotated[
    bool,
    typer.Option(
        "--lf",
        "--last-failed",
        help="Only cases that did not pass in their last run.",
        rich_help_panel=help.SELECTION,
    ),
]
Sample = Annotated[
    int | None,
    typer.Option(
        "--sample",
        metavar="N",
        min=1,
        help="N random cases (see --seed).",
        rich_help_panel=help.SELECTION,
    ),
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed", metavar="S", help="Seed of --sample (default: 0).", rich_help_panel=help.SELECTION
    ),
]
Shard = Annotated[
    str | None,
    typer.Option(
        "--shard",
        metavar="I/N",
        help="Part I of N of the cases (1-based).",
        rich_help_panel=help.SELECTION,
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(
        "--limit",
        metavar="N",
        min=1,
        help="Only the first N cases.",
        rich_help_panel=help.SELECTION,
    ),
]
Refresh = Annotated[
    bool,
    typer.Option(
        "--refresh",
        help="Ask again (judge: judge again) what is stored.",
        rich_help_panel=help.REUSE,
    ),
]
MaxAge = Annotated[
    str | None,
    typer.Option(
        "--max-age",
        metavar="AGE",
        help="Ignore older answers (judge: judgements): 30d, 12h.",
        rich_help_panel=help.REUSE,
    ),
]
RetryErrors = Annotated[
    bool,
    typer.Option(
        "--retry-errors",
        help="Only failed calls, and undecided or failed judgements.",
        rich_help_panel=help.REUSE,
    ),
]
Offline = Annotated[
    bool,
    typer.Option(
        "--offline", help="Skip everything that needs the network.", rich_help_panel=help.LIMITS
    ),
]
KeepGoing = Annotated[
    bool,
    typer.Option(
        "--keep-going",
        help="Skip test files with errors (exit code 2).",
        rich_help_panel=help.SELECTION,
    ),
]


def make_selection(
    paths: Paths = None,
    models: Models = None,
    evaluators: Evaluators = None,
    tags: Tags = None,
    exclude_tags: ExcludeTags = None,
    name: Name = None,
    attempts: Attempts = None,
    changed: Changed = False,
    last_failed: LastFailed = False,
    sample: Sample = None,
    seed: Seed = None,
    shard: Shard = None,
    limit: Limit = None,
    refresh: Refresh = False,
    max_age: MaxAge = None,
    retry_errors: RetryErrors = False,
    offline: Offline = False,
    keep_going: KeepGoing = False,
) -> SelectionOptions:
    """The options that select cases, models and answers."""
    return SelectionOptions(
        paths=tuple(paths or ()),
        tags=tuple(tags or ()),
        exclude_tags=tuple(exclude_tags or ()),
        name=name,
        models=tuple(models or ()),
        evaluators=tuple(evaluators or ()),
        attempts=attempts,
        changed=changed,
        last_failed=last_failed,
        sample=sample,
        seed=seed,
        shard=shard,
        limit=limit,
        refresh=refresh,
        max_age=max_age,
        retry_errors=retry_errors,
        offline=offline,
        keep_going=keep_going,
    )


def grouped(**groups: Callable[..., object]) -> Callable[[Command], Command]:
    """Give a command the options of groups: its parameter of that name is what the group returns.

    A group is a function whose parameters are options. The command line, and its help, show
    them in the place of the parameter.
    """
    members = {
        name: inspect.signature(group, eval_str=True).parameters for name, group in groups.items()
    }

    def decorate(command: Command) -> Command:
        own = inspect.signature(command, eval_str=True)

        @functools.wraps(command)
        def with_groups(**values: object) -> None:
            for name, group in groups.items():
                values[name] = group(**{option: values.pop(option) for option in members[name]})
            command(**values)

        spread = [
            member
            for name, parameter in own.parameters.items()
            for member in (members[name].values() if name in groups else (parameter,))
        ]
        with_groups.__signature__ = own.replace(parameters=spread)  # type: ignore[attr-defined]
        return with_groups

    return decorate
