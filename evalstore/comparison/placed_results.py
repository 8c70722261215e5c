"""Keeps the results of a side of a comparison, with columns of what pairs and counts them.

Of many results only the columns are in memory, about 60 bytes each; they are in a file.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from typing import Any

from evalstore.core.results import Result
from evalstore.core.values import VERDICTS, Verdict
from evalstore.files.temporary_list import NumberedSequence, keep_values

_VERDICTS: tuple[Verdict | None, ...] = (None, *VERDICTS)
_CODES = {verdict: code for code, verdict in enumerate(_VERDICTS)}
PLACES = (("key", "prompt"), ("row", "prompt"), ("key", "prompt_number"), ("row", "prompt_number"))
"""By which names of row and system prompt results are paired; the first that has a partner counts.

Rows are paired by their values, else by their label; system prompts by their content, else, when
they were edited, by their number. Those that are left over are paired in their order.
"""

_CELL = 3
"""The number of the place that names a cell within its run."""


class PlacedResults(NumberedSequence[Result]):
    """Results in their order, which are named by their numbers."""

    def __init__(self, results: Iterable[Result] = ()) -> None:
        """`results` are read once."""
        self.places: tuple[array[int], ...] = tuple(array("q") for _ in PLACES)
        """Digests of the places of each result, that hold for this process."""
        self.rows = array("q")
        """Digests of file and row."""
        self.files = array("I")
        """The number of the file among `file_names`."""
        self.models = array("I")
        """The number of the candidate among `model_names`."""
        self.attempts = array("q")
        """The number of attempts that are required."""
        self.file_names: dict[str, int] = {}
        self.model_names: dict[str, int] = {}
        self.prompts: dict[tuple[str, str | None], int] = {}
        """The number of each system prompt of a file in the last of its results."""
        self.missing = bytearray()
        """1 for each result that lacks an answer or a judgement."""
        self.answers = array("q")
        """Digests of the ids of the answers of each result."""
        self._verdicts = bytearray()
        self._rename: Callable[[str], str] | None = None
        self._results = keep_values(self._note(results), tuple, unpack_result)
        self._names = [*self.file_names]

    def _note(self, results: Iterable[Result]) -> Iterator[Result]:
        """Yield the results, after adding them to the columns."""
        add_places = [column.append for column in self.places]
        files, models = self.file_names, self.model_names
        for result in results:
            file, row, _, prompt_number, prompt, model = result[:6]
            for add, place in zip(add_places, digests_of(result), strict=True):
                add(place)
            self.rows.append(hash((file, row)))
            self.files.append(files.setdefault(file, len(files)))
            self.models.append(models.setdefault(model, len(models)))
            self.attempts.append(result.required_answers // len(result.tests))
            self.answers.append(hash(result.sessions))
            self._verdicts.append(_CODES[result.verdict])
            self.prompts[file, prompt] = prompt_number
            self.missing.append(result.is_missing)
            yield result

    def __len__(self) -> int:
        return len(self._results)

    def __iter__(self) -> Iterator[Result]:
        return map(self._named, self._results)

    def read_one(self, number: int) -> Result:
        """Return the result with a number."""
        return self._named(self._results[number])

    def read(self, numbers: Sequence[int]) -> list[Result]:
        """Return the results with these numbers, in this order."""
        return [self.read_one(number) for number in numbers]

    def with_names(self, rename: Callable[[str], str]) -> PlacedResults:
        """Return the same results with other names of their files."""
        if all(rename(name) == name for name in self.file_names):
            return self
        renamed = copy(self)
        renamed._rename = rename
        renamed._names = [rename(name) for name in self.file_names]
        return renamed

    def _named(self, result: Result) -> Result:
        if self._rename is None or (name := self._rename(result.file)) == result.file:
            return result
        return result._replace(file=name)

    def file_name(self, number: int) -> str:
        """Return the test file of the result with a number."""
        return self._names[self.files[number]]

    def cell_digest(self, number: int) -> int:
        """Return the digest of the cell of the result with a number, as `digest_of_cell` does."""
        if self._rename is None:
            return self.places[_CELL][number]
        return digest_of_cell(self.read_one(number))

    def row_digest(self, number: int) -> int:
        """Return the digest of file and row of the result with a number."""
        if self._rename is None:
            return self.rows[number]
        result = self.read_one(number)
        return hash((result.file, result.row))

    def verdict(self, number: int) -> Verdict | None:
        """Return the verdict of the result with a number."""
        return _VERDICTS[self._verdicts[number]]

    def places_at(self, stage: int, numbers: Iterable[int]) -> Iterator[int]:
        """Yield the digests of places of results at one of `PLACES`; after these, of their rows."""
        if stage < len(PLACES):
            return map(self.places[stage].__getitem__, numbers)
        names = [*self.model_names]
        return (hash((self.rows[it], names[self.models[it]])) for it in numbers)

    def find_unplaced(self, other: PlacedResults) -> bytearray:
        """Return 1 for each result that has no place in common with any of another side."""
        left = bytearray(b"\1") * len(self)
        for own, others in zip(self.places, other.places, strict=True):
            if 1 not in left:
                break
            known = {*others}
            for number, place in enumerate(own):
                if left[number] and place in known:
                    left[number] = 0
        return left

    def places_where(self, *, missing: bool) -> set[int]:
        """Return the digests of the places of the results that lack something, or of the others."""
        return {
            place
            for column in self.places
            for place, lacks in zip(column, self.missing, strict=True)
            if bool(lacks) is missing
        }

    def has_place(self, number: int, places: set[int]) -> bool:
        """Return whether one of the places of a result is among these."""
        return any(column[number] in places for column in self.places)


def digests_of(result: Result) -> tuple[int, ...]:
    """Return the digests of the places of a result."""
    file, row, key, prompt_number, prompt, model = result[:6]
    return (
        hash((file, model, key, prompt)),
        hash((file, model, row, prompt)),
        hash((file, model, key, prompt_number)),
        hash((file, model, row, prompt_number)),
    )


def digest_of_cell(result: Result) -> int:
    """Return the digest of the cell of a result: its file, row, system prompt and candidate."""
    return hash((result.file, result.model, result.row, result.prompt_number))


def unpack_result(values: Sequence[Any]) -> Result:
    """Return a result that was kept as JSON."""
    return Result._make(
        (
            *values[:10],
            tuple(values[10]),
            tuple(values[11]),
            values[12],
            tuple(values[13]),
            values[14],
        )
    )
