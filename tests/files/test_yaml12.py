from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstore.core.errors import FileProblem
from evalstore.files.yaml12 import WrittenScalar, read_json, read_yaml, split_frontmatter


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Yes", "Yes"),
        ("No", "No"),
        ("off", "off"),
        ("2013-04-13", "2013-04-13"),
        ("12:30:45", "12:30:45"),
        ("1_000", "1_000"),
        ("true", True),
        ("FALSE", False),
        ("012", 12),
        ("0o14", 12),
        ("0x1F", 31),
        ("1.10", 1.1),
        ("1e3", 1000.0),
        ("~", None),
        ("", None),
        ("'1'", "1"),
    ],
)
def test_scalars_have_their_yaml_1_2_type(text: str, value: Any) -> None:
    assert read_yaml(f"a: {text}").value == {"a": value}


@pytest.mark.parametrize("text", ["1.10", "007", "1e3", "440.0", "0x1F", "Yes", ".inf"])
def test_a_scalar_can_be_read_as_written(text: str) -> None:
    written = read_yaml(f"a: {text}").written("a")
    assert isinstance(written, WrittenScalar)
    assert written.text == text


@pytest.mark.parametrize(("text", "shown"), [("~", "null"), ("", "null"), ("TRUE", "true")])
def test_null_and_booleans_are_written_one_way(text: str, shown: str) -> None:
    assert read_yaml(f"a: {text}").written("a").text == shown


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3", "key 'a' appears twice"),
        ("a: 1\n? [x]", "a key must be text"),
        ("a: 1\n~: 2", "a key must be text"),
        ("a: 1\nb: !!python/object:os.system x", "the tag"),
        ("a: 1\nb: !!set {x}", "the tag"),
        ("a: 1\nb: !!bool yes", "the tag"),
        ("a: é\nb: é\nc: é\nd: \x01", "a character that YAML does not allow"),
    ],
)
def test_what_is_wrong_is_reported_with_its_line(text: str, message: str) -> None:
    with pytest.raises(FileProblem, match=message) as caught:
        read_yaml(text, first_line=10)
    assert caught.value.line == 10 + text.count("\n")


@pytest.mark.parametrize(
    ("text", "sign", "line", "column"),
    [
        ("tags: [a", "[", 0, 7),
        ("tags: {a: b\n", "{", 0, 7),
        ("tags: [a\nid: x\n", "[", 0, 7),
        ("tags: [a, b\nid: x]y\n", "[", 0, 7),
        ("tags: [\n  a,\n  b\nid: x\n", "[", 0, 7),
        ("b:\n  tags: [a, {x: [b]}\n  id: x\n", "[", 1, 9),
        ("tags: [a: {b\nid: c\n", "{", 0, 11),
        ('id: x\ntext: "abc\n', '"', 1, 7),
        ("id: x\ntags: [a, 'b]\n", "'", 1, 11),
        ("text: |\n  a [b\ntags: {a: [b]\nid: x\n", "{", 2, 7),
        ("text: é\u2028tags: [é, [b]\n", "[", 1, 7),
        ("tags: [\n", "[", 0, 7),
        ("tags: [[a], {b: [c,\n", "[", 0, 17),
    ],
)
def test_what_is_not_closed_is_reported_where_it_was_opened(
    text: str, sign: str, line: int, column: int
) -> None:
    with pytest.raises(FileProblem) as caught:
        read_yaml(text, first_line=10)
    problem = caught.value
    assert problem.message.partition(" before line")[0] == f"the {sign} is not closed"
    assert (problem.line, problem.column) == (10 + line, column)


def test_the_line_at_which_what_is_open_should_have_ended_is_named() -> None:
    with pytest.raises(FileProblem, match=r"^the \[ is not closed before line 12$"):
        read_yaml("tags: [\n  a\nid: x\n", first_line=10)
    with pytest.raises(FileProblem, match=r"^the \[ is not closed$"):
        read_yaml("tags: [\n  a\n", first_line=10)
    with pytest.raises(FileProblem, match=r'^the " is not closed$'):
        read_yaml('- contains: "{{word}}', first_line=10)


_REMOVE = "remove both '---' lines, or write fields such as 'tags: [a]' between them"


@pytest.mark.parametrize(
    ("matter", "hint"),
    [
        ("tags:\n\t- a", "use spaces, not a tab"),
        ("dataset:data/a.csv", "write a space after 'dataset:'"),
        ("tags:[x]\nid: a", "write a space after 'tags:'"),
        ("id: a\ntags:[x]", "write a space after 'tags:'"),
        ("id: a: b", "quote a value with ': ', as in 'one: two'"),
        ("https://example.org", _REMOVE),
    ],
)
def test_a_slip_in_a_frontmatter_has_a_hint(matter: str, hint: str) -> None:
    with pytest.raises(FileProblem) as caught:
        split_frontmatter(f"---\n{matter}\n---\nHi\n")
    assert caught.value.hint == hint


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ('tags: [\n  "a"\n  "b",\n]\n', "did not find expected ',' or ']'", 2),
        ("tags: [a,\n  {x: [1, 2}\n]\n", "did not find expected ',' or ']'", 1),
        ("tags: [a]]\nid: x\n", "did not find expected", 0),
        ('text: "it"s"\nid: x\n', "did not find expected key", 0),
        ("tags: [\n  a,\n  @b\n]\n", "found character that cannot start any token", 2),
        ("tags: [\n  {a: 1,\n  a: 2}\n]\n", "key 'a' appears twice", 2),
        ('text: "a\n  \\q"\n', "found unknown escape character", 1),
        ("a: ]\nb: [c\n", "did not find expected node content", 0),
    ],
)
def test_a_fault_inside_of_what_is_closed_has_its_own_line(
    text: str, message: str, line: int
) -> None:
    with pytest.raises(FileProblem) as caught:
        read_yaml(text, first_line=10)
    assert caught.value.message.startswith(message)
    assert caught.value.line == 10 + line


@pytest.mark.parametrize("value", ["*a", "[*a]", "{x: 1}"])
def test_merge_keys_are_refused_by_name(value: str) -> None:
    with pytest.raises(FileProblem, match=r"^merge keys .* are not YAML 1\.2: write") as caught:
        read_yaml(f"a: &a {{x: 1}}\nb:\n  <<: {value}\n", first_line=10)
    assert (caught.value.line, caught.value.column) == (12, 3)


def test_a_key_that_only_looks_like_a_merge_key_is_ordinary() -> None:
    text = 'a: {"<<": {x: 1}}\nb: {<<: text}\nc: {<<: []}'
    assert read_yaml(text).value == {"a": {"<<": {"x": 1}}, "b": {"<<": "text"}, "c": {"<<": []}}


@pytest.mark.parametrize(
    "text", ["[" * 200_000, "- " * 100_000, "{a: " * 150 + "}" * 150, "&a [*a]"]
)
def test_depth_is_limited(text: str) -> None:
    with pytest.raises(FileProblem, match="nested too deeply"):
        read_yaml(text)


def test_aliases_cannot_blow_up() -> None:
    lines = ["a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    for above, name in zip("abcdefgh", "bcdefghi", strict=True):
        lines.append(f"{name}: &{name} [{', '.join([f'*{above}'] * 10)}]")
    with pytest.raises(FileProblem, match="aliases"):
        read_yaml("\n".join(lines))


def test_everything_knows_its_line() -> None:
    document = read_yaml("a: 1\nb:\n  - x\n  - c: 2\n", first_line=5)
    assert document.line("b") == 6
    assert document.line("b", 1, "c") == 8
    assert document.line("b", 9) == 6


def test_an_item_can_be_a_document_of_its_own() -> None:
    inner = read_yaml("a: 1\nb:\n  c: 2\n", first_line=5).at("b")
    assert (inner.value, inner.line("c")) == ({"c": 2}, 7)


def test_the_frontmatter_may_follow_blank_lines() -> None:
    document, body, line = split_frontmatter("\n \n---  \na: 1\n---\nbody")
    assert document is not None
    assert (document.value, document.line("a"), body, line) == ({"a": 1}, 4, "\nbody", 5)


def test_an_indented_rule_is_not_a_frontmatter() -> None:
    assert split_frontmatter("  ---\na: 1\n---\n")[0] is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("---\na: 1\n", "never closed"),
        ("---\n---\n", "is empty"),
        ("---\n- a\n---\n", "not a mapping"),
        ("---\na\n---\n", "not a mapping"),
    ],
)
def test_a_frontmatter_is_closed_and_a_mapping(text: str, message: str) -> None:
    with pytest.raises(FileProblem, match=message) as caught:
        split_frontmatter(text)
    assert caught.value.line == 1


def test_a_frontmatter_that_runs_into_the_messages_names_their_heading() -> None:
    with pytest.raises(FileProblem) as caught:
        split_frontmatter("\n---\ntags: [a]\n\n# 👤\n\nHello\n\n---\n\nBe kind.\n")
    assert (caught.value.line, caught.value.hint) == (5, "write '---' above line 5, '# 👤'")
    with pytest.raises(FileProblem, match="mapping values") as caught:
        split_frontmatter("---\n# a comment\ntags: tone: x\n---\n")
    assert "quote a value" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("text", "line"), [('{"a": 1,\n "a": 2}', 1), ('{\n"a": }', 2), ("[" * 100_000, 1)]
)
def test_json_is_as_strict(text: str, line: int) -> None:
    with pytest.raises(FileProblem) as caught:
        read_json(text)
    assert caught.value.line == line


def is_read_or_refused(text: str) -> bool:
    try:
        read_yaml(text).written()
    except FileProblem as problem:
        return problem.line is not None
    return True


@given(st.text(alphabet="ab:-[]{}&*!|>'\"#%?, \n\t\0\x85\u2028é👤"))
def test_any_text_is_read_or_refused_with_a_line(text: str) -> None:
    assert is_read_or_refused(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (json.dumps({"a": "\U0001f600 \\ \U0001f680", "b": ["\U0001f600"] * 3}), None),
        ('a: "x\\uD83D\\uDE00"', {"a": "x\U0001f600"}),
        ("a: '\\ud83d\\ude00'", {"a": "\\ud83d\\ude00"}),
        ('a: "\\\\ud83d\\\\ude00"', {"a": "\\ud83d\\ude00"}),
        (
            'a: |\n  "\\ud83d\\ude00"\nb: "\\ud83d\\ude00"\n',
            {"a": '"\\ud83d\\ude00"\n', "b": "\U0001f600"},
        ),
    ],
)
def test_an_emoji_that_json_escapes_is_read_in_double_quotes(text: str, value: object) -> None:
    assert read_yaml(text).value == (json.loads(text) if value is None else value)


def test_escaped_emoji_in_very_many_texts_are_read_or_refused_at_once() -> None:
    pair = "\\ud83d\\ude00"
    assert read_yaml(f'- "{pair}"\n' * 500).value == ["\U0001f600"] * 500
    with pytest.raises(FileProblem, match="escape code"):
        read_yaml(f'- "{pair}"\n' * 50_000)


def test_half_of_an_escaped_pair_is_a_problem_with_its_place() -> None:
    with pytest.raises(FileProblem) as caught:
        read_yaml('a: 1\nb: "\\ud83d\\ude00 \\ud83d"')
    assert caught.value.line == 2
