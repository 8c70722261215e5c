"""`diff`, `log`, `show`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evalstore.cli import options, output
from evalstore.cli.main import Globals, app, here
from evalstore.errors import NO, OK, EvalstoreError
from evalstore.operations.orders import describe_selection
from evalstore.report.difference import Difference, focus

if TYPE_CHECKING:
    from evalstore.operations.diff import Diff
    from evalstore.operations.failures import FailureLog
    from evalstore.operations.history import Log
    from evalstore.report.compare import Pair

_CHANGES = {True: " + changes", False: "", None: ", changes unknown"}
_FAILURES = 50
"""Failures that are listed when nobody says how many; `-v` lists all."""
_MOST_LISTED = 1_000_000_000
"""More than any store has, and no more than SQLite can count."""


@app.command()
def diff(
    revisions: Annotated[
        list[str] | None,
        typer.Argument(metavar="[A [B]] [-- PATH]", help="Two runs; A alone: A and the workspace."),
    ] = None,
    models: options.Models = None,
    versus: Annotated[
        str | None,
        typer.Option("--vs", metavar="ID", help="Compare --model with this one, in one run."),
    ] = None,
    answers: Annotated[
        bool, typer.Option("--answers", help="Show how the answers differ.")
    ] = False,
    stat: Annotated[bool, typer.Option("--stat", help="Only the numbers.")] = False,
    name_only: Annotated[bool, typer.Option("--name-only", help="Only the files.")] = False,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="End with 1 if anything differs.")
    ] = False,
    json: options.Json = False,
) -> None:
    """What broke, what was fixed, what changed: the last run and the workspace, or two runs.

    With --model X --vs Y: what Y does worse and better than X in one run, by default the last.
    """
    from evalstore.operations import diff as operations

    first, second, paths = _sides(list(revisions or ()))
    if versus is None:
        wanted = options.selecting(paths, models)
        found = operations.diff(here(), first, second, wanted=wanted, answers=answers)
    else:
        found = operations.diff_models(
            here(),
            _one_run(first, second),
            (_one_model(models), versus),
            wanted=options.selecting(paths),
            answers=answers,
        )
    ends_with = NO if exit_code and not found.is_empty else OK
    output.end_with(ends_with)
    if json:
        output.document(found.document())
    elif name_only:
        for file in _files(found):
            output.line(output.safe(file))
    else:
        print_diff(found, answers=answers, stat=stat)
    if ends_with:
        raise typer.Exit(ends_with)


def _one_run(first: str | None, second: str | None) -> str:
    if second:
        raise EvalstoreError(
            "'--vs' compares two candidates of one run", hint="name one revision, or none"
        )
    return first or "@"


def _one_model(models: list[str] | None) -> str:
    if len(models or ()) != 1:
        raise EvalstoreError("'--vs' wants one '--model'", hint="write '--model X --vs Y'")
    assert models
    return models[0]


def _sides(given: list[str]) -> tuple[str | None, str | None, list[str]]:
    """Revisions and paths: `A..B` is two revisions; what `--` separates are paths."""
    from evalstore.operations.opening import open_workspace

    paths: list[str] = []
    arguments = Globals.arguments
    if "--" in arguments:
        count = len(arguments) - arguments.index("--") - 1
        given, paths = given[: len(given) - count], given[len(given) - count :] if count else []
    root = open_workspace(here()).root
    while (
        given
        and not paths
        and any((base / given[-1]).exists() for base in (here().directory, root))
    ):
        paths.insert(0, given.pop())
    if len(given) == 1 and ".." in given[0]:
        first, _, second = given[0].partition("..")
        given = [first or "@", second or "@"]
    if "" in given:
        raise EvalstoreError("a revision is empty", hint="write @, @~1, or the start of an id")
    if len(given) > 2:
        raise EvalstoreError("diff compares two revisions at most", hint="put '--' before paths")
    return given[0] if given else None, given[1] if len(given) > 1 else None, paths


def _files(found: Diff) -> list[str]:
    pairs = found.comparison
    listed = [*pairs.broke, *pairs.fixed, *pairs.changed, *pairs.new, *pairs.gone]
    return sorted({pair.either.file for pair in listed} | found.edits.keys())


def print_diff(found: Diff, *, answers: bool, stat: bool) -> None:
    """A comparison for people: flips first."""
    pairs = found.comparison
    for note in found.notes:
        output.talk(f"note: {note}")
    if found.models:
        output.line(f"{' -> '.join(map(output.safe, found.models))} in run {found.was[:8]}")
    if found.edits and not stat:
        output.line("Edited:")
        for file, edits in found.edits.items():
            output.line(f"    {output.safe(file)}")
            for edit in edits[:6]:
                _print_edit(edit, "        ")
            if len(edits) > 6:
                output.line(f"        … {len(edits) - 6} more")
    for title, listed in (
        ("Broke", pairs.broke),
        ("Fixed", pairs.fixed),
        ("Changed", pairs.changed),
        ("New", pairs.new),
        ("Gone", pairs.gone),
    ):
        if listed and not stat:
            output.line(f"{output.paint(title, title.lower(), bold=True)} ({len(listed)}):")
            limit = len(listed) if output.verbose else 20
            for pair in listed[:limit]:
                _print_pair(found, pair, answers=answers)
            if len(listed) > limit:
                output.line(f"    … {len(listed) - limit} more (-v lists all)")
    before, after = pairs.rates()
    counts = [
        f"{len(listed)} {word}"
        for word, listed in (
            ("broke", pairs.broke),
            ("fixed", pairs.fixed),
            ("changed", pairs.changed),
            ("new", pairs.new),
            ("gone", pairs.gone),
        )
        if listed
    ]
    output.line(", ".join([*counts, f"{len(pairs.unchanged)} unchanged"]))
    if before.judged:
        change = pairs.change()
        about = f"{output.plural(change.pairs, 'case')} in {output.plural(change.files, 'file')}"
        output.line(f"pass rate {before.text} -> {after.text} ({about}, paired)")
        output.line(f"{change.points}; {change.finding}")


def _print_edit(edit: Difference, start: str) -> None:
    output.line(start + output.safe(str(edit)))
    if not edit.fits:
        indent = " " * (len(start) + 2)
        old, new = focus(edit.was, edit.now, output.width() - len(indent) - 2)
        output.line(f"{indent}{output.paint('- ' + output.safe(old), 'broke')}")
        output.line(f"{indent}{output.paint('+ ' + output.safe(new), 'fixed')}")


def _print_pair(found: Diff, pair: Pair, *, answers: bool) -> None:
    shown = pair.either
    label = f"{shown.file} [{shown.row}]" if shown.row else shown.file
    prompt = found.prompts.get(shown.file, {}).get(shown.prompt)
    label += f" ({prompt})" if prompt else ""
    was, now = _word(pair.was), _word(pair.now)
    arrow = (
        f"{output.paint(was, was)} -> {output.paint(now, now)}"
        if pair.was and pair.now and was != now
        else output.paint(now or was, now or was)
    )
    reason = found.reason(pair)
    model = "" if found.models else f"{output.safe(shown.model)}  "
    output.line(
        f"    {output.safe(label)}  {model}{arrow}"
        + (f"  ({output.safe(reason)})" if reason and pair.was and pair.now else "")
    )
    for side, result in (("was", pair.was), ("now", pair.now)):
        feedback = found.feedback_of(result)
        if feedback:
            first, *rest = output.wrap(feedback, output.width() - 13)
            output.line(f"        {side}: {first}")
            for part in rest:
                output.line(f"             {part}")
    if answers:
        for text in found.answer_diff(pair):
            colour = "fixed" if text.startswith("+") else "broke" if text.startswith("-") else None
            output.line(
                "        "
                + (output.paint(output.safe(text), colour) if colour else output.safe(text))
            )


def _word(result: Any) -> str:
    if result is None:
        return ""
    return result.verdict or ("pending" if result.evaluation else "answered")


@app.command()
def log(
    file: Annotated[
        str | None, typer.Argument(metavar="FILE", help="A test file: its own history.")
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("-n", metavar="N", min=1, help="At most this many."),
    ] = None,
    oneline: Annotated[bool, typer.Option("--oneline", help="One line each.")] = False,
    failures: Annotated[
        bool, typer.Option("--failures", help="The calls that brought nothing, instead of runs.")
    ] = False,
    json: options.Json = False,
) -> None:
    """The runs, newest first; with FILE, the runs that changed it, and the edits.

    With --failures: the calls that brought nothing, and what to do; with FILE, those of its cases.
    """
    limit = limit and min(limit, _MOST_LISTED)
    if failures:
        _log_failures(file, limit, oneline=oneline, json=json)
        return
    from evalstore.operations.history import log as operation

    found = operation(here(), file, limit)
    if json:
        output.document(found.document())
    elif not found.entries:
        output.talk("There are no runs yet: 'evalstore run' makes one.")
    else:
        print_log(found, oneline=oneline)


def _log_failures(file: str | None, limit: int | None, *, oneline: bool, json: bool) -> None:
    from evalstore.operations.failures import log_failures as operation

    # People see the newest when nobody says how many; a document has all.
    few = None if json or output.verbose else _FAILURES
    found = operation(here(), file, limit or few)
    if json:
        output.document(found.document())
    elif not found.entries:
        output.talk("No call has failed.")
    else:
        print_failures(found, oneline=oneline)


def print_failures(found: FailureLog, *, oneline: bool) -> None:
    """Failures for people, with each hint once below them."""
    now = time.time_ns() // 1000
    hints: dict[str, str] = {}
    for entry in found.entries:
        one = entry.document()
        what = f"{one['class']} {one['status']}" if one["status"] else one["class"]
        hints |= {what: entry.hint} if entry.hint else {}
        if one["file"] is None:
            place = f"question {output.short(one['question'])}" if one["question"] else ""
        else:
            place = f"{one['file']} [{one['row']}]" if one["row"] else one["file"]
            if entry.place and entry.place.has_several:
                place += f" ({found.prompts[one['prompt']]})"
        parts = (
            output.short(entry.id),
            output.ago(entry.content["at"], now),
            output.safe((one["model"] or "") + (" (as evaluator)" if one["evaluator"] else "")),
            output.safe(place),
            f"{output.paint(what, 'error')}, {output.plural(one['attempts'], 'try')}",
        )
        line = "  ".join(part for part in parts if part)
        message = output.safe(one["message"])
        output.line(f"{line}  {message}" if oneline else f"{line}\n    {message}")
    for what, hint in hints.items():
        output.talk(f"hint: {what}: {hint}")
    if found.total > len(found.entries):
        output.talk(f"({found.total - len(found.entries):,} older; -v lists all)")


def print_log(found: Log, *, oneline: bool) -> None:
    """Runs for people."""
    now = time.time_ns() // 1000
    for number, entry in enumerate(found.entries):
        content = entry.content
        verdicts = ", ".join(
            output.paint(f"{count} {word}", word) for word, count in entry.verdicts.items() if count
        )
        when = output.ago(content["started"], now)
        message = output.safe(content.get("message") or "")
        selection = output.safe(describe_selection(content))
        if oneline:
            output.line(
                "  ".join(
                    part
                    for part in (
                        output.short(entry.run),
                        when,
                        verdicts,
                        f"({selection})" if selection else "",
                        "; ".join(map(output.safe, map(str, entry.edits))) or message,
                    )
                    if part
                )
            )
            continue
        if number:
            output.line()
        git = content.get("git")
        output.line(
            f"{output.paint('run', 'pending')} {entry.run}  {when}"
            + (f"  git {git['commit'][:8]}{_CHANGES[git['dirty']]}" if git else "")
        )
        if message:
            output.line(f"    {message}")
        if selection:
            output.line(f"    arguments: {selection}")
        output.line(
            f"    {content['status']}: {content['asked']:,} asked, "
            + (f"{content['recorded']:,} recorded, " if content.get("recorded") else "")
            + f"{content['judged']:,} judged, {content['reused']:,} reused, "
            + output.money(content.get("cost"))
        )
        if verdicts:
            output.line(f"    {verdicts}")
        for edit in entry.edits:
            _print_edit(edit, "    edit: ")
    if found.total > len(found.entries):
        output.talk(f"({found.total - len(found.entries)} older)")


@app.command()
def show(
    revision: Annotated[
        str, typer.Argument(metavar="REV", help="@, @~1, an id, or REV:path.")
    ] = "@",
    json: options.Json = False,
) -> None:
    """Any run, version, session, evaluation or failure by its id.

    `REV:path` shows a test file as it was.
    """
    from evalstore.cli.show_output import print_shown
    from evalstore.operations.history import show as operation

    found = operation(here(), revision)
    if json:
        output.document(found.document())
    else:
        print_shown(found)
