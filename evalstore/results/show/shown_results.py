"""The results that `show` lists; those of a large run or workspace are in a temporary file."""

from __future__ import annotations

from collections import Counter
from itertools import groupby, islice
from typing import TYPE_CHECKING, NamedTuple

from evalstore.core.values import URGENCY, Json
from evalstore.files.temporary_list import TemporaryList

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from evalstore.core.results import Result


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
            self.prompts |= prompts if len(prompts) > 1 else set()
            yield from (ShownResult(document, len(prompts) > 1) for document in documents)

    def _extend(self, shown: Iterable[ShownResult]) -> None:
        left = iter(shown)
        while some := list(islice(left, _AT_ONCE)):
            self._words |= {word_of(each.document) for each in some}
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


_AT_ONCE = 1_000


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
