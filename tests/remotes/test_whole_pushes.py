"""A store that lacks rows is not pushed: nobody gets rows that refer to nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from evalstore.exchange.init import init
from evalstore.interfaces.cli.main import main
from evalstore.store.records import CheckedRecord
from tests.remotes import stores


@pytest.mark.parametrize("kind", ["session", "judgement", "cases", "test", "tree"])
def test_a_store_that_lacks_a_row_is_not_published_until_it_is_whole_again(
    kind: str,
    whole: Path,
    whole_records: list[CheckedRecord],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    referred = {id for checked in whole_records for id in checked.references}
    lost = next(
        checked
        for checked in whole_records
        if checked.kind == kind and checked.record.id in referred
    )
    init(tmp_path / "w", bare=True)
    with stores.opened(tmp_path / "w/.evalstore/store.db") as store:
        store.ensure_records([checked for checked in whole_records if checked is not lost])
    here = ("-C", str(tmp_path / "w"))
    assert main([*here, "remote", "add", "team", str(tmp_path / "team")]) == 0
    capsys.readouterr()
    for argv in (["push", "team"], ["push", str(tmp_path / "all.bundle")]):
        assert main([*here, *argv]) == 6
        error = capsys.readouterr().err
        assert "the store is damaged, so its rows are not copied: " in error
        assert f"refers to {lost.record.id}, which is not there" in error
        assert "pull what 'evalstore" in error
    assert not (tmp_path / "all.bundle").exists()
    assert main(["clone", str(tmp_path / "team"), str(tmp_path / "clone")]) == 0
    with stores.opened(tmp_path / "clone/.evalstore/store.db") as store:
        assert stores.rows(store) == {}
    copy = shutil.copy(whole, tmp_path / "copy.db")
    assert main([*here, "pull", str(copy)]) == 0
    assert main([*here, "push", "team"]) == 0
    assert main([*here, "fsck", "--remote", "team"]) == 0
