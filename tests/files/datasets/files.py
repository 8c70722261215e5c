"""What tests of datasets build: specs as an author writes them, and files in memory."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

import pytest

from evalstore.core.errors import FileProblem
from evalstore.files.datasets import Dataset, DatasetSpec, read_dataset, read_spec
from evalstore.files.processes.limited_calls import DataItem
from evalstore.files.yaml12 import read_yaml


def spec(written: str) -> DatasetSpec:
    """The spec in a frontmatter whose second line is `dataset:`."""
    return read_spec(read_yaml(f"tags: [a]\ndataset: {written}").at("dataset"))


def dataset(content: str | bytes, path: str = "d.jsonl", **fields: Any) -> Dataset:
    """A dataset of a file in memory; the fields are those of the frontmatter."""
    data = content.encode() if isinstance(content, str) else content
    return read_dataset(spec(json.dumps({"path": path, **fields})), lambda: io.BytesIO(data))


def rows(content: str | bytes, path: str = "d.jsonl", **fields: Any) -> list[DataItem]:
    """The rows that count."""
    return [row.item for row in dataset(content, path, **fields)]


def json_lines(*values: Mapping[str, Any]) -> str:
    """A file with these rows."""
    return "".join(json.dumps(value) + "\n" for value in values)


def problem(content: str | bytes, path: str = "d.jsonl", **fields: Any) -> FileProblem:
    """The problem that a file has."""
    with pytest.raises(FileProblem) as caught:
        rows(content, path, **fields)
    return caught.value


def place_and_message(
    content: str | bytes, path: str = "d.jsonl", **fields: Any
) -> tuple[int | None, str]:
    """The line and the message of the problem that a file has."""
    error = problem(content, path, **fields)
    return error.line, error.message
