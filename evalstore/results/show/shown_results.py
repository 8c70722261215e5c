"""The results that `show` lists; those of a large run or workspace are in a temporary file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from typing import TYPE_CHECKING, NamedTuple

from evalstore.core.batches import in_batches
from evalstore.core.deserialize import restore_cases
from evalstore.core.hashing import DigestMap, DigestSet, digest_of, digest_of_value
from evalstore.core.results import Result
from evalstore.core.values import URGENCY, Case, Json
from evalstore.files.json_output import Members
from evalstore.files.temporary_list import TemporaryList
from evalstore.results.rendering import references_of

if TYPE_CHECKING:
    LoadVersions = Callable[[str, Iterable[str]], Mapping[str, Json]]


class ShownResult(NamedTuple):
    """A result, as its document lists it."""

    document: Json
    has_several: bool
    """Whether its case has results with several system prompts."""


class ShownResults:
    """The results of a run or of the workspace in a file; iterating yields their documents."""

    def __init__(self, batches: Iterable[list[Result]] = ()) -> None:
        """`batches` are in the order of files and rows; the results of a case stand together."""
        self._values = TemporaryList()
        self.prompts: set[str | None] = set()
        """The system prompts of cases with several."""
        self.counts: Counter[str] = Counter()
        """How many results have each verdict, or are pending."""
        self._words: set[str] = set()
        self._extend(self._list(result for batch in batches for result in batch))

    @classmethod
    def listing(cls, shown: Iterable[ShownResult]) -> ShownResults:
        """Return results that are described already; they are read once."""
        results = cls()
        results._extend(shown)
        return results

    def _list(self, results: Iterable[Result]) -> Iterator[ShownResult]:
        """Yield results as they are shown, and count them."""
        for _, same in groupby(results, lambda result: (result.file, result.row)):
            listed = list(same)
            self.counts.update(result.word for result in listed if result.word)
            documents = [result_to_json(result) for result in listed]
            prompts = {document["prompt"] for document in documents}
            yield from (ShownResult(document, len(prompts) > 1) for document in documents)

    def _extend(self, shown: Iterable[ShownResult]) -> None:
        for some in in_batches(shown):
            self._words |= {word_of(each.document) for each in some}
            self.prompts |= {each.document["prompt"] for each in some if each.has_several}
            self._values.extend([*map(tuple, some)])

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[Json]:
        return (document for document, _ in self._values)

    def by_urgency(self, broke: Callable[[Json], bool] | None = None) -> Iterator[ShownResult]:
        """Yield the results, the most urgent first; those of a verdict keep their order.

        Of each verdict those for which `broke` is true come first.
        """
        for word in URGENCY:
            for is_first in (None,) if broke is None else (True, False):
                for document, has_several in self._values if word in self._words else ():
                    if word_of(document) == word and (broke is None or broke(document) == is_first):
                        yield ShownResult(document, has_several)


def word_of(document: Json) -> str:
    """Return the verdict of a result, `pending`, or `answered` where nothing is judged."""
    return document["verdict"] or "answered"


def result_to_json(result: Result) -> Json:
    """Return a result as JSON, as the document of its run lists it."""
    return {
        "file": result.file,
        "row": result.row,
        "prompt": result.prompt,
        "model": result.model,
        "verdict": result.verdict or ("pending" if result.evaluation else None),
        "sessions": list(result.sessions),
    }


# --- the cases of a long test file that `show` lists, with their versions, in temporary files


class CaseBatch(NamedTuple):
    """Some cases of a file."""

    cases: Sequence[Case]
    tests: Mapping[str, Json]
    """The contents of their tests, by id."""
    evaluations: Mapping[str, Json]
    """Those of their evaluations."""


class ShownCases:
    """Cases and the contents of their versions in files, which are read in their order."""

    def __init__(self, batches: Iterable[Sequence[Json]], load: LoadVersions) -> None:
        """`batches` are cases as they are stored, and `load` loads versions of a kind by id."""
        self._cases, self._tests, self._evaluations = (TemporaryList() for _ in range(3))
        references: dict[tuple[str, str], None] = {}
        for batch in batches:
            cases = [*restore_cases(batch)]
            related = cases_related(load, cases)
            self._cases.extend([batch])
            self._tests.extend([related["tests"]])
            self._evaluations.extend([related["evaluations"]])
            references.update(dict.fromkeys(references_of(related["evaluations"].values())))
        self.references = [*references]
        """The kinds and ids of the versions that the checks name."""

    def __iter__(self) -> Iterator[CaseBatch]:
        for cases, tests, evaluations in zip(
            self._cases, self._tests, self._evaluations, strict=True
        ):
            yield CaseBatch([*restore_cases(cases)], tests, evaluations)

    def cases(self) -> Iterator[Json]:
        """Return the cases as they are stored."""
        return chain.from_iterable(self._cases)

    def related(self) -> dict[str, Json]:
        """Return the contents of the tests and evaluations by id, each once."""
        return {
            "tests": Members(_each_once(self._tests)),
            "evaluations": Members(_each_once(self._evaluations)),
        }


def cases_related(load: LoadVersions, cases: Sequence[Case]) -> dict[str, Json]:
    """Return the contents of the tests and evaluations, by id, in the order of their cases."""
    tests = dict.fromkeys(id for case in cases for id in case.tests)
    evaluations = dict.fromkeys(case.evaluation for case in cases if case.evaluation)
    found = {"tests": load("test", tests), "evaluations": load("evaluation", evaluations)}
    ids = {"tests": tests, "evaluations": evaluations}
    return {name: {id: of[id] for id in ids[name] if id in of} for name, of in found.items()}


def _each_once(batches: Iterable[dict[str, Json]]) -> Iterator[tuple[str, Json]]:
    """Yield the contents of batches with their ids."""
    seen = DigestSet()
    for id, content in chain.from_iterable(batch.items() for batch in batches):
        if seen.add(digest_of(id)):
            yield id, content


# --- the results of a test file that `show FILE` chooses from several runs, in a temporary file


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
            prompts = self._sets[number] | {prompt}
            if prompts not in self._sets:
                self._sets.append(prompts)
            larger = self._larger[number, prompt] = self._sets.index(prompts)
        if larger != number:
            self._numbers.put(digest, larger)

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
            if "run" in each:
                self._every.note(each["file"], each["row"], each["prompt"])
        return ListedResults(shown, self._every.several)


_MOST_NAMED = 4
"""The most cases that are known by their names: one more than an error lists."""
