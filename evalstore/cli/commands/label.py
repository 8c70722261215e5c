"""`label`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from evalstore.cli import options, output
from evalstore.cli.app import app, here

if TYPE_CHECKING:
    from evalstore.operations.label import LabelReport


@app.command()
def label(
    case: Annotated[
        str,
        typer.Argument(
            metavar="CASE", help="PATH::row, PATH, FILE [row] as it is printed, or a session."
        ),
    ],
    verdict: Annotated[
        Literal["pass", "fail", "none"],
        typer.Argument(metavar="pass|fail|none", help="none: what you have said is taken back."),
    ],
    note: Annotated[
        str, typer.Option("-m", "--message", metavar="NOTE", help="Why, for those who read it.")
    ] = "",
    model: Annotated[
        list[str] | None,
        typer.Option("--model", metavar="ID", help="The candidate, when several have answered."),
    ] = None,
    prompt: Annotated[
        str | None,
        typer.Option(
            "--prompt", metavar="NAME", help="The system prompt, when the case has several."
        ),
    ] = None,
    every: Annotated[
        bool, typer.Option("--all", help="Label all that CASE names, not only one case.")
    ] = False,
    person: Annotated[
        str | None,
        typer.Option("--as", metavar="NAME", help="Who says so; without it git's user.name."),
    ] = None,
    json: options.Json = False,
) -> None:
    """Say what an answer is: a person's verdict, which decides.

    It is appended like any judgement and counts until the instructions or the checks of the
    case are edited. A second word of the same person takes the place of the first; with none
    that person has no word any more, and what else was said of the answer decides again.
    """
    from evalstore.operations.label import label as operation

    found = operation(
        here(),
        case,
        verdict,
        note=note,
        person=person,
        models=tuple(model or ()),
        prompt=prompt,
        every=every,
    )
    if json:
        output.document({"labels": found})
    else:
        for report in found:
            _print(report)
        pending = any(report.now == "pending" for report in found)
        why = "have it judged" if pending else "have the verdict in the history"
        output.talk(f'(use "evalstore run" to {why})')


def _print(report: LabelReport) -> None:
    subject = report.subject
    place = f"{subject.file} [{subject.row}]" if subject.row else subject.file
    place += f" ({report.prompt})" if report.prompt else ""
    was = f"was {subject.verdict}" if subject.verdict not in (None, report.verdict) else ""
    now = f"now {report.now}" if report.now not in (None, report.verdict) else ""
    change = ", ".join(part for part in (was, now) if part)
    output.line(
        f"{output.paint(report.verdict)}  {output.safe(place)}  {output.safe(subject.model)}  "
        f"by {output.safe(report.person)}{f' ({change})' if change else ''}"
    )
