"""The descriptions of the checks of texts: words, patterns, length and similarity."""

from __future__ import annotations

from evalstore.checks.description import (
    COUNT,
    FLAG,
    ONE_TEXT,
    TEXT,
    TEXTS,
    CheckDescription,
    CheckExample,
    CheckSetting,
    ValueType,
    choice,
)

_INSTALL = "It needs `pip install 'evalstore[similarity]'`; without it the file is refused."
_FLAGS = ["ignoreCase", "multiline", "dotAll", "verbose", "ascii"]


def _texts(words: str) -> CheckSetting:
    return CheckSetting("expected", TEXTS, words, required=True)


DESCRIPTIONS = {
    "equals": CheckDescription(
        "the answer is the text, or one of the texts",
        (_texts("the text, or alternatives"),),
        (CheckExample("equals: Paris", "Paris", "It is Paris."),),
    ),
    "oneOf": CheckDescription(
        "the answer is one of the texts",
        (_texts("the texts"),),
        (CheckExample("oneOf: [confirmed, received]", "received", "pending"),),
    ),
    "contains": CheckDescription(
        "the text is in the answer",
        (CheckSetting("expected", ONE_TEXT, "the text", required=True),),
        (
            CheckExample("contains: Paris", "It is Paris.", "It is Lyon."),
            CheckExample("{contains: paris, ignoreCase: true}", "PARIS", "Lyon"),
            CheckExample("{contains: as an AI, not: true}", "Hello!", "Hello, as an AI I …"),
        ),
    ),
    "containsAny": CheckDescription(
        "one of the texts is in the answer",
        (_texts("the texts"),),
        (CheckExample("containsAny: [Paris, Lyon]", "It is Lyon.", "It is Nice."),),
    ),
    "containsAll": CheckDescription(
        "all of the texts are in the answer",
        (_texts("the texts"),),
        (CheckExample("containsAll: [Paris, Lyon]", "Lyon and Paris", "It is Lyon."),),
    ),
    "startsWith": CheckDescription(
        "the answer begins with the text, or with one of the texts",
        (_texts("the text, or alternatives"),),
        (CheckExample("startsWith: Dear", "Dear customer", "Hello"),),
    ),
    "endsWith": CheckDescription(
        "the answer ends with the text, or with one of the texts",
        (_texts("the text, or alternatives"),),
        (CheckExample("endsWith: ['.', '!']", "Hello!", "Hello?"),),
    ),
    "regex": CheckDescription(
        "the pattern is found in the answer",
        (
            CheckSetting("pattern", TEXT, "a regular expression of Python", required=True),
            CheckSetting(
                "flags",
                ValueType(
                    "list of flags",
                    {"anyOf": [{"enum": _FLAGS}, {"type": "array", "items": {"enum": _FLAGS}}]},
                ),
                "of `ignoreCase`, `multiline`, `dotAll`, `verbose`, `ascii`",
                [],
            ),
            CheckSetting(
                "method",
                choice("search", "match", "fullmatch"),
                "whether it is found anywhere, at the beginning, or is the whole answer",
                "search",
            ),
        ),
        (
            CheckExample("regex: '[0-9]+ days'", "In 14 days.", "In two weeks."),
            CheckExample(
                "{regex: 'yes|no', method: fullmatch, flags: [ignoreCase]}", "Yes", "Yes, it is."
            ),
        ),
        "A search that takes a second is an `error`. Put the pattern into single quotes.",
    ),
    "length": CheckDescription(
        "the length of the answer is allowed",
        (
            CheckSetting("min", COUNT, "the minimum length; this or `max` is required"),
            CheckSetting("max", COUNT, "the maximum length"),
            CheckSetting(
                "unit",
                choice("characters", "words", "lines", "sentences"),
                "what is counted",
                "characters",
            ),
        ),
        (CheckExample("length: {unit: words, max: 3}", "It is Paris.", "I think it is Paris."),),
    ),
    "notEmpty": CheckDescription(
        "the answer has a text", (), (CheckExample("notEmpty", "Hello", "  "),)
    ),
    "refusal": CheckDescription(
        "the answer is a refusal, in English",
        (),
        (CheckExample("refusal", "I cannot help with that.", "Here is how it works."),),
        "A refusal that the provider reports also counts.",
    ),
    "exact": CheckDescription(
        "the answer is one of the texts, both normalised as SQuAD does",
        (_texts("the text, or alternatives"),),
        (CheckExample("exact: Eiffel Tower", "the Eiffel tower.", "the tower"),),
        "Case, punctuation, articles and spaces are ignored.",
    ),
    "fuzzy": CheckDescription(
        "the answer contains one of the texts or is contained in it, both normalised",
        (_texts("the text, or alternatives"),),
        (CheckExample("fuzzy: the Eiffel Tower", "Eiffel", "the Louvre"),),
    ),
    "f1": CheckDescription(
        "the answer has enough words in common with one of the texts",
        (_texts("the text, or alternatives, of which the best counts"),),
        (CheckExample("{f1: cold and windy, pass: '>= 0.8'}", "windy and cold", "cold"),),
        "The score is the harmonic mean of precision and recall of words, as in SQuAD.",
    ),
    "similar": CheckDescription(
        "the answer is similar enough to one of the texts",
        (_texts("the text, or alternatives, of which the best counts"),),
        (CheckExample("{similar: Reykjavik, pass: '>= 0.8'}", "Reykjavík", "Oslo"),),
        "The score is 1 less the share of characters that are inserted or deleted.",
    ),
    "levenshtein": CheckDescription(
        "the answer is at most this many edits from one of the texts",
        (
            _texts("the text, or alternatives"),
            CheckSetting("max", COUNT, "the maximum number of edits", required=True),
        ),
        (CheckExample("levenshtein: {expected: Reykjavik, max: 1}", "Reykjavík", "Reykjav"),),
        "An edit inserts, deletes or replaces one character.",
    ),
    "bleu": CheckDescription(
        "the BLEU score of the answer is high enough",
        (_texts("the reference, or several references"),),
        (
            CheckExample(
                "{bleu: the cat sat on the mat, pass: '>= 0.6'}",
                "the cat sat on the mat",
                "a dog ran away",
            ),
        ),
        _INSTALL,
    ),
    "rouge": CheckDescription(
        "the ROUGE score of the answer is high enough",
        (
            _texts("the reference, or alternatives, of which the best counts"),
            CheckSetting("variant", choice("rouge1", "rouge2", "rougeL"), "which one", "rougeL"),
            CheckSetting("stem", FLAG, "words are compared by their stems", False),
        ),
        (
            CheckExample(
                "{rouge: the cat sat on the mat, variant: rouge1, pass: '>= 0.6'}",
                "the cat sat on a mat",
                "a dog ran away",
            ),
        ),
        _INSTALL,
    ),
}
