"""`grep`."""

from __future__ import annotations

from itertools import chain, groupby, islice
from typing import Annotated, Literal

import typer

from evalstore.core.errors import NO
from evalstore.files.json_output import to_json
from evalstore.interfaces.cli import options, output
from evalstore.interfaces.cli.app import Globals, app, here
from evalstore.interfaces.cli.data_output import print_data

_MANY = 10_000
"""A note explains the delay when at least this many texts have to be indexed."""


@app.command()
def grep(
    pattern: Annotated[
        str,
        typer.Argument(metavar="PATTERN", help="Words (all must match), or a quoted phrase."),
    ],
    within: Annotated[
        Literal["answers", "feedback", "tests"] | None,
        typer.Option("--in", help="Search only these (tests: instructions too)."),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option("-k", "--name", metavar="EXPR", help="Only cases whose file::row matches."),
    ] = None,
    name_only: Annotated[
        bool, typer.Option("-l", "--name-only", help="Only the names of the test files.")
    ] = False,
    ignore_case: Annotated[
        bool,
        typer.Option("-i", "--ignore-case", help="Ignore case (always on)."),
    ] = False,
    output_format: options.Output = "table",
    json: options.Json = False,
) -> None:
    """Search answers, feedback, tests and instructions.

    A text matches if it contains all words; the last one may be the beginning of a word. Case
    and accents do not matter. PATTERN is not a regular expression. Exit code 1: nothing was found.
    """
    from evalstore.interfaces.cli.copy_progress import CopyProgress
    from evalstore.results.search.grep import iterate_hits

    with CopyProgress("indexing", Globals.progress, "texts") as progress:
        shown: int | None = None

        def report(done: int, total: int) -> bool:
            nonlocal shown
            if shown is None and total - done >= _MANY:
                shown = done
                output.talk(f"note: adding {output.plural(total, 'text')} to the search index")
                progress.start(total)
            if shown is not None:
                progress.advance(done - shown, 0)
                shown = done
            return True

        found = iterate_hits(here(), pattern, (within,) if within else (), report, name=name)
        first = list(islice(found, 1))  # the index is complete
    hits = chain(first, found)
    if print_data({"hits": map(to_json, hits)}, ["hits"], output_format, kind="grep", json=json):
        return
    if name_only:
        for file, _ in groupby(hits, key=lambda hit: hit.file):
            if file:
                output.line(output.safe(file))
    else:
        from evalstore.interfaces.cli.render.search_hits import print_hits

        print_hits(hits)
    if not first:
        raise typer.Exit(NO)
