"""A remote that is only named in evalstore.yaml gets nothing until the user allows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalstore.remotes.sftp import SftpFiles
from evalstore.workspace.trust import AllowedPaths, WorkspaceBoundary
from tests.interfaces.cli.conftest import Evalstore
from tests.remotes import places

URL = "sftp://ann@host/results"
NOW_ALLOWED = (
    f"warning: this workspace may use '{URL}' from now on; "
    f"'evalstore trust --revoke {URL}' takes it back\n"
)


@pytest.fixture
def named(workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace whose settings name a remote, whose place is a folder of this machine."""
    with (workspace / "evalstore.yaml").open("a") as file:
        file.write(f"remotes: {{origin: '{URL}/'}}\n")
    folder = tmp_path / "elsewhere"
    monkeypatch.setattr(
        "evalstore.remotes.sftp.open_sftp",
        lambda url: SftpFiles(url.address, str(folder), places.sftp_command()),
    )
    return folder


@pytest.mark.parametrize("command", [("push",), ("pull",), ("pull", "-n"), ("remote", "show")])
def test_a_url_of_the_settings_is_not_asked_before_the_user_allows_it(
    named: Path, evalstore: Evalstore, command: tuple[str, ...]
) -> None:
    ran = evalstore(*command)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr == (
        f"error: the remote 'origin': leads to '{URL}', which is outside the workspace\n"
        "hint: if you know it, allow it once with '--allow-outside'\n"
    )
    assert not named.exists()


def test_a_url_that_is_allowed_once_stays_allowed_until_it_is_revoked(
    named: Path, evalstore: Evalstore, documents: Any
) -> None:
    evalstore("run", "--fail-on", "none")
    pushed = evalstore("push", "--allow-outside")
    assert (pushed.exit_code, NOW_ALLOWED in pushed.stderr) == (0, True)
    assert (named / "format").exists()
    assert evalstore("push").stdout == f"nothing to push to origin ({URL}/)\n"
    root = str(Path.cwd())
    assert documents("trust", "--list")["paths"] == [{"workspace": root, "path": URL}]
    revoked = evalstore("trust", "--revoke", f"{URL}/")
    assert revoked.stdout == f"{URL}: no longer allowed\n  for the workspace {root}\n"
    assert evalstore("pull").exit_code == 2


@pytest.mark.parametrize(
    ("typed", "written"),
    [
        (f"{URL}/", URL),
        ("s3://bucket/a b", "s3://bucket/a%20b"),
        ("file://{}/mnt", "{}/mnt"),
    ],
)
def test_who_adds_a_remote_allows_it(
    workspace: Path, tmp_path: Path, evalstore: Evalstore, typed: str, written: str
) -> None:
    typed, written = typed.format(tmp_path), written.format(tmp_path)
    ran = evalstore("remote", "add", "origin", typed)
    assert (ran.exit_code, ran.stdout) == (0, f"added the remote origin: {written}\n")
    assert [entry.path for entry in AllowedPaths().entries] == [written]


def test_what_is_allowed_includes_the_folders_below_it_and_no_other(workspace: Path) -> None:
    allowed = AllowedPaths()
    allowed.add(str(workspace), ["s3://bucket/team"])
    boundary = WorkspaceBoundary(workspace)
    assert boundary.contains("s3://bucket/team/ann")
    assert not boundary.contains("s3://bucket/team2")
    assert not boundary.contains("sftp://bucket/team")


def test_an_address_with_a_password_is_neither_written_nor_shown(
    workspace: Path, evalstore: Evalstore
) -> None:
    ran = evalstore("remote", "add", "origin", "sftp://ann:hunter2@host/x")
    assert ran.exit_code == 2
    assert "hunter2" not in ran.stdout + ran.stderr + Path("evalstore.yaml").read_text()
