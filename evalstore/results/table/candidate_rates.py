"""The pass rates of the candidates of a run, from its cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from evalstore.comparison.statistics import Counts, Rate, add_verdict, rate_of_files
from evalstore.core.values import VERDICTS

if TYPE_CHECKING:
    from evalstore.results.table.case_rows import CaseRow
    from evalstore.results.table.cases import Cases

_NONE = Counts()
_VERDICTS = {str(word): word for word in VERDICTS}


def candidate_rates(cases: Cases, rows: Sequence[CaseRow] | None = None) -> tuple[Rate, ...]:
    """Return the pass rate of each candidate in some of the cases, in the order of `Cases.models`.

    Without `rows`, which may have any order, they are those of all cases, as in `stats`.
    """
    by_file = cases.rows if rows is None else sorted(rows, key=attrgetter("file"))
    rates = (rate_of_files(_count_by_file(by_file, number)) for number in range(len(cases.models)))
    return tuple(rate.without_interval() if cases.by_verdict else rate for rate in rates)


def _count_by_file(rows: Sequence[CaseRow], number: int) -> Iterator[Counter[Counts]]:
    """Yield for each file how many of its questions have which counts for a candidate."""
    for _, members in groupby(rows, key=attrgetter("file")):
        questions: dict[str, Counts] = {}
        for row in members:
            word = row.words[number]
            if word is not None:
                counts = questions.get(row.row, _NONE)
                questions[row.row] = add_verdict(counts, _VERDICTS.get(word))
        yield Counter(questions.values())
