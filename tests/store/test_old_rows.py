"""A store that has long test files as one node each is read as any other."""

from __future__ import annotations

import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from evalstore.exchange.sync.fsck import check_store
from evalstore.interfaces.cli.main import main
from evalstore.planning.options import Location
from evalstore.results.log.log import versions_of
from evalstore.store import Store
from tests.store.old_rows import (
    COMMANDS,
    answers_of,
    convert,
    ids_of_nodes,
    is_old,
    restore,
)

pytestmark = pytest.mark.extended


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The workspace with the old store, and with one that has the same in new nodes."""
    folders = tmp_path_factory.mktemp("old"), tmp_path_factory.mktemp("new")
    for folder in folders:
        restore(folder)
    convert(folders[1])
    return folders


def copies(both: tuple[Path, Path], place: Path) -> list[Path]:
    """Workspaces that a test may change."""
    return [
        Path(shutil.copytree(folder, place / name)) for folder, name in zip(both, "ab", strict=True)
    ]


def plain(folder: Path, *names: str) -> dict[str, tuple[int, str]]:
    """What commands say, or some of them, with the same word for the id of any node or run."""
    ids = {start for id in ids_of_nodes(folder) for start in (id, id[:8])}
    hide = re.compile(r"\b([0-9a-f]{32}|[0-9a-f]{8})\b")
    return {
        command: (code, hide.sub(lambda match: "ID" if match[0] in ids else match[0], text))
        for command, (code, text) in answers_of(folder, *names).items()
    }


def test_every_command_says_the_same_of_both(both: tuple[Path, Path]) -> None:
    old, new = map(plain, both)
    assert is_old(both[0])
    assert not is_old(both[1])
    assert len(old) == len(COMMANDS)
    assert {code for code, _ in old.values()} <= {0, 5}
    assert '"checked": ' in old.pop("fsck")[1]  # it counts the nodes
    assert '"checked": ' in new.pop("fsck")[1]
    assert old == new


def test_both_are_sound(both: tuple[Path, Path]) -> None:
    for folder in both:
        with closing(Store.open(folder / ".evalstore/store.db")) as store:
            checked, damages = check_store(store)
        assert checked > 300
        assert damages == []


def test_reading_changes_no_node(both: tuple[Path, Path], tmp_path: Path) -> None:
    folder, _ = copies(both, tmp_path)

    def stored() -> list[object]:
        with closing(sqlite3.connect(folder / ".evalstore/store.db")) as raw:
            return raw.execute("SELECT id, content FROM nodes ORDER BY id").fetchall()

    before = stored()
    answers_of(folder)
    assert set(before) <= set(stored())
    assert len(stored()) - len(before) < 12  # the file as it is now, in new nodes


@pytest.mark.parametrize("renamed", [False, True], ids=["same", "renamed"])
def test_the_first_run_over_an_old_store_edits_nothing(
    both: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str], *, renamed: bool
) -> None:
    edits = []
    for folder in copies(both, tmp_path):
        if renamed:
            (folder / "tests/rows.md").rename(folder / "tests/towns.md")
        before = plain(folder, "status", "diff")
        assert main(["-C", str(folder), "run", "--yes", "--json"]) == 1
        assert '"asked": 0' in capsys.readouterr().out
        assert not is_old(folder)
        path = "tests/towns.md" if renamed else "tests/rows.md"
        versions = versions_of(Location(folder), path, "country=country 7")
        output = plain(folder, "diff @~1 @", "status")
        assert main(["-C", str(folder), "log", path, "--json"]) == 0
        log = capsys.readouterr().out.count('"run":')
        edits.append((before, len(versions), log, output))
    assert edits[0] == edits[1]
    assert edits[0][2] == (3 if renamed else 2)


def test_programs_that_do_not_know_the_nodes_refuse_the_store(
    both: tuple[Path, Path], tmp_path: Path
) -> None:
    folder, _ = copies(both, tmp_path)
    assert main(["-C", str(folder), "log"]) == 0
    with closing(sqlite3.connect(folder / ".evalstore/store.db")) as raw:
        [(version,)] = raw.execute("SELECT version_num FROM alembic_version")
    assert version not in ("0001", "0002")
