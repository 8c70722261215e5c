"""Datasets: files of rows, read one row after the other, whose columns have stable names.

Nothing here knows the workspace: a caller gives the way to open the file, and decides what
a row is for. Values are data, never templates.
"""

from evalstore.files.datasets.columns import stable_names
from evalstore.files.datasets.errors import DataProblem
from evalstore.files.datasets.reader import Dataset, read_dataset
from evalstore.files.datasets.row_filter import DatasetRow
from evalstore.files.datasets.spec import DatasetSpec, read_spec, resolve_path
from evalstore.processes.data_item import DataItem

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
