"""Remotes through `sftp`: what it is called with, and servers that do not do as they should."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from evalstore.core.errors import RemoteError
from evalstore.remotes import sftp
from evalstore.remotes.layout import MissingFileError
from evalstore.remotes.sftp import SftpFiles, open_sftp, sftp_command
from evalstore.workspace.settings.remotes import read_url
from tests.remotes import places


@pytest.mark.parametrize(
    ("address", "end"),
    [
        ("sftp://host/x", ["--", "host"]),
        ("ssh://ann@host.example:2222/x", ["-P", "2222", "--", "ann@host.example"]),
        ("sftp://ann@[::1]/x", ["--", "ann@[::1]"]),
    ],
)
def test_sftp_asks_nothing_and_gets_no_option_from_an_address(address: str, end: list[str]) -> None:
    command = sftp_command(read_url(address))
    assert command[:5] == ["sftp", "-b", "-", "-o", "BatchMode=yes"]
    assert command[-len(end) :] == end


def test_a_path_may_begin_at_the_home_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def note(_: SftpFiles, commands: list[str]) -> list[list[bytes]]:
        asked.extend(commands)
        return [[]]

    monkeypatch.setattr(SftpFiles, "_run", note)
    for path in ("/~/a%20b", "/~", "/srv/x"):
        open_sftp(read_url(f"sftp://host{path}")).exists()
    assert asked == ['ls -lnf "./a b/."', 'ls -lnf "./."', 'ls -lnf "/srv/x/."']


def test_one_process_serves_all_commands_and_ends_with_the_remote(tmp_path: Path) -> None:
    started = tmp_path / "started"
    script = tmp_path / "sftp"
    script.write_text(f'#!/bin/sh\necho "$$" >> {started}\nexec "$@"\n')
    script.chmod(0o755)
    files = SftpFiles("x", str(tmp_path / "r"), [str(script), *places.sftp_command()])
    assert [files.create(f"indexes/{number}", b"x") for number in range(3)] == [True] * 3
    assert len(list(files.iterate(""))) == 3
    (process,) = map(int, started.read_text().split())
    os.kill(process, 0)
    del files
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)


@pytest.mark.parametrize(
    ("program", "message", "left"),
    [
        ("ulimit -f 64; exec {}", "cannot be written to: .*Failure", 0),  # as a full disk
        (
            "dd bs=512 iflag=count_bytes count=100000 status=none | {}",
            "the connection to the remote 'x' was lost",
            1,
        ),
    ],
)
def test_an_upload_that_breaks_off_leaves_nothing_that_a_reader_sees(
    tmp_path: Path, program: str, message: str, left: int
) -> None:
    root = tmp_path / "remote"
    *start, server = places.sftp_command()
    broken = SftpFiles("x", str(root), [*start, f"sh -c '{program.format(server)}'"])
    assert broken.create("format", b"x")
    with pytest.raises(RemoteError, match=message):
        broken.create("packs/x", b"x" * 300_000)
    assert len(list(root.glob(".tmp-*"))) == left
    files = places.sftp_files(root)
    assert [file.name for file in files.iterate("")] == ["format"]
    with pytest.raises(MissingFileError):
        files.read("packs/x", 300_000)
    assert files.create("packs/x", b"x" * 300_000)


def test_a_download_ends_when_it_is_larger_than_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sftp, "_LOOK", 0)
    with (tmp_path / "large").open("wb") as file:
        file.truncate(200_000_000)
    (tmp_path / "small").write_bytes(b"x")
    files = places.sftp_files(tmp_path)
    with pytest.raises(RemoteError, match=r"'large' .* has more than 10 bytes"):
        files.read("large", 10)
    assert files.read("small", 10) == b"x"


def test_a_server_that_says_nothing_is_given_up() -> None:
    files = SftpFiles("x", "/x", ["sleep", "1000"], patience=0.05)
    with pytest.raises(RemoteError, match="did not answer in time"):
        files.exists()


def test_a_program_that_is_missing_is_reported() -> None:
    with pytest.raises(RemoteError, match="needs OpenSSH's sftp, which is not installed") as caught:
        SftpFiles("x", "/x", ["no-such-sftp"]).exists()
    assert caught.value.hint == "install the system package: openssh-client or openssh"


def test_a_host_that_refuses_connections_is_reported() -> None:
    places.sftp_command()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(RemoteError, match="cannot be reached: its host refuses connections"):
        open_sftp(read_url(f"sftp://nobody@127.0.0.1:{port}/x")).exists()


@pytest.mark.parametrize(
    ("printed", "message"),
    [
        ("Host key verification failed.", "the key of its host is unknown or has changed"),
        ("ann@h: Permission denied (publickey).", "its host accepts none of your keys"),
        ("subsystem request failed on channel 0", "its host does not offer SFTP"),
        ("kex_exchange: something else", "was lost: kex_exchange: something else"),
    ],
)
def test_what_ssh_prints_is_explained(tmp_path: Path, printed: str, message: str) -> None:
    script = tmp_path / "sftp"
    script.write_text(f"#!/bin/sh\necho '{printed}' >&2\nexit 255\n")
    script.chmod(0o755)
    files = SftpFiles("sftp://ann@h/x", "/x", [str(script)])
    with pytest.raises(RemoteError) as caught:
        files.read("format", 10)
    assert message in str(caught.value)
