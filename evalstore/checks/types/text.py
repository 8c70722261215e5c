"""Checks of the text of an answer: its words, patterns with a time limit, and similarity."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from evalstore.checks.base import (
    INSTALL,
    STEPS,
    CheckArguments,
    CheckFinding,
    CheckInput,
    CheckType,
    comparable,
    holds,
    normalized,
    read_nothing,
    squad,
)
from evalstore.core.display import (
    as_text,
    difference_at,
    first_difference,
    plural,
    shorten,
    shorten_to_line,
)
from evalstore.core.errors import EvalstoreError, NotRunError
from evalstore.core.values import Json
from evalstore.files.processes.limited_calls import (
    _FLAGS,
    SECONDS,
    LimitReached,
    compiled,
    has_match,
    pattern_problem,
)

if TYPE_CHECKING:
    from rouge_score.rouge_scorer import RougeScorer
    from sacrebleu.metrics.bleu import BLEU

_LISTED = 3
"""The most expected texts that a feedback lists."""

# --- texts that are expected --------------------------------------------------------------


def read_expected_texts(arguments: CheckArguments) -> dict[str, Json]:
    """Return the expected texts as a list without duplicates."""
    return {"expected": list(dict.fromkeys(arguments.texts("expected")))}


def _read_text(arguments: CheckArguments) -> dict[str, Json]:
    texts = arguments.texts("expected")
    if len(texts) != 1:
        raise arguments.problem(
            f"'contains' takes one text, not {len(texts)}",
            "write 'containsAny' or 'containsAll' instead",
        )
    return {"expected": texts}


def type_of_texts(
    revision: int,
    judge: Callable[[Mapping[str, Json], CheckInput], CheckFinding],
    *,
    read: Callable[[CheckArguments], dict[str, Json]] = read_expected_texts,
    example: str = "Paris",
    **more: Any,
) -> CheckType:
    """Return a check type whose `expected` is one or several texts."""
    return CheckType(revision, read, judge, as_written="texts", example=example, **more)


def any_of(texts: Sequence[str]) -> str:
    """Return texts for a feedback: a single one, or the first few of several."""
    if len(texts) < 2:
        return shorten(texts[0]) if texts else "nothing"
    return f"one of {_first(texts)}"


def _first(texts: Sequence[str]) -> str:
    """Return the first few texts, and their number if there are more."""
    more = f" … ({len(texts)} in all)" if len(texts) > _LISTED else ""
    return ", ".join(map(shorten, texts[:_LISTED])) + more


def _part(expected: str, subject: CheckInput) -> str:
    """Return a prepared text to search for; raises if `normalize` leaves nothing of it."""
    prepared = subject.prepare(expected)
    if expected and not prepared:
        raise EvalstoreError(f"'normalize' leaves nothing of the expected {shorten(expected)}")
    return prepared


def _equals(check: Mapping[str, Json], subject: CheckInput) -> CheckFinding:
    pairs = list(subject.pairs(check["expected"]))
    if any(expected == text for expected, text in pairs):
        return holds(
            check,
            lambda: f"expected anything but {_quoted(check, subject)}, found {_found(subject)}",
        )
    if len(pairs) != 1:
        return CheckFinding(0.0, f"expected {_quoted(check, subject)}, found {_found(subject)}")
    expected, text = pairs[0]
    at = first_difference(expected, text)
    words = difference_at(subject.quote(check["expected"][0]), subject.quoted, at)
    for step in ("trim", "nfc", "casefold"):
        if STEPS[step](expected) == STEPS[step](text):
            words += f"; they would be equal with 'normalize: {step}'"
            break
    return CheckFinding(0.0, words)


def _quoted(check: Mapping[str, Json], subject: CheckInput) -> str:
    """Return the expected texts as a feedback quotes them."""
    return any_of([subject.quote(text) for text in check["expected"]])


def _found(subject: CheckInput, at: int = 0) -> str:
    """Return the line of the answer at an index of its prepared text, as a feedback quotes it."""
    return shorten_to_line(subject.quoted, at)


def _contains_any(check: Mapping[str, Json], subject: CheckInput) -> CheckFinding:
    text = subject.text
    parts = [_part(candidate, subject) for candidate in check["expected"]]
    number = next((number for number, part in enumerate(parts) if part in text), None)
    if number is not None:
        first, at = check["expected"][number], text.find(parts[number])
        return holds(check, lambda: f"{shorten(subject.quote(first))} is in {_found(subject, at)}")
    if check["type"] == "contains":
        words = "" if check.get("not") else f"{_quoted(check, subject)} is not in {_found(subject)}"
        return CheckFinding(0.0, words)
    return CheckFinding(0.0, f"expected {_quoted(check, subject)} in {_found(subject)}")


def _contains_all(check: Mapping[str, Json], subject: CheckInput) -> CheckFinding:
    text = subject.text
    missing = [
        candidate for candidate in check["expected"] if _part(candidate, subject) not in text
    ]
    if missing:
        return CheckFinding(0.0, f"missing {_first(missing)} in {_found(subject)}")
    texts = [subject.quote(candidate) for candidate in check["expected"]]
    verb = "is" if len(texts) == 1 else "are all"
    return holds(check, lambda: f"{_first(texts)} {verb} in {_found(subject)}")


def _stands_at_end(check: Mapping[str, Json], subject: CheckInput) -> CheckFinding:
    """Return whether the answer begins, or ends, with one of the texts."""
    parts = tuple(_part(candidate, subject) for candidate in check["expected"])
    if check["type"] == "startsWith":
        is_so, place, at = subject.text.startswith(parts), "at the start of", 0
    else:
        is_so, place, at = subject.text.endswith(parts), "at the end of", len(subject.quoted)
    if is_so:
        return holds(check, lambda: f"{_quoted(check, subject)} is {place} {_found(subject, at)}")
    return CheckFinding(0.0, f"expected {_quoted(check, subject)} {place} {_found(subject, at)}")


# --- length -------------------------------------------------------------------------------

_BLOCK = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*+•]|\d+[.)])\s)")
_ITEM = re.compile(r"\s*(?:[-*+•]|\d+[.)])\s+")
_WIDE_END = re.compile("[。！？]+")
_ENDS = tuple(".!?…。！？")
_CLOSING = "\"'”’»)]*_"
_OPENING = "\"'“‘«([*_"
_ABBREVIATIONS = (
    *("mr.", "mrs.", "ms.", "dr.", "prof.", "st.", "jr.", "sr.", "no.", "fig."),
    *("vs.", "etc.", "e.g.", "i.e.", "cf.", "approx.", "a.m.", "p.m."),
)


def _count_sentences(text: str) -> int:
    """Estimate the sentences by `. ! ?` before a capital; a list item has at least one."""
    count = 0
    for block in _BLOCK.split(_WIDE_END.sub(r"\g<0> ", text)):
        words = block[item.end() if (item := _ITEM.match(block)) else 0 :].split()
        if any(map(str.isalnum, "".join(words))):
            inner = (_ends(word) and not after[0].islower() for word, after in pairwise(words))
            count += 1 + sum(inner)
    return count


def _ends(word: str) -> bool:
    bare = word.strip(_OPENING + _CLOSING)
    is_initial = len(bare) == 2 and bare[0].isupper() and bare[1] == "."
    return bare.endswith(_ENDS) and not is_initial and bare.lower() not in _ABBREVIATIONS


_UNITS: Mapping[str, Callable[[str], int]] = {
    "characters": len,
    "words": lambda text: len(text.split()),
    "lines": lambda text: text.count("\n") + (bool(text) and not text.endswith("\n")),
    "sentences": _count_sentences,
}


def _outside(least: int | None, most: int | None) -> str:
    """Return which lengths are outside the bounds."""
    bounds = (("fewer than", least), ("more than", most))
    return " or ".join(f"{words} {bound}" for words, bound in bounds if bound is not None)


def _has_length(check: Mapping[str, Json], subject: CheckInput) -> CheckFinding:
    unit = check.get("unit", "characters")
    count = _UNITS[unit](subject.text)
    least, most = check.get("min"), check.get("max")
    if (least is None or count >= least) and (most is None or count <= most):
        return holds(
            check,
            lambda: f"expected {_outside(least, most)} {unit}, found {count}: {_found(subject)}",
        )
    if least == most:
        bounds = f"{least}"
    else:
        bounds = f"at least {least}" if most is None or count < (least or 0) else f"at most {most}"
    return CheckFinding(0.0, f"expected {bounds} {unit}, found {count}: {_found(subject)}")


# --- checks without settings --------------------------------------------------------------


def _refuses(check: Mapping[str, Json], subject: CheckInput) -> CheckFinding:
    """Return whether the provider reports a refusal, or the text begins like an English one."""
    if subject.reply.refusal or is_refusal(subject.text):
        return holds(check, lambda: f"expected no refusal, found {_found(subject)}")
    return CheckFinding(0.0, f"expected a refusal, found {_found(subject)}")


def _is_not_empty(check: Mapping[str, Json], subject: CheckInput) -> CheckFinding:
    if subject.actual in ([], {}):
        return CheckFinding(0.0, "expected something, found nothing")
    if subject.text.strip():
        return holds(check, lambda: f"expected no text, found {_found(subject)}")
    return CheckFinding(0.0, f"expected some text, found {_found(subject)}")


_LOOKED_AT = 400
"""Characters at the start of an answer in which the words of a refusal count."""
_MARKS = str.maketrans({"’": "'", "‘": "'", "“": '"', "”": '"', "„": '"', **dict.fromkeys("*_`")})
_QUOTED = re.compile(r'"[^"]+"|«[^»]+»|(?<!\w)\'[^\n]+?\'(?!\w)')
_LETTER = re.compile(r"\W*(?:dear\b|subject:)", re.IGNORECASE)
_SORRY = r"(?:sorry|apologi[sz]e|apologies|afraid|unfortunately|regret)"
_NOT = (
    r"(?:(?:can ?not|can't|cant|won't|will not|shan't|could not|couldn't|should not|shouldn't)"
    r"|(?:am|'m|are|'re)(?: \w+ly| just)? (?:unable|not(?: \w+ly)? (?:able|allowed|permitted|going"
    r"|willing|in a position|programmed|designed))(?: to)?"
    r"|(?:do not|don't) (?:think|believe|feel)(?: that)? (?:i|we) (?:can|should|could))"
    r"(?: be able to)?(?: \w+ly| just| even| in good conscience)?"
)
_DEEDS = (
    "(?:help(?! but)|assist|comply|provide|answer|fulfil+|support|share|create|generate|write"
    "|produce|discuss|engage|participate|offer|give|continue|access|respond|proceed|process"
    "|complete|disclose|reveal|accommodate|perform|facilitate|advise|condone|teach|tell you"
    "|do|be doing|take part|go along|carry out|agree to)"
)
_REQUEST = (
    r"(?:(?: \w+ing)?(?: you| out| with| to| for| on| in| about| by| of| any| further| doing)*"
    r"(?: that| this| it| those| these| such|(?: \w+){0,2} requests?\b)"
    r"|(?: you| here)?(?=\s*[.!;:]|\s*$))(?! is\b)"
)
_NO = re.compile(
    # What was asked, as a whole: an alternative may follow.
    rf"\b(?:i|we) ?{_NOT} {_DEEDS}{_REQUEST}"
    rf"|(?:\A\W*|\b(?:cannot|can't) and |\b{_SORRY}[,.:]? (?:but )?){_NOT} {_DEEDS}{_REQUEST}"
    rf"|\b{_SORRY}[,.:]? (?:but |that )?(?:i|we) ?{_NOT}(?=\s*[.!]|\s*$)"
    rf"|\b{_SORRY}[,.:;]? (?:but )?no(?=[.!]|\s*$)"
    r"|\b(?:i|we)(?:'ll|'m going to| will| must| need to| (?:am|are) going to| would| shall| do)*"
    r"(?: have to)?"
    r"(?: \w+ly)? (?:decline|refuse)(?: to (?!believe|give up|accept that)|(?=\s*[.!,]|\s*$)"
    r"| (?:this|that|your request)\b)"
    r"|\b(?:against|violates?|prevents? me|not allow me)\b(?: \w+)? (?:my|our|the)?(?: \w+)?"
    r" ?(?:guidelines|policy|policies|programming|principles)"
    r"|\b(?:my|our)(?: \w+)? (?:guidelines|policy|policies|programming|principles)"
    r" (?:prevent|forbid|prohibit|(?:do|does)(?: not|n't) (?:allow|permit))"
    r"|\bnot something (?:that )?i(?: can|'m able to| am able to| will|'ll)\b"
    r"|\b(?:this|that|your) request (?:cannot|can't|has been|is|was) (?:be )?"
    r"(?:fulfilled|completed|processed|declined|denied|refused|rejected|blocked)"
    r"|\b(?:i'd|i would) rather not\b|\bi(?:'m| am) not comfortable\b"
    r"|\bi (?:do not|don't) feel comfortable\b"
    r"|\b(?:inappropriate|unethical|irresponsible|not appropriate|not ethical) for me to\b",
    re.IGNORECASE,
)
_NOT_ALL = re.compile(
    # A part of it, or something else: what follows may be the answer.
    rf"\bi ?{_NOT} {_DEEDS}\b"
    rf"|\bi(?:'m| am) (?:an ai|programmed)\b[^.!?]* {_NOT} {_DEEDS}\b"
    r"|\bas (?:an? )?(?:ai|artificial intelligence)(?: language)?(?: model| assistant)?,? i"
    r" (?:do not|don't|can ?not|can't)",
    re.IGNORECASE,
)
_GOES_ON = re.compile(
    r"(?:[^.!?\n]*?[\s,;—–-]|[^.!?\n]*[.!?]?\s+)"
    r"(?:but|however|though|although|nevertheless|nonetheless|that said|still|yet"
    r"|here (?:is|are))\b"
    r"(?!,? (?:(?:i|we)(?: can| could|'d| would|'ll| will|'m| am)(?! (?:tell|say|give|estimate))"
    r"|if you|you (?:can|could|may|might|should)|please|feel free|happy to|let me|let's))",
    re.IGNORECASE,
)


def is_refusal(text: str) -> bool:
    """Return whether a text begins as a refusal in English."""
    begin = " ".join(text[:_LOOKED_AT].translate(_MARKS).split())
    if _LETTER.match(begin):
        return False
    own = begin if _QUOTED.fullmatch(begin) else _QUOTED.sub(" … ", begin)
    if _NO.search(own):
        return True
    return any(not _GOES_ON.match(own, match.end()) for match in _NOT_ALL.finditer(own))


_METHODS = {
    "search": "is not found in",
    "match": "does not match the start of",
    "fullmatch": "does not match the whole of",
}


def matches_all(check: Mapping[str, Json]) -> bool:
    """Return whether the pattern of a check is found in every text."""
    if check["type"] != "regex" or check.get("method") == "fullmatch":
        return False
    flags = frozenset(check.get("flags", ()))
    try:
        return all(has_match(check["pattern"], text, flags) for text in ("", "\0"))
    except (LimitReached, NotRunError):
        return False


def require_pattern(pattern: str, arguments: CheckArguments, flags: Iterable[str] = ()) -> str:
    """Return a regular expression; raises `FileProblem` for what is none."""
    if wrong := pattern_problem(pattern, frozenset(flags)):
        raise arguments.problem(
            f"the pattern {shorten(pattern)} is not a regular expression: {wrong}",
            "put '\\' before a literal character, and single quotes round the pattern",
        )
    return pattern


def _read_regex(arguments: CheckArguments) -> dict[str, Json]:
    pattern = arguments.required_text("pattern")
    flags = arguments.texts("flags") if arguments.has("flags") else []
    for flag in flags:
        if flag not in _FLAGS:
            raise arguments.problem(
                f"'flags' cannot have {shorten(flag)}", f"the flags are {', '.join(_FLAGS)}"
            )
    settings = {"pattern": pattern, **arguments.chosen("method", _METHODS)}
    if flags:
        settings["flags"] = sorted(set(flags))
    require_pattern(pattern, arguments, flags)
    return settings


def text_and_flags(check: Mapping[str, Json], subject: CheckInput) -> tuple[str, frozenset[str]]:
    """Return the text that is searched, and the flags; case is ignored if the text was folded."""
    steps = tuple(check.get("normalize", ()))
    flags = frozenset(check.get("flags", ()))
    if check.get("ignoreCase"):
        return normalized(as_text(subject.actual), steps), flags | {"ignoreCase"}
    folds = "casefold" in steps or "squad" in steps
    return subject.text, flags | {"ignoreCase"} if folds else flags


def _matches(check: Mapping[str, Json], subject: CheckInput) -> CheckFinding:
    """Return whether the pattern matches."""
    text, flags = text_and_flags(check, subject)
    pattern, method = check["pattern"], check.get("method", "search")
    try:
        match = getattr(compiled(pattern, flags), method)(text, timeout=SECONDS)
    except TimeoutError:
        raise EvalstoreError(
            f"the pattern {shorten(pattern)} timed out after {SECONDS:g} second on "
            f"{len(text):,} characters: it tries too many ways to match"
        ) from None
    if match is not None:
        passage, at = match[0], match.start()
        return holds(
            check,
            lambda: (
                f"the pattern {shorten(pattern)} matches {shorten_to_line(passage)} "
                f"in {shorten_to_line(text, at)}"
            ),
        )
    return CheckFinding(
        0.0, f"the pattern {shorten(pattern)} {_METHODS[method]} {shorten_to_line(text)}"
    )


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
        word = re.escape(expected)
        word = rf"(?<!\w){word}(?!\w)" if expected.isalnum() else word
        if expected.lower() == text.lower() or (
            expected and not squad(expected) and re.search(word, text)
        ):
            return CheckFinding(1.0)
        if squad(expected) and text and (expected in text or text in expected):
            return CheckFinding(1.0)
    expected = any_of([expected for expected, _ in pairs])
    text = shorten_to_line(squad(subject.text))
    return CheckFinding(0.0, f"expected {expected} in {text}, or the other way round")


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
    if (most := arguments.whole("max")) is None:
        raise arguments.missing("max")
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
    "equals": type_of_texts(2, _equals),
    "contains": type_of_texts(1, _contains_any, read=_read_text),
    "containsAny": type_of_texts(1, _contains_any, example="[Paris, Lyon]"),
    "containsAll": type_of_texts(1, _contains_all, example="[Paris, Lyon]"),
    "startsWith": type_of_texts(1, _stands_at_end),
    "endsWith": type_of_texts(1, _stands_at_end),
    "oneOf": type_of_texts(2, _equals, example="[Paris, Lyon]"),
    "length": CheckType(
        1,
        lambda it: it.chosen("unit", _UNITS) | it.bounds(),
        _has_length,
        main=None,
        example="{max: 80}",
    ),
    "refusal": CheckType(3, read_nothing, _refuses, main=None),
    "notEmpty": CheckType(1, read_nothing, _is_not_empty, main=None),
    "regex": CheckType(1, _read_regex, _matches, main="pattern", example=r"\d+ days"),
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
