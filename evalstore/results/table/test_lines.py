"""Finds the line of a test file that a case comes from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.core.errors import EvalstoreError, FileProblem
from evalstore.files.access import LARGEST_TEXT, normalise
from evalstore.workspace.testfiles.parser import read_test
from evalstore.workspace.testfiles.replacements import name_id, shorten_value

if TYPE_CHECKING:
    from evalstore.workspace.folder import WorkspaceFolder
    from evalstore.workspace.testfiles.parser import TestFile


class TestLines:
    """The lines of cases in the test files as they are now; reads a file once in a row."""

    def __init__(self, workspace: WorkspaceFolder) -> None:
        self._workspace = workspace
        self._path: str | None = None
        self._first = 1
        self._values: dict[str, int] = {}

    def find(self, path: str, row: str = "") -> int:
        """Return the line of the row's value, else that of the first message.

        1 when the file is gone or cannot be read.
        """
        if path != self._path:
            self._path = path
            self._read(path)
        return self._values.get(row, self._first)

    def _read(self, path: str) -> None:
        self._first, self._values = 1, {}
        try:
            text = normalise(self._workspace.read_bytes(path, LARGEST_TEXT))
            test, _ = read_test(path, text)
        except (FileProblem, EvalstoreError):
            return
        self._first = test.first_line
        self._values = _lines_of_values(test)


def _lines_of_values(test: TestFile) -> dict[str, int]:
    """Return the lines of the values that label a row on their own, such as `city=Oslo`."""
    lines: dict[str, int] = {}
    for item in test.replacements:
        for name, values in item.items():
            shorten = name_id if name == test.row_id else shorten_value
            for value in values:
                lines.setdefault(f"{name}={shorten(value.text)}", value.line)
    return lines
