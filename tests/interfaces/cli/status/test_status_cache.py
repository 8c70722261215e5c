"""`status` from memory: only while nothing it was made from has moved."""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evalstore.core import clock
from evalstore.planning.options import Location, SelectionOptions
from evalstore.runs.status import plan_status
from evalstore.runs.status.status import status
from tests.builders import tree
from tests.interfaces.cli.conftest import WEATHER, Evalstore
from tests.interfaces.cli.run.test_run import edit


@pytest.fixture
def settled(workspace: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with a complete run, in which every stamp counts as settled."""
    monkeypatch.setattr("evalstore.runs.status.status_cache.GRAIN", -(10**12))
    (workspace / "tests/note.txt").write_text("a note")
    edit(workspace / "tests/weather.md", "How is {{city}}?", "How is {{city}}? {{_file:note.txt}}")
    evalstore("run")
    evalstore("status")
    return workspace


def is_recalled(folder: Path, monkeypatch: pytest.MonkeyPatch, *, whole: bool = True) -> bool:
    """Whether `status` answers without reading anything."""
    with monkeypatch.context() as patch:
        patch.setattr(plan_status, "compute_status", lambda *_, **_options: None)
        return status(Location(folder), SelectionOptions(), whole=whole) is not None


def test_an_answer_of_nothing_to_do_is_remembered(
    settled: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_recalled(settled, monkeypatch)
    assert evalstore("status").stdout.startswith("Nothing to do: 2 answers of 1 candidate")
    assert status(Location(settled), SelectionOptions()) == plan_status.compute_status(
        Location(settled), SelectionOptions()
    )


@pytest.mark.parametrize(
    "path",
    [
        "tests/weather.md",
        "tests/note.txt",
        "models/one.yaml",
        "models/judge.yaml",
        "evalstore.yaml",
    ],
)
def test_a_change_of_any_file_is_seen_even_with_size_and_time_as_they_were(
    settled: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    file = settled / path
    before = file.stat()
    data = file.read_bytes()
    file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert not is_recalled(settled, monkeypatch)


@pytest.mark.parametrize(
    "path", ["tests/new.md", "prompts/new.md", "tools/t.yaml", "schemas/s.json", "models/m.yaml"]
)
def test_a_new_file_is_seen(settled: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    (settled / path).parent.mkdir(exist_ok=True)
    (settled / path).write_text("x")
    assert not is_recalled(settled, monkeypatch)


def test_a_mentioned_file_that_is_shadowed_is_seen(
    settled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (settled / "tests/note.txt").unlink()
    assert not is_recalled(settled, monkeypatch)


def test_a_change_of_the_store_is_seen(settled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with sqlite3.connect(settled / ".evalstore/store.db") as connection:
        connection.execute("DELETE FROM sessions")
    assert not is_recalled(settled, monkeypatch)


def test_what_a_remote_has_is_seen(
    settled: Path, evalstore: Evalstore, documents: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    evalstore("remote", "add", "origin", "shared")
    (settled / "spare").mkdir()
    evalstore("--store", "spare/store.db", "run", "-q")
    edit(settled / "tests/weather.md", "[Oslo, Rome]", "[Oslo, Rome, Riga]")
    evalstore("--store", "spare/store.db", "run", "-q")
    evalstore("status")
    assert is_recalled(settled, monkeypatch, whole=False)
    evalstore("--store", "spare/store.db", "push")
    assert not is_recalled(settled, monkeypatch, whole=False)
    line = "origin has 1 of the 1 answer: 'evalstore pull origin --for-plan' saves "
    for _ in ("computed", "recalled"):
        assert line in evalstore("status").stdout
    assert is_recalled(settled, monkeypatch, whole=False)


def test_another_run_is_seen(
    settled: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    evalstore("run")
    assert not is_recalled(settled, monkeypatch)


def test_other_options_are_never_answered_from_memory(settled: Path, documents: Any) -> None:
    assert documents("status", "-r", "2")["ask"] == 2


def test_an_answer_that_depends_on_time_is_remembered_until_it_falls(
    settled: Path, evalstore: Evalstore, documents: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(settled / "evalstore.yaml", "candidates:", "maxAge: 30d\ncandidates:")
    evalstore("status")
    assert is_recalled(settled, monkeypatch)
    later = time.time_ns() + 31 * 86_400 * 10**9
    monkeypatch.setattr(clock, "time", SimpleNamespace(time_ns=lambda: later))
    assert not is_recalled(settled, monkeypatch)
    assert documents("status")["ask"] == 2


def test_what_is_to_be_done_is_remembered_as_numbers(
    settled: Path, evalstore: Evalstore, documents: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(settled / "tests/weather.md", "[Oslo, Rome]", "[Oslo, Rome, Paris]")
    edit(settled / "tests/weather.md", "must be warm", "must be hot")
    output = evalstore("status").stdout
    assert "MM  tests/weather.md  1 case new, 2 cases judged again: instructions" in output
    assert is_recalled(settled, monkeypatch, whole=False)
    assert not is_recalled(settled, monkeypatch)
    assert evalstore("status").stdout == output
    assert evalstore("status", "--short").stdout == "MM tests/weather.md\n"
    assert len(documents("status")["items"]) == 4
    assert "Would judge (3):" in evalstore("status", "--explain").stdout


def test_the_prices_of_another_day_are_not_answered_from_memory(
    settled: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    tomorrow = time.time_ns() + 86_400 * 10**9
    monkeypatch.setattr(clock, "time", SimpleNamespace(time_ns=lambda: tomorrow))
    assert not is_recalled(settled, monkeypatch)


def test_another_store_is_never_answered_from_memory(settled: Path, evalstore: Evalstore) -> None:
    assert evalstore("status", "--store", "other.db").exit_code == 6


def test_what_is_young_is_not_remembered(
    workspace: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    evalstore("run")
    evalstore("status")
    assert not is_recalled(workspace, monkeypatch)


@pytest.mark.parametrize("text", ["", "{}", "[]", "\x00", '{"format": null}'])
def test_a_broken_memory_is_forgotten(
    settled: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    (settled / ".evalstore/quiet.json").write_text(text)
    assert not is_recalled(settled, monkeypatch)


def test_recorded_answers_are_not_counted_as_a_candidate(
    workspace: Path, evalstore: Evalstore
) -> None:
    recorded = WEATHER.replace("tags: [weather]", "answer: It is Warm").replace(
        "[Oslo, Rome]", "Bonn"
    )
    tree(workspace, {"tests/recorded.md": recorded})
    for _ in range(2):
        assert "(1 candidate and recorded answers)" in evalstore("status").stdout
    evalstore("run", "-q")
    for _ in range(2):
        shown = evalstore("status").stdout
        assert shown.startswith("Nothing to do: 3 answers of 1 candidate and recorded answers and ")
