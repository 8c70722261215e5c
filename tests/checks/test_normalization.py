"""What is done to texts before they are compared."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstore.checks.base import STEPS, normalized

texts = st.text() | st.text(alphabet="*_`~#>-+[]()! \n\tab“’é\u0301", max_size=40)


@pytest.mark.parametrize(
    ("step", "text", "normalized"),
    [
        ("trim", " \n a b \t", "a b"),
        ("casefold", "Straße", "strasse"),
        ("nfc", "e\u0301", "é"),
        ("spaces", " a \n\n b\u00a0c", "a b c"),
        ("squad", "A  man, a plan; an ant: THE end!", "man plan ant end"),
        ("squad", "another theme", "another theme"),
        ("quotes", "„so“ – it’s «fine»", '"so" – it\'s "fine"'),
        ("markdown", "**Paris** is *the* `capital`", "Paris is the capital"),
        ("markdown", "***all***", "all"),
        ("markdown", "是**巴黎**的", "是巴黎的"),
        ("markdown", "_yes_ and __no__", "yes and no"),
        ("markdown", "snake_case_name and 2*3*4", "snake_case_name and 2*3*4"),
        ("markdown", "5 * 3 * 2", "5 * 3 * 2"),
        ("markdown", "# Title\n> said\n- one\n* two", "Title\nsaid\none\ntwo"),
        ("markdown", "-5 and #1", "-5 and #1"),
        ("markdown", '```json\n{"a": 1}\n```', '{"a": 1}\n'),
        ("markdown", "see [here](http://a.b/c) and ![x](y.png)", "see here and x"),
    ],
)
def test_a_step_does_what_it_says(step: str, text: str, normalized: str) -> None:
    assert STEPS[step](text) == normalized


@pytest.mark.parametrize("step", STEPS)
@given(text=texts)
def test_a_step_applied_twice_changes_nothing_more(step: str, text: str) -> None:
    once = STEPS[step](text)
    assert STEPS[step](once) == once


@given(texts)
def test_without_steps_a_text_stays_as_it_is(text: str) -> None:
    assert normalized(text, ()) == text


def test_steps_are_taken_in_their_order_and_case_last() -> None:
    assert normalized(" ‘A’ ", ("quotes", "trim", "casefold")) == "'a'"


@pytest.mark.parametrize(
    "text",
    [
        *(
            mark * 20_000
            for mark in ("*a ", "**a", "*", "`", "`a", "[a](", "_a ", "# ", "***a*** ")
        ),
        "[" * 20_000 + "](b)" * 20_000,
        "*_" * 20_000 + "a" + "_*" * 20_000,
    ],
    ids=lambda text: text[:8],
)
def test_marks_without_end_do_not_take_forever(text: str) -> None:
    before = time.process_time()
    STEPS["markdown"](text)
    assert time.process_time() - before < 5
