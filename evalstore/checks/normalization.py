"""Normalizes texts before they are compared: `normalize` and `ignoreCase`.

Each step is idempotent.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_QUOTES = str.maketrans({**dict.fromkeys("‘’‚‛‹›′ʼ´", "'"), **dict.fromkeys("“”„‟«»″", '"')})
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)[^\n`]*(?:\n|\Z)", re.MULTILINE)
_LINE_MARK = re.compile(r"^[ \t]*(?:(?:#{1,6}|>|[-*+•])[ \t]+)+(?=\S)", re.MULTILINE)
_LINK = re.compile(r"!?\[([^\[\]\n]*)\]\([^()\s]*\)")
_LONGEST = 500
"""The most characters between two marks of emphasis, which bounds the time for long texts."""
_DEEPEST = 16
"""The most levels of nested marks that are removed."""
_INSIDE = rf"(?=\S)(.{{1,{_LONGEST}}}?)(?<=\S)"
_STRONG = re.compile(rf"(\*\*|`{{1,3}}){_INSIDE}\1")
_EMPHASIS = re.compile(rf"(?<!\w)(__|\*|_){_INSIDE}\1(?!\w)")


def squad(text: str) -> str:
    """Normalize as SQuAD does: lower case, no ASCII punctuation, no articles, single spaces."""
    return spaces(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)))


def spaces(text: str) -> str:
    """Replace each run of white space with one space, and strip the ends."""
    return " ".join(text.split())


def _bare(text: str) -> str:
    """Remove ASCII punctuation, and join words with single spaces."""
    return spaces(text.translate(_PUNCTUATION))


def nfc(text: str) -> str:
    """Convert to Unicode's composed form, in which `é` is one character."""
    return unicodedata.normalize("NFC", text)


def quotes(text: str) -> str:
    """Replace typographic quotes with straight ones."""
    return text.translate(_QUOTES)


def markdown(text: str) -> str:
    """Remove Markdown's marks: fences, headings, bullets, quotes, emphasis, code, links.

    The text of a link is kept, and so are `*` and `_` between word characters, as in `2*3`.
    """
    for _ in range(_DEEPEST):
        before = text
        text = _LINE_MARK.sub("", _FENCE.sub("", text))
        text = _EMPHASIS.sub(r"\2", _STRONG.sub(r"\2", _LINK.sub(r"\1", text)))
        if text == before:
            break
    return text


STEPS: Mapping[str, Callable[[str], str]] = {
    "trim": str.strip,
    "casefold": str.casefold,
    "nfc": nfc,
    "squad": squad,
    "spaces": spaces,
    "quotes": quotes,
    "markdown": markdown,
}


def comparable(steps: Sequence[str], expected: str, actual: str) -> tuple[str, str]:
    """Return both texts normalised, without a step that leaves nothing of the expected one.

    Of `squad`, only the part that does is left out: articles and case, or all but the spaces.
    """
    for step in steps:
        for function in (squad, _bare, spaces) if step == "squad" else (STEPS[step],):
            if function(expected) or not expected:
                expected, actual = function(expected), function(actual)
                break
    return expected, actual


@lru_cache(maxsize=64)
def preparer(steps: tuple[str, ...], ignore_case: bool) -> Callable[[str], str]:
    """Return a function that applies all steps in their order, and then folds case."""
    functions = [*(STEPS[step] for step in steps), *([str.casefold] if ignore_case else [])]
    if not functions:
        return str
    if len(functions) == 1:
        return functions[0]

    def prepare(text: str) -> str:
        for function in functions:
            text = function(text)
        return text

    return prepare


def quoter(steps: tuple[str, ...]) -> Callable[[str], str]:
    """Return a function that applies the same steps, except that it does not fold case.

    `squad` changes the case nevertheless.
    """
    return preparer(tuple(step for step in steps if step != "casefold"), False)
