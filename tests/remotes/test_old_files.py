"""Files that an older program has written: a bundle and a remote with indexes of format 1.

`old.bundle` has two runs over the workspace below, between them an edit of the instructions, and a
label. It was written by the last program before indexes were compressed.
"""

from __future__ import annotations

import zipfile
import zlib
from datetime import timedelta
from pathlib import Path

import pytest

from evalstore.exchange.sync.fsck import check_store
from evalstore.interfaces.cli.main import main
from evalstore.remotes.download import check_remote
from evalstore.remotes.layout import FolderFiles, index_name, sha256
from evalstore.store import Store
from evalstore.store.records import CheckedRecord, CopyListener
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
    assert "2 runs, 2 answers, 5 verdicts" in printed("pull", str(OLD))
    assert printed("fsck") == sound
    said = printed("status")  # besides the label
    assert "evalstore now reads replies of judges differently" in " ".join(said.split())
    assert "ask for" not in said
    assert "complete: 0 new answers, 2 reused" in printed("run", "--fail-on", "none")
    assert len(printed("log", "--oneline").splitlines()) == 3
    assert "fail  by Ann (a person)" in printed("show", "tests/weather.md::city=Oslo")


def test_its_remote_is_pushed_to_and_cleaned_up(
    old_remote: FolderFiles, full: Store, empty: Store, tmp_path: Path
) -> None:
    assert stores.pull(empty, old_remote).stored.total() == ROWS
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


@pytest.fixture
def parts_remote(full: Store, tmp_path: Path) -> Path:
    """A remote whose index is compressed in blocks, with a file that says where they are.

    So older programs have written an index of 20,000 rows and more.
    """
    root = tmp_path / "parts"
    stores.push(full, FolderFiles(root))
    (written,) = root.glob("indexes/*.idx")
    data = written.read_bytes()
    written.unlink()
    start = data.index(b"\n", data.index(b"\n") + 1) + 1
    table = zlib.decompress(data[start:], -15)
    packer = zlib.compressobj(wbits=-15)
    blocks = [
        packer.compress(table[at : at + 48]) + packer.flush(zlib.Z_FULL_FLUSH)
        for at in range(0, len(table), 48)
    ]
    data = b"".join([data[:start], *blocks, packer.flush()])
    index = root / index_name(stores.CREATED, sha256(data))
    index.write_bytes(data)
    index.with_name(f"{index.name}.{'f' * 64}.parts").write_bytes(b"evalstore parts 1\n")
    return root


def test_an_index_in_parts_is_read_as_a_whole(
    parts_remote: Path, full: Store, empty: Store, tmp_path: Path
) -> None:
    files = FolderFiles(parts_remote)
    stores.pull(empty, files, tmp_path / "cache.db")
    assert stores.rows(empty) == stores.rows(full)
    assert stores.push(full, files).records == 0
    assert check_remote(files, CopyListener()).problems == []


def test_parts_go_with_their_index_and_what_a_killed_push_left_after_the_grace(
    parts_remote: Path, whole_records: list[CheckedRecord], tmp_path: Path
) -> None:
    files = FolderFiles(parts_remote)
    lone = parts_remote / f"indexes/20231114T221320Z-{'e' * 64}.idx.{'f' * 64}.parts"
    lone.write_bytes(b"of a killed push")
    (index,) = parts_remote.glob("indexes/*.idx")
    (parts,) = parts_remote.glob(f"indexes/{index.name}.*.parts")
    index.rename(moved := tmp_path / "index")
    stores.push_parts(whole_records, files, tmp_path, 1)
    moved.rename(index)
    assert stores.collect(files).replaced.indexes == 2
    assert stores.collect(files).deleted.size == 0
    assert lone.exists()
    size = sum(path.stat().st_size for path in parts_remote.glob("indexes/*"))
    deleted = stores.collect(files, grace=timedelta(0)).deleted
    (merged,) = parts_remote.glob("indexes/*")
    assert not parts.exists()
    assert deleted.size >= size - merged.stat().st_size


def test_fsck_names_the_parts_of_a_damaged_index(parts_remote: Path) -> None:
    (index,) = parts_remote.glob("indexes/*.idx")
    (parts,) = parts_remote.glob("indexes/*.parts")
    index.write_bytes(b"x")
    check = check_remote(FolderFiles(parts_remote), CopyListener())
    assert {f"indexes/{path.name}" for path in (index, parts)} <= set(check.remove)
