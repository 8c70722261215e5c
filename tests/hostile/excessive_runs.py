"""Makes runs of a few nodes that describe billions of cases, as somebody who means harm would."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from evalstore.core import hashing
from evalstore.core.hashing import canonical_json
from evalstore.store.trees.tree_nodes import build_tree

FORMS = ("repeated", "shuffled", "copied", "lying")
"""A part many times in a node; in several nodes of a tree; one file by many names; wrong counts."""
_WIDTH = {"repeated": 128, "shuffled": 5, "copied": 2, "lying": 1}
_LEVELS = {"repeated": 5, "shuffled": 8, "copied": 1, "lying": 2}
_NAMES = 4_000


class _Rows:
    """The rows of a store that are added."""

    def __init__(self, path: Path) -> None:
        with closing(sqlite3.connect(path)) as store:
            self.nodes: dict[str, Any] = {
                id.hex(): json.loads(text)
                for id, text in store.execute("SELECT id, content FROM nodes")
            }
            query = "SELECT content FROM runs ORDER BY started DESC LIMIT 1"
            self.run = json.loads(store.execute(query).fetchone()[0])
        self.added: dict[str, str] = {}

    def keep(self, content: Any) -> str:
        """Add a node; returns its id."""
        text = canonical_json(content)
        id = hashing.hash_content(text)
        self.added[id] = text
        return id


def add_run(path: Path, form: str) -> str:
    """Add such a run to a store in a file, which has a run; returns its id."""
    rows = _Rows(path)
    results = next(
        (id, node)
        for id, node in rows.nodes.items()
        if node["kind"] == "results" and node.get("cells")
    )
    file = rows.nodes[results[1]["cases"]]
    leaves = _make_leaves(rows, file, results[1], _WIDTH[form] if form != "repeated" else 1)
    cases, judged = _pile(rows, leaves, len(file["cases"]), form)
    names = [f"tests/many/{number}.md" for number in range(_NAMES if form == "copied" else 1)]
    trees = []
    for node in (cases, judged):
        root, contents = build_tree(dict.fromkeys(names, node))
        rows.added.update({id: text for id, (_, text) in contents.items()})
        trees.append(root)
    run = {**rows.run, "nonce": form, "snapshot": trees[0], "results": trees[1]}
    run["started"] += 1_000_000
    run["ended"] += 1_000_000
    text = canonical_json(run)
    id = hashing.hash_content(text)
    with closing(sqlite3.connect(path)) as store:
        store.executemany(
            "INSERT OR IGNORE INTO nodes VALUES (?, ?)",
            [(bytes.fromhex(node), content) for node, content in rows.added.items()],
        )
        store.execute(
            "INSERT INTO runs VALUES (?, ?, ?)", (bytes.fromhex(id), text, run["started"])
        )
        store.commit()
    return id


def _make_leaves(rows: _Rows, file: Any, results: Any, count: int) -> list[tuple[str, str]]:
    """Different nodes of cases, each with its results."""
    leaves = []
    for number in range(count):
        cases = [{**case, "key": f"{case['key']}{number}"} for case in file["cases"]]
        node = rows.keep({"kind": "cases", "scheme": 1, "cases": cases})
        leaves.append((node, rows.keep({**results, "cases": node})))
    return leaves


def _pile(rows: _Rows, nodes: list[tuple[str, str]], size: int, form: str) -> tuple[str, str]:
    """The nodes of a file, and of its results, with levels above these."""
    width = _WIDTH[form]
    for level in range(1, _LEVELS[form] + 1):
        above = []
        for turn in range(len(nodes) if level < _LEVELS[form] else 1):
            parts = nodes * width if form == "repeated" else nodes[turn:] + nodes[:turn]
            counts = [size + (form == "lying")] * len(parts)
            content = {"scheme": 2, "level": level, "parts": [cases for cases, _ in parts]}
            node = rows.keep({"kind": "cases", **content, "counts": counts})
            content["parts"] = [results for _, results in parts]
            above.append((node, rows.keep({"kind": "results", **content, "cases": node})))
        nodes, size = above, size * width
    return nodes[0]
