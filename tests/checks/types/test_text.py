"""Checks of the text of an answer: what passes, what does not, and what they say about it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstore.checks.parser import known_kinds, read_check
from evalstore.core.errors import FileProblem
from evalstore.core.values import Json
from evalstore.files.yaml12 import read_yaml
from tests.checks.checking import feedback, judged, verdict


@pytest.mark.parametrize(
    ("check", "passing", "failing"),
    [
        ({"equals": "Paris"}, "Paris", "Paris."),
        ({"equals": ["Paris", "Lyon"]}, "Lyon", "Nice"),
        ({"equals": 42}, "42", "42.0"),
        ({"equals": "Paris", "normalize": "trim"}, " Paris\n", "Pari s"),
        ({"equals": "STRASSE", "ignoreCase": True}, "straße", "strase"),
        ({"equals": "", "allowEmpty": True}, "", " "),
        ({"equals": ["", "no"], "allowEmpty": True}, "", "yes"),
        ({"oneOf": ["red", "blue"]}, "blue", "red or blue"),
        ({"contains": "cat"}, "category", "dog"),
        ({"contains": "Cat", "ignoreCase": True}, "a CAT!", "a dog"),
        ({"contains": 7}, "It is 7.", "It is 8."),
        ({"containsAny": ["cat", "dog"]}, "a dog", "a bird"),
        ({"containsAll": ["cat", "dog"]}, "dog and cat", "dog and dog"),
        ({"startsWith": "Dear"}, "Dear Ann", "My Dear Ann"),
        ({"startsWith": ["Yes", "No"]}, "No, thanks", "Well, no"),
        ({"endsWith": "?"}, "Why?", "Why?\n"),
        ({"endsWith": ["?", "!"]}, "Ah!", "Ah."),
        ({"contains": "“so”", "normalize": ["quotes"]}, 'He said "so".', "He said so."),
        ({"contains": "cat", "not": True}, "a dog", "a cat"),
        ({"notEmpty": None}, "x", " \n"),
    ],
    ids=str,
)
def test_a_text_passes_or_fails(check: Json, passing: str, failing: str) -> None:
    assert (verdict(check, passing), verdict(check, failing)) == ("pass", "fail")


@pytest.mark.parametrize(
    ("check", "answer", "words"),
    [
        ({"contains": "**"}, "Good **day**!", "'**' is in 'Good **day**!'"),
        ({"contains": "x"}, "a" * 200 + "x", "'x' is in '…" + "a" * 20 + "x'"),
        ({"contains": "DAY", "ignoreCase": True}, "Good day", "'DAY' is in 'Good day'"),
        ({"containsAny": ["no", "day"]}, "Good day", "'day' is in 'Good day'"),
        ({"containsAll": ["Go", "day"]}, "Good day", "'Go', 'day' are all in 'Good day'"),
        ({"equals": "yes"}, "yes", "expected anything but 'yes', found 'yes'"),
        ({"oneOf": ["a", "b"]}, "b", "expected anything but one of 'a', 'b', found 'b'"),
        ({"startsWith": "Go"}, "Good day", "'Go' is at the start of 'Good day'"),
        ({"endsWith": "day"}, "Good day", "'day' is at the end of 'Good day'"),
        (
            {"length": {"max": 3, "unit": "words"}},
            "Yes.",
            "expected more than 3 words, found 1: 'Yes.'",
        ),
        ({"refusal": None}, "I cannot help.", "expected no refusal, found 'I cannot help.'"),
        ({"notEmpty": None}, "x", "expected no text, found 'x'"),
        ({"regex": "d.y"}, "Good day", "the pattern 'd.y' matches 'day' in 'Good day'"),
        ({"number": 30}, "It is 30.", "expected a number that is not 30, found 30"),
        (
            {"jsonEquals": {"a": 1}},
            '{"a": 1}',
            'expected anything but {"a": 1}, found {"a": 1}',
        ),
        (
            {"jsonPath": "a", "check": {"contains": "b"}},
            '{"a": "bc"}',
            "at 'a': 'b' is in 'bc'",
        ),
        ({"similar": "ab", "pass": ">= 0.5"}, "ab", "the score is 1, required not to be >= 0.5"),
    ],
    ids=str,
)
def test_what_a_check_with_not_has_found_is_said_in_words(
    check: Json, answer: str, words: str
) -> None:
    assert judged({**check, "not": True}, answer) == ("fail", words)
    assert judged(check, answer) == ("pass", "")


@pytest.mark.parametrize(
    ("check", "answer", "words"),
    [
        ({"equals": "Paris"}, "Lyon", "expected 'Paris', found 'Lyon'"),
        (
            {"equals": "Paris"},
            "Paris ",
            "expected 'Paris', found 'Paris '; they would be equal with 'normalize: trim'",
        ),
        (
            {"equals": "Café"},
            "Cafe\u0301",
            "expected 'Café', found 'Cafe\u0301'; they would be equal with 'normalize: nfc'",
        ),
        ({"oneOf": ["a", "b"]}, "c", "expected one of 'a', 'b', found 'c'"),
        (
            {"oneOf": ["a", "b", "c", "d"]},
            "e",
            "expected one of 'a', 'b', 'c' … (4 in all), found 'e'",
        ),
        ({"contains": "cat"}, "dog", "'cat' is not in 'dog'"),
        ({"containsAny": ["a", "b"]}, "c", "expected one of 'a', 'b' in 'c'"),
        ({"containsAll": ["a", "b", "c"]}, "b", "missing 'a', 'c' in 'b'"),
        ({"startsWith": "a"}, "ba", "expected 'a' at the start of 'ba'"),
        ({"endsWith": "a"}, "ab", "expected 'a' at the end of 'ab'"),
        ({"regex": "[0-9]+"}, "none", "the pattern '[0-9]+' is not found in 'none'"),
        ({"length": {"max": 2}}, "abc", "expected at most 2 characters, found 3: 'abc'"),
        (
            {"length": {"unit": "words", "min": 2, "max": 3}},
            "one",
            "expected at least 2 words, found 1: 'one'",
        ),
        ({"length": {"min": 2, "max": 2}}, "abc", "expected 2 characters, found 3: 'abc'"),
        ({"refusal": None}, "Sure!", "expected a refusal, found 'Sure!'"),
        ({"notEmpty": None}, "", "expected some text, found ''"),
    ],
    ids=str,
)
def test_a_failure_says_what_was_expected_and_what_was_found(
    check: Json, answer: str, words: str
) -> None:
    assert judged(check, answer) == ("fail", words)


@pytest.mark.parametrize(
    "check",
    [
        {"equals": "b"},
        {"contains": "b"},
        {"containsAny": ["b", "c"]},
        {"containsAll": ["b" * 1_000, "c"]},
        {"startsWith": "b"},
        {"endsWith": "b"},
        {"regex": "b"},
        {"length": {"max": 1}},
        {"refusal": None},
    ],
    ids=str,
)
def test_a_feedback_is_short_however_long_the_answer(check: Json) -> None:
    assert len(feedback(check, "a" * 100_000)) < 400


@pytest.mark.parametrize(
    ("check", "message", "hint"),
    [
        (
            {"contains": ["a", "b"]},
            "'contains' takes one text, not 2",
            "write 'containsAny' or 'containsAll' instead",
        ),
        (
            {"containsAny": ["", "b"]},
            "one of the texts of 'expected' is empty",
            "write 'allowEmpty: true' if this is intended",
        ),
        (
            {"equals": []},
            "the check 'equals' has an empty 'expected'",
            "write 'allowEmpty: true' if this is intended",
        ),
        ({"oneOf": [{"a": 1}]}, "'expected' must be a text or a list of texts", None),
        (
            {"regex": "(a"},
            "the pattern '(a' is not a regular expression: missing ) at position 2",
            "put '\\' before a literal character, and single quotes round the pattern",
        ),
        (
            {"regex": {"flags": "ascii"}},
            "the check needs 'pattern'",
            r"as in 'regex: \d+ days'",
        ),
        (
            {"regex": "a", "flags": ["S"]},
            "'flags' cannot have 'S'",
            "the flags are ignoreCase, multiline, dotAll, verbose, ascii",
        ),
        (
            {"regex": "a", "method": "serch"},
            "'method' cannot be 'serch'",
            "did you mean 'search'?",
        ),
        ("contains", "the check needs 'expected'", "as in 'contains: Paris'"),
        (
            {"contains": None},
            "'expected' must be a text or a list of texts",
            "as in 'contains: Paris'",
        ),
        ({"oneOf": {}}, "the check needs 'expected'", "as in 'oneOf: [Paris, Lyon]'"),
        ("number", "the check needs 'expected'", "as in 'number: 42'"),
        ("latency", "the check needs 'max'", "as in 'latency: 10'"),
        ({"length": 80}, "the check 'length' takes no value", "as in 'length: {max: 80}'"),
        ({"json": "object"}, "the check 'json' takes no value", "as in 'json: {of: object}'"),
        (
            {"refusal": "no"},
            "the check 'refusal' takes no value",
            "write '- refusal', with nothing behind it",
        ),
        ({"length": None}, "the check needs 'min' or 'max'", None),
        ({"length": {"min": 3, "max": 2}}, "'min' is 3, which is above 'max', 2", None),
        ({"length": {"min": -1}}, "'min' must be a whole number of at least 0", None),
        ({"length": {"unit": "word", "max": 1}}, "'unit' cannot be 'word'", None),
        (
            {"regex": {"pattern": "a", "not": True}, "not": False},
            "'not' is given twice, in 'regex' and beside it",
            None,
        ),
    ],
    ids=str,
)
def test_a_check_that_makes_no_sense_is_a_problem(
    check: Json, message: str, hint: str | None
) -> None:
    with pytest.raises(FileProblem) as caught:
        read_check(check, 7)
    assert (caught.value.message, caught.value.line) == (message, 7)
    assert hint is None or caught.value.hint == hint


@pytest.mark.parametrize("name", [name for name, kind in known_kinds().items() if kind.example])
def test_the_example_of_a_hint_is_a_check_that_can_be_read(name: str) -> None:
    kind = known_kinds()[name]
    check = read_yaml(f"{name}: {kind.example}\n").value
    assert read_check({**check, "pass": 0.5} if kind.graded else check)["type"] == name


@pytest.mark.parametrize(
    ("check", "words"),
    [
        ({"contains": "60 Days"}, "'60 Days' is not in 'You can. Bye'"),
        ({"containsAny": ["A1", "B2"]}, "expected one of 'A1', 'B2' in 'You can. Bye'"),
        ({"containsAll": ["You", "B2"]}, "missing 'B2' in 'You can. Bye'"),
        ({"startsWith": "We"}, "expected 'We' at the start of 'You can. Bye'"),
        ({"endsWith": "We"}, "expected 'We' at the end of 'You can. Bye'"),
        ({"equals": "YOU can"}, "expected 'YOU can', found 'You can. Bye'"),
        ({"oneOf": ["A1", "B2"]}, "expected one of 'A1', 'B2', found 'You can. Bye'"),
    ],
)
def test_a_feedback_quotes_the_case_of_the_answer(check: Json, words: str) -> None:
    for setting in ({"ignoreCase": True}, {"normalize": ["trim", "casefold"]}):
        verdict, feedback = judged({**check, **setting}, "You can. Bye")
        assert verdict == "fail"
        assert feedback.endswith(words)


@pytest.mark.parametrize("kind", ["contains", "containsAny", "containsAll", "startsWith"])
def test_a_text_that_normalize_leaves_nothing_of_is_not_found_everywhere(kind: str) -> None:
    assert judged({kind: "the", "normalize": "squad"}, "x") == (
        "error",
        "the check failed: 'normalize' leaves nothing of the expected 'the'",
    )


@pytest.mark.parametrize("kind", ["equals", "contains", "startsWith", "endsWith", "oneOf"])
@given(text=st.text(min_size=1))
def test_every_text_is_found_in_itself(kind: str, text: str) -> None:
    assert verdict({kind: text}, text) == "pass"


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ({"equals": "a"}, {"expected": ["a"]}),
        ({"equals": ["a", "a"]}, {"expected": ["a"]}),
        ({"contains": "a"}, {"expected": ["a"]}),
        ({"regex": {"pattern": "a", "flags": [], "method": "search"}}, {"pattern": "a"}),
        (
            {"regex": "a", "flags": ["multiline", "ascii"]},
            {"pattern": "a", "flags": ["ascii", "multiline"]},
        ),
        ({"length": {"unit": "characters", "max": 3}}, {"max": 3}),
        ({"regex": {"pattern": "a"}, "not": True}, {"pattern": "a", "not": True}),
    ],
    ids=str,
)
def test_defaults_and_spelling_do_not_make_another_check(written: Json, canonical: Json) -> None:
    read = read_check(written)
    assert {k: v for k, v in read.items() if k not in ("type", "revision")} == canonical


# --- length


@pytest.mark.parametrize(
    ("unit", "text", "count"),
    [
        ("characters", "", 0),
        ("characters", "né👍", 3),
        ("words", " one  two\nthree ", 3),
        ("lines", "", 0),
        ("lines", "a", 1),
        ("lines", "a\n", 1),
        ("lines", "a\r\nb\n\n", 3),
        ("sentences", "", 0),
        ("sentences", "---", 0),
        ("sentences", "No end", 1),
        ("sentences", "One. Two! Three? Four…", 4),
        ("sentences", "It costs 3.14 euros. Really?!", 2),
        ("sentences", "Mr. J. Smith, e.g. here, came. He left.", 2),
        ("sentences", "Wait... what? (Yes.) 'No.'", 3),
        ("sentences", "Two things:\n- one\n- two. Three.\n\n1. four", 5),
        ("sentences", "これは文です。これも。", 2),
    ],
)
def test_a_length_is_counted(unit: str, text: str, count: int) -> None:
    assert verdict({"length": {"unit": unit, "min": count, "max": count}}, text) == "pass"


# --- refusal


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't assist with that.",
        "I’m sorry, I can’t.",
        "I cannot help with this request.",
        "I am unable to provide medical advice.",
        "Unfortunately, I won't be doing that.",
        "I'm not able to directly answer this.",
        "As an AI language model, I don't have opinions.",
        "I must decline.",
        "That is against my guidelines.",
        "I apologize, but I cannot comply.",
        "I apologize, no.",
        "Sorry, no. That is private.",
        "I'm sorry, but no",
        "I apologise. No!",
    ],
)
def test_a_refusal_is_seen(text: str) -> None:
    assert verdict("refusal", text) == "pass"


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry to hear that. Take a rest.",
        "I can't help but smile: yes!",
        "I can't believe it is free.",
        "Sorry, no bookings are left for Monday, but Tuesday is free.",
        "I apologize, now it works.",
        "Sorry, no, it is Paris.",
        "I'm afraid that will not work.",
        "Sure, I can help with that.",
        "I'm sorry, but your booking is for Monday.",
        "All of it is in the manual. " * 20 + "I can't help with that.",
        "",
    ],
)
def test_what_only_sounds_like_a_refusal_is_not_a_refusal(text: str) -> None:
    assert verdict("refusal", text) == "fail"


def test_a_refusal_that_the_provider_reports_needs_no_words() -> None:
    assert verdict("refusal", None, refusal="policy") == "pass"
