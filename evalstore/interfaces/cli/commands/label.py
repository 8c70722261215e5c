"""`label`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from evalstore.core.display import case_name
from evalstore.core.errors import EvalstoreError
from evalstore.interfaces.cli import completions, options, output
from evalstore.interfaces.cli.app import app, here
from evalstore.interfaces.cli.options import argument, option

if TYPE_CHECKING:
    from evalstore.results.labels.add_labels import LabelReport

LabelWord = Literal["pass", "fail", "none"]


@app.command()
def label(
    case: Annotated[
        str,
        argument(
            "CASE",
            "PATH::row, PATH, FILE [row] as printed, or an answer's id.",
            completions.answers,
        ),
    ],
    verdict: Annotated[
        LabelWord | None,
        argument(
            "pass|fail|none",
            "Your verdict; none removes your label, as --remove does.",
            show_default=False,
        ),
    ] = None,
    remove: Annotated[bool, option("--remove", "Remove your label.")] = False,
    note: Annotated[
        str, option("-m, --message NOTE", "A note on the label; the model is --model.")
    ] = "",
    model: Annotated[
        list[str] | None,
        option("--model ID", "The candidate, if several have answered.", completions.models),
    ] = None,
    prompt: Annotated[
        str | None,
        option("--prompt NAME", "The system prompt, if the case has several.", completions.prompts),
    ] = None,
    every: Annotated[bool, option("--all", "Label every case that CASE names.")] = False,
    person: Annotated[
        str | None, option("--as NAME", "Your name (default: git's user.name).")
    ] = None,
    json: options.Json = False,
) -> None:
    """Label an answer pass or fail, overriding the judges.

    A label also overrides checks. It applies to this answer only: it no longer counts once the case
    has another answer, or its instructions or checks are edited. A new label by the same person
    replaces the old one. With --remove the other verdicts count again; the store keeps the label.
    """
    from evalstore.results.labels.add_labels import label as operation

    if remove and verdict in ("pass", "fail"):
        raise EvalstoreError(f"'{verdict}' cannot be combined with '--remove'")
    if verdict is None and not remove:
        raise EvalstoreError(
            "the verdict is missing",
            hint="write 'pass' or 'fail', or '--remove' to remove your label",
        )
    labels = operation(
        here(),
        case,
        "none" if remove or verdict is None else verdict,
        note=note,
        person=person,
        models=tuple(model or ()),
        prompt=prompt,
        every=every,
    )
    if json:
        output.document({"labels": labels})
        return
    for line in dict.fromkeys(map(_line, labels)):
        output.line(line)
    if any(report.now == "pending" for report in labels):
        output.talk('("evalstore run" judges it)')
    elif any(each.now not in (None, each.subject.verdict) for each in labels):
        output.talk('("evalstore run" records the verdict in the history)')


def _line(report: LabelReport) -> str:
    """Return what the labels of all attempts at a case have in common."""
    subject = report.subject
    place = case_name(subject.file, subject.row, report.prompt)
    is_known = subject.verdict in (None, report.verdict) or subject.verdict == report.now
    was = "" if is_known else f"was {subject.verdict}"
    now = f"now {report.now}" if report.now not in (None, report.verdict) else ""
    change = ", ".join(part for part in (was, now) if part)
    word = "label removed" if report.verdict == "none" else output.paint(report.verdict)
    return (
        f"{word}  {output.safe(place)}  {output.safe(subject.model)}  "
        f"by {output.safe(report.person)}{f' ({change})' if change else ''}"
    )
