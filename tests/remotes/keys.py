"""SSH keys, and files of allowed signers, for the tests of signatures."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from evalstore.remotes.acceptance import Acceptance, AllowedSigners, SigningKey


def make_key(folder: Path, name: str, passphrase: str = "") -> Path:
    """Return the path of a new private key; its public half is beside it."""
    if shutil.which("ssh-keygen") is None:
        pytest.skip("ssh-keygen of OpenSSH is not installed")
    path = folder / name
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", "", "-f", str(path)]
    subprocess.run(command, check=True)
    return path


def line_of(key: Path, name: str, options: str = "") -> str:
    """Return the line of a signer."""
    return " ".join(filter(None, [name, options, key.with_suffix(".pub").read_text()]))


def signed_by(key: Path) -> SigningKey:
    """Return what signs with a key."""
    return SigningKey(key, "sign")


def allowing(*lines: str, trust: Iterable[str] = ()) -> Acceptance:
    """Return the rules by which only these signers count, or those of them with these names."""
    return Acceptance(AllowedSigners("".join(lines).encode(), "signers"), frozenset(trust))
