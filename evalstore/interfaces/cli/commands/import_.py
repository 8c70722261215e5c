"""`import`: writes test files for the tests of another system."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evalstore.core.errors import NO
from evalstore.interfaces.cli import completions, options, output
from evalstore.interfaces.cli.app import app, here
from evalstore.interfaces.cli.options import argument, option
from evalstore.interfaces.cli.render.layout import Table, print_table

if TYPE_CHECKING:
    from evalstore.exchange.import_tests import ImportReport
    from evalstore.exchange.importers.base import SkippedItem
    from evalstore.exchange.imports.records import ImportSummary


@app.command("import")
def import_(
    format: Annotated[
        str,
        argument(
            "FORMAT",
            "ai-tester-db, evalsone, inspect, langbite, lve, nemo, openai-evals, otel, "
            "promptfoo, or a plug-in's name.",
            completions.import_formats,
        ),
    ],
    paths: Annotated[
        list[Path] | None, argument("PATH", "Files or folders.", show_default=False)
    ] = None,
    into: Annotated[
        str | None,
        option(
            "--into FOLDER",
            "Folder to write to, inside the tests folder; default: the source's name.",
        ),
    ] = None,
    sessions: Annotated[
        bool, option("--sessions", "Also import recorded answers and verdicts (lve).")
    ] = False,
    force: Annotated[bool, option("--force", "Also overwrite edited files.")] = False,
    dry_run: Annotated[
        bool, option("-n, --dry-run", "List what would be written; write nothing.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Import another system's tests or recorded answers.

    Writes test files and lists what could not be imported; runs none of the system's code.
    Recorded answers are judged as they are.
    """
    from evalstore.exchange.import_tests import import_files

    done = import_files(
        here(),
        format,
        [here().directory / path for path in paths or ()],
        into=into,
        sessions=sessions,
        force=force,
        dry_run=dry_run,
    )
    if json:
        output.document(done)
    else:
        _print(done, dry_run=dry_run)
    if not done.complete:
        raise typer.Exit(NO)


_SHOWN = 20
"""Paths that are listed without `-v`."""
_EDITED = "it was edited, or no import wrote it; remove it or use --force"


def _print(done: ImportReport, *, dry_run: bool) -> None:
    groups = {
        "would write" if dry_run else "written": done.written,
        "unchanged": done.unchanged,
        "kept": done.kept,
    }
    rows = []
    for word, names in groups.items():
        tests = sum(name.endswith(".md") for name in names)
        if names or word != "kept":
            rows.append([word, str(tests), str(len(names) - tests)])
    if any(groups.values()) or not done.history:
        header = ("", "test files", "other files")
        print_table(Table(header, rows, frozenset(header[1:])))
        output.line(f"{output.plural(done.rows, 'row')} in all")
        _print_paths(done.written, "would write" if dry_run else "wrote")
    if done.history:
        _print_history(done.history, dry_run=dry_run)
    for name in done.kept:
        output.line(f"kept {output.safe(name)}: {_EDITED}")
    _print_paths(done.gone, "from an earlier import, not in this source:")
    _list("not imported:", done.left)
    _list("imported with a difference:", done.warnings)
    if done.settings:
        from evalstore.exchange.importers.template_writer import block

        output.line("for evalstore.yaml:")
        for line in block(done.settings).splitlines():
            output.line(f"  {output.safe(line)}")
    if done.judged_by_models and "evaluators" not in done.settings:
        known = ", ".join(map(output.safe, done.evaluators)) or "none"
        files = output.plural(done.judged_by_models, "test file")
        verb = "is" if done.judged_by_models == 1 else "are"
        where = f"list them under 'evaluators:' in evalstore.yaml (now: {known})"
        output.line(f"{files} {verb} judged by models: {where}")
    if done.present:
        known = " and ".join(f"'{name}'" for name in done.present)
        output.talk(f"(evalstore.yaml has {known} already: replace what is there)")
    output.talk("Next: 'evalstore check' reads what was written, 'evalstore run' asks and judges.")


def _print_paths(names: Sequence[str], verb: str) -> None:
    """Print the paths of the written files; `-v` prints all of many."""
    shown = names if output.verbose else names[:_SHOWN]
    for name in shown:
        output.line(f"{verb} {output.safe(name)}")
    if len(names) > len(shown):
        output.line(f"… {len(names) - len(shown):,} more (-v lists all)")


def _print_history(history: ImportSummary, *, dry_run: bool) -> None:
    if dry_run:
        output.line(f"{output.plural(history.sessions, 'recorded answer')} to import")
        return
    output.line(
        f"{output.plural(history.sessions, 'recorded answer')}, "
        f"{output.plural(history.verdicts, 'verdict')} in the store, {history.new:,} of them new"
    )
    if history.displaced:
        displaced = output.plural(history.displaced, "stored answer")
        output.line(f"{displaced} no longer counted: an older, imported one is used instead")
    for run in history.older_runs:
        output.line(
            f"run {output.short(run)} has earlier versions of tests: "
            f"{output.plural(history.older, 'answer')} to "
            f"{output.plural(history.older_versions, 'version')} in all, {_retired(history)}"
        )
    if history.run:
        run = output.short(history.run)
        output.sentence(f"run {run} has the recorded verdicts: 'evalstore diff {run} @' compares")


def _retired(history: ImportSummary) -> str:
    """Describe how many of the previous versions no test has any more."""
    if history.retired_versions == history.older_versions:
        return "which no test uses today"
    if history.retired_versions == 0:
        return "which a test still uses"
    return f"{history.retired_versions:,} of which no test uses today"


def _list(title: str, listed: tuple[SkippedItem, ...]) -> None:
    if listed:
        output.line(title)
    for item in listed:
        place = ":".join(
            str(part) for part in (item.file, item.line, item.column) if part is not None
        )
        output.line(f"  {output.safe(place)}: {output.safe(item.reason)}")
