"""A store whose test files are one node each, as programs before migration 0003 wrote it.

`old_rows.sql.gz` is what SQLite dumps of it.
"""

from __future__ import annotations

import gzip
import io
import json
import sqlite3
from contextlib import closing, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

from evalstore.core.runs import Run
from evalstore.interfaces.cli.main import main
from evalstore.store import Store
from evalstore.store.trees.case_chunks import build_case_tree, build_results, collect
from evalstore.store.trees.tree_nodes import build_tree, read_tree
from tests.builders import tree

ROWS = 72
FILES = {
    "evalstore.yaml": "candidates: [first, second]\ncandidatesTemperature: 0\n",
    "models/first.yaml": "id: first\nprovider: scripted\nresponses: [{answer: Oslo}]\n",
    "models/second.yaml": "id: second\nprovider: scripted\nresponses:\n"
    "  - {when: 'of country 7', answer: Riga}\n  - {answer: Oslo}\n",
    "tests/rows.md": "---\ndataset: data.jsonl\nid: capitals\n---\n\n# 👤\n\n"
    "What is the capital of {{item.country}}?\n\n---\n\n~~~checks\n- contains: Oslo\n~~~\n",
    "tests/small.md": "# 👤\n\nWhere is Oslo?\n\n---\n\n~~~checks\n- contains: Oslo\n~~~\n",
}
COMMANDS = (
    ("check",),
    ("ls", "tests"),
    ("ls", "cases"),
    ("ls", "cases", "--full"),
    ("log",),
    ("log", "tests/rows.md"),
    ("log", "--failures"),
    ("show", "@"),
    ("show", "@~1"),
    ("show", "@:tests/rows.md"),
    ("show", "@~1:tests/rows.md"),
    ("show", "SESSION"),
    ("diff", "@~1", "@"),
    ("diff", "@~1", "@", "-m", "first"),
    ("diff",),
    ("diff", "@", "--model", "first", "--vs", "second"),
    ("stats", "@"),
    ("stats", "@~1"),
    ("status",),
    ("grep", "Riga"),
    ("run", "--dry-run", "--last-failed"),
    ("run", "--dry-run", "--changed"),
    ("fsck",),
)
"""What is asked of the store, all with `--json`."""


def write_workspace(folder: Path) -> None:
    """The workspace as it was in the first run."""
    tree(folder, {**FILES, "tests/data.jsonl": _data(range(ROWS))})


def edit_workspace(folder: Path) -> None:
    """What was edited before the second run: a row is new, one is gone, and one is another."""
    numbers = [1000, *(number for number in range(ROWS) if number != 20)]
    numbers[50] = 2000
    tree(folder, {"tests/data.jsonl": _data(numbers)})


def _data(numbers: Any) -> str:
    return "".join(json.dumps({"country": f"country {number}"}) + "\n" for number in numbers)


def restore(folder: Path) -> None:
    """Write the workspace with the store."""
    write_workspace(folder)
    edit_workspace(folder)
    dump = gzip.decompress(Path(__file__).with_name("old_rows.sql.gz").read_bytes())
    (folder / ".evalstore").mkdir()
    with closing(sqlite3.connect(folder / ".evalstore/store.db")) as raw:
        raw.executescript(dump.decode())


def answers_of(folder: Path, *names: str) -> dict[str, tuple[int, str]]:
    """The exit code and the output of each command, or of some."""
    listed = {" ".join(command): command for command in COMMANDS}
    return {name: _answer(folder, listed[name]) for name in names or listed}


def _answer(folder: Path, command: tuple[str, ...]) -> tuple[int, str]:
    with closing(sqlite3.connect(folder / ".evalstore/store.db")) as raw:
        session = raw.execute("SELECT min(id) FROM sessions").fetchone()[0].hex()
    words = [session if word == "SESSION" else word for word in command]
    with redirect_stdout(io.StringIO()) as out:
        code = main(["-C", str(folder), *words, "--json"])
    return code, out.getvalue().replace(str(folder), "")


def convert(folder: Path) -> None:
    """Write the snapshots and results of all runs anew, in the nodes of this program."""
    path = folder / ".evalstore/store.db"
    with closing(Store.open(path)) as store:
        runs = [_converted(store, run) for run in store.find_runs()]
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("DELETE FROM runs")
        raw.execute("DELETE FROM run_rows")
        raw.commit()
    with closing(Store.open(path)) as store:
        for run in runs:
            store.record_run(run)


def _converted(store: Store, run: Run) -> Run:
    contents: dict[str, tuple[str, str]] = {}
    keep = collect(contents)
    was = read_tree(run.snapshot, store.load_nodes)
    files = {path: store.load_case_files([id])[id] for path, id in was.items()}
    nodes = {path: build_case_tree(file, keep) for path, file in files.items()}
    store.ensure_versions(contents)
    results = read_tree(run.results, store.load_nodes)
    cells = {path: store.load_leaves([id])[id]["cells"] for path, id in results.items()}
    leaves = build_results(cells, files, nodes, store.load_cases, keep)
    (snapshot, trees), (root, more) = build_tree(nodes), build_tree(leaves)
    store.ensure_versions({**contents, **trees, **more})
    return replace(run, snapshot=snapshot, results=root)


def ids_of_nodes(folder: Path) -> set[str]:
    """The ids of all nodes and runs of a store."""
    with closing(sqlite3.connect(folder / ".evalstore/store.db")) as raw:
        rows = raw.execute("SELECT id FROM nodes UNION SELECT id FROM runs")
        return {id.hex() for (id,) in rows}


def is_old(folder: Path) -> bool:
    """Whether a test file with many rows is one node in the newest run."""
    with closing(Store.open(folder / ".evalstore/store.db")) as store:
        [run] = store.find_runs(limit=1)
        nodes = read_tree(run.snapshot, store.load_nodes)
        contents = store.load_cases(nodes.values())
        return any(len(content.get("cases", ())) == ROWS for content in contents.values())
