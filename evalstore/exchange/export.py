"""The command `export`: the results of a run, or of the workspace, in a file for other programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from evalstore.core.errors import EvalstoreError
from evalstore.exchange.exports import (
    every_eval_ever,
    formats,
    inspect_logs,
    junit,
    langbite_tables,
    otlp,
    parquet,
)
from evalstore.exchange.exports.formats import ByteWriter, FolderWriter, Format, Writer
from evalstore.exchange.exports.rows import open_export
from evalstore.files.atomic_write import (
    require_new_folder,
    require_writable,
    temporary_file,
    temporary_folder,
)
from evalstore.planning.options import Location
from evalstore.results.show.show import without_garbage_collection

_WRITERS: dict[Format, Writer] = {
    "jsonl": formats.write_json_lines,
    "csv": formats.write_csv,
    "parquet": parquet.write_parquet,
    "json": formats.write_json,
    "md": formats.write_markdown,
    "junit": junit.write_junit,
    "otlp": otlp.write_otlp,
}
_FOLDER_WRITERS: dict[Format, FolderWriter] = {
    "inspect": inspect_logs.write_inspect_logs,
    "langbite": langbite_tables.write_langbite,
    "every-eval-ever": every_eval_ever.write_every_eval_ever,
}
_SUFFIXES: dict[str, Format] = {
    ".jsonl": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
    ".otlp.json": "otlp",
    ".json": "json",
    ".md": "md",
    ".junit.xml": "junit",
    ".xml": "junit",
}


def format_of(path: Path) -> Format | None:
    """Return the format that the suffix of a file names; None if it names none."""
    name = path.name.casefold()
    return next((found for suffix, found in _SUFFIXES.items() if name.endswith(suffix)), None)


def find_format(path: Path, format: Format | None = None) -> Format:
    """Return the format of a file, by its suffix unless it is given; raises `EvalstoreError`."""
    chosen = format or format_of(path)
    if chosen is None:
        hint = f"end the name with {', '.join(_SUFFIXES)}, or add --format"
        if path.suffix.lower() in (".html", ".htm"):
            hint = f"'evalstore report -o {path}' writes a page"
        raise EvalstoreError(f"the suffix of '{path}' names no format", hint=hint)
    if chosen == "parquet":
        parquet.require_pyarrow()
    return chosen


def write_exports(
    location: Location, revision: str, paths: Sequence[Path], format: Format | None = None
) -> None:
    """Write the results of a revision to files or folders, each whole or not at all.

    Existing files are replaced, folders only if they are empty; relative paths are relative to the
    folder of the location. Raises `EvalstoreError`.
    """
    formats = require_exports(location, paths, format)
    for path, chosen in zip(paths, formats, strict=True):
        target = (location.directory / path).resolve()
        try:
            if chosen not in _FOLDER_WRITERS:
                with temporary_file(target) as file:
                    write_export(location, revision, chosen, file)
                continue
            with (
                without_garbage_collection(),
                open_export(location, revision) as export,
                temporary_folder(target) as folder,
            ):
                _FOLDER_WRITERS[chosen](export, folder)
        except OSError as error:
            raise EvalstoreError(f"'{path}' cannot be written: {error.strerror}") from error


def require_exports(
    location: Location, paths: Sequence[Path], format: Format | None = None
) -> list[Format]:
    """Return the formats of files; raises `EvalstoreError` when one cannot be written."""
    formats = [find_format(path, format) for path in paths]
    for path, chosen in zip(paths, formats, strict=True):
        require = require_new_folder if chosen in _FOLDER_WRITERS else require_writable
        require(location.directory / path, path)
    return formats


def write_export(location: Location, revision: str, format: Format, file: ByteWriter) -> None:
    """Write the results of a revision to an open file; raises `EvalstoreError`."""
    if format in _FOLDER_WRITERS:
        raise EvalstoreError(
            f"'{format}' writes several files, which cannot be printed",
            hint="name a folder with -o",
        )
    if format == "parquet":
        parquet.require_pyarrow()
    with without_garbage_collection(), open_export(location, revision) as export:
        _WRITERS[format](export, file)
