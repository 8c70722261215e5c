"""The cases of the browser with their results, packed, because there may be many.

Ids are held as bytes, and what the results of many cases have in common is there once: a case with
one result takes a third of what it takes as a `Result`. These are made when they are looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from evalstore.core.results import Result
from evalstore.core.values import Verdict

_DIGITS, _BYTES = 32, 16
"""The digits and the bytes of an id."""


class ResultForm(NamedTuple):
    """What the results of many cases have in common."""

    prompt_number: int
    prompt: str | None
    model: str
    verdict: Verdict | None
    score: float | None
    required_answers: int
    has_failed: bool
    has_evaluation: bool
    sessions: int
    """How many sessions a result has."""
    evaluations: int
    conversations: int
    word: str
    """The verdict, or what else a result says; see `URGENCY`."""


PackedResults = tuple[ResultForm | Result | bytes | None, ...]
"""For each candidate the form of its result with its ids, or the result with nothing, or None
with nothing."""
NO_RESULT: PackedResults = (None, b"")


class ResultPacker:
    """Packs results that have few forms."""

    def __init__(self) -> None:
        self._forms: dict[ResultForm, ResultForm] = {}

    def pack(self, result: Result | None) -> PackedResults:
        """Return a packed result, without its file and its row."""
        if result is None:
            return NO_RESULT
        evaluation = () if result.evaluation is None else (result.evaluation,)
        packed = _pack_ids(
            (
                result.test,
                *evaluation,
                *result.sessions,
                *result.evaluations,
                *result.conversations,
            ),
            result.key,
        )
        if packed is None:
            return (result, b"")
        form = ResultForm(
            result.prompt_number,
            result.prompt,
            result.model,
            result.verdict,
            result.score,
            result.required_answers,
            result.has_failed,
            result.evaluation is not None,
            len(result.sessions),
            len(result.evaluations),
            len(result.conversations),
            result.verdict or result.word or "answered",
        )
        return (self._forms.setdefault(form, form), packed)

    def pack_all(self, results: Iterable[Result | None]) -> PackedResults:
        """Return the results of a case, packed, in the order of the candidates."""
        return tuple(part for result in results for part in self.pack(result))


def _pack_ids(ids: Sequence[str], key: str) -> bytes | None:
    """Return ids and the key of a row as bytes; None if they would not be the same again."""
    digits = "".join((*ids, key))
    try:
        packed = bytes.fromhex(digits)
    except ValueError:
        return None
    is_same = set(map(len, ids)) == {_DIGITS} and packed.hex() == digits
    return packed if is_same else None


def _digits_of(ids: bytes) -> list[str]:
    digits = ids.hex()
    return [digits[at : at + _DIGITS] for at in range(0, len(digits), _DIGITS)]


def _unpack(file: str, row: str, form: ResultForm, ids: bytes) -> Result:
    parts = _digits_of(ids)
    sessions = 1 + form.has_evaluation
    evaluations = sessions + form.sessions
    conversations = evaluations + form.evaluations
    key = conversations + form.conversations
    return Result(
        file=file,
        row=row,
        key="".join(parts[key:]),
        prompt_number=form.prompt_number,
        prompt=form.prompt,
        model=form.model,
        test=parts[0],
        evaluation=parts[1] if form.has_evaluation else None,
        verdict=form.verdict,
        score=form.score,
        sessions=tuple(parts[sessions:evaluations]),
        evaluations=tuple(parts[evaluations:conversations]),
        required_answers=form.required_answers,
        conversations=tuple(parts[conversations:key]),
        has_failed=form.has_failed,
    )


@dataclass(frozen=True, slots=True, eq=False)
class CaseRow:
    """A case with one system prompt, and the results of all candidates.

    Rows are compared by identity, because there may be many; results by their values.
    """

    file: str
    row: str
    prompt: str
    """The name of the system prompt if the file has several; else empty."""
    tags: tuple[str, ...]
    packed: PackedResults
    """The results in the order of the candidates in `Cases.models`."""

    @property
    def results(self) -> tuple[Result | None, ...]:
        """Return the results in the order of the candidates in `Cases.models`."""
        return tuple(
            _unpack(self.file, self.row, form, ids)
            if isinstance(form, ResultForm) and isinstance(ids, bytes)
            else form
            if isinstance(form, Result)
            else None
            for form, ids in zip(self.packed[::2], self.packed[1::2], strict=True)
        )

    @property
    def words(self) -> tuple[str | None, ...]:
        """Return what each result says, a word of `URGENCY`; None: that candidate has none."""
        return tuple(map(_word_of, self.packed[::2]))

    @property
    def prompt_id(self) -> str | None:
        """Return the id of the system prompt."""
        return next(
            form.prompt for form in self.packed[::2] if isinstance(form, ResultForm | Result)
        )

    @property
    def prompt_numbers(self) -> list[int]:
        """Return the number of the system prompt of each result."""
        forms = (form for form in self.packed[::2] if isinstance(form, ResultForm | Result))
        return [form.prompt_number for form in forms]

    @property
    def sessions(self) -> list[str]:
        """Return the sessions of all results."""
        sessions: list[str] = []
        for form, ids in zip(self.packed[::2], self.packed[1::2], strict=True):
            if isinstance(form, ResultForm) and isinstance(ids, bytes):
                start = 1 + form.has_evaluation
                sessions += _digits_of(ids[_BYTES * start : _BYTES * (start + form.sessions)])
            elif isinstance(form, Result):
                sessions += form.sessions
        return sessions


def _word_of(form: ResultForm | Result | bytes | None) -> str | None:
    if isinstance(form, ResultForm):
        return form.word
    return form.verdict or form.word or "answered" if isinstance(form, Result) else None


def in_order(packed: PackedResults, order: Sequence[int]) -> PackedResults:
    """Return the packed results in another order of the candidates; those past the end are None."""
    return tuple(part for at in order for part in packed[2 * at : 2 * at + 2] or NO_RESULT)


def put(packed: PackedResults, number: int, result: PackedResults) -> PackedResults:
    """Return the packed results of a case with that of the candidate with this number."""
    missing = NO_RESULT * (number - len(packed) // 2)
    return packed[: 2 * number] + missing + result + packed[2 * number + 2 :]
