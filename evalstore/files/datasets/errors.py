"""What is wrong inside of a data file, as opposed to the test file that names it."""

from __future__ import annotations

from evalstore.errors import FileProblem, Problem


class DataProblem(FileProblem):
    """A problem whose line is one of the data file, so that is where it is reported."""

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
        """The data file, as a user is to read it."""

    def at(self, file: str, lines: list[str] | None = None) -> Problem:
        """The problem in the data file, whichever file it was found for."""
        return Problem(self.file, self.message, self.line, self.column, hint=self.hint)


class BadRow(DataProblem):
    """A row that cannot be used, while those behind it can."""

    def as_warning(self) -> Problem:
        """The message about a row that is skipped."""
        return Problem(
            self.file,
            f"this row is skipped: {self.message}",
            self.line,
            self.column,
            severity="warning",
            hint=self.hint,
        )
