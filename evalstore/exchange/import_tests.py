"""`import`: converts the tests of another system to files of the workspace.

Importing twice changes nothing. When the source has changed, the files that an import wrote are
written again; a file that was edited since, or that no import wrote, is kept and reported.
"""

from __future__ import annotations

import os
import posixpath
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from evalstore.core.errors import EvalstoreError, FileProblem
from evalstore.core.values import Json
from evalstore.exchange.importers.base import (
    Imported,
    ImportOptions,
    SkippedItem,
    find_importer,
    format_names,
    guess_format,
    reading_from,
)
from evalstore.exchange.imports.file_writer import (
    PlacedFiles,
    adopt_answers,
    import_path_of,
    write_files,
    write_models,
)
from evalstore.exchange.imports.matching import MatchedAnswers
from evalstore.exchange.imports.records import ImportSummary, store_history
from evalstore.files.fields import suggest_beside
from evalstore.planning.open_project import open_project, open_workspace
from evalstore.planning.options import Location
from evalstore.planning.project import Project

_TOO_GENERAL = frozenset({"promptfooconfig", "config", "test", "tests", "samples", "eval", "data"})
"""Names of files that are not specific: the name of the folder is used."""


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The files that `import` wrote, and the items that it could not import."""

    JSON_FIELDS = (
        *("format", "folder", "rows", "written", "unchanged", "kept"),
        *("gone", "left", "warnings", "settings", "history"),
    )
    format: str = field(metadata={"json_name": "source"})
    folder: str
    """The folder below that of the tests."""
    rows: int
    written: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    """Existing files that differ, and that no import has written as they are."""
    gone: tuple[str, ...] = field(default=(), metadata={"json_optional": True})
    """Files that earlier imports wrote, and that the source no longer has."""
    left: tuple[SkippedItem, ...] = ()
    warnings: tuple[SkippedItem, ...] = ()
    settings: dict[str, Json] = field(default_factory=dict)
    """Settings to be pasted into `evalstore.yaml`."""
    history: ImportSummary | None = None
    """Recorded answers and verdicts; None when there are none, or they were not requested."""
    present: tuple[str, ...] = ()
    """The names of those settings that the workspace has already."""

    @property
    def complete(self) -> bool:
        """Return whether everything was imported."""
        return not self.left and not self.kept


def import_files(
    location: Location,
    format: str,
    paths: list[Path],
    *,
    into: str | None = None,
    sessions: bool = False,
    force: bool = False,
    dry_run: bool = False,
) -> ImportReport:
    """Convert the tests in files of another system to test files of the workspace.

    Raises `EvalstoreError` for an unknown format and for files that cannot be read or written.
    """
    if not paths:
        raise _without_format(format, location.directory)
    _refuse_project(format, paths[0], location.directory)
    importer = find_importer(format)
    workspace = open_workspace(location)
    for path in paths:
        if not path.exists():
            name = os.path.relpath(path, location.directory)
            hint = suggest_beside(path, name)
            raise EvalstoreError(f"file or folder '{name}' not found", hint=hint)
    folder = _folder(into) if into is not None else _name_of(format, paths)
    options = ImportOptions(
        folder,
        sessions=sessions,
        temperature=workspace.settings.candidates_temperature,
        working_folder=location.directory,
    )
    try:
        with reading_from(paths, allow_outside=location.allow_outside):
            imported = importer(paths, options)
    except FileProblem as problem:
        place = problem.at(str(paths[0])).place
        raise EvalstoreError(f"{place}: {problem.message}", hint=problem.hint) from problem
    if imported.recorded:
        imported.files |= write_models(
            location, workspace, imported.recorded, partial(import_path_of, workspace, folder)
        )
    files = write_files(workspace, folder, imported, force=force, dry_run=dry_run)
    history = None
    if imported.recorded or imported.conversed:
        recorded = sum(len(answer.answers) for answer in imported.recorded)
        history = ImportSummary(recorded or len(imported.conversed))
        if not dry_run:
            with open_project(location, create=True) as project:
                history = _add_history(project, format, imported, files, str(paths[0]))
    return ImportReport(
        format,
        folder,
        imported.rows,
        tuple(files.written.values()),
        tuple(files.unchanged.values()),
        tuple(files.kept.values()),
        files.gone,
        _seen_from(location.directory, imported.left),
        _seen_from(location.directory, imported.warnings),
        imported.settings,
        history,
        tuple(name for name in imported.settings if name in workspace.names),
    )


def _add_history(
    project: Project, format: str, imported: Imported, files: PlacedFiles, source: str
) -> ImportSummary:
    """Store the recorded answers and verdicts; those without a case are added to what is left."""
    if not imported.recorded:  # answers that contain their own questions
        system = format.removesuffix("-db")
        history, left = adopt_answers(project, system, imported.conversed, source)
        imported.left += left
        return store_history(project, history)
    listed = imported.settings.get("candidates", ())
    suggested = [candidate for candidate in listed if isinstance(candidate, dict)]
    places = {**files.written, **files.unchanged}
    matched = MatchedAnswers(project, format, places, suggested)
    for answer in imported.recorded:
        matched.add(answer)
    matched.finish()
    imported.left += matched.left
    imported.warnings += matched.warnings
    return store_history(project, matched.history)


def _seen_from(base: Path, listed: list[SkippedItem]) -> tuple[SkippedItem, ...]:
    """Return the items sorted without duplicates; paths inside the folder are relative to it."""
    items = dict.fromkeys(
        replace(item, file=path.relative_to(base).as_posix())
        if (path := Path(item.file)).is_absolute() and path.is_relative_to(base)
        else item
        for item in listed
    )
    return tuple(sorted(items, key=lambda item: (item.file, item.line or 0, item.column or 0)))


_PROJECT, _DATABASE = "ai-tester", "ai-tester-db"
"""A system whose projects are not imported, and the format of its database."""


def _refuse_project(format: str, path: Path, base: Path) -> None:
    """Raise `EvalstoreError` for a project of ai-tester, which `init --from` adopts."""
    if format == _PROJECT and format not in format_names():
        message = f"unknown format '{format}'"
    elif format == _DATABASE and path.is_dir():
        message = f"'{path.name}' is a folder, not a regular file"
    else:
        return
    folder = path if path.is_dir() else path.parent
    raise EvalstoreError(message, hint=_adopting(os.path.relpath(folder, base)))


def _adopting(folder: str) -> str:
    return (
        f"type 'evalstore init --from {folder}' for the files of an ai-tester project, "
        f"and 'evalstore import {_DATABASE} FILE' for its database"
    )


def _without_format(text: str, base: Path) -> EvalstoreError:
    """Return the error for one word in place of a format and a path."""
    from evalstore.exchange.importers.ai_tester import USUAL_CONFIG

    path = base / text
    message = f"the format of '{text}' is missing"
    format = guess_format(path) if path.exists() else None
    if text in format_names():
        message = f"the format '{text}' needs a path"
        hint = f"type 'evalstore import {text} PATH'"
    elif text == _PROJECT and not path.exists():
        message, hint = f"unknown format '{text}'", _adopting("DIR")
    elif path.is_dir() and (format == _DATABASE or (path / USUAL_CONFIG).is_file()):
        hint = _adopting(os.path.relpath(path, base))
    elif format:
        hint = f"type 'evalstore import {format} {text}'"
    else:
        names = ", ".join(format_names())
        hint = f"type 'evalstore import FORMAT {text}'; the formats are {names}"
    return EvalstoreError(message, hint=hint)


def _name_of(format: str, paths: list[Path]) -> str:
    """Return a name for the sources; that of the format when there are several."""
    if len(paths) != 1:
        return format
    path = paths[0].resolve()
    name = path.name if path.is_dir() else path.name.split(".")[0]
    if not path.is_dir() and name in _TOO_GENERAL:
        name = path.parent.name
    return name.lstrip(".") or format


def _folder(name: str) -> str:
    path = posixpath.normpath(name.strip().replace("\\", "/"))
    if path == ".":
        return ""
    if path.startswith("/") or any(part.startswith(".") for part in path.split("/")):
        raise EvalstoreError(
            f"'{name}' is not a folder inside the tests folder",
            hint="write a name such as 'from-evals', or 'a/b'",
        )
    return path
