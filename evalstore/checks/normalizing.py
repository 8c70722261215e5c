"""What is done to texts before they are compared: `normalize` and `ignoreCase`."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Callable, Mapping
from functools import lru_cache

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_QUOTES = str.maketrans(
    {"‘": "'", "’": "'", "‚": "'", "“": '"', "”": '"', "„": '"', "«": '"', "»": '"'}
)
_EMPHASIS = re.compile(r"(\*\*|__|\*|_|`)(?=\S)(.+?)(?<=\S)\1")


def squad(text: str) -> str:
    """As the SQuAD scorer has it: lower case, no ASCII punctuation, no articles, single spaces."""
    return spaces(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)))


def spaces(text: str) -> str:
    """Every stretch of white space as one space, none at the ends."""
    return " ".join(text.split())


def markdown(text: str) -> str:
    """Without emphasis and code marks around words."""
    return _EMPHASIS.sub(r"\2", text)


STEPS: Mapping[str, Callable[[str], str]] = {
    "trim": str.strip,
    "casefold": str.casefold,
    "nfc": lambda text: unicodedata.normalize("NFC", text),
    "squad": squad,
    "spaces": spaces,
    "quotes": lambda text: text.translate(_QUOTES),
    "markdown": markdown,
}


@lru_cache(maxsize=64)
def preparer(steps: tuple[str, ...], ignore_case: bool) -> Callable[[str], str]:
    """All steps in their order, case last."""
    functions = [*(STEPS[step] for step in steps), *([str.casefold] if ignore_case else [])]

    def prepare(text: str) -> str:
        for function in functions:
            text = function(text)
        return text

    return prepare
