"""A report reads the results of its runs once, however many of its parts need them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from evalstore.store import contents, tree_nodes
from tests.html_report.pages import TEST, call, make_workspace, report, scripted

FILES = 12


def test_an_unchanged_result_is_decoded_once(
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
        for table in ("sessions", "evaluations", "nodes")
    }
    edited_results = 2 * 2  # of two candidates, on both sides of the comparison
    unchanged = 2 * (FILES + 1) - 2  # hello.md is another file
    for table in ("sessions", "evaluations"):
        assert times[table][1] >= unchanged, times
        assert times[table].total() <= unchanged + edited_results, times
    leaves = 2 * (FILES + 2)  # cases and results of each file, twice for the edited one
    assert times["nodes"][1] >= leaves, times
