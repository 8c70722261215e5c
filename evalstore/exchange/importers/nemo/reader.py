"""Import of the tasks of jobs in files and folders."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalstore.core.errors import EvalstoreError, FileProblem
from evalstore.core.values import Json
from evalstore.exchange.importers.base import (
    Imported,
    ImportOptions,
    as_mapping,
    parse_json,
    read_unpacked,
    reason_of,
)
from evalstore.exchange.importers.json_lines import json_as_yaml
from evalstore.exchange.importers.nemo.datasets import tasks_of
from evalstore.exchange.importers.nemo.tasks import Task, write_task
from evalstore.exchange.importers.template_writer import safe_file_name
from evalstore.exchange.importers.yaml_writer import block
from evalstore.files.access import normalise
from evalstore.files.yaml12 import Document, read_yaml

_SUFFIXES = (".json", ".yaml", ".yml")


def read(paths: list[Path], options: ImportOptions) -> Imported:
    """Import a test for each task of the jobs; other files may be data of these tasks."""
    imported = Imported()
    files = [
        file
        for path in paths
        for file in (sorted(path.rglob("*")) if path.is_dir() else [path])
        if file.suffix in _SUFFIXES
    ]
    jobs = [job for file in files if (job := _read_job(file, imported, only=len(files) == 1))]
    if not jobs and not imported.left:
        raise EvalstoreError(
            "no NeMo Evaluator job found",
            hint="name the JSON or YAML of a job or a configuration: it has 'tasks', or a 'metric'",
        )
    for job in jobs:
        job.write(paths, options, imported)
    return imported


@dataclass
class _Job:
    """A file with tasks."""

    path: Path
    document: Mapping[str, Any]
    config: Mapping[str, Any]
    places: Document | None
    """The same document with line numbers."""
    prefix: tuple[str, ...] = field(default=())
    """The path of the configuration in the document."""

    def line(self, *steps: str) -> int | None:
        """Return the line of a part of the configuration."""
        if self.places is None:
            return None
        if "tasks" not in self.places.at(*self.prefix).value:  # a job without tasks
            steps = steps[2:3] if steps[2:3] != ("metrics",) else ("metric",)
        return self.places.line(*self.prefix, *steps)

    def write(self, sources: list[Path], options: ImportOptions, imported: Imported) -> None:
        several = len(self.config["tasks"]) > 1
        for name, task in self.config["tasks"].items():
            line = self.line("tasks", name)
            if not isinstance(task, dict):
                imported.skip(self.path, f"the task '{name}': a task must be a mapping", line)
                continue
            stem = name if several or self.path.stem in ("job", "config") else self.path.stem
            job_task = Task(
                name=stem,
                task=task,
                config=self.config,
                dataset=self._dataset(task),
                file=self.path,
                sources=sources,
                prefix=options.name,
                line=lambda *steps, name=name: self.line("tasks", name, *steps),
            )
            try:
                write_task(job_task, imported)
            except EvalstoreError as problem:
                imported.skip(self.path, f"the task '{name}': {problem}", line)
        if as_mapping(self.document.get("target")).get("cached_outputs"):
            reason = "the recorded answers of 'cached_outputs' are not imported: models are asked"
            line = self.places.line("target", "cached_outputs") if self.places else None
            imported.skip(self.path, reason, line)
        add_participants(self.document, self.config, str(self.path), options.name, imported)

    def _dataset(self, task: Mapping[str, Any]) -> Any:
        """Return the data of a task, from the task itself, the configuration or the target."""
        target = as_mapping(self.document.get("target"))
        candidates = [task.get("dataset"), self.config.get("dataset"), target.get("dataset")]
        if isinstance(target.get("rows"), list):
            candidates.append({"rows": target["rows"]})
        return next((candidate for candidate in candidates if candidate), None)


def _read_job(path: Path, imported: Imported, *, only: bool) -> _Job | None:
    try:
        text = normalise(read_unpacked(path))
    except FileProblem as problem:
        imported.skip(path, reason_of(problem), problem.line)
        return None
    try:
        places, document = _read_text(path, text)
    except FileProblem as problem:
        if only or "tasks" in text:
            place = problem.line, problem.column
            imported.skip(path, f"is not YAML: {problem.message}", *place)
        return None
    except ValueError as error:
        if only or '"tasks"' in text:
            place = (getattr(error, "lineno", None), getattr(error, "colno", None))
            imported.skip(path, f"is not JSON: {error}", *place)
        return None
    config = tasks_of(document)
    if config is None:
        if isinstance(document, dict) and isinstance(document.get("tasks"), list):
            line = places.line("tasks") if places else None
            reason = "its 'tasks' are a list, as in early versions: give each a name"
            imported.skip(path, reason, line)
        return None
    wrappers = [name for name in ("config", "spec") if tasks_of({name: document.get(name)})]
    prefix = () if tasks_of({**document, "config": None, "spec": None}) else (wrappers[0],)
    return _Job(path, document, config, places, prefix)


def _read_text(path: Path, text: str) -> tuple[Document | None, Any]:
    """Return a document with line numbers, and its value; raises `ValueError` or `FileProblem`."""
    if path.suffix != ".json":
        places = read_yaml(text)
        return places, places.value
    value = parse_json(text)
    try:
        return read_yaml(json_as_yaml(text)), value
    except FileProblem:
        return None, value


# --- model and provider files for the candidates and judges of a job


_PATHS = re.compile(r"/(?:chat/)?completions/?$")


def add_participants(
    document: Mapping[str, Any],
    config: Mapping[str, Any],
    file: str,
    prefix: str,
    imported: Imported,
) -> None:
    """Add model and provider files for the models of a job, and the settings that list them.

    `prefix` is the folder of the import; provider codes begin with it.
    """
    target = document.get("target")
    candidate = target.get("model") if isinstance(target, dict) else config.get("model")
    for name, models in (("candidates", [candidate]), ("evaluators", list(_judges(config)))):
        for model in models:
            id = _model(model, file, prefix, imported)
            ids: list[Json] = imported.settings.setdefault(name, [])
            if id and id not in ids:
                ids.append(id)
    for name in ("candidates", "evaluators"):
        if not imported.settings.get(name):
            imported.settings.pop(name, None)


def _judges(config: Mapping[str, Any]) -> Iterator[Any]:
    for task in config["tasks"].values():
        for metric in as_mapping(as_mapping(task).get("metrics")).values():
            if as_mapping(metric).get("type") == "llm-judge":
                yield as_mapping(metric.get("params") or metric).get("model")


def _model(model_spec: Any, file: str, prefix: str, imported: Imported) -> str | None:
    """Add the files of a model and return its id; API keys are never imported."""
    if isinstance(model_spec, str):
        model_spec = {"name": model_spec}
    endpoint = as_mapping(as_mapping(model_spec).get("api_endpoint", model_spec))
    code, url = endpoint.get("model_id") or endpoint.get("name"), endpoint.get("url")
    if not isinstance(code, str) or not code or code.startswith("<"):
        return None
    if not isinstance(url, str) or not re.match(r"https?://", url):
        imported.warn(
            file, f"no address is given for the model '{code}': write a model file for it"
        )
        return None
    name = safe_file_name(code)
    address = _PATHS.sub("", url)
    provider = {
        "code": f"{prefix}/{name}".lstrip("/"),
        "type": "openai-compatible",
        "baseURL": address,
    }
    key = f"{re.sub(r'[^A-Z0-9]+', '_', name.upper())}_API_KEY"
    if endpoint.get("api_key") or endpoint.get("api_key_secret"):
        provider["apiKeyEnvVar"] = key
        imported.warn(file, f"the key of '{code}' is not imported: set {key}")
    model = {"id": code, "provider": provider["code"], "providerModelCode": code}
    imported.files[f"providers/{name}.yaml"] = block(provider).encode()
    imported.files[f"models/{name}.yaml"] = block(model).encode()
    return code
