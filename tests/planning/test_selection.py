"""Which cases a command is about."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstore.core import hashing
from evalstore.core.errors import EvalstoreError
from evalstore.core.hashing import canonical_json
from evalstore.core.values import Case
from evalstore.planning.selection import (
    Placed,
    Selection,
    Subset,
    Target,
    compile_name,
    read_shard,
    split_case,
    suits,
)


def case(row: str = "", *tags: str) -> Case:
    return Case(row, "", ("t",), None, tags, (None,))


def selects(
    selection: Selection, file: str = "tests/a.md", tested_case: Case | None = None
) -> bool:
    return selection.matcher()(file, tested_case or case())


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


@pytest.mark.parametrize(
    ("text", "file", "row"),
    [
        ("tests/a.md", "tests/a.md", None),
        ("tests/a.md::x::y", "tests/a.md", "x::y"),
        ("tests/a::b.md", "tests/a::b.md", None),
        ("tests/a::b.md::x", "tests/a::b.md", "x"),
        ("tests/a::b.md [x::y]", "tests/a::b.md [x::y]", None),
        ("tests/a.md::of b.md::x", "tests/a.md", "of b.md::x"),
        ("tests/a::x", "tests/a", "x"),
        ("tests/a.md::", "tests/a.md", ""),
    ],
)
def test_a_file_and_a_row_may_contain_colons(text: str, file: str, row: str | None) -> None:
    assert split_case(text) == (file, row)


def test_a_row_can_be_named() -> None:
    selection = Selection((Target("tests/a.md", "Oslo"), Target("tests/b.md")))
    assert selects(selection, tested_case=case("Oslo"))
    assert not selects(selection, tested_case=case("Bergen"))
    assert selects(selection, "tests/b.md", case("Bergen"))


@pytest.mark.parametrize(
    ("tags", "selected"),
    [((), False), (("x",), True), (("y",), True), (("x", "no"), False), (("z",), False)],
)
def test_one_of_the_tags_and_none_of_the_excluded(tags: tuple[str, ...], selected: bool) -> None:
    selection = Selection(tags=("x", "y"), exclude_tags=("no",))
    assert selects(selection, tested_case=case("", *tags)) is selected


def test_one_of_each_required_list() -> None:
    selection = Selection(required_tags1=("a", "b"), required_tags2=("c",))
    assert selects(selection, tested_case=case("", "b", "c"))
    assert not selects(selection, tested_case=case("", "a", "b"))
    assert not selects(selection, tested_case=case("", "c"))


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
def test_an_invalid_expression_is_refused(expression: str) -> None:
    with pytest.raises(EvalstoreError, match="is not valid") as caught:
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


def test_what_cannot_be_read_is_reported_with_an_example() -> None:
    with pytest.raises(EvalstoreError) as caught:
        compile_name("(weather")
    assert str(caught.value) == "'-k (weather' is not valid"
    assert caught.value.hint == (
        "write words with and, or, not and brackets: 'weather and not oslo'"
    )


@pytest.mark.parametrize("word", ["or", ")", "and"])
def test_a_word_with_a_meaning_is_not_a_name(word: str) -> None:
    for expression in (f"not {word}", f"a and {word}", f"a or {word}"):
        with pytest.raises(EvalstoreError, match="is not valid"):
            compile_name(expression)


@pytest.mark.parametrize("expression", ["(a and b", "(a b", "(a b)", "((a)", "a or (b"])
def test_brackets_are_closed(expression: str) -> None:
    with pytest.raises(EvalstoreError, match="is not valid"):
        compile_name(expression)


@pytest.mark.parametrize(
    ("expression", "matching"),
    [
        ("a and b", {"ab"}),
        ("b and a", {"ab"}),
        ("a or b", {"a", "b", "ab"}),
        ("b or a", {"a", "b", "ab"}),
        ("a or c or b", {"a", "b", "ab", "c"}),
        ("not a and not b", {"c"}),
    ],
)
def test_both_sides_of_a_word_count(expression: str, matching: set[str]) -> None:
    matches = compile_name(expression)
    assert {name for name in ("a", "b", "ab", "c") if matches(name)} == matching


def test_a_name_has_two_hundred_words_at_most() -> None:
    assert compile_name(" or ".join(["a"] * 100))("a")  # 199 words
    assert compile_name("not " + " or ".join(["a"] * 100))("b")  # 200
    with pytest.raises(EvalstoreError) as caught:
        compile_name("not not " + " or ".join(["a"] * 100))
    assert str(caught.value) == "'-k' takes at most 200 words"
    assert caught.value.hint == "name the tests instead"


def test_one_of_several_targets_covers_a_file() -> None:
    selection = Selection((Target("tests/a.md"), Target("tests/b.md")))
    assert selection.covers_file("tests/a.md")
    assert selection.covers_file("tests/b.md")
    assert not selection.covers_file("tests/c.md")


# --- subsets


@pytest.mark.parametrize(
    ("subset", "is_all"),
    [
        (Subset(), True),
        (Subset(seed=1), True),
        (Subset(sample=1), False),
        (Subset(shard=(1, 1)), False),
        (Subset(limit=1), False),
    ],
)
def test_without_a_sample_a_shard_and_a_limit_it_is_all(subset: Subset, is_all: bool) -> None:
    assert subset.is_all is is_all


def test_a_sample_is_drawn_by_the_values_of_rows_and_nothing_else() -> None:
    cases = [("a.md", case(f"row {n}")._replace(key=str(n % 2))) for n in range(6)]
    sample = Subset(sample=3).take(cases)
    assert (
        len({drawn.key for _, drawn in sample}) == 1
    )  # of one key all come before those of others
    two = Subset(sample=2).take(cases)
    assert two == sample[:2]  # by rows where the keys are equal
    assert Subset(sample=2).take(cases[::-1]) == two[::-1]
    assert Subset(sample=2) == Subset(sample=2, seed=0)


placed = st.lists(
    st.builds(
        lambda path, row, test: (path, case(row)._replace(key=row, tests=(test,))),
        st.sampled_from(["a.md", "b.md"]),
        st.text(max_size=3),
        st.sampled_from(["t1", "t2", "t3"]),
    ),
    max_size=12,
    unique_by=lambda drawn: (drawn[0], drawn[1].row),
)


@given(placed, st.integers(1, 12), st.integers())
def test_a_sample_has_so_many_cases_in_their_order(
    cases: list[Placed], size: int, seed: int
) -> None:
    drawn = Subset(sample=size, seed=seed).take(cases)
    assert len(drawn) == min(size, len(cases))
    assert drawn == [chosen for chosen in cases if chosen in drawn]


@given(placed, st.integers(1, 12), st.integers())
def test_a_sample_has_the_cases_of_the_smallest_lots(
    cases: list[Placed], size: int, seed: int
) -> None:
    def lot(drawn: Placed) -> tuple[int, str, str]:
        path, of_row = drawn
        texts = canonical_json((str(seed), path, of_row.key))
        return int(hashing.hash_content(texts), 16), path, of_row.row

    drawn = Subset(sample=size, seed=seed).take(cases)
    assert sorted(drawn, key=lot) == sorted(cases, key=lot)[:size]


@given(placed, st.integers(1, 6))
def test_one_more_case_takes_the_place_of_one_at_most(cases: list[Placed], size: int) -> None:
    sample = Subset(sample=size)
    fewer, more = sample.take(cases[1:]), sample.take(cases)
    assert len([chosen for chosen in fewer if chosen not in more]) <= 1


@given(placed, st.integers(1, 5))
def test_every_case_is_in_one_shard_beside_its_equals(cases: list[Placed], count: int) -> None:
    shards = [Subset(shard=(number, count)).take(cases) for number in range(1, count + 1)]
    assert sorted(repr(chosen) for shard in shards for chosen in shard) == sorted(map(repr, cases))
    homes = [{placed_case.tests for _, placed_case in shard} for shard in shards]
    assert all(not a & b for a in homes for b in homes if a is not b)


def test_the_hashes_behind_samples_and_shards_are_the_same_for_ever() -> None:
    cases = [(f"{name}.md", case()._replace(tests=(name,))) for name in "abcdefgh"]
    drawn = [path for path, _ in Subset(sample=3, seed=1).take(cases)]
    shard = [path for path, _ in Subset(shard=(1, 3)).take(cases)]
    assert drawn == ["e.md", "f.md", "g.md"]
    assert shard == ["a.md", "d.md", "f.md"]


def test_of_a_shard_of_a_sample_the_first_are_taken() -> None:
    cases = [(f"{number}.md", case()._replace(tests=(str(number),))) for number in range(40)]
    sample = Subset(sample=20).take(cases)
    shard = Subset(shard=(2, 2)).take(sample)
    assert Subset(sample=20, shard=(2, 2), limit=3).take(cases) == shard[:3]


@pytest.mark.parametrize(("text", "shard"), [("1/1", (1, 1)), (" 3/4 ", (3, 4))])
def test_a_shard_is_one_of_how_many(text: str, shard: tuple[int, int]) -> None:
    assert read_shard(text) == shard


def test_a_shard_that_cannot_be_read_is_reported_with_an_example() -> None:
    with pytest.raises(EvalstoreError) as caught:
        read_shard("5/4")
    assert str(caught.value) == "'--shard 5/4' is not valid"
    assert caught.value.hint == "write I/N, such as '1/4', '2/4', '3/4', '4/4'"


@pytest.mark.parametrize(
    "text", ["١/٢", "0/2", "3/2", "x", "1", "1/0", "-1/2", "1/2/3", "1.0/2", ""]
)
def test_an_invalid_shard_is_refused(text: str) -> None:
    with pytest.raises(EvalstoreError, match="is not valid") as caught:
        read_shard(text)
    assert caught.value.hint
