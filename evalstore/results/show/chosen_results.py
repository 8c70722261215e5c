"""The results of a test file that `show FILE` chooses from several runs, in a temporary file."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from evalstore.results.show.shown_results import ShownResult, ShownResults, result_to_json
from evalstore.workspace.digest_set import DigestMap, DigestSet, digest_of_value

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from evalstore.core.results import Result
    from evalstore.core.values import Json

Pair = tuple[str, str | None]
"""A candidate and a system prompt."""


class FoundResult(NamedTuple):
    """A result, and the newest run that has it."""

    result: Result
    run: str
    """The id of the run."""
    number: int
    """The number of its case."""
    is_older: bool = False
    """Whether the run is older than the newest one with results of the file."""
    is_edited: bool = False
    """Whether its case was edited since."""


class CasePrompts:
    """Knows the system prompts with which cases have results; it keeps few bytes of each case."""

    def __init__(self) -> None:
        self._numbers = DigestMap()
        self._sets: list[frozenset[str | None]] = [frozenset()]
        self._larger: dict[tuple[int, str | None], int] = {}
        """The number of a set and a prompt -> that of the set with this prompt."""

    def note(self, file: str, row: str, prompt: str | None) -> None:
        """Note a result of a case."""
        digest = digest_of_value((file, row))
        number = self._numbers.get(digest) or 0
        larger = self._larger.get((number, prompt))
        if larger is None:
            larger = self._find_larger(number, prompt)
        if larger != number:
            self._numbers.put(digest, larger)

    def _find_larger(self, number: int, prompt: str | None) -> int:
        prompts = self._sets[number] | {prompt}
        if prompts not in self._sets:
            self._sets.append(prompts)
        return self._larger.setdefault((number, prompt), self._sets.index(prompts))

    @property
    def several(self) -> set[str | None]:
        """Return the system prompts of cases with several."""
        return {prompt for prompts in self._sets if len(prompts) > 1 for prompt in prompts}


class ListedResults(NamedTuple):
    """Results to show of a test file."""

    results: ShownResults
    prompts: set[str | None]
    """The system prompts of cases with several."""


class ChosenResults:
    """The results of several cases of a test file, those of the newest run first."""

    def __init__(self, file: str, found: Iterable[FoundResult], every: CasePrompts) -> None:
        """`file` is the path in the newest run, and `found` are read once.

        `every` has all results of the file in this run, when `found` are read.
        """
        self.pairs: dict[Pair, None] = {}
        """The candidates and system prompts of the results, in this order."""
        self.first: list[tuple[str, str]] = []
        """The file and the row of the first few cases."""
        self.cases = 0
        """How many cases there are."""
        self._file, self._every, self._has_older = file, every, False
        self.results = ShownResults.listing(map(self._describe, self._count(found)))

    def _count(self, found: Iterable[FoundResult]) -> Iterator[FoundResult]:
        """Yield the results while they are counted."""
        places = DigestSet()
        for each in found:
            result = each.result
            self.pairs[result.model, result.prompt] = None
            place = result.file, result.row
            if places.add(digest_of_value(place)):
                self.cases += 1
                if len(self.first) < _MOST_NAMED:
                    self.first.append(place)
            self._has_older = self._has_older or each.is_older
            yield each

    def _describe(self, found: FoundResult) -> ShownResult:
        """Return the document of a result; one of an older run is under the present path."""
        document = result_to_json(found.result)
        if found.is_older:
            document |= {"file": self._file, "run": found.run}
            document |= {"edited": True} if found.is_edited else {}
        return ShownResult(document, has_several=True)

    def choose(self, pairs: Collection[Pair]) -> ListedResults:
        """Return the results of these pairs; call it once."""
        shown = self.results
        if len(pairs) < len(self.pairs):
            left = (each for each in shown if (each["model"], each["prompt"]) in pairs)
            shown = ShownResults.listing(ShownResult(each, has_several=True) for each in left)
        for each in shown if self._has_older else ():
            if _is_older(each):
                self._every.note(each["file"], each["row"], each["prompt"])
        return ListedResults(shown, self._every.several)


_MOST_NAMED = 4
"""The most cases that are known by their names: one more than an error lists."""


def _is_older(document: Json) -> bool:
    return "run" in document
