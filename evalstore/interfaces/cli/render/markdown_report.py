"""Prints or writes the report of a run in Markdown."""

from __future__ import annotations

from pathlib import Path

from evalstore.core.errors import EvalstoreError
from evalstore.interfaces.cli import output, streams
from evalstore.interfaces.cli.app import here


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
