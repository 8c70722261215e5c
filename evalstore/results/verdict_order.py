"""The signs, meanings and order of verdicts."""

from __future__ import annotations

from collections.abc import Mapping

from evalstore.core.values import URGENCY

SIGNS = {
    "pass": "✓",
    "fail": "✗",
    "undecided": "?",
    "error": "!",
    "no reply": "!",
    "pending": "…",
    "answered": "·",
    "none": "–",
}
MEANINGS = {
    "pass": "the answer is as it must be",
    "fail": "the answer is not as it must be",
    "undecided": "the judges tied, or a reply could not be read",
    "error": "a check could not be computed; the answer's page shows the reason",
    "no reply": "a call to the candidate or to a judge failed; the answer's page shows the reason",
    "pending": "an answer or a verdict is missing",
    "answered": "there is an answer, and nothing judges it",
    "none": "of a person: the label is removed",
}
PERSON = "✎"
LABEL_SIGNS = {
    f"{SIGNS['pass']} pass {PERSON}": "a person has decided",
    f"{SIGNS['fail']} fail {PERSON}{SIGNS['pass']}": (
        "a person added a pass after this run; it counts in the workspace only"
    ),
}
"""Meanings of the signs behind verdicts."""
FAILING = URGENCY[: URGENCY.index("pending")]
"""Verdicts that somebody has to look at."""


def verdict_counts(verdicts: Mapping[str, int], *, signs: bool = True, words: bool = True) -> str:
    """Return `183 ✓ pass, 4 ✗ fail`; perhaps without signs, or `183 ✓ 4 ✗` without words."""
    if not words:
        return " ".join(f"{count:,} {SIGNS[word]}" for word, count in verdicts.items() if count)
    counts = ((f"{count:,}", word) for word, count in verdicts.items() if count)
    return ", ".join(
        f"{count} {SIGNS[word]} {word}" if signs else f"{count} {word}" for count, word in counts
    )
