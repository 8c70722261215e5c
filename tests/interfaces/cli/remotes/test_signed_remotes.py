"""Signatures in the settings of a remote: what `push`, `pull`, `run` and `remote` do and say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from evalstore.interfaces.cli import output
from tests.interfaces.cli.conftest import Evalstore
from tests.remotes import keys

REFUSED = "warning: 1 push of Eve is not signed by an allowed signer and was left out\n"


@pytest.fixture
def key(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The key of Ann, whom the remote of the workspace allows; a run is stored."""
    key = keys.make_key(workspace, "ann")
    (workspace / "signers").write_text(keys.line_of(key, "ann@example.com"))
    evalstore_yaml = workspace / "evalstore.yaml"
    evalstore_yaml.write_text(evalstore_yaml.read_text() + _remote(workspace, "signers"))
    monkeypatch.setattr("evalstore.exchange.sync.push.name_of_writer", lambda _location: "Eve")
    return key


def _remote(workspace: Path, signers: str, sign: str = "ann") -> str:
    return (
        f"remotes:\n  origin:\n    address: shared\n    sign: {sign}\n"
        f"    allowedSigners: {signers}\n  other: shared\n"
    )


def _change(workspace: Path, old: str, new: str) -> None:
    settings = workspace / "evalstore.yaml"
    assert old in settings.read_text()
    settings.write_text(settings.read_text().replace(old, new))


def _forget(workspace: Path) -> None:
    for path in (workspace / ".evalstore").glob("store.db*"):
        path.unlink()


def test_only_signed_pushes_are_pulled_and_others_are_named(
    workspace: Path, key: Path, evalstore: Evalstore
) -> None:
    evalstore("run", "--fail-on", "none", "-q")
    assert evalstore("push", "other").exit_code == 0
    _forget(workspace)
    fetched = evalstore("pull", "-n")
    assert (fetched.exit_code, fetched.stdout, fetched.stderr) == (
        0,
        "nothing to pull from origin (shared)\n",
        REFUSED,
    )
    pulled = evalstore("pull", "--for-plan", "--json")
    document = json.loads(pulled.stdout)
    assert document["leftOut"] == [{"writer": "Eve", "pushes": 1, "reason": "unsigned"}]
    assert document["bytesReceived"] == 0  # what was refused is not read again
    output._warned.clear()  # a process shows each warning once
    ran = evalstore("run", "--remote", "origin", "--fail-on", "none")
    assert "2 new answers" in ran.stdout
    assert REFUSED in ran.stderr
    assert "pushed 1 run, 2 answers, 2 verdicts" in ran.stderr
    _forget(workspace)
    for command in (("pull", "--for-plan"), ("pull",)):
        output._warned.clear()
        pulled = evalstore(*command)
        assert (pulled.exit_code, pulled.stderr) == (0, REFUSED)
        [run] = json.loads(evalstore("log", "--json").stdout)["runs"]
        assert "push" not in run  # the push has noted its name, ann@example.com
    (workspace / ".evalstore/pushed-as.json").unlink()
    [run] = json.loads(evalstore("log", "--json").stdout)["runs"]
    assert run["push"]["writer"] == "ann@example.com"
    assert "Nothing to do" in evalstore("status").stdout
    shown = evalstore("remote", "show").stdout
    assert re.search(r"^has +1 run, 2 answers, 2 verdicts", shown, re.MULTILINE)
    assert re.findall(r"Z +(\S+) +\d+ *(.*)$", shown, re.MULTILINE) == [
        ("ann@example.com", ""),
        ("Eve", "not signed by an allowed signer"),
    ]
    pushes = json.loads(evalstore("remote", "show", "--json").stdout)["pushes"]
    assert [(push["writer"], push["leftOut"]) for push in pushes] == [
        ("Eve", "unsigned"),
        ("ann@example.com", None),
    ]
    assert evalstore("fsck", "--remote").exit_code == 0
    removed = evalstore("remote", "remove", "origin")
    assert removed.exit_code == 0
    assert (workspace / "evalstore.yaml").read_text().endswith("remotes:\n  other: shared\n")


@pytest.mark.parametrize(
    ("old", "new", "command", "error", "hint"),
    [
        (
            "sign: ann",
            "sign: missing",
            "push",
            "6: remotes.origin.sign: '{0}/missing': cannot be read: No such file or directory",
            "'ssh-keygen -t ed25519' makes a key; a '.pub' file is enough if ssh-agent has the key",
        ),
        (
            "allowedSigners: signers",
            "allowedSigners: -f",
            "pull",
            "7: remotes.origin.allowedSigners: '{0}/-f': cannot be read: No such file or directory",
            "each line is 'NAME KEYTYPE KEY', as in 'man ssh-keygen'",
        ),
        (
            "    sign: ann\n",
            "",
            "push",
            "6: remotes.origin.allowedSigners: only pushes with a signature count, and no key is "
            "set to sign with",
            "add 'sign' with the path of your SSH key beside it, such as ~/.ssh/id_ed25519",
        ),
        (
            "sign: ann",
            "sign: ../ann",
            "push",
            "6: remotes.origin.sign: leads to '{1}/ann', which is outside the workspace",
            "if you know it, allow it once with '--allow-outside'",
        ),
        (
            "allowedSigners: signers",
            "allowedSigners: ../signers",
            "pull",
            "7: remotes.origin.allowedSigners: leads to '{1}/signers', which is outside the "
            "workspace",
            "if you know it, allow it once with '--allow-outside'",
        ),
    ],
)
def test_files_that_are_not_there_or_not_allowed_have_their_place(
    workspace: Path,
    key: Path,
    evalstore: Evalstore,
    old: str,
    new: str,
    command: str,
    error: str,
    hint: str,
) -> None:
    _change(workspace, old, new)
    for name in ("ann", "ann.pub", "signers"):
        (workspace.parent / name).write_bytes((workspace / name).read_bytes())
    (workspace.parent / "ann").chmod(0o600)
    ran = evalstore(command)
    message = error.format(workspace, workspace.parent)
    assert (ran.exit_code, ran.stdout) == (2, "")
    assert ran.stderr == f"error: evalstore.yaml:{message}\nhint: {hint}\n"
    assert not (workspace / "shared").exists()
    if "outside" in message:
        evalstore("run", "--fail-on", "none", "-q")
        assert evalstore("push", "--allow-outside").exit_code == 0
        assert evalstore("push").stdout == "nothing to push to origin (shared)\n"


def test_a_key_that_is_not_allowed_pushes_nothing(
    workspace: Path, key: Path, evalstore: Evalstore
) -> None:
    keys.make_key(workspace, "eve")
    _change(workspace, "sign: ann", "sign: eve")
    evalstore("run", "--fail-on", "none", "-q")
    ran = evalstore("push")
    assert ran.stderr == (
        "error: nothing was pushed: a push by 'Eve' is not signed by an allowed signer, so nobody "
        "would pull it\n"
        "hint: set 'sign' to a key whose public half is in 'allowedSigners'\n"
    )
    assert ran.exit_code == 6
    assert not list((workspace / "shared").glob("indexes/*"))


def test_only_pushes_of_trusted_writers_are_pulled(
    workspace: Path, key: Path, evalstore: Evalstore
) -> None:
    evalstore("run", "--fail-on", "none", "-q")
    evalstore("push")
    _change(workspace, "    address: shared", "    address: shared\n    trust: [ci]")
    untrusted = "warning: 1 push of ann@example.com is not trusted and was left out\n"
    refused = evalstore("push")
    assert refused.stderr == (
        "error: nothing was pushed: a push by 'ann@example.com' is not trusted, so nobody would "
        "pull it\n"
        "hint: add the name to 'trust' of this remote, in the settings that its users share\n"
    )
    _forget(workspace)
    pulled = evalstore("pull")
    assert (pulled.stdout, pulled.stderr) == ("nothing to pull from origin (shared)\n", untrusted)
    assert evalstore("remote", "show").stdout.endswith("  not trusted\n")
    _change(workspace, "[ci]", "[ci, ann@example.com]")
    assert evalstore("pull").stdout.startswith("pulled 1 run, 2 answers, 2 verdicts, ")
    assert "Nothing to do" in evalstore("status").stdout
