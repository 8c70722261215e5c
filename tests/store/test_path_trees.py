"""Trees: equal maps have equal ids, and a changed entry costs a few nodes."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from evalstore.core.values import Json
from evalstore.store.trees.tree_nodes import build_tree, find_entry, read_tree, read_trees

maps = st.dictionaries(st.text(min_size=1, max_size=8), st.sampled_from("abc"), max_size=60)


class Nodes:
    """Nodes in memory, and how many of them have been read."""

    def __init__(self, *contents: dict[str, tuple[str, str]]) -> None:
        self._nodes = {
            id: json.loads(content[1]) for group in contents for id, content in group.items()
        }
        self.read: list[str] = []

    def load(self, ids: Iterable[str]) -> dict[str, Json]:
        listed = list(ids)
        self.read += listed
        return {id: self._nodes[id] for id in listed}


def large(size: int = 2_000) -> dict[str, str]:
    return {f"tests/{number}.md": f"{number:032x}" for number in range(size)}


@given(maps)
def test_what_is_built_is_read(entries: dict[str, str]) -> None:
    root, contents = build_tree(entries)
    assert read_tree(root, Nodes(contents).load) == entries


@given(maps, st.randoms(use_true_random=False))
def test_equal_maps_have_equal_ids_in_whatever_order(
    entries: dict[str, str], random: object
) -> None:
    items = list(entries.items())
    random.shuffle(items)  # type: ignore[attr-defined]
    assert build_tree(dict(items)) == build_tree(entries)


@given(maps, maps)
def test_different_maps_have_different_ids(first: dict[str, str], other: dict[str, str]) -> None:
    assert (build_tree(first)[0] == build_tree(other)[0]) == (first == other)


@given(maps, maps)
def test_unlike_leaves_out_nothing_that_differs(
    first: dict[str, str], other: dict[str, str]
) -> None:
    (root, contents), (unlike, others) = build_tree(first), build_tree(other)
    entries = read_tree(root, Nodes(contents, others).load, unlike=unlike)
    assert entries.items() <= first.items()
    assert first.items() - other.items() <= entries.items()


@given(st.lists(maps, min_size=1, max_size=4))
def test_trees_that_are_read_together_are_read_as_each_alone(
    drawn_maps: list[dict[str, str]],
) -> None:
    roots, contents = zip(*map(build_tree, drawn_maps), strict=True)
    pairs = [(root, None) for root in roots] + list(pairwise(roots))
    nodes = Nodes(*contents)
    alone = [read_tree(root, nodes.load, unlike=unlike) for root, unlike in pairs]
    assert read_trees(pairs, nodes.load) == alone


def test_a_changed_entry_costs_a_few_small_nodes() -> None:
    entries = large()
    _, before = build_tree(entries)
    entries["tests/77.md"] = "f" * 32
    _, after = build_tree(entries)
    new = after.keys() - before.keys()
    assert len(new) <= 4
    assert sum(len(after[id][1]) for id in new) < 4096


def test_a_changed_entry_is_found_by_reading_a_few_nodes() -> None:
    entries = large()
    unlike, before = build_tree(entries)
    entries["tests/77.md"] = "f" * 32
    root, after = build_tree(entries)
    nodes = Nodes(before, after)
    assert "tests/77.md" in read_tree(root, nodes.load, unlike=unlike)
    assert len(nodes.read) <= 8


def test_of_a_tree_unlike_itself_nothing_is_read() -> None:
    root, contents = build_tree(large())
    nodes = Nodes(contents)
    assert read_tree(root, nodes.load, unlike=root) == {}
    assert nodes.read == []


@given(maps, maps)
def test_one_entry_is_found_in_several_trees(was: dict[str, str], now: dict[str, str]) -> None:
    trees = [build_tree(entries) for entries in (was, now)]
    nodes = Nodes(*(contents for _, contents in trees))
    for path in (*was, *now, "none"):
        by_root = find_entry([root for root, _ in trees], path, nodes.load)
        assert [by_root.get(root) for root, _ in trees] == [was.get(path), now.get(path)]


def test_an_entry_is_found_by_a_few_nodes() -> None:
    root, contents = build_tree(large())
    nodes = Nodes(contents)
    assert find_entry([root], "tests/7.md", nodes.load) == {root: f"{7:032x}"}
    assert len(nodes.read) < 6
