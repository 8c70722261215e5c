"""The data of a task, found among the user's files and copied next to the test."""

from __future__ import annotations

import io
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalstore.core.errors import FileProblem
from evalstore.core.values import Json
from evalstore.exchange.importers.base import (
    NotTakenError,
    SkippedItem,
    as_list,
    as_mapping,
    is_file,
    parse_json,
    positive_int,
    read_unpacked,
    reason_of,
    require_readable,
    taking,
)
from evalstore.exchange.importers.json_lines import (
    JsonLinesRow,
    find_sources,
    read_rows,
    write_rows,
)
from evalstore.exchange.importers.template_writer import unique
from evalstore.files.datasets import read_dataset
from evalstore.files.datasets.spec import DatasetSpec

SUFFIXES = (".jsonl", ".ndjson", ".csv", ".tsv", ".json")


@dataclass
class TaskData:
    """The rows of a task, if their file was found."""

    source: str
    """The name of the data in messages."""
    name: str = ""
    """The file name of the copy; empty if the data were not found."""
    content: bytes = b""
    rows: list[JsonLinesRow] = field(default_factory=list)
    spec: dict[str, Json] = field(default_factory=dict)
    """Fields of `dataset` besides the path."""
    url: str = ""
    """The URL of the data, if they were not found."""

    @property
    def columns(self) -> frozenset[str]:
        """Return the names of all columns in lower case."""
        return frozenset(name.lower() for row in self.rows for name in row.values)

    def has_column(self, column: str) -> bool:
        """Return whether there is a column of this name, in the form used in templates."""
        return column in {re.sub(r"\W", "_", name) for name in self.columns}

    def split(self, keys: list[str]) -> list[tuple[int, TaskData]]:
        """Split the rows by key; returns the index of the first row and the data of each part."""
        limit = self.spec.get("limit", len(self.rows))
        numbers_by_key: dict[str, list[int]] = {}
        for number, key in enumerate(keys[:limit]):
            numbers_by_key.setdefault(key, []).append(number)
        spec = {name: value for name, value in self.spec.items() if name != "limit"}
        parts = []
        for count, numbers in enumerate(numbers_by_key.values(), 1):
            rows = [self.rows[number] for number in numbers]
            name = f"{Path(self.name).stem}-{count}.jsonl"
            parts.append((numbers[0], TaskData(self.source, name, write_rows(rows), rows, spec)))
        return parts

    def free_name(self, name: str) -> str:
        """Return an unused column name, in the form used in templates."""
        return unique(name, (re.sub(r"\W", "_", column) for column in self.columns))

    def keep_rows(self, rows: list[JsonLinesRow]) -> None:
        """Replace the rows, which are within the limit, and write them as JSON Lines."""
        self.spec = {name: value for name, value in self.spec.items() if name != "limit"}
        self.rows, self.content = rows, write_rows(rows)
        self.name = Path(self.name).stem + ".jsonl"

    @property
    def limited_rows(self) -> list[JsonLinesRow]:
        """Return the rows within the limit."""
        return self.rows[: self.spec.get("limit", len(self.rows))]

    def has_empty(self, mentioned: str) -> bool:
        """Return whether a column that a template mentions is empty in any row."""
        words = set(re.findall(r"\w+", mentioned.lower()))
        return any(
            value in ("", []) and words.issuperset(re.findall(r"\w+", name.lower()))
            for row in self.rows
            for name, value in row.values.items()
        )

    def add_column(self, name: str, values: list[Json]) -> None:
        """Add a column; the copy is written as JSON Lines."""
        pairs = zip(self.rows, values, strict=True)
        self.rows = [row.with_values(**{name: value}) for row, value in pairs]
        self.name = Path(self.name).stem + ".jsonl"
        self.content = write_rows(self.rows)


def find_data(
    dataset: Any, limit: Any, job: Path, sources: list[Path], left: list[SkippedItem]
) -> TaskData:
    """Return the data of a task; raises `NotTakenError` if it specifies none."""
    if isinstance(dataset, str) and dataset:
        dataset = {"files_url": dataset}
    if not isinstance(dataset, dict):
        raise NotTakenError("it has no 'dataset'")
    limit = dataset.get("limit", limit)
    spec: dict[str, Json] = {"limit": positive_int(limit)} if positive_int(limit) else {}
    if isinstance(rows := dataset.get("rows"), list):
        valid_rows = [
            JsonLinesRow(number, row) for number, row in enumerate(rows, 1) if isinstance(row, dict)
        ]
        return TaskData(str(job), "rows.jsonl", write_rows(valid_rows), valid_rows, spec)
    url = dataset.get("files_url")
    if not isinstance(url, str) or not url:
        raise NotTakenError("its 'dataset' has no 'files_url'")
    path = _locate(url, job, sources)
    if path is None:
        return TaskData(url, url=url, spec=spec)
    return _read_data(path, spec, left)


def _locate(url: str, job: Path, sources: list[Path]) -> Path | None:
    """Return the local file for a URL: the one with the same name, or the only one."""
    name = url.rstrip("/").rpartition("/")[2]
    found = find_sources(sources, SUFFIXES)
    files = [file for file in found if file.suffix in SUFFIXES and file != job]
    if "://" not in url or url.startswith("file://"):
        local = job.parent / url.removeprefix("file://")
        if is_file(local):
            with taking(f"'{url}' "):
                require_readable(local)
            return local
    for file in files:
        if name in (file.name, file.stem):
            return file
    data = [file for file in files if not is_job(file)]
    return data[0] if len(data) == 1 else None


def is_job(path: Path) -> bool:
    """Return whether a file is a JSON document with tasks."""
    if path.suffix != ".json":
        return False
    try:
        document = parse_json(read_unpacked(path))
    except (ValueError, FileProblem):
        return False
    return tasks_of(document) is not None


def tasks_of(document: Any) -> dict[str, Any] | None:
    """Return the configuration in a document, which is a job or a configuration; else None."""
    if not isinstance(document, dict):
        return None
    for candidate in (document, document.get("config"), document.get("spec")):
        if isinstance(candidate, dict) and isinstance(candidate.get("tasks"), dict):
            return candidate
    for candidate in (document, document.get("spec")):
        if isinstance(candidate, dict) and (config := as_tasks(candidate)) is not None:
            return config
    return None


def _read_data(path: Path, spec: dict[str, Json], left: list[SkippedItem]) -> TaskData:
    if path.suffix in (".jsonl", ".ndjson"):
        rows = read_rows(path, left)
        return TaskData(str(path), f"{path.stem}.jsonl", write_rows(rows), rows, spec)
    try:
        content = read_unpacked(path)
    except FileProblem as problem:
        left.append(SkippedItem(str(path), reason_of(problem)))
        return TaskData(str(path), path.name, b"", [], spec)
    dataset = DatasetSpec(path.name, skip=True)
    rows = []
    try:
        dataset_rows = read_dataset(dataset, lambda: io.BytesIO(content), str(path))
        rows = [JsonLinesRow(row.line or row.number, dict(row.item)) for row in dataset_rows]
        problems = dataset_rows.problems
    except FileProblem as problem:
        left.append(SkippedItem(str(path), problem.message, problem.line, problem.column))
        return TaskData(str(path), path.name, content, rows, spec)
    bad = [problem for problem in problems if problem.line is not None]
    for row_problem in bad:
        reason = row_problem.message.removeprefix("this row is skipped: ")
        left.append(SkippedItem(str(path), reason, row_problem.line, row_problem.column))
    if bad:
        spec = {**spec, "onError": "skip"}
    return TaskData(str(path), path.name, content, rows, spec)


# --- conversion of jobs of newer versions, which have data and metrics, but no tasks


def as_tasks(job: dict[str, Any]) -> dict[str, Any] | None:
    """Convert a job to one with a single task; None if it has no metrics and data."""
    entries = [job["metric"]] if "metric" in job else as_list(job.get("metrics"))
    if not entries or not isinstance(job.get("dataset"), dict | str):
        return None
    metrics: dict[str, Any] = {}
    for metric in entries:
        name = str(as_mapping(metric).get("name") or as_mapping(metric).get("type") or metric)
        metrics[name if name not in metrics else f"{name}-{len(metrics) + 1}"] = metric
    params = as_mapping(job.get("params"))
    task = {
        "dataset": job["dataset"],
        "params": {
            **as_mapping(params.get("inference")),
            "template": job.get("prompt_template"),
            "limit_samples": params.get("limit_samples"),
        },
        "metrics": metrics,
    }
    return {"tasks": {next(iter(metrics)): task}, "model": job.get("model")}
