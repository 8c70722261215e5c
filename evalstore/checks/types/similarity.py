"""Checks of the similarity of an answer to an expected text; most give a score."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from evalstore.checks.base import INSTALL, CheckArguments, CheckFinding, CheckInput
from evalstore.checks.normalization import comparable, squad
from evalstore.checks.types.text import any_of, read_expected_texts, type_of_texts
from evalstore.core.display import plural, shorten, shorten_to_line
from evalstore.core.errors import EvalstoreError
from evalstore.core.values import Json

if TYPE_CHECKING:
    from rouge_score.rouge_scorer import RougeScorer
    from sacrebleu.metrics.bleu import BLEU

_VARIANTS = ("rougeL", "rouge1", "rouge2")


def _exact(check: Mapping[str, Json], subject: CheckInput) -> CheckFinding:
    """Return whether the answer is one of the texts, after both are normalised as SQuAD does."""
    pairs = list(_squad_pairs(check, subject))
    if any(expected.lower() == text.lower() for expected, text in pairs):
        return CheckFinding(1.0)
    expected = any_of([expected for expected, _ in pairs])
    return CheckFinding(0.0, f"expected {expected}, found {shorten_to_line(squad(subject.text))}")


def _squad_pairs(check: Mapping[str, Json], subject: CheckInput) -> Iterator[tuple[str, str]]:
    """Yield each expected text and the answer, normalised as SQuAD does."""
    for expected, text in subject.pairs(check["expected"]):
        yield comparable(("squad",), expected, text)


def _fuzzy(check: Mapping[str, Json], subject: CheckInput) -> CheckFinding:
    """Return whether one contains the other, normalised as SQuAD does; the rule of OpenAI Evals.

    An empty text is contained only in another empty one. An expected text of which that leaves
    nothing, such as `A`, must be a whole word of the answer, in the same case.
    """
    pairs = list(_squad_pairs(check, subject))
    for expected, text in pairs:
        if expected.lower() == text.lower() or (
            expected and not squad(expected) and _has_word(expected, text)
        ):
            return CheckFinding(1.0)
        if squad(expected) and text and (expected in text or text in expected):
            return CheckFinding(1.0)
    expected = any_of([expected for expected, _ in pairs])
    text = shorten_to_line(squad(subject.text))
    return CheckFinding(0.0, f"expected {expected} in {text}, or the other way round")


def _has_word(word: str, text: str) -> bool:
    return bool(
        re.search(rf"(?<!\w){re.escape(word)}(?!\w)" if word.isalnum() else re.escape(word), text)
    )


def token_f1(expected: list[str], actual: list[str]) -> float:
    """Return the harmonic mean of precision and recall of words, as SQuAD computes it.

    Words count as often as they occur in both. Two texts without words are equal: 1.
    """
    if not expected or not actual:
        return float(expected == actual)
    common = (Counter(expected) & Counter(actual)).total()
    return 2 * common / (len(expected) + len(actual))


def edit_ratio(expected: str, actual: str) -> float:
    """Return the similarity of two texts: 1 - (insertions + deletions) / (sum of the lengths)."""
    from rapidfuzz.distance import Indel

    return float(Indel.normalized_similarity(expected, actual))


def _best(scores: Iterable[float], check: Mapping[str, Json], subject: CheckInput) -> CheckFinding:
    """Return the best score, with the expected text that has it."""
    pairs = zip(scores, check["expected"], strict=True)
    score, text = max(pairs, key=lambda pair: pair[0], default=(0.0, ""))
    return _graded(score, text, subject)


def _graded(score: float, expected: str, subject: CheckInput) -> CheckFinding:
    if score >= 1.0:
        return CheckFinding(1.0)
    return CheckFinding(
        score, f"expected {shorten(expected)}, found {shorten_to_line(subject.quoted)}"
    )


def _share_words(check: Mapping[str, Json], subject: CheckInput) -> CheckFinding:
    pairs = _squad_pairs(check, subject)
    return _best((token_f1(one.split(), other.split()) for one, other in pairs), check, subject)


def _is_similar(check: Mapping[str, Json], subject: CheckInput) -> CheckFinding:
    pairs = subject.pairs(check["expected"])
    return _best((edit_ratio(candidate, text) for candidate, text in pairs), check, subject)


def _read_distance(arguments: CheckArguments) -> dict[str, Json]:
    most = arguments.whole("max")
    if most is None:
        raise arguments.problem(
            "the check 'levenshtein' needs 'max', the most edits",
            "as in 'levenshtein: {expected: Paris, max: 2}'",
        )
    return {**read_expected_texts(arguments), "max": most}


def _is_near(check: Mapping[str, Json], subject: CheckInput) -> CheckFinding:
    """Return whether the edit distance to one of the texts is at most `max`."""
    from rapidfuzz.distance import Levenshtein

    pairs = subject.pairs(check["expected"])
    edits = min((Levenshtein.distance(candidate, text) for candidate, text in pairs), default=None)
    if edits is not None and edits <= check["max"]:
        return CheckFinding(1.0)
    most = plural(check["max"], "edit")
    quoted = any_of([subject.quote(candidate) for candidate in check["expected"]])
    found = shorten_to_line(subject.quoted)
    words = f"expected {quoted} or at most {most} from it, found {found}"
    return CheckFinding(0.0, words if edits is None else f"{words}, {plural(edits, 'edit')} away")


# --- with packages of the extra `similarity` ----------------------------------------------


def _missing(name: str) -> EvalstoreError:
    return EvalstoreError(f"the check '{name}' needs more packages: {INSTALL}", hint=INSTALL)


@lru_cache(maxsize=1)
def _bleu_scorer() -> BLEU:
    try:
        from sacrebleu.metrics.bleu import BLEU
    except ImportError as error:
        raise _missing("bleu") from error
    return BLEU(effective_order=True)


@lru_cache(maxsize=2 * len(_VARIANTS))
def _rouge_scorer(variant: str, *, stems: bool = False) -> RougeScorer:
    try:
        from rouge_score.rouge_scorer import RougeScorer
    except ImportError as error:
        raise _missing("rouge") from error
    return RougeScorer([variant], use_stemmer=stems)


def _bleu(check: Mapping[str, Json], subject: CheckInput) -> CheckFinding:
    """Return sentence BLEU as sacrebleu computes it, 0..1; all expected texts are references."""
    expected = [subject.prepare(text) or text for text in check["expected"]]
    if not expected:
        return _graded(0.0, "", subject)
    result = _bleu_scorer().sentence_score(subject.text, expected)
    return _graded(min(result.score / 100, 1.0), subject.quote(check["expected"][0]), subject)


def _read_rouge(arguments: CheckArguments) -> dict[str, Json]:
    settings = arguments.chosen("variant", _VARIANTS) | arguments.flags("stem")
    return read_expected_texts(arguments) | settings


def _rouge(check: Mapping[str, Json], subject: CheckInput) -> CheckFinding:
    """Return the F measure of ROUGE as rouge-score computes it, for the best expected text."""
    variant = check.get("variant", "rougeL")
    score: Callable[[str, str], Mapping[str, Json]] = _rouge_scorer(
        variant, stems=check.get("stem", False)
    ).score
    pairs = subject.pairs(check["expected"])
    scores = (float(score(candidate, text)[variant].fmeasure) for candidate, text in pairs)
    return _best(scores, check, subject)


KINDS = {
    "exact": type_of_texts(2, _exact),
    "fuzzy": type_of_texts(2, _fuzzy),
    "f1": type_of_texts(2, _share_words, graded=True),
    "similar": type_of_texts(2, _is_similar, graded=True),
    "levenshtein": type_of_texts(
        2, _is_near, read=_read_distance, example="{expected: Paris, max: 2}"
    ),
    "bleu": type_of_texts(2, _bleu, graded=True, package="sacrebleu"),
    "rouge": type_of_texts(2, _rouge, read=_read_rouge, graded=True, package="rouge_score"),
}
