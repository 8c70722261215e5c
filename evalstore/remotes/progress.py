"""Progress of copying rows."""

from __future__ import annotations


class CopyListener:
    """Ignores all progress; subclasses override the methods that they need."""

    def start(self, records: int) -> None:
        """Report how many records will be copied."""

    def advance(self, records: int, size: int) -> None:
        """Report how many more records were copied, and the bytes that were sent or received."""
