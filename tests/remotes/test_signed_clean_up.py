"""The clean-up of a remote with signed pushes: everybody compacts the own ones."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from evalstore.remotes.acceptance import Acceptance
from evalstore.remotes.index_cache import IndexCache
from evalstore.remotes.layout import FolderFiles
from evalstore.store import Store
from evalstore.store.records import CheckedRecord
from tests.remotes import keys, stores
from tests.remotes.test_interruptions import Killed

pytestmark = pytest.mark.extended

NONE = timedelta(0)


class Team(NamedTuple):
    """Two people, one of them with two keys, and a remote with three pushes of each."""

    ann: Path
    new: Path
    bob: Path
    rules: Acceptance
    remote: FolderFiles
    root: Path


@pytest.fixture
def team(whole_records: Sequence[CheckedRecord], tmp_path: Path) -> Team:
    ann, new, bob = (keys.make_key(tmp_path, name) for name in ("ann", "new", "bob"))
    rules = keys.allowing(
        keys.line_of(ann, "ann@example.com", 'valid-before="20240101"'),
        keys.line_of(new, "ann@example.com", 'valid-after="20240101"'),
        keys.line_of(bob, "bob@example.com"),
    )
    remote, half = FolderFiles(tmp_path / "remote"), len(whole_records) // 2
    for key, part in ((ann, whole_records[:half]), (bob, whole_records[half:])):
        sign = keys.signed_by(key)
        stores.push_parts(part, remote, tmp_path, 3, writer=key.name, sign=sign, rules=rules)
    return Team(ann, new, bob, rules, remote, tmp_path / "remote")


def _pushes(team: Team) -> list[tuple[str, int]]:
    """Return who has pushed how many rows, as everybody sees it who verifies signatures."""
    with IndexCache.open(None, "x", team.rules) as cache:
        cache.refresh(team.remote)
        assert cache.list_refused() == []
        return sorted((push.writer, push.records) for push in cache.list_pushes())


def test_only_own_pushes_are_compacted_and_stay_signed(
    team: Team, full: Store, empty: Store
) -> None:
    total = {"ann@example.com": 0, "bob@example.com": 0}
    for writer, records in _pushes(team):
        total[writer] += records
    bob = keys.signed_by(team.bob)
    done = stores.collect(team.remote, rules=team.rules, sign=bob, grace=NONE)
    assert (done.replaced.indexes, done.written.indexes, done.others) == (3, 1, 3)
    done = stores.collect(team.remote, rules=team.rules, sign=bob, grace=NONE)
    assert (done.deleted.indexes, done.others) == (3, 3)
    assert len(_pushes(team)) == 4
    # Ann's first key is no longer valid, and the new one was not valid then.
    new = keys.signed_by(team.new)
    done = stores.collect(team.remote, rules=team.rules, sign=new, grace=NONE)
    assert (done.replaced.indexes, done.others) == (3, 0)
    stores.collect(team.remote, rules=team.rules, sign=bob, grace=NONE)
    assert _pushes(team) == sorted(total.items())
    stores.pull(empty, team.remote, rules=team.rules)
    assert stores.rows(empty) == stores.rows(full)
    names = stores.names(team.root)
    assert [name.count(".idx") for name in names].count(1) == 4  # two, and two signatures
    assert not any(name.startswith("retired/") for name in names)


def test_who_verifies_no_signatures_leaves_signed_pushes_alone(team: Team) -> None:
    before = stores.names(team.root)
    for sign in (None, keys.signed_by(team.bob)):
        done = stores.collect(team.remote, sign=sign, grace=NONE)
        assert not done.replaced
        assert not done.deleted
    assert stores.names(team.root) == before


def test_one_that_is_killed_is_completed_with_another_key(team: Team, tmp_path: Path) -> None:
    """A signature that is there already is as good as the own one."""

    class Killing(FolderFiles):
        def create(self, name: str, data: bytes) -> bool:
            if name.endswith(".merged.idx"):
                raise Killed
            return super().create(name, data)

    other = keys.make_key(tmp_path, "other")
    rules = keys.allowing(
        *(keys.line_of(key, "bob@example.com") for key in (team.bob, other)),
        keys.line_of(team.ann, "ann@example.com"),
    )
    with pytest.raises(Killed):
        stores.collect(Killing(team.root), rules=rules, sign=keys.signed_by(team.bob))
    assert any(name.endswith(".merged.idx.sig") for name in stores.names(team.root))
    done = stores.collect(team.remote, rules=rules, sign=keys.signed_by(other))
    assert done.written.indexes == 1
    assert len(_pushes(team._replace(rules=rules))) == 4
