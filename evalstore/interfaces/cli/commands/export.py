"""`export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from evalstore.core.errors import EvalstoreError
from evalstore.exchange.exports.formats import FORMATS, Format
from evalstore.interfaces.cli import options, output, streams
from evalstore.interfaces.cli.app import app, here
from evalstore.interfaces.cli.options import option


@app.command()
def export(
    revision: options.RunOrWorkspace = "@",
    file: Annotated[
        Path | None, option("-o, --output FILE", "The file or folder to write (default: print).")
    ] = None,
    format: Annotated[
        Format | None,
        option(
            "--format FORMAT",
            f"As {', '.join(FORMATS[:-1])} or {FORMATS[-1]} (default: by the suffix; jsonl).",
        ),
    ] = None,
) -> None:
    """Write the results of a run for other programs.

    There is a row for each case, system prompt and candidate; docs/export.md describes the columns.
    FILE is replaced only when everything is written. '.xml' is JUnit XML. inspect, langbite and
    every-eval-ever write a new folder.
    """
    from evalstore.exchange.export import write_export, write_exports

    options.require_revision("export", revision)
    if file is None and format == "parquet":
        raise EvalstoreError("Parquet cannot be printed", hint="name a file with -o")
    if file is None:
        write_export(here(), revision, format or "jsonl", streams.BinaryOutput())
        return
    write_exports(here(), revision, [file], format)
    output.talk(f"wrote {output.safe(str(file))}")
