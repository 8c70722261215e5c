"""A report reads the answers of its runs once, however many of its parts need them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evalstore.planning.options import Location
from evalstore.results.compare.diff import diff
from evalstore.store import Store, contents
from evalstore.store.results import RowResults
from evalstore.store.trees import tree_nodes
from tests.interfaces.html.pages import TEST, call, data_of, make_workspace, report, scripted

FILES = 12


def test_an_answer_and_a_judgement_are_decoded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        f"tests/topic-{number}.md": TEST.replace("Hello", f"Hello {number}")
        for number in range(FILES)
    }
    kind = scripted("second", {"answer": "Good evening!"})
    root = make_workspace(tmp_path, {**files, "models/second.yaml": kind})
    assert call(root, "run") == 0
    edited = root / "tests/topic-3.md"
    edited.write_text(files["tests/topic-3.md"].replace("Hello", "Goodbye"), encoding="utf-8")
    assert call(root, "run") == 0
    decoded: Counter[tuple[str, str]] = Counter()
    decode = contents.decode_content

    def count(table: str, id: str, *rest: Any) -> Any:
        decoded[table, id] += 1
        return decode(table, id, *rest)

    monkeypatch.setattr(tree_nodes, "decode_content", count)
    report(root)
    times = {
        table: Counter(count for (name, _), count in decoded.items() if name == table)
        for table in ("sessions", "evaluations")
    }
    edited_results = 2 * 2  # of two candidates, on both sides of the comparison
    unchanged = 2 * (FILES + 1) - 2  # hello.md is another file
    for table in ("sessions", "evaluations"):
        assert times[table][1] >= unchanged, times
        assert times[table].total() <= unchanged + edited_results, times


def test_results_that_two_runs_have_in_common_are_counted_and_not_read(tmp_path: Path) -> None:
    files = {f"tests/topic-{n}.md": TEST.replace("Hello", f"Hello {n}") for n in range(FILES)}
    root = make_workspace(tmp_path, files)
    assert call(root, "run", "--fail-on", "none") == 0
    edited = root / "tests/topic-3.md"
    edited.write_text(files["tests/topic-3.md"].replace("Hello", "Goodbye"), encoding="utf-8")
    assert call(root, "run", "--fail-on", "none") == 0
    place = Location(root)
    few, many = (diff(place, "@~1", "@", lists_unchanged=listed) for listed in (False, True))
    assert len(few.comparison.sides.now) == len(many.comparison.sides.now) - 2 * FILES
    assert (len(few.comparison.unchanged), len(many.comparison.unchanged)) == (0, 2 * FILES)
    assert few.comparison.rates == many.comparison.rates
    assert few.comparison.change() == many.comparison.change()
    assert few.document() == many.document()


def test_however_many_failures_were_judged_again_no_later_run_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        f"tests/topic-{number}.md": TEST.replace("Hello", f"Hello {number}") for number in range(3)
    }
    root = make_workspace(tmp_path, files)
    assert call(root, "run", "--fail-on", "none") == 0
    for path, text in files.items():
        (root / path).write_text(text.replace("kind", "kind and short"), encoding="utf-8")
    assert call(root, "run", "--fail-on", "none") == 0
    read: list[object] = []
    find = Store.find_tree_leaves

    def count(store: Store, tree: str) -> Any:
        read.append(tree)
        return find(store, tree)

    monkeypatch.setattr(Store, "find_tree_leaves", count)
    page = report(root, "@~1").read_text(encoding="utf-8")
    assert data_of(page, "block-0")
    assert read == []


@pytest.mark.parametrize("revision", ["@", "@work"])
def test_all_explained_failures_look_for_rows_in_the_same_place(
    revision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {f"tests/topic-{n}.md": TEST.replace("Hello", f"Hello {n}") for n in range(3)}
    root = make_workspace(tmp_path, files)
    assert call(root, "run", "--fail-on", "none") == 0
    made: list[RowResults] = []
    begin = RowResults.__init__

    def count(rows: RowResults, store: Store) -> None:
        made.append(rows)
        begin(rows, store)

    monkeypatch.setattr(RowResults, "__init__", count)
    page = report(root, revision).read_text(encoding="utf-8")
    assert "failing since" in page
    assert len(made) <= 2
