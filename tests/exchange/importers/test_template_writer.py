"""Texts of other systems are shown to the letter, whatever they look like here."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstore.exchange.importers.base import literal, safe_file_name, unique, write_test
from evalstore.files.markdown_lines import SPACE
from tests.builders import expanded, instructions_of, shown

PIECES = (
    *("---", "# 👤", "# 🤖 @name", "# ⚙️ x", "# ▶ run", "{{", "}}", "{{name}}", "{% if %}", "{#"),
    *("<!-- a", "-->", "```", "~~~", "~~~checks", "`", "word", " ", "\n", "\n\n", "\t", "{{{", "é"),
)
texts = st.lists(st.sampled_from(PIECES), min_size=1, max_size=12).map("".join)


@given(texts.filter(str.strip), texts.filter(str.strip))
def test_any_text_is_shown_exactly_except_for_white_space_at_its_ends(
    user: str, instructions: str
) -> None:
    text = write_test({}, [("user", literal(user))], instructions=literal(instructions)).decode()
    expansion = expanded(text)
    assert shown(expansion) == [[("user", user.strip(SPACE))]]
    assert instructions_of(expansion) == [instructions.strip(SPACE)]


def test_plain_text_stays_as_it_is() -> None:
    assert (
        literal("Say *hello* to {name} - twice.\n\n1. x")
        == "Say *hello* to {name} - twice.\n\n1. x"
    )


def test_a_test_looks_as_a_person_would_write_it() -> None:
    written = write_test(
        {"tags": ["a"]},
        [("system", "Be brief."), ("user", "Hi"), ("assistant", "Yo"), ("user", "Bye")],
        instructions="It must be polite.",
        checks=[{"contains": "bye"}],
    )
    assert written.decode() == (
        "---\ntags: [a]\n---\n\nBe brief.\n\n# 👤\n\nHi\n\n# 🤖\n\nYo\n\n# 👤\n\nBye\n\n---\n\n"
        "It must be polite.\n\n~~~checks\n- contains: bye\n~~~\n"
    )


@pytest.mark.parametrize(
    ("name", "safe"), [("a b/c", "a-b-c"), ("../x", "x"), ("..", "test"), ("Café 1", "Café-1")]
)
def test_names_of_files_hold_nothing_that_leads_elsewhere(name: str, safe: str) -> None:
    assert safe_file_name(name) == safe


def test_a_name_that_is_taken_gets_a_number() -> None:
    assert unique("a", ["a", "a-2"]) == "a-3"


@pytest.mark.parametrize("text", ["    ``` x", "\t# 👤\n\nmore", "     ---", "\n\t~~~\nopen"])
def test_what_is_structure_only_without_its_indent_is_shown_as_it_is(text: str) -> None:
    written = write_test({}, [("user", text)], instructions="Told.").decode()
    assert shown(expanded(written)) == [[("user", text.strip(SPACE))]]
