"""`diff`, `log`, `show`, `tag`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from evalstore.core.errors import NO, OK, EvalstoreError, UnsuitedError
from evalstore.files.json_output import to_json
from evalstore.interfaces.cli import options, output
from evalstore.interfaces.cli.options import Globals, app, argument, here, option
from evalstore.interfaces.cli.render.layout import Lists
from evalstore.planning.options import SelectionOptions

if TYPE_CHECKING:
    from evalstore.results.compare.diff_result import Diff

_FAILURES = 50
"""Failures that are listed without `-n`; `-v` lists all."""
_MOST_LISTED = 1_000_000_000
"""More entries than any store has, and within the integers of SQLite."""


@app.command()
@options.grouped(selection=options.selection("models"))
def diff(
    revisions: Annotated[
        list[str] | None,
        argument(
            "[A [B]] [-- PATH...]",
            "Two runs, or a run and the workspace (@work, the default of B).",
            options.runs,
        ),
    ] = None,
    *,
    selection: SelectionOptions,
    versus: Annotated[
        str | None,
        option(
            "--vs ID",
            "Compare --model, or --prompt, with this one in the same run.",
        ),
    ] = None,
    prompt: Annotated[
        str | None,
        option("--prompt NAME", "With --vs: the system prompt that is compared."),
    ] = None,
    since: Annotated[
        str | None,
        option("--since REV|DATE", "What changed after a run, or since a date (2d, monday 00:00)."),
    ] = None,
    answers: Annotated[bool, option("--answers", "Show how the answers differ.")] = False,
    flips: Annotated[bool, option("--flips", "List only what broke or was fixed.")] = False,
    stat: Annotated[bool, option("--stat", "Only the numbers.")] = False,
    name_only: Annotated[bool, option("--name-only", "Only the files.")] = False,
    exit_code: Annotated[bool, option("--exit-code", "Exit with 1 if anything differs.")] = False,
) -> Lists:
    """Show what broke, was fixed or changed between two runs.

    Without B, run A is compared with the workspace; without A, the last run is. Answers that were
    asked again and did not change are only counted; -v lists them. --model X --vs Y shows what Y
    does worse and better than X in the workspace or in one run; --prompt X --vs Y does so for two
    system prompts.
    """
    from evalstore.interfaces.cli.render.history import print_diff
    from evalstore.results.compare import diff as operations
    from evalstore.results.log.log import log as list_runs
    from evalstore.store.revisions import as_revision

    sides, paths = _sides(list(revisions or ()))
    try:
        sides = sides if since is None else [as_revision(since), *sides]
        if len(sides) > 2:
            raise EvalstoreError(
                "diff compares two revisions at most", hint="put '--' before paths"
            )
        first, second = [*sides, None, None][:2]
        is_alone = versus is None and prompt is not None
        options.need("--prompt", "--vs", is_alone, "write '--prompt X --vs Y'")
        selection = replace(selection, paths=tuple(paths))
        if versus is None:
            compared = operations.diff(here(), first, second, selection=selection, answers=answers)
        elif prompt is not None:
            compared = operations.diff_prompts(
                here(),
                _require_single_run(first, second),
                (prompt, versus),
                selection=selection,
                answers=answers,
            )
        else:
            run = _require_single_run(first, second)
            if len(selection.models) != 1:
                hint = "write '--model X --vs Y', or '--prompt X --vs Y'"
                raise UnsuitedError("'--vs' needs one '--model'", hint=hint)
            compared = operations.diff_models(
                here(),
                run,
                (selection.models[0], versus),
                selection=SelectionOptions(paths=tuple(paths)),
                answers=answers,
            )
    except EvalstoreError as problem:
        models = (*selection.models, *([versus] if versus and prompt is None else []))
        raise operations.explain_candidates(here(), sides, models) or problem from None
    lists = ["broke", "fixed", *([] if flips else ["changed", "new", "gone"])]
    content = None
    if output.format != "table":
        compared = operations.with_prompt_names(here(), compared)
        content = compared.document_with(compared.pair_documents(), partial(map, to_json))

    def show() -> None:
        if name_only:
            for file in _files(compared, lists):
                output.line(output.safe(file))
            return
        print_diff(compared, answers=answers, stat=stat, flips=flips)
        is_default = not revisions and versus is None and since is None
        if is_default and compared.is_empty and list_runs(here(), limit=1).total > 1:
            output.talk('(use "evalstore diff @~1 @" to compare the last two runs)')

    return Lists(content, show, NO if exit_code and not compared.is_empty else OK, lists)


def _require_single_run(first: str | None, second: str | None) -> str:
    if second:
        raise UnsuitedError(
            "'--vs' compares two candidates, or system prompts, of one run",
            hint="name one revision, or none",
        )
    return first or "@work"


def _sides(revisions: list[str]) -> tuple[list[str], list[str]]:
    """Split arguments into revisions and paths: `A..B` is two revisions, paths follow `--`."""
    from evalstore.planning.open_project import open_workspace

    paths: list[str] = []
    arguments = Globals.arguments
    if "--" in arguments:
        count = len(arguments) - arguments.index("--") - 1
        revisions, paths = (
            revisions[: len(revisions) - count],
            revisions[len(revisions) - count :] if count else [],
        )
    root = open_workspace(here()).root
    while (
        revisions
        and not paths
        and any((base / revisions[-1]).exists() for base in (here().directory, root))
    ):
        paths.insert(0, revisions.pop())
    if len(revisions) == 1 and ".." in revisions[0]:
        first, _, second = revisions[0].partition("..")
        revisions = [first or "@", second or "@"]
    if "" in revisions:
        raise EvalstoreError(
            "a revision is empty", hint="write @, @~1, @work, or the start of an id"
        )
    return revisions, paths


def _files(compared: Diff, lists: Sequence[str]) -> list[str]:
    """Return the files of the listed pairs; with all lists also files that were only edited."""
    listed = {file for name in lists for file in getattr(compared, name).file_names()}
    return sorted(listed if "changed" not in lists else listed | compared.edits.keys())


@app.command()
def log(
    file: Annotated[
        str | None,
        argument(
            "FILE[::ROW]", "Only the history of this test file, or of one row.", options.places
        ),
    ] = None,
    limit: Annotated[int | None, option("-n N", "List at most N.", min=1)] = None,
    oneline: Annotated[bool, option("--oneline", "One line each.")] = False,
    graph: Annotated[
        bool, option("--graph", "Draw a lane for each machine that made the runs.")
    ] = False,
    since: Annotated[
        str | None,
        option("--since REV|DATE", "Only runs after a run, or since a date (2d, monday 00:00)."),
    ] = None,
    until: Annotated[str | None, option("--until REV|DATE", "Only runs before this.")] = None,
    failures: Annotated[bool, option("--failures", "List failed calls instead of runs.")] = False,
) -> Lists:
    """List runs, or the history of one test.

    Each run is listed with what was edited since earlier runs; the newest 50 also say how many
    results broke and were fixed. Runs in which nothing was asked, judged or changed are only
    counted; -v lists them, and shows exact times. With FILE or FILE::ROW: the runs in which it was
    edited or its verdicts changed. With --failures: failed calls and how to fix them.
    """
    from evalstore.interfaces.cli.render.history import print_failures, print_log

    limit = limit and min(limit, _MOST_LISTED)
    options.exclude("--graph", "--failures", graph and failures)
    options.exclude("--graph", file or "", graph and file is not None)
    if failures:
        from evalstore.results.log.failures import log_failures

        # Without a limit people see the newest; a document has all.
        few = None if output.format != "table" or output.verbose else _FAILURES
        found = log_failures(here(), file, limit or few)
        show = partial(print_failures, found, oneline=oneline)
        return Lists(found, show, names=["failures"], kind="log --failures")
    from evalstore.results.log.log import log as operation

    runs = operation(here(), file, limit, since=since, until=until)
    return Lists(runs, partial(print_log, runs, oneline=oneline, graph=graph), names=["runs"])


@app.command()
def show(
    revision: Annotated[
        str,
        argument(
            "REV",
            "@, @~1, @work, an id, REV:path, or FILE::ROW.",
            options.runs_and_places,
        ),
    ] = "@",
    model: Annotated[
        str | None,
        option(
            "-m, --model ID",
            "With a file or a row: the candidate (default of a row: one that failed).",
            options.models,
        ),
    ] = None,
    prompt: Annotated[
        str | None,
        option(
            "--prompt NAME",
            "With a file or a row: the system prompt, if there are several.",
        ),
    ] = None,
) -> Lists:
    """Show a run, answer, version, verdict or failure.

    `FILE::ROW` shows why a case passed or failed, where the answer differs from what was expected,
    and since when. `REV:FILE::ROW` shows it in a run, `@work:FILE::ROW` in the workspace; without
    REV, a result comes from the newest run that has it. `FILE` shows its only case, or lists all.
    `REV:path` shows a test file in a run. With -o, the rows are the results.
    """
    from evalstore.interfaces.cli.render.show import SHOWN, print_shown
    from evalstore.results.show import shown_item

    if output.format == "table":
        most = None if output.verbose else SHOWN
        found = shown_item.show_to_people(here(), revision, model=model, prompt=prompt, most=most)
        return Lists(None, partial(print_shown, found))
    content: Any = shown_item.describe_shown(here(), revision, model=model, prompt=prompt)
    if output.format == "json":
        return Lists(content)
    related = to_json(content).get("related", {})
    return Lists(related, names=["results"] if "results" in related else [])


@app.command()
def tag(
    name: Annotated[
        str | None, argument("NAME", "The name, such as v1 (default: list the names).")
    ] = None,
    revision: Annotated[
        str, argument("REV", "The run; @ is the last one.", options.stored_runs)
    ] = "@",
    remove: Annotated[bool, option("-d, --delete", "Remove the name.")] = False,
) -> Lists:
    """Name a run, or list the names of runs.

    A name is a revision. It is stored beside the results, and push and pull copy it. A name that
    another run has moves to REV; if several people move it, the last move counts.
    """
    from evalstore.results.log.log import list_tags, tag_run, untag

    if remove and name is None:
        raise EvalstoreError("the name is missing", hint="write 'evalstore tag -d NAME'")
    before = None
    if name is None or remove:
        changed = untag(here(), name) if name is not None else list_tags(here())
    else:
        named, before = tag_run(here(), name, revision)
        changed = [named]

    def show() -> None:
        if before and before.run != changed[0].run:
            runs = f"{output.short(before.run)} to {output.short(changed[0].run)}"
            output.line(f"moved '{name}' from {runs}")
            return
        for each in changed:
            by = f" by {output.safe(each.by)}" if each.by else ""
            verb = "removed" if each.is_removed else "named"
            run = output.short(each.run)
            output.line(f"{each.name}  run {run}  {verb} {output.ago(each.at)}{by}")
        if not changed:
            output.talk("No run has a name: 'evalstore tag NAME' names the last one.")

    return Lists({"tags": changed}, show, names=["tags"])
