"""The signs, meanings and order of verdicts."""

from __future__ import annotations

from collections.abc import Mapping

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
    "error": "a check could not be computed; the answer's page says why",
    "no reply": "a call to the candidate or to a judge failed; the answer's page says why",
    "pending": "an answer or a judgement is missing",
    "answered": "there is an answer, and nothing judges it",
    "none": "of a person: a label is taken back",
}
PERSON = "✎"
OF_PEOPLE = {
    f"{SIGNS['pass']} pass {PERSON}": "a person has decided",
    f"{SIGNS['fail']} fail {PERSON}{SIGNS['pass']}": (
        "a person has said pass after this run: it counts in the workspace, not in the run"
    ),
}
"""What signs mean that stand behind verdicts."""
FAILING = ("fail", "error", "no reply", "undecided")
"""Verdicts that somebody has to look at."""


def counted(verdicts: Mapping[str, int]) -> str:
    """`183 ✓ pass, 4 ✗ fail`."""
    return ", ".join(f"{count:,} {SIGNS[word]} {word}" for word, count in verdicts.items() if count)
