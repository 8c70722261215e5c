"""Checks of a file, and the numbers, texts and JSON of the answers that they read."""

from __future__ import annotations

from decimal import Decimal

import pytest

from evalstore.checks.base import ANYWHERE, CheckInput, NotJsonError, parse_answer
from evalstore.checks.parser import read_check
from evalstore.checks.types.number import last_number
from evalstore.core.values import Json, Reply
from evalstore.files.markdown_lines import scan_lines
from evalstore.workspace.testfiles.parser import take_block
from tests.checks.checking import verdict


def written(text: str) -> Json:
    """The one check of a block, as its author writes it."""
    _, checks = take_block(list(scan_lines(f"~~~checks\n- {text}\n~~~", 1)))
    assert checks is not None
    return checks.entries[0].definition


@pytest.mark.parametrize(
    ("check", "answer"),
    [
        (check, answer.replace("N", value))
        for value in ("NaN", "Infinity", "-Infinity")
        for check, answer in [
            ("json", '{"price": N}'),
            ("json: {fenced: true}", "```json\n[N]\n```"),
            ("jsonSchema: {properties: {price: {type: number}}}", '{"price": N}'),
            ("jsonPath: price", '{"price": N}'),
            ("jsonPath: '[0]'\n  number: {expected: 0, op: '>='}", "[5, N]"),
            ("jsonSubset: {city: Oslo}", '{"city": "Oslo", "price": N}'),
            ("jsonEquals: {city: Oslo}\n  anyOf: false", '{"city": "Oslo", "price": N}'),
        ]
    ],
)
def test_nan_and_infinity_are_no_json(check: str, answer: str) -> None:
    assert verdict(written(check), answer) == "fail"


@pytest.mark.parametrize("answer", ["NaN", "Infinity", '{"a": -Infinity}'])
def test_an_expression_has_no_value_for_what_is_no_number(answer: str) -> None:
    for source in ("float(answer) >= 5", "float(answer) != 5", "json is not None"):
        assert verdict({"expr": source}, answer) == "error", source


def test_numbers_of_any_size_and_words_that_look_like_constants_are_json() -> None:
    assert verdict("json", '{"a": 1e999, "b": "NaN, Infinity"}') == "pass"
    assert verdict({"jsonEquals": {"a": 1}}, '{"a": true}') == "fail"


@pytest.mark.parametrize(
    ("check", "passing", "failing"),
    [
        ("exact: A", "A", ""),
        ("exact: A", "a.", "the"),
        ("exact: [A, B]", "B", "..."),
        ("exact: The", "the", "A"),
        ("exact: '+'", "+", "-"),
        ("fuzzy: A", "The answer is A", "The answer is B"),
        ("fuzzy: A", "(A)", "An apple, so B"),
        ("fuzzy: '?'", "What?", ""),
        ("f1: A\n  pass: '>= 0.5'", "A", "..."),
        ("f1: An\n  pass: '>= 0.5'", "An", "the"),
        ("oneOf: [A, B]\n  normalize: squad", "A", ""),
        ("equals: The\n  normalize: [trim, squad]", " The ", "a"),
        ("equals: '```'\n  normalize: markdown", "```", ""),
        ("levenshtein: {expected: A, max: 0}\n  normalize: squad", "A", "the"),
        ("similar: A\n  normalize: squad\n  pass: 1", "A", ""),
        ("jsonEquals: {grade: A}\n  normalize: squad", '{"grade": "A"}', '{"grade": ""}'),
        ("jsonSubset: [A]\n  ignoreOrder: true\n  normalize: squad", '["b", "A"]', '["the"]'),
    ],
)
def test_a_text_of_which_normalizing_leaves_nothing_equals_only_itself(
    check: str, passing: str, failing: str
) -> None:
    assert (verdict(written(check), passing), verdict(written(check), failing)) == ("pass", "fail")


_SCALARS = ["1.10", "12.00", "01234", "1234e567", "0x1F", "0o17", "TRUE", "+49", ".5", "5.", "-0"]


@pytest.mark.parametrize("scalar", _SCALARS)
@pytest.mark.parametrize(
    "check",
    [
        *("contains: S", "containsAny: [x, S]", "containsAll: [S]", "startsWith: S", "endsWith: S"),
        *("equals: S", "oneOf: [S, x]", "exact: S", "levenshtein: {expected: S, max: 0}"),
        *("similar: S\n  pass: 1", "{type: equals, expected: S}", "contains: {expected: [S]}"),
        "equals: S\n  normalize: trim",
    ],
)
def test_a_text_of_a_check_is_as_it_is_written(check: str, scalar: str) -> None:
    unquoted = read_check(written(check.replace("S", scalar)))
    assert unquoted == read_check(written(check.replace("S", f"'{scalar}'")))


@pytest.mark.parametrize(
    "check",
    [
        *("jsonPath: v\n  equals: 1.10", "jsonPath: {path: v, equals: 1.10}"),
        *("jsonPath: v\n  check: {oneOf: [1.10]}", "jsonPath: {path: v, check: {equals: 1.10}}"),
        "jsonPath: v\n  check: {type: equals, expected: 1.10}",
    ],
)
def test_a_text_of_a_nested_check_is_as_it_is_written(check: str) -> None:
    assert verdict(written(check), '{"v": "1.10"}') == "pass"
    assert verdict(written(check), '{"v": "1.1"}') == "fail"


def test_values_of_json_keep_their_type() -> None:
    assert written("jsonEquals: {equals: 1.10, b: true}") == {
        "jsonEquals": {"equals": 1.1, "b": True}
    }
    assert written("length: {max: 10}") == {"length": {"max": 10}}


@pytest.mark.parametrize("form", ["{judge: {SETTINGS}}", "{type: judge, SETTINGS}"])
def test_a_choice_of_a_judge_is_as_it_is_written(form: str) -> None:
    settings = "choices: [1.10, 0x1F, TRUE], pass: [1.10, TRUE]"
    check = read_check(written(form.replace("SETTINGS", settings)))
    assert check["choices"] == ["1.10", "0x1F", "TRUE"]
    assert check["pass"] == ["1.10", "TRUE"]


@pytest.mark.parametrize(
    ("check", "passing", "failing"),
    [
        ("number: 6.02e23", "6.02e23", "6.03e23"),
        ("number: 0.1234567890123456789", "0.1234567890123456789", "0.1234567890123456788"),
        ("number: 12345678901234567890.5", "12345678901234567890.5", "12345678901234567890"),
        ("number: '3.14159265358979323846'", "3.14159265358979323846", "3.14159265358979323847"),
        ("number: {expected: 1e23, op: '<='}", "1e23", "1.0000000000000001e23"),
        ("jsonPath: v\n  number: 5.972e24", '{"v": "5.972e24"}', '{"v": "5.973e24"}'),
        ("number: 0x1F", "31", "1"),
        ("number: 5.", "5", "6"),
    ],
)
def test_a_number_equals_itself_with_all_its_digits(check: str, passing: str, failing: str) -> None:
    assert (verdict(written(check), passing), verdict(written(check), failing)) == ("pass", "fail")


@pytest.mark.parametrize("number", ["1.50", "1.5", "15e-1", "'1.5'", "1.500000000000000000000"])
def test_a_number_has_one_form_however_it_is_written(number: str) -> None:
    assert read_check(written(f"number: {number}")) == read_check({"number": 1.5})


@pytest.mark.parametrize(
    "text",
    [
        *("-$5", "-£5.00", "−€5", "-US$5", "-R$ 5", "-USD 5", "-CHF5", "-Rs. 5", r"-\$5", "(-$5)"),
        *("$-5", "$ −5", "–5 °C", "It is –5.", "**-$5**", "_-5_", "答案是-5", "-5°C", "﹣5"),
    ],
)
def test_the_sign_stands_before_the_number_or_its_currency(text: str) -> None:
    assert last_number(text) == -5


@pytest.mark.parametrize(
    "text",
    [
        *("$5-$10", "$5–$10", "5€-10€", "5%–10%", "5 %–10 %", "5-10", "5–10", "5 - $10", "7 – 10"),
        *("(10)", "USD10", "A$10", "- 10 apples"),
    ],
)
def test_a_dash_of_a_range_or_a_list_is_no_sign(text: str) -> None:
    assert last_number(text) == 10


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (r"\boxed{$9{,}500}", 9500),
        ("$1{,}234{,}567$", 1234567),
        (r"9\,500", 9500),
        (r"11,\!111", 11111),
        ("₹1,00,000", 100000),
        ("12,34,567.5", 1234567.5),
        ("1'234'567.50", 1234567.5),
        ("1’234", 1234),
        ("12\u202f500 people", 12500),
        ("12\u2009500,75", 12500.75),
        ("12\u00a0500", 12500),
        ("1_000_000", 1000000),
        ("1.250,50 Euro", 1250.5),
        ("1.234.567,89", 1234567.89),
        ("-£1,000", -1000),
    ],
)
def test_separators_of_thousands_are_read_with_commas_and_else_nothing_is(
    text: str, number: float
) -> None:
    assert last_number(text, commas=True) == Decimal(str(number))
    assert last_number(text) is None


@pytest.mark.parametrize(
    "text", ["1,0000", "3,14", "0,5", "12 500 people", "1.250,500", "1.234.567", "1,23,4,5.6.7"]
)
def test_a_number_that_has_no_one_meaning_is_not_read_in_part(text: str) -> None:
    assert last_number(text, commas=True) is None
    assert last_number(text) is None


@pytest.mark.parametrize("text", ["1,2,3", "1, 2, 3", "2020\u00a03", "72, then 3", "1 2 3"])
def test_numbers_of_a_list_are_read_one_by_one(text: str) -> None:
    assert last_number(text) == last_number(text, commas=True) == 3


@pytest.mark.parametrize(
    "text",
    [
        *("25 m2", "25m2", "25 m^2", "25 m^{2}", "25 m²", "25 m<sup>2</sup>", "25 g of H2O"),
        *("25 t of CO2 in Q4", "25 in x_2", "25 as v1.2.3 says", "25 of A4\nB12", "_25_", "25m³"),
    ],
)
def test_digits_inside_a_word_are_no_number(text: str) -> None:
    assert last_number(text) == 25


@pytest.mark.parametrize(
    "text",
    [
        *(
            "3 × 10^8 m/s",
            "3x10^8",
            "3 x10^8",
            "5×10⁶",
            r"3 \times 10^{8}",
            "2**10",
            "10<sup>8</sup>",
        ),
        *("½", "2½", "2 ½", "0x1F", "1920x1080", "4f3a2b", "192.168.1.10", "CO2", "1010_2"),
        *(
            "3/4",
            "1 3/4 cups",
            "1/2.5",
            "10/12/2024",
            "at 14:30",
            "2:1",
            r"\frac{3}{4}",
            "3\\times10^8",
        ),
    ],
)
def test_a_number_in_another_form_is_not_read_in_part(text: str) -> None:
    assert last_number(text) is None


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ('Run\n```bash\nls\n```\nto see {"a": 1}.', "pass"),
        ('It is {"a": 1}, see [1].', "pass"),
        ('It is {"x": {"a": 1},}', "fail"),
        ('It is [{"a": 1},]', "fail"),
        ('```json\n{"x": {"a": 1},}\n```', "fail"),
    ],
)
def test_no_part_of_broken_json_between_words_is_the_answer(answer: str, right: str) -> None:
    subject = CheckInput(Reply(answer), answer)
    try:
        value = parse_answer(subject, fenced=ANYWHERE)
    except NotJsonError:
        value = None
    assert (value == {"a": 1}) == (right == "pass")


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ('```bash\nls -l\n```\n```json\n{"a": 1}\n```', "pass"),
        ('```json\n{"a": 1}\n```\n```bash\nls\n```', "pass"),
        ('```\n{"a": 1}\n```\n~~~python\nprint()\n~~~', "pass"),
        ('```JSON title="x"\n{"a": 1}\n```\n```\nls\n```', "pass"),
        ('```python\n{"a": 1}\n```', "pass"),
        ('```json\n{"a": 1}\n```\n```json\n{"a": 1}\n```', "fail"),
        ('```\n{"a": 1}\n```\n```\n{"a": 1}\n```', "fail"),
        ('```json\n{"a": 1}\n{"b": 2}\n```', "fail"),
    ],
)
def test_json_is_in_the_one_block_that_is_said_to_be_json(answer: str, right: str) -> None:
    assert verdict({"jsonEquals": {"a": 1}, "fenced": True}, answer) == right
