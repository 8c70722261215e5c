"""Import of the evals in files and folders."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalstore.core.errors import EvalstoreError, FileProblem
from evalstore.core.values import Json
from evalstore.exchange.importers.base import (
    Imported,
    ImportOptions,
    NotTakenError,
    as_mapping,
    include,
    reason_of,
)
from evalstore.exchange.importers.json_lines import JsonLinesRow, write_rows
from evalstore.exchange.importers.openai_evals.eval_classes import (
    Eval,
    EvalSources,
    find_class,
    read_yaml_document,
    yaml_files,
)
from evalstore.exchange.importers.template_writer import safe_file_name, unique, write_test
from evalstore.files.yaml12 import Document

_FOLDERS = ("data", "modelgraded")
"""The other folders of a registry, beside that of the eval files."""
_DATA = (".jsonl.gz", ".jsonl", ".ndjson", ".json")


def read(paths: list[Path], options: ImportOptions) -> Imported:
    """Import registries (`evals/*.yaml`, `data/`), eval files, or samples without an eval."""
    importer = _EvalsImporter(options)
    for path in paths:
        if path.is_dir():
            importer.registry(path)
        elif path.suffix in (".yaml", ".yml"):
            for name in _FOLDERS:
                include(path.parent.parent / name)
            importer.eval_file(path, path.parent.parent)
        elif path.name.endswith(_DATA):
            importer.samples(path)
        else:
            raise EvalstoreError(
                f"'{path.name}' is not a file of OpenAI Evals",
                hint="name a registry, an eval file (.yaml), or samples (.jsonl)",
            )
    importer.imported.require_any(
        f"no evals in '{paths[0].name}'", "an eval has a 'class' and 'args'"
    )
    return importer.imported


@dataclass
class _EvalsImporter:
    """Collects the imported evals."""

    options: ImportOptions
    imported: Imported = field(default_factory=Imported)
    judges: dict[Path, dict[str, Any]] = field(default_factory=dict)
    """By registry."""

    def registry(self, folder: Path) -> None:
        root = next(
            (
                candidate
                for candidate in (folder, folder / "registry", folder / "evals" / "registry")
                if yaml_files(candidate / "evals")
            ),
            None,
        )
        if root is not None:
            for path in yaml_files(root / "evals"):
                self.eval_file(path, root)
            return
        samples = sorted(file for file in folder.rglob("*") if file.name.endswith(_DATA[:3]))
        files = yaml_files(folder)
        if not samples and not files:
            raise EvalstoreError(
                f"no evals in '{folder.name}'",
                hint="name the folder that has 'evals/*.yaml' and 'data', or samples (.jsonl)",
            )
        for path in files:
            self.eval_file(path, folder.parent)
        for path in [] if files else samples:
            self.samples(path, under=folder)

    def eval_file(self, path: Path, registry: Path) -> None:
        """Import all evals of a file; entries with only an `id` describe the eval of that name."""
        try:
            document, warning = read_yaml_document(path)
        except FileProblem as problem:
            self.imported.skip(path, reason_of(problem), problem.line, problem.column)
            return
        if document.value is None:  # an empty file
            return
        if warning:
            self.imported.warnings.append(warning)
        if not isinstance(document.value, dict):
            self.imported.skip(path, "an eval file must be a mapping of evals", 1)
            return
        described = {
            spec["id"]: spec["description"]
            for spec in document.value.values()
            if isinstance(spec, dict)
            and isinstance(spec.get("id"), str)
            and isinstance(spec.get("description"), str)
        }
        for name in document.value:
            entry = document.at(name)
            if isinstance(entry.value, dict) and "class" in entry.value:
                self._eval(name, entry, path, registry, described.get(name))

    def _eval(
        self, name: str, entry: Document, path: Path, registry: Path, description: str | None
    ) -> None:
        spec: dict[str, Any] = entry.value
        eval_spec = Eval(
            name=name,
            path=self._path(name),
            kind=str(spec["class"]).rpartition(":")[2],
            args=as_mapping(spec.get("args")),
            description=text if isinstance(text := spec.get("description"), str) else description,
            file=str(path),
            line=entry.line(),
        )
        if eval_spec.path != _path(name):
            reason = f"another eval has this name: this one becomes '{eval_spec.path}'"
            self.imported.warnings.append(eval_spec.warning(reason))
        self._write(eval_spec, self._sources(path.parent, registry))

    def _path(self, name: str) -> str:
        """Return an unused path for the files of an eval."""
        taken = (file[6:-3] for file in self.imported.files if file.startswith("tests/"))
        return unique(_path(name), taken)

    def _sources(self, folder: Path, registry: Path) -> EvalSources:
        return EvalSources(folder, registry, self.judges, self.options.working_folder)

    def samples(self, path: Path, under: Path | None = None) -> None:
        """Import samples without an eval; they are judged by `Match`, the most common class."""
        name = path.relative_to(under).as_posix() if under else path.name
        name = _without_suffix(name)
        args = {"samples_jsonl": path.name}
        eval_spec = Eval(name, self._path(name), "Match", args, None, str(path), None)
        files_before = len(self.imported.files)
        self._write(eval_spec, self._sources(path.parent, path.parent))
        if len(self.imported.files) > files_before:
            self.imported.warn(path, "no eval says how these samples are judged: 'Match' is used")

    def _write(self, eval_spec: Eval, sources: EvalSources) -> None:
        try:
            written = find_class(eval_spec)(eval_spec, sources, self.options)
        except NotTakenError as problem:
            self.imported.skip(eval_spec.file, f"'{eval_spec.name}': {problem}", eval_spec.line)
            return
        known = set(self.imported.left)  # evals may share samples
        self.imported.left += [item for item in written.left if item not in known]
        self.imported.warnings += written.warnings
        if not written.rows:
            self.imported.skip(
                eval_spec.file,
                f"'{eval_spec.name}' has no row that can be used",
                eval_spec.line,
            )
            return
        self.imported.rows += len(written.rows)
        name = eval_spec.path
        data = self._data_file(eval_spec, written.rows)
        front: dict[str, Json] = (
            {"description": eval_spec.description} if eval_spec.description else {}
        )
        front["dataset"] = posixpath.relpath(data, posixpath.dirname(f"tests/{name}"))
        self.imported.files[f"tests/{name}.md"] = write_test(
            {**front, **written.front},
            written.turns,
            instructions=written.instructions,
            checks=[written.check],
        )
        self.imported.files |= written.files

    def _data_file(self, eval_spec: Eval, rows: list[JsonLinesRow]) -> str:
        """Add the data file of an eval and return its path; evals share identical files."""
        name, data = eval_spec.path, write_rows(rows)
        paths = [f"tests/{name}.jsonl"]
        if all(row.raw is not None for row in rows):
            stem = _path(_without_suffix(str(eval_spec.args["samples_jsonl"])))
            paths.insert(0, f"tests/{'data/' if '/' in stem else ''}{stem}.jsonl")
        for path in paths:
            if self.imported.files.setdefault(path, data) == data:
                return path
        path = unique(f"tests/{name}", (file[:-6] for file in self.imported.files)) + ".jsonl"
        self.imported.files[path] = data
        return path


def _path(name: str) -> str:
    return "/".join(safe_file_name(part) for part in name.split("/") if part not in ("", ".", ".."))


def _without_suffix(name: str) -> str:
    for suffix in _DATA:
        name = name.removesuffix(suffix)
    return name
