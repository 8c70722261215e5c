"""A push counts only if an allowed signer has signed exactly its bytes, for evalstore."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from evalstore.core.errors import EvalstoreError, RemoteError
from evalstore.remotes.acceptance import (
    LARGEST_SIGNATURE,
    Acceptance,
)
from evalstore.remotes.index_cache import IndexCache
from evalstore.remotes.layout import FolderFiles, RemoteFiles, index_name, sha256
from evalstore.remotes.packs import IndexHeader, read_index, write_index
from evalstore.store import Store
from tests.remotes import keys, places, stores


class Keys(NamedTuple):
    """Private keys; their public halves are beside them."""

    ann: Path
    eve: Path


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    folder = tmp_path_factory.mktemp("keys")
    return Keys(keys.make_key(folder, "ann"), keys.make_key(folder, "eve"))


@pytest.fixture
def rules(pair: Keys) -> Acceptance:
    """Only Ann's signatures count."""
    return keys.allowing(keys.line_of(pair.ann, "ann@example.com"))


def _index(root: Path) -> Path:
    (path,) = root.glob("indexes/*.idx")
    return path


def _signature(index: Path) -> Path:
    return index.with_name(f"{index.name}.sig")


def _sign(key: Path, index: Path, namespace: str = "evalstore") -> None:
    """Sign as anybody can, who has a key and may write to the remote."""
    _signature(index).unlink(missing_ok=True)
    command = ["ssh-keygen", "-q", "-Y", "sign", "-f", str(key), "-n", namespace, str(index)]
    subprocess.run(command, check=True, capture_output=True)


def _writers(files: RemoteFiles, rules: Acceptance, cache: Path | None = None) -> list[str]:
    """Return the writers of pushes that count, and those of others in parentheses."""
    with IndexCache.open(cache, files.address, rules) as indexes:
        indexes.refresh(files)
        refused = [f"({push.writer}: {push.reason})" for push in indexes.list_refused()]
        return [push.writer for push in indexes.list_pushes()] + refused


def test_a_signed_push_is_pulled_under_the_name_of_its_signer(
    full: Store, empty: Store, remote: FolderFiles, pair: Keys, rules: Acceptance
) -> None:
    stores.push(full, remote, rules=rules, sign=keys.signed_by(pair.ann), writer="root@host")
    assert _writers(remote, rules) == ["ann@example.com"]
    stores.pull(empty, remote, rules=rules)
    assert stores.rows(empty) == stores.rows(full)
    assert stores.push(full, remote, rules=rules).records == 0


def _nothing(remote: Path, pair: Keys) -> None:
    _signature(_index(remote)).unlink()


def _by_another_key(remote: Path, pair: Keys) -> None:
    _sign(pair.eve, _index(remote))


def _of_something_else(remote: Path, pair: Keys) -> None:
    _sign(pair.ann, _index(remote), "git")


def _truncated(remote: Path, pair: Keys) -> None:
    path = _signature(_index(remote))
    path.write_bytes(path.read_bytes()[:-60])


def _empty(remote: Path, pair: Keys) -> None:
    _signature(_index(remote)).write_bytes(b"")


def _too_large(remote: Path, pair: Keys) -> None:
    path = _signature(_index(remote))
    path.write_bytes(path.read_bytes() + bytes(LARGEST_SIGNATURE))


def _of_another_index(remote: Path, pair: Keys) -> None:
    """Eve writes an index in the name of Ann, and copies Ann's signature beside it."""
    index = _index(remote)
    header, records = read_index(index.read_bytes())
    data = write_index(IndexHeader(header.writer, header.created + 1, header.packs), list(records))
    copied = remote / index_name(header.created + 1, sha256(data))
    copied.write_bytes(data)
    _signature(index).rename(_signature(copied))
    index.unlink()


def _of_other_bytes(remote: Path, pair: Keys) -> None:
    """Eve makes a row of Ann's index lead to another place, under a new name for these bytes."""
    index = _index(remote)
    data = bytearray(index.read_bytes())
    data[-1] ^= 1
    changed = remote / index_name(stores.CREATED, sha256(bytes(data)))
    changed.write_bytes(data)
    _signature(index).rename(_signature(changed))
    index.unlink()


def _in_armor_of_another_kind(remote: Path, pair: Keys) -> None:
    path = _signature(_index(remote))
    path.write_text(path.read_text().replace("SSH SIGNATURE", "PGP SIGNATURE"))


def _damaged_header(remote: Path, pair: Keys) -> None:
    """It would be an error of the remote if it counted."""
    data = _index(remote).read_bytes().replace(b'"Ann@laptop"', b"12345")
    _index(remote).unlink()
    (remote / index_name(stores.CREATED, sha256(data))).write_bytes(data)


@pytest.mark.parametrize(
    "change",
    [
        _nothing,
        _by_another_key,
        _of_something_else,
        _truncated,
        _empty,
        _too_large,
        _of_another_index,
        _of_other_bytes,
        _in_armor_of_another_kind,
        _damaged_header,
    ],
)
def test_what_no_allowed_signer_has_signed_does_not_count(
    full: Store,
    empty: Store,
    remote: FolderFiles,
    pair: Keys,
    rules: Acceptance,
    tmp_path: Path,
    change: Callable[[Path, Keys], None],
) -> None:
    stores.push(full, remote, sign=keys.signed_by(pair.ann))
    change(tmp_path / "remote", pair)
    name = "" if change is _damaged_header else "Ann@laptop"
    assert _writers(remote, rules) == [f"({name}: unsigned)"]
    assert stores.pull(empty, remote, rules=rules).stored.total() == 0
    assert stores.rows(empty) == {}
    # What does not count is not there for a push either, so that it cannot hide rows.
    pushed = stores.push(full, remote, rules=rules, sign=keys.signed_by(pair.ann), writer="me")
    assert pushed.records == len(stores.rows(full))
    stores.pull(empty, remote, rules=rules)
    assert stores.rows(empty) == stores.rows(full)


def test_rows_of_a_refused_push_do_not_come_with_another_one(
    full: Store, empty: Store, remote: FolderFiles, pair: Keys, rules: Acceptance, tmp_path: Path
) -> None:
    half = stores.records(full)[::2]
    with stores.opened(tmp_path / "half.db") as store:
        store.ensure_records(half)
        stores.push(store, remote, sign=keys.signed_by(pair.ann))
    # Eve's index lists the other rows, in packs of her own, and Ann's rows in Ann's pack.
    stores.push(full, remote, sign=keys.signed_by(pair.eve), writer="Ann@laptop")
    assert _writers(remote, rules) == ["ann@example.com", "(Ann@laptop: unsigned)"]
    stores.pull(empty, remote, rules=rules)
    # Rows of that half stay if they refer to rows of the other one.
    expected = {item.record.id for item in half}
    for _ in half:
        expected = {
            item.record.id
            for item in half
            if item.record.id in expected and expected.issuperset(item.references)
        }
    assert {id.hex() for _, id in stores.rows(empty)} == expected
    assert 0 < len(expected) < len(half)


def test_a_change_of_the_allowed_signers_takes_effect_at_once(
    full: Store, remote: FolderFiles, pair: Keys, rules: Acceptance, tmp_path: Path
) -> None:
    stores.push(full, remote, sign=keys.signed_by(pair.eve))
    cache = tmp_path / "cache.db"
    both = keys.allowing(*(keys.line_of(key, key.name) for key in pair))
    assert _writers(remote, rules, cache) == ["(Ann@laptop: unsigned)"]
    assert _writers(remote, both, cache) == ["eve"]
    assert _writers(remote, rules, cache) == ["(Ann@laptop: unsigned)"]
    assert _writers(remote, Acceptance(), cache) == ["Ann@laptop"]


def test_only_verified_names_are_trusted_where_signatures_are_required(
    full: Store, empty: Store, remote: FolderFiles, pair: Keys, tmp_path: Path
) -> None:
    both = [keys.line_of(key, key.name) for key in pair]
    stores.push(full, remote, sign=keys.signed_by(pair.eve), writer="ann")
    cache = tmp_path / "cache.db"
    assert _writers(remote, keys.allowing(*both), cache) == ["eve"]
    rules = keys.allowing(*both, trust=["ann"])
    assert _writers(remote, rules, cache) == ["(eve: untrusted)"]
    assert stores.pull(empty, remote, rules=rules).stored.total() == 0
    with pytest.raises(RemoteError, match="a push by 'eve' is not trusted"):
        stores.push(full, remote, rules=rules, sign=keys.signed_by(pair.eve), writer="ann")
    stores.push(full, remote, rules=rules, sign=keys.signed_by(pair.ann), writer="eve")
    assert _writers(remote, rules, cache) == ["ann", "(eve: untrusted)"]
    # Without signatures it is the name that a push gives itself.
    named = Acceptance(writers=frozenset(["ann"]))
    assert _writers(remote, named, cache) == ["ann", "(eve: untrusted)"]
    only = Acceptance(writers=frozenset(["Ann"]))
    assert sorted(_writers(remote, only, cache)) == ["(ann: untrusted)", "(eve: untrusted)"]


@pytest.mark.parametrize("place", ["folder", "sftp"])
def test_a_signature_that_comes_later_or_replaces_another_counts_then(
    full: Store, pair: Keys, rules: Acceptance, tmp_path: Path, place: str
) -> None:
    open_place = places.place_of(place, tmp_path)
    stores.push(full, open_place())
    cache = tmp_path / "cache.db"
    assert _writers(open_place(), rules, cache) == ["(Ann@laptop: unsigned)"]
    index = _index(tmp_path / places.ODD)
    _sign(pair.eve, index)
    assert _writers(open_place(), rules, cache) == ["(Ann@laptop: unsigned)"]
    size = _signature(index).stat().st_size
    _sign(pair.ann, index)
    assert _signature(index).stat().st_size == size
    assert _writers(open_place(), rules, cache) == ["ann@example.com"]


@pytest.mark.parametrize(
    ("options", "counts"),
    [
        ('namespaces="git,evalstore"', True),
        ('namespaces="git"', False),
        ('valid-after="20231114"', True),
        ('valid-before="20231114"', False),  # the push says that it is of this day, 22:13 UTC
        ('valid-before="20231115"', True),
    ],
)
def test_the_options_of_a_signer_hold(
    full: Store, remote: FolderFiles, pair: Keys, options: str, counts: bool
) -> None:
    stores.push(full, remote, sign=keys.signed_by(pair.ann))
    rules = keys.allowing(keys.line_of(pair.ann, "ann", options))
    assert (_writers(remote, rules) == ["ann"]) is counts


@pytest.mark.parametrize("name", ["-overify-time=0", "a" * 201])
def test_a_principal_that_could_be_an_option_or_fills_the_screen_is_nobody(
    full: Store, remote: FolderFiles, pair: Keys, name: str
) -> None:
    stores.push(full, remote, sign=keys.signed_by(pair.ann))
    rules = keys.allowing(keys.line_of(pair.ann, name))
    assert _writers(remote, rules) == ["(Ann@laptop: unsigned)"]
    several = keys.allowing(keys.line_of(pair.ann, f"{name},*@example.com"))
    assert _writers(remote, several) == ["*@example.com"]


def test_keys_of_signers_may_be_in_a_place_that_looks_like_an_option(
    pair: Keys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "-f x\n"
    folder.mkdir()
    key = folder / "-key"
    key.write_bytes(pair.ann.read_bytes())
    key.chmod(0o600)
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    signature = keys.signed_by(key)(b"data")
    rules = keys.allowing(keys.line_of(pair.ann, "ann"))
    assert rules.signers is not None
    assert rules.signers.find_signer(b"data", signature, None) == "ann"
    assert rules.signers.find_signer(b"other", signature, None) is None
    assert sorted(folder.iterdir()) == [key]


@pytest.mark.parametrize("content", ["", "# nobody\n\n", "a\0b\n"])
def test_a_file_that_names_no_signer_is_an_error(content: str) -> None:
    with pytest.raises(EvalstoreError, match=r"^signers: it names no signer$"):
        keys.allowing(content)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("ann@example.com ssh-ed25519 AAAA\n", "invalid key"),
        ('ann@example.com namespaces="x\n', "invalid options"),
        ("\ufffd\n", "missing key"),
    ],
)
def test_a_damaged_file_of_signers_is_an_error_and_nobody_counts(
    full: Store, remote: FolderFiles, pair: Keys, line: str, problem: str
) -> None:
    stores.push(full, remote, sign=keys.signed_by(pair.ann))
    rules = keys.allowing("# signers\n", line)
    with pytest.raises(EvalstoreError, match=f"^signers:2: not a line of a signer: {problem}$"):
        _writers(remote, rules)


def test_a_push_that_would_not_count_writes_no_index(
    full: Store, remote: FolderFiles, pair: Keys, rules: Acceptance, tmp_path: Path
) -> None:
    with pytest.raises(RemoteError, match="is not signed by an allowed signer"):
        stores.push(full, remote, rules=rules, sign=keys.signed_by(pair.eve))
    assert not list((tmp_path / "remote").glob("indexes/*"))


def test_a_signature_that_is_there_already_is_not_taken_for_the_own_one(
    full: Store, remote: FolderFiles, pair: Keys, rules: Acceptance, tmp_path: Path
) -> None:
    stores.push(full, remote, rules=rules, sign=keys.signed_by(pair.ann))
    index = _index(tmp_path / "remote")
    index.unlink()
    _signature(index).write_text("other")
    with pytest.raises(RemoteError, match="has another signature"):
        stores.push(full, remote, rules=rules, sign=keys.signed_by(pair.ann))
    assert not index.exists()


def test_all_of_a_signed_pack_must_be_as_it_was_signed(
    full: Store, empty: Store, remote: FolderFiles, pair: Keys, rules: Acceptance, tmp_path: Path
) -> None:
    stores.push(full, remote, rules=rules, sign=keys.signed_by(pair.ann))
    (pack,) = (tmp_path / "remote").glob("packs/*/*")
    data = bytearray(pack.read_bytes())
    data[-1] ^= 1  # of the newest run, which is not pulled below
    pack.write_bytes(data)
    with IndexCache.open(None, remote.address, rules) as cache:
        cache.refresh(remote)
        one = {"prompts": b"".join(*[*cache.iterate_ids("prompts")][:1])}
        with pytest.raises(RemoteError, match="has changed since it was written"):
            stores.pull_some(empty, remote, cache, one)


@pytest.mark.parametrize(
    ("passphrase", "mode", "reason"),
    [("secret", 0o600, "it has a passphrase"), ("", 0o644, "others can read it")],
)
def test_a_key_that_cannot_sign_is_reported_without_asking(
    tmp_path: Path, passphrase: str, mode: int, reason: str
) -> None:
    key = keys.make_key(tmp_path, "key", passphrase)
    key.chmod(mode)
    with pytest.raises(EvalstoreError, match=f"^sign: cannot sign with '{key}': {reason}$"):
        keys.signed_by(key)(f"{passphrase}\n".encode())


def test_a_file_that_is_no_key_or_a_missing_program_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys.make_key(tmp_path, "key")
    (tmp_path / "text").write_text("text")
    with pytest.raises(EvalstoreError, match="it is not an SSH key"):
        keys.signed_by(tmp_path / "text")(b"data")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RemoteError, match="ssh-keygen, which is not installed"):
        keys.signed_by(tmp_path / "key")(b"data")


def test_a_program_that_does_not_end_is_ended_with_what_it_has_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    endless = tmp_path / "ssh-keygen"
    endless.write_text("#!/bin/sh\ntail -f /dev/null &\nwait\n")
    endless.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr("evalstore.remotes.acceptance.PATIENCE", 0.05)
    with pytest.raises(RemoteError, match=r"^ssh-keygen did not end within 0\.05 seconds$"):
        keys.signed_by(tmp_path / "key")(b"data")
