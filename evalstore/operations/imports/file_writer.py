"""Writes the files of an import to the workspace."""

from __future__ import annotations

import os
import posixpath
from typing import TYPE_CHECKING, NamedTuple

from evalstore.errors import EvalstoreError, FileProblem
from evalstore.files.access import LARGEST_SOURCE, read_file
from evalstore.files.atomic_write import remove_abandoned, write_whole
from evalstore.operations.imports.rollback import Older, find_taken, read_older, take_refused_back
from evalstore.operations.imports.written_files import ImportRecord

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from evalstore.importers.base import Imported
    from evalstore.workspace.folder import WorkspaceFolder


class PlacedFiles(NamedTuple):
    """The paths of imported files in the workspace, by their names in the import."""

    written: dict[str, str]
    unchanged: dict[str, str]
    kept: dict[str, str]
    replaced: dict[str, Older]
    """By place."""
    gone: tuple[str, ...] = ()
    """Files of earlier imports into the same folder that the source no longer has."""

    def without(self, places: Collection[str]) -> PlacedFiles:
        """Return the files without those that were written and removed again."""
        written = {name: path for name, path in self.written.items() if path not in places}
        return self._replace(written=written)


def write_files(
    workspace: WorkspaceFolder, folder: str, imported: Imported, *, force: bool, dry_run: bool
) -> PlacedFiles:
    """Write the imported files; those that `check` would refuse are removed again, and reported."""
    places = {name: import_path_of(workspace, folder, name) for name in imported.files}
    models = {places[name]: content for name, content in imported.files.items() if _is_model(name)}
    taken = find_taken(workspace, models)
    imported.warnings += taken.values()
    new = {name: content for name, content in imported.files.items() if places[name] not in taken}
    tests = import_path_of(workspace, folder, "tests/")
    workspace.boundary.require(workspace.root / tests, tests)
    record = ImportRecord.load(workspace.root / tests)
    files = _write(workspace, new, places, record, force=force, dry_run=dry_run)
    gone = sorted(record.places() - set(places.values()))
    files = files._replace(gone=tuple(place for place in gone if (workspace.root / place).exists()))
    if dry_run:
        return files
    refused = take_refused_back(workspace, files.written.values(), files.replaced)
    imported.left += refused
    for item in refused:
        record.take_back(item.file)
    _save(record, tests)
    return files.without({item.file for item in refused})


def import_path_of(workspace: WorkspaceFolder, folder: str, name: str) -> str:
    """Return the path of an imported file, relative to the workspace."""
    kind, _, rest = name.partition("/")
    return posixpath.normpath(posixpath.join(workspace.settings.paths[kind], folder, rest))


def _is_model(name: str) -> bool:
    return name.startswith("models/")


def _write(
    workspace: WorkspaceFolder,
    files: Mapping[str, bytes],
    places: Mapping[str, str],
    record: ImportRecord,
    *,
    force: bool,
    dry_run: bool,
) -> PlacedFiles:
    """Write files that would not replace others, and note them in the record without saving it."""
    placed_files = PlacedFiles({}, {}, {}, {})
    for name, content in sorted(files.items()):
        place = places[name]
        path = workspace.root / place
        workspace.boundary.require(path.parent, posixpath.dirname(place))
        if not path.is_symlink() and path.is_file() and _has(path, content):
            placed_files.unchanged[name] = place
            record.note(place, content)
            continue
        replaces = (force and path.is_file()) or record.is_untouched(place, path)
        if os.path.lexists(path) and not replaces:
            placed_files.kept[name] = place
            continue
        placed_files.written[name] = place
        record.note(place, content)
        if not dry_run:
            if replaces:
                placed_files.replaced[place] = read_older(path, place)
            _put(path, place, content, exclusive=not replaces)
    if not dry_run:
        # An import that was killed may have left some where nothing is written this time.
        ours = (*placed_files.written.values(), *placed_files.unchanged.values())
        for directory in {(workspace.root / written).parent for written in ours}:
            remove_abandoned(directory)
    return placed_files


def _save(record: ImportRecord, place: str) -> None:
    try:
        record.save()
    except OSError as error:
        raise EvalstoreError(f"{place}: cannot be written: {error.strerror}") from error


def _has(path: Path, content: bytes) -> bool:
    try:
        return read_file(path, LARGEST_SOURCE) == content
    except FileProblem:
        return False


def _put(path: Path, place: str, content: bytes, *, exclusive: bool) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, content, exclusive=exclusive)
    except OSError as error:
        raise EvalstoreError(f"{place}: cannot be written: {error.strerror}") from error
