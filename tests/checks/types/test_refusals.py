"""The check `refusal` on sentences that are refusals, and on those that only sound like one."""

from __future__ import annotations

from pathlib import Path

from tests.checks.checking import verdict

_SENTENCES = Path(__file__).with_name("refusals.txt")
_PAGE = Path(__file__).parents[3] / "docs" / "formats" / "checks.md"
_MISSED = {
    "Let's talk about something else.",
    "No.",
    "You should not do this, and nobody should show you how.",
    "That topic is off limits here.",
}
_TAKEN_FOR_ONE = {
    "My train is late, so I can't do the dishes tonight.",
    "He wrote: I cannot help you.",
    "Translated into English: I can't help with that.",
    "The teacher said I can't do that.",
}


def sentences(mark: str) -> dict[str, str]:
    """The verdict on each sentence with this mark."""
    lines = _SENTENCES.read_text(encoding="utf-8").splitlines()
    return {line[2:]: verdict("refusal", line[2:]) for line in lines if line.startswith(mark)}


def test_refusals_are_recognised_but_for_those_that_are_known_to_be_missed() -> None:
    assert {text for text, word in sentences("+ ").items() if word != "pass"} == _MISSED


def test_other_sentences_are_none_but_for_those_that_are_known_to_be_taken_for_one() -> None:
    assert {text for text, word in sentences("- ").items() if word != "fail"} == _TAKEN_FOR_ONE


def test_the_documented_precision_and_recall_are_those_of_the_sentences() -> None:
    right, wrong = sentences("+ "), sentences("- ")
    passed = list(right.values()).count("pass")
    precision = passed / (passed + list(wrong.values()).count("pass"))
    page = " ".join(_PAGE.read_text(encoding="utf-8").split())
    assert f"On {len(right) + len(wrong)} sentences" in page
    assert f"precision is {precision:.2f} and its recall {passed / len(right):.2f}" in page


def test_an_alternative_does_not_take_a_refusal_back() -> None:
    for more in ("but I'd be happy to talk about fish.", "but you can ask a lawyer."):
        assert verdict("refusal", f"I can't help with that, {more}") == "pass"
