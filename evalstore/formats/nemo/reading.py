"""Finds the jobs in files and folders, and makes a test of each task."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evalstore.errors import EvalstoreError, FileProblem
from evalstore.formats.base import Imported, Left, Options
from evalstore.formats.json_lines import json_as_yaml, read_bytes
from evalstore.formats.nemo.data import tasks_of
from evalstore.formats.nemo.models import participants
from evalstore.formats.nemo.tasks import Task, write_task
from evalstore.yaml_core import Document, read_yaml

if TYPE_CHECKING:
    from pathlib import Path


def read(paths: list[Path], options: Options) -> Imported:
    """A test for each task of the jobs; files of data are those of the tasks that name them."""
    imported = Imported()
    found = [
        file
        for path in paths
        for file in (sorted(path.rglob("*.json")) if path.is_dir() else [path])
        if file.suffix == ".json"
    ]
    jobs = [job for file in found if (job := _read_job(file, imported, only=len(found) == 1))]
    if not jobs and not imported.left:
        raise EvalstoreError(
            "there is no job of NeMo Evaluator here",
            hint="name the JSON of a job or a configuration: it has 'tasks'",
        )
    for job in jobs:
        job.write(paths, options, imported)
    return imported


@dataclass
class _Job:
    """A JSON file with tasks."""

    path: Path
    document: Mapping[str, Any]
    config: Mapping[str, Any]
    places: Document | None
    """The same with its lines."""
    prefix: tuple[str, ...] = field(default=())
    """Where the configuration stands in the document."""

    def line(self, *steps: str) -> int | None:
        """The line of a part of the configuration."""
        return self.places.line(*self.prefix, *steps) if self.places else None

    def write(self, given: list[Path], options: Options, imported: Imported) -> None:
        several = len(self.config["tasks"]) > 1
        for name, task in self.config["tasks"].items():
            if not isinstance(task, dict):
                self._leave(imported, name, "a task must be a mapping")
                continue
            stem = name if several or self.path.stem in ("job", "config") else self.path.stem
            one = Task(
                name=stem,
                task=task,
                config=self.config,
                file=self.path,
                given=given,
                prefix=options.name,
                line=lambda *steps, name=name: self.line("tasks", name, *steps),
            )
            try:
                write_task(one, imported)
            except EvalstoreError as problem:
                self._leave(imported, name, str(problem))
        participants(self.document, self.config, str(self.path), imported)

    def _leave(self, imported: Imported, name: str, reason: str) -> None:
        line = self.line("tasks", name)
        imported.left.append(Left(str(self.path), f"the task '{name}': {reason}", line))


def _read_job(path: Path, imported: Imported, *, only: bool) -> _Job | None:
    try:
        text = read_bytes(path).decode("utf-8-sig")
        document = json.loads(text)
    except UnicodeDecodeError:
        imported.left.append(Left(str(path), "is not UTF-8"))
        return None
    except ValueError as error:
        if only or '"tasks"' in text:
            place = (getattr(error, "lineno", None), getattr(error, "colno", None))
            imported.left.append(Left(str(path), f"is not JSON: {error}", *place))
        return None
    config = tasks_of(document)
    if config is None:
        return None
    prefix = next(
        ((name,) for name in ("config", "spec") if document.get(name) is config),
        (),
    )
    try:
        places = read_yaml(json_as_yaml(text))
    except FileProblem:
        places = None
    return _Job(path, document, config, places, prefix)
