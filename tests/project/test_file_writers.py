"""Only `files.atomic_write` writes files; a new writer would leave half a file when killed."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
METHODS = frozenset({"write_text", "write_bytes", "touch"})
FUNCTIONS = frozenset(
    {
        *(f"shutil.{name}" for name in ("copy", "copy2", "copyfile", "copytree", "move")),
        *(f"tempfile.{name}" for name in ("mkstemp", "NamedTemporaryFile", "TemporaryFile")),
    }
)
FLAGS = ("O_WRONLY", "O_RDWR", "O_CREAT")
_NAMES = sorted({*METHODS, "open", "fdopen", *(name.partition(".")[2] for name in FUNCTIONS)})
CALLED = re.compile(rf"\b(?:{'|'.join(_NAMES)})\s*\(")
ALLOWED = {
    ("files/atomic_write.py", "open"): "it is the one place",
    ("files/processes/worker/__main__.py", "os.fdopen"): "a pipe",
    ("files/processes/worker/__main__.py", "os.open"): "the null device",
    (
        "files/processes/pool.py",
        "place.write_bytes",
    ): "a temporary folder of one process",
    ("exchange/exports/inspect_logs.py", "self._archive.open"): "a member of an archive",
    ("interfaces/cli/output.py", "os.fdopen"): "the null device",
    ("interfaces/cli/output.py", "os.open"): "the null device",
}


def writers(source: str) -> list[str]:
    """The functions that a module calls and that may write a file."""
    if not CALLED.search(source):  # most modules: parsing all of them takes a second
        return []
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return [ast.unparse(call.func) for call in calls if writes(call)]


def writes(call: ast.Call) -> bool:
    called = ast.unparse(call.func)
    name = called.rpartition(".")[2]
    if name in METHODS or called in FUNCTIONS:
        return True
    if called == "os.open":
        return any(flag in ast.unparse(call) for flag in FLAGS)
    return name in {"open", "fdopen"} and any(
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and len(node.value) <= len("rb+")
        and not set("wax+").isdisjoint(node.value)
        for item in (*call.args, *call.keywords)
        for node in ast.walk(item)
    )


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("p.write_text('')", ["p.write_text"]),
        ("p.open('w')", ["p.open"]),
        ("p.open(mode='ab')", ["p.open"]),
        ("open(p, 'x')", ["open"]),
        ("open(p, 'r' if reading else 'w')", ["open"]),
        ("os.fdopen(3, 'r+')", ["os.fdopen"]),
        ("os.open(p, os.O_WRONLY | os.O_CREAT)", ["os.open"]),
        ("shutil.copy2(a, b)", ["shutil.copy2"]),
        ("p.open('rb'); p.open(); values.copy(); os.open(p, os.O_RDONLY); open('wax.md')", []),
    ],
)
def test_what_writes_is_recognised(source: str, expected: list[str]) -> None:
    assert writers(source) == expected


def test_files_are_written_in_one_place_only() -> None:
    base = ROOT / "evalstore"
    actual = {
        (path.relative_to(base).as_posix(), name)
        for path in base.rglob("*.py")
        for name in writers(path.read_text(encoding="utf-8"))
    }
    assert actual == ALLOWED.keys()


def test_tools_write_files_in_the_same_way() -> None:
    actual = {
        (path.name, name)
        for path in (ROOT / "tools").glob("*.py")
        for name in writers(path.read_text(encoding="utf-8"))
    }
    assert actual == {
        ("example_history.py", "shutil.copytree"),  # into a temporary folder
        ("mutants.py", "shutil.copytree"),  # the same
        ("mutants.py", "path.write_bytes"),  # in this copy
        ("mutants.py", "path.write_text"),
        ("suite_costs.py", "self._path.open"),  # lines are added to it
    }
