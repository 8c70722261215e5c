"""Stores that are damaged or made by a stranger, and everything that reads them."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from evalstore.core import hashing
from evalstore.core.errors import EvalstoreError
from evalstore.interfaces.cli.main import main
from evalstore.interfaces.tui.data_source import WorkspaceSource
from evalstore.planning.open_project import open_store
from evalstore.planning.options import Location
from evalstore.results.answer.answer import last_user_messages
from evalstore.results.flips.verdict_changes import find_verdict_changes
from evalstore.results.log.log import versions_of
from evalstore.store.schema.table_definitions import TABLES
from tests.builders import tree

ANY = None
DEEP = 20_000
VALUES: dict[str, Any] = {
    "NULL": None,
    "an empty blob": b"",
    "a blob": b"\x00\xff\xfe",
    "an id of nothing": b"\x07" * 16,
    "zero": 0,
    "the largest number": 2**63 - 1,
    "the smallest number": -(2**63),
    "infinity": float("inf"),
    "an empty text": "",
    "a text": "x\x1b[31m",
    "a list": "[]",
    "null": "null",
    "NaN": "NaN",
    "a number": "5",
    "a long number": "9" * 6_000,
    "a nested list": "[" * DEEP + "]" * DEEP,
    "an object": "{}",
    "half a character": '{"kind": "run", "message": "\\ud800"}',
    "not UTF-8": b"\xff\xfe{}",
}
"""What a column is set to, whatever it is for; the last as a text."""
FIELDS: tuple[Any, ...] = (
    *(None, True, -1, 2**63 - 1, 10**40, 1e300, "", "x\x1b[31m", "0" * 32, "\ud800"),
    *([], {}, [None], [[]], [{}], {"": None}, ["x"], [0], {"x": "x"}),
)
"""What a field of a content is set to."""

LABEL = ("label", "--model", "scripted/hasty", "tests/saturday.md")
MANY = """\
---
replacements: {number: [NUMBERS]}
---

# 👤

Is {{number}} many?

---

~~~checks
- length: {min: 1}
~~~
""".replace("NUMBERS", ", ".join(map(str, range(66))))
"""A test file whose cases are in several nodes."""
BROKEN = """\
id: scripted/broken
provider: scripted
responses:
  - {when: tandem, error: {status: 500, message: down}}
  - {answer: Something.}
"""


def make_workspace(folder: Path) -> Path:
    """A workspace with two runs, failures and a label, and rows in every table."""
    folder.mkdir()
    assert run(folder, "init", "--example") == 0
    settings = (folder / "evalstore.yaml").read_text(encoding="utf-8")
    settings = settings.replace("candidates:", "retries: 0\ncandidates:", 1)
    tree(
        folder,
        {"models/broken.yaml": BROKEN, "evalstore.yaml": settings, "tests/many.md": MANY},
    )
    assert run(folder, "run", "--yes") == 1
    assert run(folder, "run", "--yes", "-m", "scripted/broken", "tests/booking.md") in (1, 3)
    test = folder / "tests/booking.md"
    test.write_text(test.read_text(encoding="utf-8").replace("Ada", "Eva"), encoding="utf-8")
    assert run(folder, "run", "--yes") == 1
    assert run(folder, *LABEL, "pass", "--as", "Ada") == 0
    with closing(sqlite3.connect(store_of(folder))) as raw:
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        raw.execute("PRAGMA journal_mode = DELETE")
    return folder


def store_of(folder: Path) -> Path:
    """Where the store of a workspace is."""
    return folder / ".evalstore/store.db"


def run(folder: Path, *argv: str) -> int:
    """The exit code of a command in a workspace."""
    return main(["-C", str(folder), *argv])


class Names(NamedTuple):
    """Ids of what commands are told to show."""

    session: str
    evaluation: str
    node: str


def names_of(store: Path) -> Names:
    """Ids of one of each kind."""
    with closing(sqlite3.connect(store)) as raw:
        return Names(
            *(
                raw.execute(f"SELECT id FROM {table} ORDER BY id").fetchone()[0].hex()
                for table in ("sessions", "evaluations", "nodes")
            )
        )


Reader = Callable[[Path, Names], int]


def _command(*argv: str) -> Reader:
    return lambda folder, names: run(folder, *(item.format(names=names) for item in argv))


def _browse(look: Callable[[WorkspaceSource, Names], object]) -> Reader:
    def read(folder: Path, names: Names) -> int:
        try:
            look(WorkspaceSource(Location(folder)), names)
        except EvalstoreError as error:
            return error.exit_code
        return 0

    return read


def _compare_with_earlier(source: WorkspaceSource, _names: Names) -> None:
    with open_store(source.location) as store:
        find_verdict_changes(store, "tests", store.load_run(source.runs()[0].id))


def _browse_cases(source: WorkspaceSource, _names: Names, revision: str | None = "@") -> None:
    actual = source.cases(revision)
    results = [result for row in actual.rows for result in row.results if result]
    source.feedback([result.decision for result in results])
    source.answers([id for result in results for id in result.sessions])
    last_user_messages(source.location, [result.test for result in results])
    run = source.runs()[0].id if revision else None
    for item in (results[0], results[len(results) // 2], results[-1]):
        versions_of(source.location, item.file, item.row)
        source.labels().current(item, None)
        for session in item.sessions:
            source.session(session, item)
        source.answer(item, None, run)


READERS: dict[str, Reader] = {
    "status": _command("status"),
    "status --explain": _command("status", "--explain"),
    "log": _command("log"),
    "log --json": _command("log", "--json"),
    "log FILE": _command("log", "tests/booking.md"),
    "log --failures": _command("log", "--failures"),
    "ls runs": _command("ls", "runs"),
    "ls cases --json --full": _command("ls", "cases", "--json", "--full"),
    "show @": _command("show", "@"),
    "show SESSION": _command("show", "{names.session}"),
    "show EVALUATION --json": _command("show", "--json", "{names.evaluation}"),
    "show NODE": _command("show", "{names.node}"),
    "diff": _command("diff"),
    "diff @~1 @": _command("diff", "--answers", "@~2", "@"),
    "stats": _command("stats", "--by", "model,prompt"),
    "grep": _command("grep", "bike"),
    "fsck": _command("fsck"),
    "check": _command("check"),
    "judge": _command("run", "--judge-only", "--yes"),
    "run": _command("run", "--yes"),
    "run --lf": _command("run", "--yes", "--lf"),
    "label": _command(*LABEL, "fail", "--as", "Eva"),
    "runs": _browse(lambda source, _: source.runs()),
    "cases of a run": _browse(_browse_cases),
    "cases of the workspace": _browse(lambda source, names: _browse_cases(source, names, None)),
    "compare": _browse(lambda source, _: source.workspace.diff("@~1", "@")),
    "statistics": _browse(lambda source, _: source.stats("@", ["model", "file"])),
    "flips": _browse(_compare_with_earlier),
    "search": _browse(lambda source, _: source.search(("bike",), lambda _done, _all: True)),
}
"""Everything that reads a store, by what a user calls it."""


# --- damage


def columns() -> Iterator[tuple[str, str]]:
    """The tables with their columns."""
    for table in TABLES:
        for column in TABLES[table].columns:
            yield table, column


@contextmanager
def opened(store: Path) -> Iterator[sqlite3.Connection]:
    """A connection that does not wait for the disk."""
    with closing(sqlite3.connect(store)) as raw:
        raw.execute("PRAGMA synchronous = OFF")
        yield raw


def set_column(store: Path, table: str, column: str, value: Any) -> None:
    """Set a column in all rows of a table, of ids the first, whatever is declared of it."""
    names = ", ".join(TABLES[table].columns)
    declared = set_schema(store, table, f"CREATE TABLE {table} ({names}, PRIMARY KEY (id))")
    place = "CAST(? AS TEXT)" if value == VALUES["not UTF-8"] else "?"
    which = f"WHERE rowid = (SELECT min(rowid) FROM {table})" if column == "id" else ""
    with opened(store) as raw:
        raw.execute(f"UPDATE {table} SET {column} = {place} {which}", (value,))
        raw.commit()
    set_schema(store, table, declared)


def set_schema(store: Path, name: str, statement: str) -> str:
    """Declare a table in another way, without a change of its rows; returns what it was."""
    with opened(store) as raw:
        query = "SELECT sql FROM sqlite_master WHERE name = ?"
        (was,) = raw.execute(query, (name,)).fetchone()
        raw.execute("PRAGMA writable_schema = ON")
        raw.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", (statement, name))
        raw.execute("PRAGMA schema_version = 4711")
        raw.commit()
    return str(was)


def contents(store: Path) -> dict[str, tuple[str, Any]]:
    """All contents by id, with their table."""
    with opened(store) as raw:
        return {
            id.hex(): (table, json.loads(content))
            for table in TABLES
            for id, content in raw.execute(f"SELECT id, content FROM {table}")
        }


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The ways to all parts of a content."""
    if at:
        yield at
    if isinstance(value, dict):
        for name in sorted(value):
            yield from places(value[name], (*at, name))
    elif isinstance(value, list):
        for number in range(min(len(value), 2)):
            yield from places(value[number], (*at, number))


def forge(store: Path, id: str, change: Callable[[Any], None]) -> None:
    """Change a content, and all ids that follow from it: nothing shows that it was changed."""
    with opened(store) as raw:
        texts = {
            item.hex(): (table, content)
            for table in TABLES
            for item, content in raw.execute(f"SELECT id, content FROM {table}")
        }
        table, text = texts[id]
        content = json.loads(text)
        change(content)
        waiting = {id: json.dumps(content, sort_keys=True, separators=(",", ":"))}
        while waiting:
            old, text = waiting.popitem()
            new = hashing.hash_bytes(text.encode())
            table, _ = texts.pop(old)
            texts[new] = table, text
            with suppress(sqlite3.IntegrityError):
                raw.execute(
                    f"UPDATE {table} SET id = ?, content = ? WHERE id = ?",
                    (bytes.fromhex(new), text, bytes.fromhex(old)),
                )
            for other, column in columns():
                if column in ("question", "subject", "evaluation", "evaluator"):
                    raw.execute(
                        f"UPDATE {other} SET {column} = ? WHERE {column} = ?",
                        (bytes.fromhex(new), bytes.fromhex(old)),
                    )
            for entry, (_, content) in texts.items():
                content = waiting.get(entry, content)
                if old in content:
                    waiting[entry] = content.replace(old, new)
        raw.commit()


def put(value: Any, way: tuple[Any, ...], new: Any) -> None:
    """Set, or with `ANY` remove, a part of a content."""
    *before, last = way
    for step in before:
        value = value[step]
    if new is ANY:
        del value[last]
    else:
        value[last] = new


def copy_store(workspace: Path) -> Iterator[Path]:
    """Copies of a workspace's store, each in its place; what it was comes back at the end."""
    store = store_of(workspace)
    kept = store.with_name("kept.db")
    shutil.copyfile(store, kept)
    try:
        while True:
            for leftover in workspace.glob(".evalstore/store.db*"):
                leftover.unlink()
            shutil.copyfile(kept, store)
            yield store
    finally:
        kept.replace(store)
