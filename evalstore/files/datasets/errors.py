"""Problems in a data file, as opposed to the test file that names it."""

from __future__ import annotations

from evalstore.core.errors import FileProblem, Problem


class DataProblem(FileProblem):
    """A problem that is reported at a line of the data file."""

    def __init__(
        self,
        file: str,
        message: str,
        line: int | None = None,
        *,
        column: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, line, column=column, hint=hint)
        self.file = file
        """The name of the data file in messages."""

    def at(self, file: str, lines: list[str] | None = None) -> Problem:
        """Return the problem with the place in the data file, whichever file was being read."""
        return Problem(self.file, self.message, self.line, self.column, hint=self.hint)


class BadRow(DataProblem):
    """An unusable row, after which reading can continue."""

    def as_warning(self) -> Problem:
        """Return the warning about a skipped row."""
        return Problem(
            self.file,
            f"this row is skipped: {self.message}",
            self.line,
            self.column,
            severity="warning",
            hint=self.hint,
        )
