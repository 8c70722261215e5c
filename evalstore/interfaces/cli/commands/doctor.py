"""`doctor`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from evalstore.interfaces.cli import completions, options, output
from evalstore.interfaces.cli.app import app, here
from evalstore.interfaces.cli.data_output import print_data
from evalstore.interfaces.cli.hinted_commands import for_here
from evalstore.interfaces.cli.options import option
from evalstore.results.edits.distinct_labels import shorten_labels

if TYPE_CHECKING:
    from evalstore.runs.workspace_checks.doctor import Diagnosis
    from evalstore.runs.workspace_checks.doctor_ping import Checkup

_BESIDE = 8
"""The columns beside the topic and the message of a finding."""
_COLOURS = {"ok": "pass", "warn": "pending", "fail": "fail"}

Row = tuple[str, str, str, str | None]
"""Level, topic, message, hint."""


@app.command()
def doctor(
    models: Annotated[
        list[str] | None,
        option("-m, --model ID", "Only this model (repeatable).", completions.models),
    ] = None,
    no_ping: Annotated[bool, option("--no-ping", "Call no model.")] = False,
    timeout: Annotated[
        float, option("--timeout S", "Timeout of one ping in seconds.", min=0.001)
    ] = 20.0,
    output_format: options.Output = "table",
    json: options.Json = False,
) -> None:
    """Check the setup and ping every model in use.

    A ping is one question with an answer of at most 16 tokens, which costs a fraction of a cent.
    Nothing is stored. Keys are never printed, only the names of their variables.

    Exit code 2: settings or files are invalid; 3: a model does not answer; 6: the store cannot be
    used.
    """
    from evalstore.runs.workspace_checks.doctor import doctor as operation

    diagnosis = operation(here(), tuple(models or ()), ping=not no_ping, timeout=timeout)
    lists = ["findings", "models"]
    if not print_data(diagnosis, lists, output_format, kind="doctor", json=json):
        print_diagnosis(diagnosis)
    if diagnosis.exit_code:
        raise typer.Exit(diagnosis.exit_code)


def print_diagnosis(diagnosis: Diagnosis) -> None:
    """Print a line for each finding, with a hint below each problem."""
    rows: list[Row] = [
        (finding.level, finding.topic, finding.message, finding.hint)
        for finding in diagnosis.findings
    ]
    for checkup in diagnosis.models:
        rows += _rows_of(checkup)
    columns = None if output.wide else output.table_width()
    topics = [output.safe(topic) for _, topic, _, _ in rows]
    if columns is not None:
        topics = [*shorten_labels(topics, columns // 2 - _BESIDE)]
    widest = max(map(output.columns_of, topics))
    for (level, _, message, hint), topic in zip(rows, topics, strict=True):
        start = f"{output.paint(f'{level:4}', _COLOURS[level])}  {output.pad(topic, widest)}  "
        for text in [message, *([f"hint: {for_here(hint)}"] if hint else [])]:
            room = None if columns is None else columns - widest - _BESIDE
            lines = output.wrap_sentence(output.safe(text), room) if room else [output.safe(text)]
            for line in lines:
                output.line(f"{start}{line}")
                start = " " * (widest + _BESIDE)
    output.line()
    if not diagnosis.pings:
        output.line("no model was called")
        return
    cost = diagnosis.cost
    silent = sum(1 for model in diagnosis.models if model.pinged and not model.answered)
    output.line(
        f"{output.plural(diagnosis.pings, 'model')} called, "
        + (output.paint(f"{silent} did not answer", "fail") if silent else "all answered")
        + f"; the pings cost {'an unknown amount' if cost is None else output.money(cost)}"
    )


def _price(checkup: Checkup) -> str:
    """Return the price; a warning of its own says that it is not known."""
    from evalstore.interfaces.cli.commands.workspace import price_text

    price = checkup.facts["price"]
    if price is None:
        return "reports its cost" if checkup.reports_cost else ""
    return price_text(price)


def _rows_of(checkup: Checkup) -> Iterator[Row]:
    from evalstore.interfaces.cli.commands.workspace import capabilities_text

    topic = f"model {checkup.model}"
    if (reply := checkup.reply) is not None:
        name = f" as {reply.resolved_model}" if reply.resolved_model else ""
        yield "ok", topic, f"answered in {reply.latency:.2f} s{name}", None
    can = capabilities_text(checkup.facts)
    origin = f" ({checkup.key_origin})" if checkup.key_origin else ""
    facts = (
        f"{checkup.key_variable} is set{origin}" if checkup.key_set else "",
        "capabilities unknown" if can == "?" else f"can: {can}",
        _price(checkup),
    )
    yield "ok", topic, "; ".join(fact for fact in facts if fact), None
    for level, message, hint in checkup.problems:
        yield level, topic, message, hint
