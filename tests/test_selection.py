"""Which cases a command is about."""

from __future__ import annotations

import pytest

from evalstore.errors import EvalstoreError
from evalstore.selection import Selection, Target, compile_name, suits
from evalstore.values import Case


def case(row: str = "", *tags: str) -> Case:
    return Case(row, "", ("t",), None, tags, (None,))


def selects(selection: Selection, file: str = "tests/a.md", one: Case | None = None) -> bool:
    return selection.matcher()(file, one or case())


def test_without_a_word_everything_is_selected() -> None:
    assert selects(Selection())
    assert Selection().covers_file("tests/a.md")


@pytest.mark.parametrize(
    ("path", "file", "covers"),
    [
        ("tests/a.md", "tests/a.md", True),
        ("tests", "tests/a.md", True),
        (".", "tests/a.md", True),
        ("", "tests/a.md", True),
        ("tests/a", "tests/a.md", False),
        ("test", "tests/a.md", False),
        ("tests/sub", "tests/sub/b.md", True),
        ("tests/sub", "tests/subway.md", False),
    ],
)
def test_a_path_covers_itself_and_what_lies_in_it(path: str, file: str, covers: bool) -> None:
    assert Target(path).covers(file) is covers
    assert selects(Selection((Target(path),)), file) is covers
    assert Selection((Target(path),)).covers_file(file) is covers


def test_a_row_can_be_named() -> None:
    selection = Selection((Target("tests/a.md", "Oslo"), Target("tests/b.md")))
    assert selects(selection, one=case("Oslo"))
    assert not selects(selection, one=case("Bergen"))
    assert selects(selection, "tests/b.md", case("Bergen"))


@pytest.mark.parametrize(
    ("tags", "selected"),
    [((), False), (("x",), True), (("y",), True), (("x", "no"), False), (("z",), False)],
)
def test_one_of_the_tags_and_none_of_the_excluded(tags: tuple[str, ...], selected: bool) -> None:
    selection = Selection(tags=("x", "y"), exclude_tags=("no",))
    assert selects(selection, one=case("", *tags)) is selected


def test_one_of_each_required_list() -> None:
    selection = Selection(required_tags1=("a", "b"), required_tags2=("c",))
    assert selects(selection, one=case("", "b", "c"))
    assert not selects(selection, one=case("", "a", "b"))
    assert not selects(selection, one=case("", "c"))


@pytest.mark.parametrize(
    ("expression", "matches"),
    [
        ("weather", True),
        ("WEATHER", True),
        ("oslo", True),
        ("weather and oslo", True),
        ("weather and not oslo", False),
        ("not oslo or weather", True),
        ("not (oslo or weather)", False),
        ("bergen or rain", False),
        ("bergen or weather and oslo", True),
        ("(bergen or weather) and not oslo", False),
        ("not not oslo", True),
        ("::Oslo", True),
    ],
)
def test_words_are_looked_for_in_file_and_row(expression: str, matches: bool) -> None:
    assert compile_name(expression)("tests/weather.md::Oslo") is matches
    assert selects(Selection(name=expression), "tests/weather.md", case("Oslo")) is matches


@pytest.mark.parametrize(
    "expression", ["and", "a and", "or b", "(a", "a)", "not", "()", "a b", "a (b)", " "]
)
def test_what_is_no_expression_is_refused(expression: str) -> None:
    with pytest.raises(EvalstoreError, match="cannot be read") as caught:
        compile_name(expression)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("tags", "required", "prohibited", "suitable"),
    [
        ((), (), (), True),
        (("x",), ("x", "y"), (), True),
        ((), ("x",), (), False),
        (("x",), (), ("x",), False),
        (("x", "y"), ("x",), ("y",), False),
    ],
)
def test_a_model_suits_a_case_by_its_tags(
    tags: tuple[str, ...], required: tuple[str, ...], prohibited: tuple[str, ...], suitable: bool
) -> None:
    assert suits(case("", *tags), required, prohibited) is suitable
