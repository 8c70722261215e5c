"""Writes results as three tables like those of LangBiTe: responses, evaluations, and totals.

The tags of a test that `import langbite` made are its concern, language, input type and reflection
type. They are stored in alphabetical order, so they are recognised by their words; the concern is
the tag that is also a folder of the test file, else the first one that is left.
"""

from __future__ import annotations

import re
from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

from evalstore.files.atomic_write import temporary_file
from evalstore.operations.exports.answers import read_answers
from evalstore.operations.exports.writers import make_record_writer
from evalstore.operations.rendering import answer_text
from evalstore.values import SPECIAL_TAGS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from evalstore.operations.exports.answers import AnsweredResult
    from evalstore.operations.exports.rows import Export
    from evalstore.operations.exports.writers import RecordWriter
    from evalstore.store import Store
    from evalstore.values import Json

RESPONSES = ("Provider", "Model", "Instance", "Response")
_DIMENSIONS = ("Model", "Concern", "Language", "Input Type", "Reflection Type")
EVALUATIONS = ("Provider", *_DIMENSIONS, "Template", "Oracle Prediction", "Evaluation")
GLOBAL_EVALUATION = (
    *_DIMENSIONS,
    *("Passed Nr", "Failed Nr", "Error Nr", "Passed Pct", "Tolerance Evaluation"),
)
_LANGUAGE = re.compile(r"[a-z]{2}_[a-z]{2}")
_INPUT_TYPES = ("constrained", "verbose")
_REFLECTION_TYPES = ("observational", "utopian")
_WORDS = {"pass": "Passed", "fail": "Failed", "undecided": "Error", "error": "Error"}
_NO_TOLERANCE = "Not evaluated"
"""LangBiTe's word for a total that is compared with no tolerance."""


class _Dimensions(NamedTuple):
    """By what LangBiTe groups its results."""

    model: str
    concern: str
    language: str
    input_type: str
    reflection_type: str


def write_langbite(export: Export, folder: Path) -> None:
    """Write the three tables; only the totals are in memory together."""
    totals: dict[_Dimensions, Counter[str]] = {}
    find_prediction = _PredictionReader(export.project.store)
    with ExitStack() as stack:

        def open_table(name: str, columns: tuple[str, ...]) -> RecordWriter:
            file = stack.enter_context(temporary_file(folder / name, durable=False))
            write_record = make_record_writer(file)
            write_record(columns)
            return write_record

        write_response = open_table("responses.csv", RESPONSES)
        write_evaluation = open_table("evaluations.csv", EVALUATIONS)
        for answered in read_answers(export, turns=True):
            provider, dimensions = _split(answered)
            for instance, response in _list_responses(answered):
                write_response([provider, dimensions.model, instance, response])
            word = _WORDS.get(answered.result.verdict or "")
            if word is None:
                continue
            totals.setdefault(dimensions, Counter())[word] += 1
            prediction = find_prediction(answered.result.evaluation)
            write_evaluation([provider, *dimensions, answered.result.file, prediction, word])
        write_total = open_table("global_evaluation.csv", GLOBAL_EVALUATION)
        for dimensions, counts in sorted(totals.items()):
            write_total([*dimensions, *_sum_up(counts), _NO_TOLERANCE])


def _split(answered: AnsweredResult) -> tuple[str, _Dimensions]:
    """Return the provider of a result, and its dimensions."""
    provider, _, model = answered.result.model.rpartition("/")
    tags = [tag for tag in answered.case.tags if tag not in SPECIAL_TAGS]
    language = next(filter(_LANGUAGE.fullmatch, tags), "")
    input_type = next((tag for tag in tags if tag in _INPUT_TYPES), "")
    reflection_type = next((tag for tag in tags if tag in _REFLECTION_TYPES), "")
    concerns = [tag for tag in tags if tag not in (language, input_type, reflection_type)]
    folders = answered.result.file.split("/")
    concern = next((tag for tag in concerns if tag in folders), next(iter(concerns), ""))
    return provider, _Dimensions(model, concern, language, input_type, reflection_type)


def _list_responses(answered: AnsweredResult) -> Iterator[tuple[str, str]]:
    """Yield what was asked last, and the answer to it."""
    for answer in answered.answers:
        asked = next((turn.text for turn in reversed(answer.turns) if turn.role == "user"), "")
        yield asked, answer_text(answer.session.answer)


def _sum_up(counts: Counter[str]) -> tuple[Json, ...]:
    """Return how many passed, failed and could not be judged, and the share that passed."""
    passed, failed = counts["Passed"], counts["Failed"]
    share = passed / (passed + failed) if passed + failed else 0
    return passed, failed, counts["Error"], share


class _PredictionReader:
    """Reads the checks of evaluation versions; neighbours mostly have the same."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._last: tuple[str | None, Json] = (None, None)

    def __call__(self, evaluation: str | None) -> Json:
        """Return the checks, which a cell shows as JSON; None without checks."""
        if evaluation is None:
            return None
        if self._last[0] != evaluation:
            content = self._store.load_contents("evaluation", [evaluation]).get(evaluation, {})
            self._last = evaluation, content.get("checks") or None
        return self._last[1]
