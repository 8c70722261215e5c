"""Files that an older program has written: a bundle and a remote with indexes of format 1.

`old.bundle` has two runs over the workspace below, between them an edit of the instructions, and a
label. It was written by the last program before indexes were compressed.
"""

from __future__ import annotations

import zipfile
from datetime import timedelta
from pathlib import Path

import pytest

from evalstore.interfaces.cli.main import main
from evalstore.remotes.check_remote import check_remote
from evalstore.remotes.places.folder import FolderFiles
from evalstore.remotes.progress import CopyListener
from evalstore.store import Store
from evalstore.store.fsck import check_store
from tests.builders import tree
from tests.remotes import stores

OLD = Path(__file__).with_name("old.bundle")
ROWS = 29
TEST = """\
---
replacements:
  - {city: Oslo}
  - {city: Rome}
---

# 👤

How is the weather in {{city}}?

---

One sentence about {{city}}.
"""
JUDGE = """\
id: scripted/judge
provider: scripted
responses:
  - {answer: {pass: true, feedback: good}}
"""


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The workspace as it was when the bundle was written, without a store."""
    folder = tree(
        tmp_path / "w",
        {
            "evalstore.yaml": "candidates: [scripted/one]\nevaluators: [scripted/judge]\n"
            "candidatesTemperature: 0\nevaluatorsTemperature: 0\n",
            "models/one.yaml": (
                "id: scripted/one\nprovider: scripted\nresponses:\n  - {answer: It is cold.}\n"
            ),
            "models/judge.yaml": JUDGE,
            "tests/weather.md": TEST,
        },
    )
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def old_remote(tmp_path: Path) -> FolderFiles:
    """A remote with the files of the bundle, as the older program has pushed them."""
    with zipfile.ZipFile(OLD) as bundle:
        bundle.extractall(tmp_path / "old")
    (tmp_path / "old/bundle.json").unlink()
    (index,) = (tmp_path / "old/indexes").iterdir()
    assert index.read_bytes().startswith(b"evalstore index 1\n")
    return FolderFiles(tmp_path / "old")


def test_its_answers_and_judgements_are_reused(
    workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def printed(*arguments: str) -> str:
        assert main(list(arguments)) == 0
        return capsys.readouterr().out

    sound = f"{ROWS} rows checked: all is well\n"
    assert printed("fsck", "--remote", str(OLD)).endswith(sound)
    assert "2 runs, 2 answers, 5 judgements" in printed("pull", str(OLD))
    assert printed("fsck") == sound
    said = printed("status")  # besides the label
    assert "evalstore reads the replies of judges in another way" in " ".join(said.split())
    assert "ask for" not in said.replace("would ask for 0 answers", "")
    assert "complete: 0 new answers, 2 reused" in printed("run", "--fail-on", "none")
    assert len(printed("log", "--oneline").splitlines()) == 3
    assert "fail  by Ann (a person)" in printed("show", "tests/weather.md::city=Oslo")


def test_its_remote_is_pushed_to_and_cleaned_up(
    old_remote: FolderFiles, full: Store, empty: Store, tmp_path: Path
) -> None:
    assert stores.pull(empty, old_remote).records == ROWS
    assert stores.push(empty, old_remote).records == 0
    stores.push(full, old_remote)
    stores.collect(old_remote)
    stores.collect(old_remote, grace=timedelta(0))
    assert check_remote(old_remote, CopyListener()).problems == []
    with stores.opened(tmp_path / "all.db") as store:
        stores.pull(store, old_remote)
        assert stores.rows(store).items() >= stores.rows(empty).items()
        assert stores.rows(store).keys() == stores.rows(empty).keys() | stores.rows(full).keys()
        assert check_store(store)[1] == []
