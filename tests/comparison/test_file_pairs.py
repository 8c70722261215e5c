"""Which test file is which: by id, by path, by content."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstore.comparison.comparison import pair_alike, pair_files
from evalstore.core.values import Case, CaseFile
from evalstore.store.trees import case_chunks

Files = Mapping[str, tuple[str | None, str]]
"""From paths to the id of the frontmatter and the leaf."""


def pairs(was: Files, now: Files) -> dict[str, str]:
    def load(leaves: Collection[str]) -> dict[str, CaseFile]:
        return {leaf: CaseFile((), id=leaf.partition(" ")[0] or None) for leaf in leaves}

    old, new = (
        {path: f"{id or ''} {leaf}" for path, (id, leaf) in side.items()} for side in (was, now)
    )
    return pair_files(old, new, "", load, load)


@pytest.mark.parametrize(
    ("was", "now", "expected"),
    [
        ({"a": (None, "1")}, {"a": (None, "1")}, {"a": "a"}),
        ({"a": (None, "1")}, {"a": (None, "2")}, {"a": "a"}),
        ({"a": (None, "1")}, {"b": (None, "1")}, {"b": "a"}),
        ({"a": (None, "1")}, {"b": (None, "2")}, {}),
        ({"a": ("x", "1")}, {"b": ("x", "2")}, {"b": "a"}),
        ({"a": ("x", "1")}, {"a": ("y", "2")}, {"a": "a"}),
        ({"a": ("x", "1")}, {"a": (None, "2")}, {"a": "a"}),
        ({"a": ("x", "1")}, {"a": (None, "2"), "b": ("x", "3")}, {"b": "a"}),
        (
            {"a": ("x", "1"), "b": ("y", "2")},
            {"a": ("y", "3"), "b": ("x", "4")},
            {"a": "b", "b": "a"},
        ),
        ({"a": ("x", "1"), "b": ("x", "2")}, {"c": ("x", "3")}, {}),
        ({"a": (None, "1"), "b": (None, "1")}, {"c": (None, "1")}, {"c": "a"}),
        ({"a": (None, "1")}, {"b": ("a", "2")}, {"b": "a"}),
    ],
    ids=[
        *("same", "edited", "renamed", "another file", "renamed and edited", "another id"),
        *("id removed", "path taken by another", "swapped", "ambiguous", "copies", "id kept"),
    ],
)
def test_files_are_paired(was: Files, now: Files, expected: dict[str, str]) -> None:
    assert pairs(was, now) == expected


sides = st.dictionaries(
    st.sampled_from("abcd"),
    st.tuples(st.one_of(st.none(), st.sampled_from("xyz")), st.sampled_from("123")),
)


@given(sides, sides)
def test_each_file_has_one_partner_and_the_pairs_are_the_same_from_both_sides(
    was: Files, now: Files
) -> None:
    forward = pairs(was, now)
    assert forward.keys() <= now.keys()
    assert set(forward.values()) <= was.keys()
    assert len(set(forward.values())) == len(forward)
    unpaired = now.keys() - forward.keys(), was.keys() - set(forward.values())
    assert unpaired[0].isdisjoint(unpaired[1])


def test_files_with_the_same_content_in_other_leaves_are_paired(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(case_chunks, "MAX_UNDIVIDED", 1)
    contents = {"1": "xx", "2": "yy", "3": "xx", "4": "yy", "5": "zz"}
    files = {leaf: CaseFile([case(test) for test in tests]) for leaf, tests in contents.items()}
    was, now = {"a": "1", "b": "2", "c": "5"}, {"d": "4", "e": "3", "c": "5"}
    paths = pair_files(was, now, "", lambda _: files, lambda _: files)
    assert paths == {"c": "c", "d": "b", "e": "a"}


def case(test: str, key: str = "", row: str = "") -> Case:
    return Case(row, key, (test,), None, (), (None,))


def alike(was: Mapping[str, CaseFile], now: Mapping[str, CaseFile]) -> Mapping[str, str]:
    return pair_alike(was, now, {path: path for path in was}, {path: path for path in now})


def rows(keys: str, id: str | None = None, test: str = "t") -> CaseFile:
    return CaseFile([case(f"{test} {key}", key, key) for key in keys], id=id)


@pytest.mark.parametrize(
    ("was", "now", "expected"),
    [
        ({"a": CaseFile([case("1")])}, {"b": CaseFile([case("1")])}, {"b": "a"}),
        ({"a": CaseFile([case("1")])}, {"b": CaseFile([case("2")])}, {}),
        ({"a": rows("abcd")}, {"b": rows("abxy")}, {"b": "a"}),
        ({"a": rows("abcd")}, {"b": rows("axyz")}, {}),
        ({"a": rows("ab")}, {"b": rows("abcde")}, {}),
        ({"a": rows("abcd")}, {"b": rows("abcd", test="u")}, {"b": "a"}),
        ({"a": rows("ab"), "b": rows("ab", test="u")}, {"c": rows("ab", test="u")}, {"c": "b"}),
        ({"a": rows("ab"), "b": rows("ab")}, {"c": rows("ab")}, {}),
        ({"a": rows("ab")}, {"b": rows("ab"), "c": rows("ab")}, {}),
        ({"a": rows("abcd"), "b": rows("abcx")}, {"c": rows("abcd")}, {"c": "a"}),
        ({"a": rows("ab", "x")}, {"b": rows("ab", "y")}, {}),
        ({"a": rows("ab")}, {"b": rows("ab", "y")}, {"b": "a"}),
    ],
    ids=[
        *("same test", "another test", "half of the rows", "fewer rows", "many new rows"),
        *("other tests of the same rows", "tests before rows", "two before", "two after"),
        *("the best", "other ids", "id added"),
    ],
)
def test_edited_files_are_paired_by_their_only_best_match(
    was: Mapping[str, CaseFile], now: Mapping[str, CaseFile], expected: dict[str, str]
) -> None:
    assert alike(was, now) == expected
