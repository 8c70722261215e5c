"""What can be said in an expression, what it comes to, and that it ends."""

from __future__ import annotations

import warnings
from types import CodeType
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evalstore.checks.base import CheckInput, CheckOutcome
from evalstore.checks.check_verdict import is_cheap_check, run_check, run_within_limits
from evalstore.checks.parser import read_check
from evalstore.checks.types.expression import (
    FUNCTIONS,
    METHODS,
    ExpressionError,
    _compiled,
    evaluate,
    expression_names,
)
from evalstore.core.errors import FileProblem
from evalstore.core.values import Json, Reply, ToolCall
from evalstore.files.processes import limited_calls

NAMES: dict[str, Json] = {
    "n": 3,
    "ratio": 0.5,
    "word": "plum",
    "words": ["plum", "fig"],
    "item": {"key": [1, 2], "a b": None},
    "max": 10,
}


def outcome(check: Json, answer: str = "a plum", names: dict[str, Json] = NAMES) -> CheckOutcome:
    reply = Reply(answer, tool_calls=(ToolCall("f", {"x": 1}),))
    return run_check(read_check(check), CheckInput(reply, answer, names=names))


def value(source: str, **names: Json) -> Any:
    return evaluate(source, lambda name: names[name])


@pytest.mark.parametrize(
    "source",
    [
        "answer == 'a plum'",
        "len(answer) == 6 and not answer.startswith('the')",
        "word in answer",
        "all(word in answer or len(word) == n for word in words)",
        "any(answer.endswith(one) for one in words)",
        "json is None or True if False else True",
        "1 < n <= 3 != 4",
        "n ** 2 - 1 == 8 and n // 2 == 1 and n % 2 == 1 and n / 2 == 1.5",
        "-n + +n == 0",
        "item['key'][-1] == 2 and item.get('x', 7) == 7 and item['a b'] is None",
        "answer[2:] == word and answer[::-1][0] == 'm'",
        "[a + b for a in 'xy' for b in '12' if b != '2'] == ['x1', 'y1']",
        "[key for key, one in item.items() if one] == ['key']",
        "sorted([3, 1, 2], reverse=True) == [3, 2, 1]",
        "max(1, n, 2) == 3 and min([], default=0) == 0 and max == 10",
        "round(2.567, 1) == 2.6 and abs(-n) == 3 and sum([1, 2.5]) == 3.5",
        "int(' 7 ') == 7 and float('1e2') == 100 and str(n) == '3' and bool(words)",
        "'-'.join(x.upper() for x in words) == 'PLUM-FIG'",
        "'a,b'.split(',') == ['a', 'b'] and ' x '.strip() == 'x' and 'xax'.strip('x') == 'a'",
        "'aXa'.replace('a', 'bb').lower() == 'bbxbb' and 'abc'.find('c') == 2",
        "'abab'.count('ab') == 2 and [1, 1, 2].count(1) == 2",
        "list == [] if False else {'a': 1}['a'] == 1",
        "answer not in {'x', 'y'} and (1, 2) == (1, 2) and [1] + [2] == [1, 2]",
        "'ab' * 2 + 'c' == 'ababc' and 2 * 'x' == 'xx'",
        "tool_calls[0]['name'] == 'f' and tool_calls[0]['arguments']['x'] == 1",
        "True == 1 and 1 == 1.0 and '1' != 1 and None is not True",
    ],
)
def test_what_python_finds_true_is_a_pass(source: str) -> None:
    known = {"json": 0, "list": 0} if source.startswith(("json", "list")) else {}
    assert outcome(
        {"expr": source}, "0" if "json" in known else "a plum", NAMES | known
    ) == CheckOutcome("pass", "", 1.0)


@pytest.mark.parametrize(
    "source", ["n > 3", "'fig' in answer", "not words", "item == {'key': [1]}", "[1] == [2]"]
)
def test_what_python_finds_false_is_a_fail(source: str) -> None:
    assert outcome({"expr": source}).verdict == "fail"


def test_the_answer_can_be_taken_as_json() -> None:
    assert outcome({"expr": "json['a'][0] > n"}, '{"a": [4]}').verdict == "pass"


def test_the_answer_is_prepared_as_the_check_says() -> None:
    assert outcome({"expr": "answer == 'a plum'", "ignoreCase": True}, "A PLUM").verdict == "pass"


def test_the_feedback_has_the_expression_and_the_values_of_its_names() -> None:
    check = {"expr": "n > 3 or any(x == answer for x in words)"}
    assert outcome(check).feedback == (
        "expected 'n > 3 or any(x == answer for x in words)' to be true, found false; "
        'n is 3; answer is \'a plum\'; words is ["plum", "fig"]'
    )


def test_what_was_not_needed_may_be_missing_in_the_feedback() -> None:
    words = "expected 'n > 3 and json' to be true, found false; n is 3"
    assert outcome({"expr": "n > 3 and json"}).feedback == words


@pytest.mark.parametrize(
    ("bound", "expected"), [(">= 0.5", ("pass", 0.5)), ("> 0.5", ("fail", 0.5))]
)
def test_a_number_is_a_score_for_pass(bound: str, expected: tuple[str, float]) -> None:
    result = outcome({"expr": "ratio", "pass": bound})
    assert (result.verdict, result.score) == expected


def test_true_is_the_full_score() -> None:
    assert outcome({"expr": "True", "pass": ">= 0.5"}).score == 1.0


@pytest.mark.parametrize(
    ("check", "words"),
    [
        ({"expr": "ratio"}, "gives the number 0.5; it needs 'pass'"),
        ({"expr": "1"}, "gives the number 1; it needs 'pass'"),
        ({"expr": "n", "pass": "> 0"}, "gives 3, which is not from 0 to 1"),
        ({"expr": "float('nan')", "pass": "> 0"}, "float takes a finite number, not nan"),
        ({"expr": "10 ** 400", "pass": "> 0"}, "gives a large number"),
        ({"expr": "words"}, "gives a list, not true or false"),
        ({"expr": "word"}, "gives a text, not true or false"),
        ({"expr": "True or nn"}, "uses 'nn', which is not known; did you mean 'n'"),
        ({"expr": "len == 1"}, "uses 'len', which is not known"),
        ({"expr": "json['a']"}, "the answer is not JSON"),
        ({"expr": "item['b']"}, "unknown key 'b'"),
        ({"expr": "words[5]"}, "index out of range"),
        ({"expr": "n[0]"}, "not subscriptable"),
        ({"expr": "n < word"}, "not supported between instances of 'int' and 'str'"),
        ({"expr": "n + word"}, r"a number \+ a text cannot be computed"),
        ({"expr": "'%9999999d' % n"}, "a text % a number cannot be computed"),
        ({"expr": "word.get('x')"}, "a text has no 'get'"),
        ({"expr": "n / 0"}, "division by zero"),
        ({"expr": "int(answer)"}, "invalid literal"),
        ({"expr": "min([])"}, "cannot be computed"),
        ({"expr": "sorted(['a', 1])"}, "not supported between instances"),
        ({"expr": "(-8) ** 0.5 == 1"}, "complex"),
        ({"expr": "[a for a, b in words]"}, "too many values to unpack"),
    ],
)
def test_what_cannot_be_computed_is_an_error_that_says_why(check: Json, words: str) -> None:
    with pytest.raises(ExpressionError, match=words):
        outcome(check)


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("1 +", "is not a valid expression: invalid syntax"),
        ("x = 1", "is not a valid expression"),
        ("a\0b", "is not a valid expression"),
        ("lambda: 1", "expressions cannot have 'lambda'"),
        ("f'{word}'", "expressions cannot have text with values in it (f'…')"),
        ("(x := 1)", "expressions cannot have ':='"),
        ("max(*words)", "expressions cannot have '*' before a value"),
        ("1 | 2", "expressions cannot have BitOr"),
        ("{**item}", "expressions cannot have **"),
        ("b'x'", "'b'x'' is not a text, number or truth value"),
        ("2j", "is not a text, number or truth value"),
        ("...", "is not a text, number or truth value"),
        ("open('x')", "expressions have no function 'open'"),
        ("__import__('os')", "expressions have no function '__import__'"),
        ("__builtins__", "expressions cannot use the name '__builtins__'"),
        ("answer.__class__", "only a method call is allowed after a dot"),
        ("answer.__class__()", "expressions have no method '__class__'"),
        ("item.key", "only a method call is allowed after a dot"),
        ("answer.format(n)", "expressions have no method 'format'"),
        ("(lambda: 1)()", "only functions and methods can be called"),
        ("len()", "len() cannot be given 0 values"),
        ("sorted(words, key=len)", "sorted() has no 'key'"),
        ("max(1, **item)", "max() has no '**'"),
        ("(x for x in words)", "write a comprehension in [ ] unless it is in a call"),
        ("{x for x in words}", "expressions cannot have SetComp"),
        ("{1, 2} == {2, 1}", "{ } with elements is allowed only after 'in'"),
        ("[1 for item['x'] in words]", "a comprehension can only give its elements names"),
        ("n is 3", "'is' can only be used with None, True and False"),
        (" + ".join(["1"] * 100), "it is nested more than 60 levels deep"),
        ("-" * 1000 + "1", "it is n"),
        ("n or " * 500 + "n", "it has 2,501 characters; the limit is 2,000"),
    ],
)
def test_what_is_not_allowed_is_a_problem_of_the_file(source: str, words: str) -> None:
    with pytest.raises(FileProblem) as caught:
        read_check({"expr": source}, 4)
    assert words in caught.value.message
    assert caught.value.line == 4


def test_a_wrong_name_of_a_function_gets_a_hint() -> None:
    with pytest.raises(FileProblem) as caught:
        read_check({"expr": "lenn(answer) < 3"})
    assert caught.value.hint == "did you mean 'len'?"


@pytest.mark.parametrize(
    "source",
    [
        "[x for x in many for y in many for z in many]",
        "[many for x in many] == [many for x in many]",
        "any(False for x in many for y in many)",
        "sum([sum(many) for x in many])",
        "[x for x in many if long in long]",
        "[long + long for x in many]",
        "long.strip(long)",
        "long.replace('', long)",
        "long.join(long)",
        "['a' * 9999 for x in many]",
        "many in [many for x in many for y in many]",
    ],
)
def test_what_may_take_long_is_computed_with_limits(source: str) -> None:
    check = read_check({"expr": source})
    assert is_cheap_check(check, 10, {}) or "for" in source
    assert not is_cheap_check(check, 20_000, {})
    assert not is_cheap_check({**check, "values": {"many": [1] * 9000}}, 10, {})


@pytest.mark.parametrize(
    "source",
    [
        "len(answer.split()) * 2 < 80 and 'plum' in answer",
        "all(len(word) < 9 for word in answer.split())",
        "any(word.lower() in answer for word in words)",
        "all(len(word) * 2 + 1 < 30 for word in words)",
    ],
)
def test_what_is_usual_needs_no_limits(source: str) -> None:
    assert is_cheap_check(read_check({"expr": source}), 2_000, {})


@pytest.mark.parametrize(
    "source",
    [
        "('a' * 100000).replace('a', 'b' * 100000) == answer",
        "sum(1 for x in 'a' * 4000000) == 1",
        f"len([{'4000000 * answer, ' * 100}]) == 1",
        f"len([{'(answer * 2000000).split(word), ' * 40}]) == 1",
    ],
)
def test_many_repeated_texts_need_limits(source: str) -> None:
    assert not is_cheap_check(read_check({"expr": source}), 10, {})


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("[[0 for x in [1] if y for y in [5]] for y in [7]]", [[0]]),
        ("max((x for x in [1]), [0])", [1]),
        ("sorted([2, 1], reverse=None)", [1, 2]),
    ],
)
def test_loops_and_their_values_are_as_before(source: str, expected: Json) -> None:
    assert value(source) == expected


def test_endless_work_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limited_calls, "CPU_SECONDS", 0.2)
    source = "any(False for a in answer for b in answer for c in answer)"
    stopped = run_within_limits(read_check({"expr": source}), CheckInput(Reply(None), "x" * 9_000))
    assert stopped.verdict == "error"
    assert "more than 0.2 seconds of processor time" in stopped.feedback


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("9 ** 9 ** 9", "number that is too large"),
        ("9 ** 3000 * 9 ** 3000", "number that is too large"),
        ("'a' * 10 ** 9", "a text of 1,000,000,000 characters"),
        ("[0] * 3", "a list . a number cannot be computed"),
        ("round(5, -10 ** 9)", "round gives at most 300 digits"),
        ("2.0 ** 9999", "cannot be computed"),
        ("str(words)", "str takes a text or a number, not a list"),
        ("deep == same", "nested too deeply"),
    ],
)
def test_nothing_grows_without_bounds(source: str, words: str) -> None:
    deep: Json = []
    same: Json = []
    for _ in range(50_000):
        deep, same = [deep], [same]
    with pytest.raises(ExpressionError, match=words):
        value(source, words=[], deep=deep, same=same)


def test_no_more_is_computed_than_is_needed() -> None:
    assert value("any(1 / x > 0 for x in [1, 0])") is True
    assert value("True or 1 / 0") is True


def test_names_are_those_that_come_from_outside() -> None:
    source = "len(answer) > n and any(x == word for x in words)"
    assert expression_names(source) == ("answer", "n", "word", "words")


def test_a_name_of_the_answer_wins_over_the_rows() -> None:
    assert outcome({"expr": "answer == 'a plum'"}, names={"answer": "x"}).verdict == "pass"


def test_blanks_round_an_expression_do_not_count() -> None:
    canonical = {"type": "expr", "revision": 2, "expression": "n > 1"}
    assert read_check({"expr": " n > 1\n"}) == canonical


# --- laws

ATOMS = st.sampled_from(
    ["0", "1", "-2", "1.5", "'ab'", "''", "[1, 'b']", "{'a': 1}", "None", "word", "item", "n"]
)


VIEWS = ("keys", "values", "items")
"""What gives a list here, and in Python something of its own."""


def _wider(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    signs = st.sampled_from(
        ["+", "-", "*", "/", "//", "%", "**", "<", "==", "in", "not in", "and", "or", ">="]
    )
    calls = st.sampled_from(sorted(FUNCTIONS))
    methods = st.sampled_from(sorted(set(METHODS) - set(VIEWS)))
    return st.one_of(
        st.builds("({} {} {})".format, inner, signs, inner),
        st.builds("{}({})".format, calls, inner),
        st.builds("({}).{}({})".format, inner, methods, st.just("")),
        st.builds("({}).{}({})".format, inner, methods, inner),
        st.builds("({})[{}]".format, inner, inner),
        st.builds("({})[{}:]".format, inner, inner),
        st.builds("[{} for x in {} if {}]".format, inner, inner, inner),
        st.builds("round({}, {})".format, inner, inner),
        st.builds("({} if {} else {})".format, inner, inner, inner),
        st.builds("({}).replace({}, {})".format, inner, inner, inner),
    )


SOURCES = st.text(st.characters(max_codepoint=127), max_size=40) | st.recursive(
    ATOMS, _wider, max_leaves=8
)


@given(SOURCES)
@example("'{}'.join('a')")
@example("10**4300 == '1'")
@example("1_0 if 0x else 0or 1")
@example("'\\N{nothing}'")
@example("[x for x in 'ab' if x[0:2:0]]")
@example("float('inf') // 1 == int(float('inf'))")
def test_any_source_is_a_problem_an_error_or_a_verdict(source: str) -> None:
    try:
        result = outcome({"type": "expr", "expression": source})
    except (FileProblem, ExpressionError):
        return
    assert result.verdict in ("pass", "fail")


@given(SOURCES)
@example("[len(x) for x in [y.upper() for y in words if y in {'a', 'b'}] if x > n * 2]")
def test_what_python_computes_reaches_no_names_but_ours(source: str) -> None:
    try:
        waiting = [_compiled(source)]
    except (ExpressionError, SyntaxError):
        return
    while waiting:
        code = waiting.pop()
        assert all(name.startswith("#") for name in code.co_names)
        waiting += [each for each in code.co_consts if isinstance(each, CodeType)]


@given(st.recursive(ATOMS, _wider, max_leaves=6))
def test_what_has_a_value_has_the_value_python_gives_it(source: str) -> None:
    names = {"word": "plum", "item": {"key": [1, 2]}, "n": 3}
    try:
        actual = value(source, **names)
    except ExpressionError:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = eval(source, dict(names))
    assert repr(actual) == repr(expected)
