"""The table of cases: its rows, and the names they refer to by number."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from evalstore.core.display import safe
from evalstore.core.values import URGENCY, Json
from evalstore.interfaces.html.case_rows import CasePlaces, CaseRows
from evalstore.results.verdict_order import SIGNS

if TYPE_CHECKING:
    from evalstore.results.growing_results import CellKey

CHANGES = ("broke", "fixed", "changed", "new")


@dataclass
class CaseTable:
    """All cases, and the names they refer to by number."""

    run: str
    """The id of the run, or `workspace`."""
    files: list[str] = field(default_factory=list)
    models: list[str] = field(default_factory=list)
    """The candidates in the order of their numbers; `columns` has them as they are shown."""
    tags: list[str] = field(default_factory=list)
    rows: CaseRows = field(default_factory=CaseRows)
    blocks: list[int] = field(default_factory=list)
    """The number of the first case of each block of details."""
    since: str = ""
    """The run that the cases are compared with, for display; empty if there is none."""
    attempts: dict[CellKey, str] = field(default_factory=dict)
    """How many attempts at a changed result fail, if there are several."""
    undiffed: int = 0
    """The number of changed answers whose difference is left out."""
    unexplained: int = 0
    """The number of results whose verdict is not explained although others are."""
    columns: list[int] = field(default_factory=list)
    """The numbers of the candidates in the order in which they are shown."""

    @property
    def case_count(self) -> int:
        """Return the number of cases, however many system prompts they have."""
        return self.rows.count_cases()

    @property
    def places(self) -> CasePlaces:
        """Return the numbers of the cases."""
        return CasePlaces(self.files, self.rows.places)

    def sort_candidates(self, order: Callable[[str], Any]) -> None:
        """Show the candidates in this order."""
        self.columns = sorted(range(len(self.models)), key=lambda n: order(self.models[n]))

    @property
    def candidates(self) -> list[str]:
        """Return the candidates in the order in which they are shown."""
        return [self.models[number] for number in self.columns]

    def content(self) -> dict[str, Json]:
        """Return the table as JSON, apart from its rows.

        `addresses` has what stands in an address for the files and rows that are shown with
        escapes, by their number.
        """
        return {
            "files": list(map(safe, self.files)),
            "addresses": [
                _addresses(self.files),
                self.rows.addresses,
            ],
            "models": list(map(safe, self.models)),
            "columns": self.columns,
            "tags": list(map(safe, self.tags)),
            "words": URGENCY,
            "signs": SIGNS,
            "changes": CHANGES,
            "blocks": self.blocks,
            "since": self.since,
        }

    def rows_as_json(self) -> Iterator[Json]:
        """Yield the rows as JSON, in which a cell is a list that begins with its candidate."""
        for row in self.rows:
            yield [
                row.file,
                safe(row.row),
                safe(row.prompt),
                row.tags,
                [
                    [
                        model,
                        URGENCY.index(word),
                        CHANGES.index(change) if change else -1,
                        *([text] if text else []),
                    ]
                    for model, (word, change, text) in row.cells.items()
                ],
            ]


def _addresses(names: Iterable[str]) -> dict[str, Json]:
    return {str(number): quote(name) for number, name in enumerate(names) if safe(name) is not name}
