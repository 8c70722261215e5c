"""Compiles what a session loads once, before its workers start: each of them would do all of it."""

from __future__ import annotations

import py_compile
import sys
from importlib.util import MAGIC_NUMBER, cache_from_source
from pathlib import Path

import pytest
from _pytest.assertion import AssertionState
from _pytest.assertion.rewrite import PYC_TAIL, _rewrite_test, _write_pyc


def compile_modules(folder: Path, config: pytest.Config) -> list[Path]:
    """Compile the modules below a folder that have changed; returns them.

    Tests are compiled with pytest's explanations of their asserts.
    """
    if sys.dont_write_bytecode:
        return []
    return [path for path in sorted(folder.rglob("*.py")) if _compile(path, config)]


def _compile(path: Path, config: pytest.Config) -> bool:
    has_asserts = path.name.startswith("test_") or path.name == "conftest.py"
    made = Path(cache_from_source(str(path)))
    if has_asserts:
        made = made.with_name(path.stem + PYC_TAIL)
    if _is_current(made, path):
        return False
    if not has_asserts:
        return bool(py_compile.compile(str(path), quiet=1))
    made.parent.mkdir(parents=True, exist_ok=True)
    try:
        stat, code = _rewrite_test(path, config)
    except SyntaxError:  # pytest names it when it collects
        return False
    return _write_pyc(AssertionState(config, "rewrite"), code, stat, made)


def _is_current(made: Path, source: Path) -> bool:
    """Whether bytecode begins with the time and the size of its source."""
    stat = source.stat()
    numbers = (0, int(stat.st_mtime) & 0xFFFFFFFF, stat.st_size & 0xFFFFFFFF)
    expected = MAGIC_NUMBER + b"".join(number.to_bytes(4, "little") for number in numbers)
    try:
        with made.open("rb") as file:
            return file.read(len(expected)) == expected
    except OSError:
        return False
