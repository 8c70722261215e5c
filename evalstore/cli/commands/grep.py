"""`grep`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from evalstore.cli import options, output
from evalstore.cli.app import app, here
from evalstore.errors import NO

if TYPE_CHECKING:
    from evalstore.operations.grep import SearchHit

_MANY = 10_000
"""A note explains the delay when at least this many texts have to be indexed."""
_NOUNS = {
    "answers": "answer",
    "feedback": "feedback",
    "tests": "test",
    "instructions": "instructions",
}


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
    json: options.Json = False,
) -> None:
    """Search answers, feedback, tests and instructions.

    A text matches if it contains all words; the last one may be the beginning of a word. Case
    and accents do not matter. Exit code 1: nothing was found.
    """
    from evalstore.operations.grep import grep as operation

    is_announced = False

    def report(done: int, total: int) -> bool:
        nonlocal is_announced
        if total - done >= _MANY and not is_announced:
            is_announced = True
            output.talk(f"note: adding {output.plural(total, 'text')} to the search index")
        return True

    hits = operation(here(), pattern, (within,) if within else (), report)
    if json:
        output.document({"hits": hits})
    else:
        for hit in hits:
            _print(hit)
    if not hits:
        raise typer.Exit(NO)


def _print(hit: SearchHit) -> None:
    place = hit.file or f"session {output.short((*hit.sessions, hit.id)[0])}"
    label = f"{place} [{hit.row}]" if hit.row else place
    output.line(
        "  ".join(
            part
            for part in (
                output.safe(label),
                output.safe(", ".join(hit.models)),
                output.faint(f"{_NOUNS[hit.kind]} {output.short(hit.id)}"),
                _marked(hit),
            )
            if part
        )
    )


def _marked(hit: SearchHit) -> str:
    parts, at = "", 0
    for begin, end in hit.matches:
        parts += output.safe(hit.context[at:begin])
        parts += output.paint(output.safe(hit.context[begin:end]), bold=True)
        at = end
    return parts + output.safe(hit.context[at:])
