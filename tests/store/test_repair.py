"""`fsck --repair` removes what refers to lost rows, and nothing else."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from evalstore.exchange.sync.fsck import check_store, repair_store
from evalstore.interfaces.cli.main import main
from evalstore.store import Store
from evalstore.store.contents import as_digits
from tests.builders import tree
from tests.interfaces.cli.conftest import WEATHER_WORKSPACE
from tests.store.sessions import fill


def kept(store: Store) -> dict[str, set[str]]:
    """The ids in each table."""
    found: dict[str, set[str]] = {}
    for table, row in store.iterate():
        found.setdefault(table, set()).add(as_digits(row["id"]))
    return found


def test_a_sound_store_loses_nothing(store: Store) -> None:
    fill(store)
    before = kept(store)
    assert repair_store(store) == {}
    assert kept(store) == before


def test_judgements_whose_answers_are_missing_go_with_the_runs_that_have_them(store: Store) -> None:
    fill(store)
    before = kept(store)
    with store.writing() as connection:
        connection.execute("DELETE FROM sessions WHERE id IN (SELECT subject FROM evaluations)")
    assert {damage.kind for damage in check_store(store)[1]} == {"judgement", "results"}
    removed = repair_store(store)
    assert (removed["judgement"], removed["run"]) == (1, 1)
    assert check_store(store)[1] == []
    after = kept(store)
    changed = {"sessions", "evaluations", "nodes", "runs"}
    assert {name for name in before if before[name] != after.get(name, set())} == changed
    assert len(after["sessions"]) == 1


def test_what_is_removed_is_judged_again_and_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tree(tmp_path / "w", WEATHER_WORKSPACE)
    monkeypatch.chdir(folder)
    assert main(["run"]) == 1
    assert main(["grep", "cold"]) == 0  # it makes an index
    with closing(sqlite3.connect(folder / ".evalstore/store.db")) as store:
        store.execute("DELETE FROM sessions WHERE content LIKE '%Cold.%'")
        store.commit()
    assert main(["fsck"]) == 1
    capsys.readouterr()
    assert main(["fsck", "--repair"]) == 0
    assert capsys.readouterr().out.startswith("removed 1 judgement, 2 nodes, 1 run\n")
    assert main(["grep", "cold"]) == 1
    assert main(["log"]) == 0
    assert main(["run"]) == 1
    assert main(["grep", "cold"]) == 0
    assert main(["fsck"]) == 0
