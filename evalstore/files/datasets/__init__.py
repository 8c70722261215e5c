"""Datasets: files of rows, read row by row, whose columns have stable names.

This package does not depend on the workspace: the caller opens the file and uses the rows. Values
are data, never templates.
"""

from evalstore.files.datasets.reader import Dataset, DatasetRow, read_dataset
from evalstore.files.datasets.spec import DatasetSpec, read_spec, resolve_path, stable_names
from evalstore.files.datasets.text_source import DataProblem
from evalstore.files.processes.data_item import DataItem

__all__ = [
    "DataItem",
    "DataProblem",
    "Dataset",
    "DatasetRow",
    "DatasetSpec",
    "read_dataset",
    "read_spec",
    "resolve_path",
    "stable_names",
]
