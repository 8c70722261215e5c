"""A few nodes that describe billions of cases are refused on every way in, and stop no command."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from evalstore.exchange.sync.fsck import check_store
from evalstore.interfaces.cli.main import main
from evalstore.remotes.layout import FolderFiles
from tests.builders import tree
from tests.hostile.excessive_runs import FORMS, add_run
from tests.interfaces.cli.conftest import WEATHER_WORKSPACE
from tests.remotes import stores

pytestmark = [
    pytest.mark.extended,
    pytest.mark.one_database("rows are added to a file, as no command adds them"),
]
COMMANDS = (
    ("log",),
    ("log", "tests/weather.md"),
    ("status",),
    ("show", "tests/weather.md"),
    ("show", "@"),
    ("diff",),
    ("stats",),
    ("ls", "runs"),
    ("grep", "warm"),
    ("report", "--markdown"),
    ("run", "--fail-on", "none"),
)
"""What has to do with the runs of a store."""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a run."""
    folder = tree(tmp_path_factory.mktemp("sound") / "w", WEATHER_WORKSPACE)
    assert main(["-C", str(folder), "run", "--fail-on", "none", "-q"]) == 0
    return folder


@pytest.fixture
def hurt(sound: Path, tmp_path: Path, form: str) -> Path:
    """A copy of it with a run that describes too much."""
    folder = tmp_path / "hurt"
    shutil.copytree(sound, folder)
    add_run(folder / ".evalstore/store.db", form)
    return folder


@pytest.mark.parametrize("form", FORMS)
def test_a_run_that_describes_too_much_is_refused_on_every_way_in(
    form: str, hurt: Path, sound: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = hurt / ".evalstore/store.db"
    with stores.opened(store) as opened, pytest.MonkeyPatch.context() as patch:
        patch.setattr("evalstore.store.contents.find_excess", lambda _: None)  # who means harm
        stores.push(opened, FolderFiles(tmp_path / "team"))
        here = ["-C", str(hurt)]
        assert main([*here, "push", str(tmp_path / "all.bundle")]) == 0
    mine = tmp_path / "mine"
    shutil.copytree(sound, mine)
    before = len(_runs(mine))
    here = ["-C", str(mine), "--allow-outside"]
    assert main([*here, "remote", "add", "team", str(tmp_path / "team")]) == 0
    for argv in (
        ["pull", str(store)],
        ["pull", "team"],
        ["pull", str(tmp_path / "all.bundle")],
    ):
        capsys.readouterr()
        assert main([*here, *argv]) == 6
        assert "error: " in capsys.readouterr().err
        assert len(_runs(mine)) == before
        assert main([*here, "fsck"]) == 0
    for place in ("team", "all.bundle"):
        assert main(["clone", str(tmp_path / place), str(tmp_path / "clone")]) == 6
        assert not (tmp_path / "clone").exists()


@pytest.mark.parametrize("form", FORMS)
def test_a_stored_run_that_describes_too_much_is_named_until_it_is_removed(
    form: str, hurt: Path, sound: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here = ["-C", str(hurt)]
    assert main([*here, "fsck"]) == 1
    wrong = "describes too much to be read: " if form != "lying" else "the wrong number of cases"
    assert wrong in capsys.readouterr().out
    for argv in COMMANDS if form in ("repeated", "shuffled") else ():
        code, printed = main([*here, *argv]), capsys.readouterr()
        assert code == 0 or (code == 6 and "fsck --repair' removes" in printed.err), argv
    assert main([*here, "fsck", "--repair"]) == 0
    assert " 1 run" in capsys.readouterr().out
    with stores.opened(hurt / ".evalstore/store.db") as store:
        assert check_store(store)[1] == []
    assert main([*here, "log"]) == 0


def _runs(folder: Path) -> set[str]:
    with stores.opened(folder / ".evalstore/store.db") as store:
        return {run.id for run in store.find_runs()}
