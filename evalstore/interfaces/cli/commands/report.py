"""`report`, `export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from evalstore.core.display import bytes_text
from evalstore.core.errors import EvalstoreError
from evalstore.exchange.exports.columns import FORMATS, Format
from evalstore.interfaces.cli import completions, options, output, streams
from evalstore.interfaces.cli.app import app, here
from evalstore.interfaces.cli.options import argument, option

_PAGE = "evalstore-report.html"


def _is_markdown(path: str | None, *, asked: bool) -> bool:
    """Return whether to write Markdown; raises `EvalstoreError` if the suffix is that of HTML."""
    suffix = Path(path).suffix.lower() if path else ""
    if asked and suffix in (".html", ".htm"):
        raise EvalstoreError(
            f"'--markdown' writes Markdown, and '{path}' is the name of an HTML file",
            hint="leave out '--markdown', or give the file a name that ends with .md",
        )
    return asked or suffix in (".md", ".markdown")


@app.command()
def report(
    revision: Annotated[
        str | None,
        argument(
            "REV",
            "A run, or @work, the workspace as it is now (default: @, the last run; in HTML "
            "@work if something has changed since).",
            completions.runs,
        ),
    ] = None,
    path: Annotated[
        str | None,
        option(
            "-o, --output FILE",
            f"The file to write (default: {_PAGE}; Markdown is printed); -: stdout.",
        ),
    ] = None,
    compare: Annotated[
        str | None,
        option(
            "--compare REV", "Compare with this run (default: the previous one).", completions.runs
        ),
    ] = None,
    markdown: Annotated[
        bool, option("--markdown", "As Markdown, for a comment on a pull request.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Write results as one HTML file, or a run as Markdown.

    The HTML file needs no network and opens in any browser. A file whose name ends with .md is
    Markdown, even without --markdown. An existing file is replaced only if it is a report. In
    Markdown, text from models is shown as code, so it mentions nobody and loads nothing.
    """
    from evalstore.interfaces.html.report import STDOUT, stream_report, write_report

    markdown = _is_markdown(path, asked=markdown)
    options.require_revision("report", revision or "@")
    if json and (markdown or path == STDOUT):
        raise EvalstoreError(
            "'--json' says what was written to an HTML file",
            hint="leave it out, or write HTML to a file",
        )
    if markdown:
        file = None if path in (None, STDOUT) else Path(path)
        write_markdown_report(revision or "@", compare, file)
        return
    if path == STDOUT:
        stream_report(here(), revision, streams.BinaryOutput(), compare=compare)
        return
    written = write_report(here(), revision, path or _PAGE, compare=compare)
    if json:
        output.document(written)
        return
    output.line(f"wrote {output.safe(written.report)}")
    output.talk(f"{output.plural(written.cases, 'case')}, {bytes_text(written.bytes)}")


# --- prints or writes the report of a run in Markdown


def write_markdown_report(revision: str, compare: str | None, file: Path | None) -> None:
    """Print the report of a run, or write it to a file in one step; raises `EvalstoreError`.

    A file that has something other than a report is not replaced.
    """
    from evalstore.exchange.markdown_report import markdown_report
    from evalstore.files.atomic_write import write_whole
    from evalstore.workspace.output_paths import require_writable

    location = here()
    if file is not None:
        require_writable(location.directory / file, file)
        _require_report(location.directory / file, file)
    text = markdown_report(location, revision, compare).encode()
    if file is None:
        streams.BinaryOutput().write(text)
        return
    try:
        write_whole((location.directory / file).resolve(), text)
    except OSError as error:
        raise EvalstoreError(f"'{file}' cannot be written: {error.strerror}") from error
    output.talk(f"wrote {output.safe(str(file))}")


def _require_report(target: Path, file: Path) -> None:
    """Raise `EvalstoreError` if a file exists that is neither a report nor empty."""
    from evalstore.exchange.markdown_report import MARK

    if not target.is_file():
        return
    try:
        with target.open("rb") as existing:
            start = existing.read(len(MARK))
    except OSError as error:
        raise EvalstoreError(f"'{file}' cannot be read: {error.strerror}") from error
    if start not in (b"", MARK):
        raise EvalstoreError(
            f"'{file}' exists and is not a report", hint="choose another name, or remove it"
        )


# --- `export`


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
