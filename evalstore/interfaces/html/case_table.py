"""The table of cases: its rows, and the names they refer to by number."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from evalstore.core.display import SIGNS, safe
from evalstore.core.hashing import count_distinct, digest_of_value
from evalstore.core.values import RECORDED, URGENCY, CellKey, Json
from evalstore.files.temporary_list import TemporaryList


@dataclass(frozen=True, slots=True)
class TableRow:
    """A case with one system prompt, and the results of the candidates."""

    file: int
    row: str
    prompt_number: int
    prompt: str
    """The name of the system prompt if the case has several; else empty."""
    tags: Sequence[int]
    cells: Mapping[int, Sequence[str]]
    """The verdict, its change, the starts of the answer and of the reason, by the number of the
    candidate."""
    question: str = ""
    """The start of the question."""

    @property
    def case(self) -> tuple[int, str]:
        """Return what names the case; its rows for several system prompts have it in common."""
        return self.file, self.row

    @property
    def urgency(self) -> int:
        """Return the rank of the case in a list that begins with what needs attention."""
        changed = any(change == "broke" for _, change, *_ in self.cells.values())
        ranks = [URGENCY.index(word) for word, *_ in self.cells.values()]
        return -1 if changed else min(ranks, default=len(URGENCY))


class CaseRows:
    """The rows in their order."""

    def __init__(self) -> None:
        self.words = Counter[str]()
        """How many results have each verdict."""
        self.addresses: dict[str, Json] = {}
        """What stands in an address for the rows that are shown with escapes, by their number."""
        self._rows = TemporaryList()
        self._urgencies = array("b")
        self._cases = array("Q")
        """The digest of the case of each row."""
        self.compared: set[int] = set()
        """The candidates that have a row in common with another one."""
        self.places = array("Q")
        """The digest of each row, by its file, its label and the number of its prompt."""

    def __len__(self) -> int:
        return len(self._urgencies)

    def append(self, row: TableRow) -> None:
        """Add a row."""
        self.words.update(word for word, *_ in row.cells.values())
        if safe(row.row) is not row.row:
            self.addresses[str(len(self))] = quote(row.row, safe="")
        if len(row.cells) > 1:
            self.compared |= row.cells.keys()
        self._urgencies.append(row.urgency)
        self._cases.append(digest_of_value(row.case))
        self.places.append(digest_of_value((*row.case, row.prompt_number)))
        cells = [
            [model, URGENCY.index(word), CHANGES.index(change) if change else -1, *texts]
            for model, (word, change, answer, reason) in row.cells.items()
            for texts in [[answer, reason] if reason else [answer] if answer else []]
        ]
        shown = [row.file, safe(row.row), safe(row.prompt), [*row.tags], cells, row.question]
        self._rows.append([shown, row.row, row.prompt_number])

    def as_json(self) -> Iterator[Json]:
        """Yield the rows for the page, in which a cell is a list that begins with its candidate."""
        return (shown for shown, *_ in self._rows)

    def read(self, numbers: Sequence[int]) -> list[TableRow]:
        """Return the rows with these numbers, in this order."""
        return [_unpack(self._rows[number]) for number in numbers]

    def count_cases(self) -> int:
        """Return how many cases the rows are, however many system prompts these have."""
        return count_distinct(self._cases)

    def choose(self, most: int) -> list[TableRow]:
        """Return at most so many rows of whole cases, most urgent first; of one case at least."""
        urgent = array("L", sorted(range(len(self)), key=self._urgencies.__getitem__))
        sizes = Counter(self._cases)
        chosen: set[int] = set()
        for case in dict.fromkeys(self._cases[number] for number in urgent):
            if chosen and sizes[case] > most:
                break
            chosen.add(case)
            most -= sizes[case]
        return self.read([number for number in urgent if self._cases[number] in chosen])


@dataclass(frozen=True, slots=True)
class QuotedCell:
    """The starts of the question and of both answers of a changed result, and the reasons."""

    question: str = ""
    was: str = ""
    now: str = ""
    reasons: Sequence[tuple[str, str]] = ()
    """The person or judge and the reason of each that decided it, if it does not pass; else of
    each person."""
    since: str = ""
    """Of what is still broken, what changed in the run in which it did."""


@dataclass(frozen=True, slots=True)
class CasePlaces:
    """The numbers of the rows of a table."""

    files: Sequence[str]
    digests: array[int]

    def find(self, file: str, row: str, prompt_number: int) -> int | None:
        """Return the number of a row; None if there is none."""
        try:
            place = self.files.index(file), row, prompt_number
            return self.digests.index(digest_of_value(place))
        except ValueError:
            return None


def _unpack(values: Sequence[Any]) -> TableRow:
    """Return a row that was kept as JSON."""
    (file, _, prompt, tags, cells, question), row, prompt_number = values
    by_candidate = {
        model: [URGENCY[word], ("", *CHANGES)[change + 1], *[*texts, "", ""][:2]]
        for model, word, change, *texts in cells
    }
    return TableRow(file, row, prompt_number, prompt, tags, by_candidate, question)


CHANGES = ("broke", "fixed", "changed", "new", "still broken")


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
    quoted: dict[CellKey, QuotedCell] = field(default_factory=dict)
    """The texts of the changed results that the summary lists."""
    undiffed: int = 0
    """The number of changed answers whose difference is left out."""
    unexplained: int = 0
    """The number of results whose verdict is not explained although others are."""
    columns: list[int] = field(default_factory=list)
    """The numbers of the candidates that have a column, in their order."""
    aside: int = -1
    """The number of the recorded answers if these have no column: each fills its row; else -1."""

    @property
    def places(self) -> CasePlaces:
        """Return the numbers of the cases."""
        return CasePlaces(self.files, self.rows.places)

    def sort_candidates(self, order: Callable[[str], Any]) -> None:
        """Show the candidates in this order, in which recorded answers are the last."""
        self.columns = sorted(range(len(self.models)), key=lambda n: order(self.models[n]))
        last = self.columns[-1] if self.columns[1:] else -1
        if last >= 0 and self.models[last] == RECORDED and last not in self.rows.compared:
            self.aside = self.columns.pop()

    def content(self) -> dict[str, Json]:
        """Return the table as JSON, apart from its rows.

        `addresses` has what stands in an address for the files and rows that are shown with
        escapes, by their number.
        """
        return {
            "files": list(map(safe, self.files)),
            "addresses": [
                {
                    str(at): quote(name)
                    for at, name in enumerate(self.files)
                    if safe(name) is not name
                },
                self.rows.addresses,
            ],
            "models": list(map(safe, self.models)),
            "columns": self.columns,
            "aside": self.aside,
            "tags": list(map(safe, self.tags)),
            "words": URGENCY,
            "signs": SIGNS,
            "changes": CHANGES,
            "blocks": self.blocks,
            "since": self.since,
        }
