"""Measures false alarms of `diff`, and how often intervals of `stats` miss the true rate.

The drawn runs are those of an edit that changes nothing on average, but changes the rows of a
file together: on each side the difficulty of every file is random.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from benches.table import Figure, figure
from evalstore.comparison.statistics import mcnemar
from evalstore.core.values import Result
from tests.comparison.test_comparison import compare

if TYPE_CHECKING:
    from benches.benches import Setting

_SPREAD = 2.5
"""The standard deviation of the difficulty of files, in logits."""
_EASE = 1.0
"""The mean ease of files, in logits: about 70 % pass."""
_MOST = 5.0
"""The target: false alarms of a test at a level of 5 %, in %."""


class _Shape(NamedTuple):
    files: int
    rows: int
    models: int = 1

    def __str__(self) -> str:
        models = f" x {self.models} candidates" if self.models > 1 else ""
        return f"{self.files} files x {self.rows} rows{models}"


_SHAPES = (_Shape(20, 6), _Shape(50, 6), _Shape(14, 4), _Shape(100, 1), _Shape(20, 3, 2))
_RESULT = Result("", "", "", 0, None, "", "test", "evaluation", None, None, ("session",), ())


def statistics(setting: Setting) -> Iterator[Figure]:
    """False alarms of `diff`, beside those of one table of all rows; misses of `stats`."""
    truth = _pass_rate()
    for shape in _SHAPES:
        source = random.Random(str(shape))
        alarms = pooled = misses = 0
        for _ in range(setting.draws):
            comparison = compare(_side(shape, source), _side(shape, source))
            alarms += comparison.change().is_significant
            pooled += mcnemar(len(comparison.broke), len(comparison.fixed)) < 0.05
            interval = comparison.rates[0].interval
            misses += not (interval and interval[0] <= truth <= interval[1])
        percent = 100 / setting.draws
        yield figure(
            "statistics", f"diff, {shape}: false alarms", percent * alarms, "%", most=_MOST
        )
        yield figure("statistics", f"stats, {shape}: intervals that miss", percent * misses, "%")
        setting.notes.append(
            f"statistics: {shape}: one table of all rows would give {percent * pooled:.1f} %"
            " false alarms"
        )


def _pass_rate() -> float:
    """The mean pass rate of rows, integrated over the distribution of difficulties."""
    places = [number / 100 for number in range(-800, 801)]
    weights = [math.exp(-(place**2) / 2) for place in places]
    passing = (_share(_EASE + _SPREAD * place) for place in places)
    return math.fsum(w * share for w, share in zip(weights, passing, strict=True)) / math.fsum(
        weights
    )


def _share(logit: float) -> float:
    return 1 / (1 + math.exp(-logit))


def _side(shape: _Shape, source: random.Random) -> list[Result]:
    results = []
    for file in range(shape.files):
        share = _share(source.gauss(_EASE, _SPREAD))
        for row in range(shape.rows):
            for model in range(shape.models):
                place = _RESULT._replace(
                    file=f"{file}.md",
                    row=str(row),
                    key=str(row),
                    model=str(model),
                    verdict="pass" if source.random() < share else "fail",
                )
                results.append(place)
    return results
