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
"""Texts from which on it is said why nothing happens yet."""
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
        typer.Argument(metavar="PATTERN", help="Words, or a phrase in quotation marks; all."),
    ],
    within: Annotated[
        Literal["answers", "feedback", "tests"] | None,
        typer.Option("--in", help="Only in these; instructions are of the tests."),
    ] = None,
    json: options.Json = False,
) -> None:
    """Find words in the stored answers, feedback, tests and instructions.

    A text is found when all words are in it; the last one may be the beginning of a word. Case
    and accents do not matter. Ends with 1 when nothing is found.
    """
    from evalstore.operations.grep import grep as operation

    said = False

    def report(done: int, total: int) -> bool:
        nonlocal said
        if total - done >= _MANY and not said:
            said = True
            output.talk(f"note: taking {output.plural(total, 'text')} into the search index")
        return True

    found = operation(here(), pattern, (within,) if within else (), report)
    if json:
        output.document({"hits": found})
    else:
        for hit in found:
            _print(hit)
    if not found:
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
