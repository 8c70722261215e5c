"""Modules are compiled once for all workers of a session."""

from __future__ import annotations

import sys
from importlib.util import cache_from_source
from pathlib import Path

import pytest
from _pytest.assertion.rewrite import PYC_TAIL, _read_pyc

from tests.builders import tree
from tests.compiled_tests import compile_modules


def test_what_has_changed_is_compiled_and_read_by_the_workers(
    tmp_path: Path, pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    tree(tmp_path, {"b.py": "x = 1\n", "test_a.py": "assert 1 == 2\n", "test_cut.py": "def"})
    plain, test = tmp_path / "b.py", tmp_path / "test_a.py"
    made = Path(cache_from_source(str(plain)))
    assert compile_modules(tmp_path, pytestconfig) == [plain, test]
    assert _read_pyc(plain, made) is not None
    assert _read_pyc(test, made.with_name(f"test_a{PYC_TAIL}")) is not None
    assert compile_modules(tmp_path, pytestconfig) == []
    plain.write_text("x = 123\n")
    assert compile_modules(tmp_path, pytestconfig) == [plain]
