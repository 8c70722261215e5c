"""The names of the files of a remote, and the file that says that it is one."""

from __future__ import annotations

import hashlib
import json
import re
from datetime import UTC, datetime

from evalstore.canonical_json import canonical_json
from evalstore.errors import RemoteError
from evalstore.sharing.remote_files import MissingFileError, RemoteFiles

FORMAT = 1
"""Increase this number when older programs cannot read a remote."""
FORMAT_FILE = "format"
PACKS, INDEXES = "packs", "indexes"
SIGNATURE = ".sig"
"""What the name of the signature of an index has at its end."""
_LONGEST_FORMAT = 4_096
_INDEX = re.compile(r"indexes/[0-9]{8}T[0-9]{6}Z-([0-9a-f]{64})\.idx\Z")


def sha256(data: bytes) -> str:
    """Return the SHA-256 of bytes in digits."""
    return hashlib.sha256(data).hexdigest()


def pack_name(digest: str) -> str:
    """Return the name of the pack with a SHA-256."""
    return f"{PACKS}/{digest[:2]}/{digest}.pack"


def index_name(created: int, digest: str) -> str:
    """Return the name of an index file; `created` is in microseconds since 1970, UTC."""
    moment = datetime.fromtimestamp(created // 1_000_000, tz=UTC)
    return f"{INDEXES}/{moment:%Y%m%dT%H%M%SZ}-{digest}.idx"


def digest_of_index(name: str) -> str | None:
    """Return the SHA-256 in the name of an index file; None for the name of something else."""
    match = _INDEX.match(name)
    return match[1] if match else None


def make_remote(files: RemoteFiles) -> None:
    """Make an empty place a remote; raises `RemoteError` where there is something else."""
    if is_remote(files):
        return
    if next(files.iterate(""), None) is not None:
        if is_remote(files):
            return  # another program was faster
        raise not_a_remote(files, "it has other files")
    content = canonical_json({"evalstore": "remote", "format": FORMAT}).encode()
    if not files.create(FORMAT_FILE, content):
        require_remote(files)  # another program was faster


def require_remote(files: RemoteFiles) -> None:
    """Raise `RemoteError` unless there is a remote that this program can read."""
    if not is_remote(files):
        reason = "it has no file 'format'" if files.exists() else "there is nothing"
        raise not_a_remote(files, reason)


def is_remote(files: RemoteFiles) -> bool:
    """Return whether there is a remote; raises `RemoteError` for one that is newer."""
    try:
        text = files.read(FORMAT_FILE, _LONGEST_FORMAT)
    except MissingFileError:
        return False
    try:
        content = json.loads(text)
        is_ours = content["evalstore"] == "remote"
        version = content["format"]
    except (ValueError, KeyError, TypeError, RecursionError):
        is_ours, version = False, None
    if not is_ours or version.__class__ is not int:
        raise not_a_remote(files, "its file 'format' is not that of evalstore")
    if version > FORMAT:
        raise RemoteError(
            f"the remote '{files.address}' has format {version}, and this version of evalstore "
            f"reads up to {FORMAT}",
            hint="install a newer version",
        )
    return True


def not_a_remote(files: RemoteFiles, reason: str) -> RemoteError:
    """Return the error for a place that is not a remote."""
    return RemoteError(
        f"'{files.address}' is not a remote of evalstore: {reason}",
        hint="'evalstore push' makes a remote of a folder that is empty or does not exist yet",
    )
