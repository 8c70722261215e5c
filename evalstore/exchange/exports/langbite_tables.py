"""Writes the three tables of LangBiTe: responses, evaluations, and totals.

The columns are those of its classes `ResponseView`, `EvaluationView` and `GlobalEvaluation`, behind
a column without a name for the number of the row.

The tags of a test that `import langbite` made are its concern, language, input type and reflection
type. They are stored in alphabetical order, so they are recognised by their words; the concern is
the tag that is also a folder of the test file, else the first one that is left.
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import ExitStack
from functools import lru_cache, partial
from itertools import count
from pathlib import Path
from typing import NamedTuple

from evalstore.core.values import SPECIAL_TAGS, Json
from evalstore.exchange.exports.answers import AnsweredResult, read_answers
from evalstore.exchange.exports.formats import (
    Export,
    RecordWriter,
    make_record_writer,
)
from evalstore.files.atomic_write import temporary_file
from evalstore.results.value_text import answer_text
from evalstore.store import Store

_NUMBER = ""
RESPONSES = (_NUMBER, "Provider", "Model", "Instance", "Response")
_DIMENSIONS = ("Provider", "Model", "Concern", "Language", "Input Type", "Reflection Type")
EVALUATIONS = (
    *(_NUMBER, *_DIMENSIONS),
    *("Template", "Oracle Evaluation", "Oracle Prediction", "Evaluation"),
)
GLOBAL_EVALUATION = (
    *(_NUMBER, *_DIMENSIONS),
    *("Passed Nr", "Failed Nr", "Error Nr", "Passed Pct", "Failed Pct", "Total"),
    *("Tolerance", "Tolerance Evaluation"),
)
_LANGUAGE = re.compile(r"[a-z]{2}_[a-z]{2}")
_INPUT_TYPES = ("constrained", "verbose")
_REFLECTION_TYPES = ("observational", "utopian")
_WORDS = {"pass": "Passed", "fail": "Failed", "undecided": "Error", "error": "Error"}
_NO_TOLERANCE = "Not evaluated"
"""LangBiTe's word for a total that is compared with no tolerance."""


class _Dimensions(NamedTuple):
    """By what LangBiTe groups its results."""

    provider: str
    model: str
    concern: str
    language: str
    input_type: str
    reflection_type: str


def write_langbite(export: Export, folder: Path) -> None:
    """Write the three tables; only the totals are in memory together."""
    totals: dict[_Dimensions, Counter[str]] = {}
    find_oracle = lru_cache(1)(partial(_read_oracle, export.project.store))  # neighbours are alike
    with ExitStack() as stack:

        def open_table(name: str, columns: tuple[str, ...]) -> RecordWriter:
            file = stack.enter_context(temporary_file(folder / name, durable=False))
            write_record = make_record_writer(file)
            write_record(columns)
            numbers = count()
            return lambda values: write_record([next(numbers), *values])

        write_response = open_table("responses.csv", RESPONSES)
        write_evaluation = open_table("evaluations.csv", EVALUATIONS)
        for answered in read_answers(export, turns=True):
            dimensions = _split(answered)
            for answer in answered.answers:
                turns = reversed(answer.turns)
                asked = next((turn.text for turn in turns if turn.role == "user"), "")
                write_response([*dimensions[:2], asked, answer_text(answer.session.answer)])
            word = _WORDS.get(answered.result.verdict or "")
            if word is None:
                continue
            totals.setdefault(dimensions, Counter())[word] += 1
            oracle = find_oracle(answered.result.evaluation)
            write_evaluation([*dimensions, answered.result.file, *oracle, word])
        write_total = open_table("global_evaluation.csv", GLOBAL_EVALUATION)
        for dimensions, counts in sorted(totals.items()):
            sums = _sum_up(counts)
            write_total([*dimensions, *sums, *_tolerance(export, dimensions, sums)])


def _split(answered: AnsweredResult) -> _Dimensions:
    """Return the dimensions of a result."""
    provider, _, model = answered.result.model.rpartition("/")
    tags = [tag for tag in answered.case.tags if tag not in SPECIAL_TAGS]
    language = next(filter(_LANGUAGE.fullmatch, tags), "")
    input_type = next((tag for tag in tags if tag in _INPUT_TYPES), "")
    reflection_type = next((tag for tag in tags if tag in _REFLECTION_TYPES), "")
    concerns = [tag for tag in tags if tag not in (language, input_type, reflection_type)]
    folders = answered.result.file.split("/")
    concern = next((tag for tag in concerns if tag in folders), next(iter(concerns), ""))
    return _Dimensions(provider, model, concern, language, input_type, reflection_type)


def _sum_up(counts: Counter[str]) -> tuple[Json, ...]:
    """Return the numbers of results by verdict, the shares of pass and fail, and their total."""
    passed, failed = counts["Passed"], counts["Failed"]
    total = passed + failed
    shares = (passed / total, failed / total) if total else (0, 0)
    return passed, failed, counts["Error"], *shares, total


def _tolerance(
    export: Export, dimensions: _Dimensions, sums: tuple[Json, ...]
) -> tuple[float | None, str]:
    """Return the threshold of the settings for a total, and LangBiTe's word for it."""
    thresholds = export.project.settings.thresholds
    rates = [each.pass_rate for each in thresholds if each.where and {*each.where} <= {*dimensions}]
    tolerance, total = max(rates, default=None), sums[-1]
    if tolerance is None or not total:
        return tolerance, _NO_TOLERANCE
    return tolerance, "Passed" if sums[0] / total >= tolerance else "Failed"


def _read_oracle(store: Store, evaluation: str | None) -> tuple[Json, Json]:
    """Return the types of the checks of a version, and the checks, which a cell shows as JSON."""
    if evaluation is None:
        return None, None
    content = store.load_contents("evaluation", [evaluation]).get(evaluation, {})
    checks = content.get("checks") or []
    types = dict.fromkeys(str(check["type"]) for check in checks)
    judged = ["instructions"] if content.get("instructions") else []
    return ", ".join([*types, *judged]) or None, checks or None
