"""`init`, `check`, `ls`, `fsck`, `completion`, `version`."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from evalstore import __version__
from evalstore.cli import options, output
from evalstore.cli.app import COMPLETING, Globals, app, here
from evalstore.errors import NO, OK, USAGE, Problem
from evalstore.planning.options import Kind

_LISTED = 4
"""Values that a cell of a table shows at most; JSON has all."""


@app.command()
def init(
    directory: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="The folder (default: the current one).")
    ] = None,
    example: Annotated[bool, typer.Option("--example", help="Copy the example workspace.")] = False,
    adopt: Annotated[
        Path | None,
        typer.Option("--from", metavar="DIR", help="Adopt the ai-tester project in DIR."),
    ] = None,
    json: options.Json = False,
) -> None:
    """Create a workspace and its store.

    Existing files are left unchanged, also those of an adopted project.
    """
    from evalstore.operations.init import init as operation

    base = Globals.directory
    made = operation(
        base / (directory or "."),
        example=example,
        adopt_from=None if adopt is None else base / adopt,
        store=Globals.store,
        allow_outside=Globals.allow_outside,
    )
    if json:
        output.document(made)
        return
    for name in made.written:
        output.line(f"wrote {output.safe(name)}")
    for name in made.kept:
        output.line(f"kept  {output.safe(name)} (already exists, left unchanged)")
    for note in made.notes:
        output.talk(f"note: {output.safe(note)}")
    output.talk("Next: 'evalstore run' asks and judges, 'evalstore status' shows what it would do.")


@app.command()
def check(paths: options.Paths = None, json: options.Json = False) -> None:
    """Validate all files without calling a model."""
    from evalstore.operations.check import check as operation

    report = operation(here(), tuple(paths or ()))
    report.problems.extend(_problems_of_browser())
    if json:
        output.document(report)
    else:
        for problem in report.problems:
            output.problem(problem)
        warnings = len(report.problems) - report.errors
        output.line(
            f"{output.plural(report.files, 'test file')}, {output.plural(report.cases, 'case')}: "
            + (
                output.paint(output.plural(report.errors, "error"), "fail")
                if report.errors
                else "no errors"
            )
            + (f", {output.plural(warnings, 'warning')}" if warnings else "")
        )
    if report.errors:
        raise typer.Exit(USAGE)


def _problems_of_browser() -> Iterable[Problem]:
    """Problems in the browser's settings, which only the browser can check."""
    from evalstore.workspace.settings import BrowserSettings
    from evalstore.workspace.settings_reader import browser_settings

    file, browser = browser_settings(here().directory, here().config)
    if browser == BrowserSettings():
        return ()
    from evalstore.tui.appearance import find_problems

    return find_problems(file, browser)


@app.command()
def ls(
    kind: Annotated[Kind, typer.Argument(help="What to list.")] = "tests",
    paths: options.Paths = None,
    full: Annotated[
        bool, typer.Option("--full", help="With cases: include messages and instructions (JSON).")
    ] = False,
    tags: options.Tags = None,
    exclude_tags: options.ExcludeTags = None,
    name: options.Name = None,
    json: options.Json = False,
) -> None:
    """List tests, cases, models, runs, checks and more.

    Also evaluators, prompts, tools, schemas and tags.
    """
    from evalstore.operations.list import list_things

    listing = list_things(
        here(),
        kind,
        options.make_selection(paths, tags=tags, exclude_tags=exclude_tags, name=name),
        full=full,
    )
    output.end_with(USAGE if listing.left_out else OK)
    if json or full:
        output.document(listing)
    elif not listing.rows:
        output.talk(f"There are no {kind}.")
    elif kind == "models":
        print_models(listing.rows)
    else:
        output.table(
            [[_cell_of(row, column) for column in listing.columns] for row in listing.rows],
            listing.columns,
        )
    output.left_out(listing.left_out)
    if listing.left_out:
        raise typer.Exit(USAGE)


def _cell_of(row: dict[str, Any], column: str) -> str:
    """A cell of a listing; times are relative to now, commits shortened."""
    if column == "started":
        started = datetime.fromisoformat(row[column])
        return output.ago(round(started.timestamp() * 1e6), time.time_ns() // 1000)
    return (
        output.short(row[column])
        if row.get(column) and column == "gitCommit"
        else _cell(row.get(column))
    )


def print_models(rows: list[dict[str, Any]]) -> None:
    """Print models with their capabilities and prices; unknown values are `?`."""
    header = ("model", "provider", "code", "used as", "capabilities", "$/1M in", "$/1M out")
    output.table(
        [
            [
                row["model"],
                row["provider"],
                row["code"],
                row["used"] or "",
                capabilities_text(row),
                *_token_prices(row["price"]),
                price_source(row["price"]),
                "yes" if row["active"] else "no",
            ]
            for row in rows
        ],
        (*header, "price from", "active"),
    )


def capabilities_text(row: dict[str, Any]) -> str:
    """The capabilities declared in the model file, and further ones from litellm's table."""
    declared, known = row["capabilities"], row["knownCapabilities"] or {}
    besides = {word: can for word, can in known.items() if word not in declared}
    parts = [_words(declared)] if declared else []
    parts += [f"{_words(besides)} (litellm)"] if besides else []
    return "; ".join(parts) or "?"


def _words(capabilities: dict[str, bool]) -> str:
    return ", ".join(word if can else f"no {word}" for word, can in capabilities.items())


def _token_prices(price: dict[str, Any] | None) -> tuple[str, str]:
    return ("?", "?") if price is None else (f"{price['input']:,.6g}", f"{price['output']:,.6g}")


def price_text(price: dict[str, Any] | None) -> str:
    """A price in words."""
    if price is None:
        return "price unknown"
    tokens = "${} in, ${} out per million tokens".format(*_token_prices(price))
    return f"{tokens}, from {price_source(price)}"


def price_source(price: dict[str, Any] | None) -> str:
    """The source of a price, and its parts that do not depend on tokens."""
    if price is None:
        return "unknown"
    rate = f"{price['currency']} at {price['rate']:g}" if price["currency"] else ""
    parts = (
        f"{price['source']} ({rate})" if rate else price["source"],
        f"${price['call']:,.6g} a call" if price["call"] else "",
        f"${price['hour']:,.6g} an hour" if price["hour"] else "",
    )
    return " + ".join(part for part in parts if part)


def _cell(value: object) -> str:
    if isinstance(value, list):
        listed = [
            f"{item} ×{count}" if count > 1 else item
            for item, count in Counter(map(_cell, value)).items()
        ]
        more = f" … {len(listed)} in all" if len(listed) > _LISTED else ""
        return ", ".join(listed[:_LISTED]) + more
    if isinstance(value, dict):  # the cases of a run
        return f"{value['selected']:,} of {value['total']:,}"
    text = "" if value is None else str(value)
    return (
        output.short(text)
        if len(text) == 32 and all(digit in "0123456789abcdef" for digit in text)
        else text
    )


@app.command()
def fsck(json: options.Json = False) -> None:
    """Verify the store: recompute every id, follow every reference."""
    from evalstore.operations.fsck import fsck as operation

    report = operation(here())
    if json:
        output.document(report)
    else:
        for damage in report.problems:
            place = f"{damage.kind} {damage.id}".rstrip()
            output.line(output.safe(f"{place}: {damage.message}"))
        output.line(
            f"{output.plural(report.checked, 'row')} checked: "
            + (
                output.paint(output.plural(len(report.problems), "problem"), "fail")
                if report.problems
                else "all is well"
            )
        )
    if report.problems:
        raise typer.Exit(NO)


@app.command()
def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(help="The shell.")],
) -> None:
    """Print the completion script of a shell.

    For bash: eval "$(evalstore completion bash)" in ~/.bashrc; zsh likewise in ~/.zshrc;
    for fish: evalstore completion fish > ~/.config/fish/completions/evalstore.fish
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    script = get_completion_script(prog_name="evalstore", complete_var=COMPLETING, shell=shell)
    output.line(script)


@app.command()
def version(json: options.Json = False) -> None:
    """Print the version of this program."""
    if json:
        output.document({"version": __version__})
    else:
        output.line(f"evalstore {__version__}")
