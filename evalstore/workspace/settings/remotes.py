"""The setting `remotes`: names for places where results are shared, and their addresses.

Addresses that are URLs look like `s3://bucket/path` or `sftp://host/path`.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, unquote_to_bytes

from evalstore.core.errors import EvalstoreError, FileProblem
from evalstore.files.access import LARGEST_TEXT, normalise
from evalstore.files.atomic_write import write_whole
from evalstore.files.yaml12 import read_yaml, write_yaml
from evalstore.store.location import DatabaseAddress, read_address
from evalstore.workspace.folder import WorkspaceFolder
from evalstore.workspace.settings.remote_names import DEFAULT_REMOTE
from evalstore.workspace.settings.settings import RemoteSettings

BUCKETS = ("s3", "gs", "az")
SFTP = ("sftp", "ssh")
SCHEMES = (*BUCKETS, *SFTP)
_PARTS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://([^/]*)(/.*)?\Z", re.DOTALL)
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,254}\Z")
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}\Z")
_HOST = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9._-]{0,252}|\[[0-9A-Fa-f:.]{2,45}\])\Z")
_PORT = re.compile(r"[0-9]{1,5}\Z")
_LONGEST_PATH = 500
"""Bytes; a line of a batch for `sftp` has room for two paths."""


class RemoteUrl(NamedTuple):
    """The parts of a URL, each checked: none begins with `-` or has a control character."""

    scheme: str
    """One of `s3`, `gs`, `az` and `sftp`."""
    host: str
    """The bucket or the host; an IPv6 address is in brackets."""
    path: str
    """Without a slash at the end; empty, or beginning with one."""
    user: str = ""
    port: int | None = None

    @property
    def address(self) -> str:
        """Return the URL in its one form, by which it is allowed."""
        user = f"{self.user}@" if self.user else ""
        port = f":{self.port}" if self.port is not None else ""
        return f"{self.scheme}://{user}{self.host}{port}{quote(self.path, safe='/~')}"


def read_url(address: str) -> RemoteUrl:
    """Return the parts of the URL of a remote; raises `EvalstoreError`."""
    match = _PARTS.match(address)
    if match is None:
        raise _unusable(address, "it is not a URL")
    scheme, authority, path = match[1].lower(), match[2], match[3] or ""
    if scheme not in SCHEMES:
        raise _unusable(
            address,
            f"this version cannot use '{scheme}://'",
            hint="a remote is a folder, such as /mnt/team/results, or a URL with one of "
            f"{', '.join(f'{known}://' for known in (*SCHEMES, 'postgresql'))}",
        )
    user, at, host = authority.rpartition("@")
    if at and (":" in user or scheme in BUCKETS):
        # The address itself is not repeated: it may contain a password.
        raise EvalstoreError(
            "the address of a remote must not contain a password or a key",
            hint="keys of buckets are read from the environment, and those of SSH by ssh",
        )
    if "?" in path or "#" in path:
        raise _unusable(address, "write '?' as %3F and '#' as %23")
    path = _read_path(address, path)
    if scheme in BUCKETS:
        if not _BUCKET.match(host):
            raise _unusable(address, f"'{host}' cannot be the name of a bucket")
        return RemoteUrl(scheme, host, path)
    return _read_host(address, user if at else None, host, path)


def read_database(address: str, what: str = "the remote") -> DatabaseAddress:
    """Return the parts of the address of a database that is a remote.

    Raises `EvalstoreError`, also when it has a password: evalstore.yaml is for everybody.
    """
    found = read_address(address, what)
    if found.has_secrets:
        raise EvalstoreError(
            "the address of a remote must not contain a password or a key",
            hint="PGPASSWORD or ~/.pgpass has the password of a database",
        )
    return found


def _read_host(address: str, user: str | None, host: str, path: str) -> RemoteUrl:
    name, colon, port = host.rpartition(":") if not host.endswith("]") else (host, "", "")
    name = name if colon else host
    if not _HOST.match(name):
        raise _unusable(address, f"'{name}' cannot be the name of a host")
    if user is not None and not _USER.match(user):
        raise _unusable(address, f"'{user}' cannot be the name of a user")
    if colon and not (_PORT.match(port) and 0 < int(port) < 65_536):
        raise _unusable(address, f"'{port}' is not a port")
    if not path:
        raise _unusable(
            address, "it names no folder", hint="sftp://user@host/folder, or sftp://host/~/folder"
        )
    return RemoteUrl("sftp", name, path, user or "", int(port) if colon else None)


def _read_path(address: str, path: str) -> str:
    try:
        decoded = unquote_to_bytes(path).decode().rstrip("/")
    except UnicodeError as error:
        raise _unusable(address, "its path is not UTF-8") from error
    if any(unicodedata.category(character) == "Cc" for character in decoded):
        raise _unusable(address, "its path has a control character")
    if not {".", "..", ""}.isdisjoint(decoded.split("/")[1:]):
        raise _unusable(address, "its path has '.', '..' or nothing between two slashes")
    if len(decoded.encode()) > _LONGEST_PATH:
        raise _unusable(address, f"its path has more than {_LONGEST_PATH} bytes")
    return decoded


def _unusable(address: str, reason: str, *, hint: str | None = None) -> EvalstoreError:
    return EvalstoreError(f"'{address}' cannot be the address of a remote: {reason}", hint=hint)


_LONE_RETURN = re.compile(rb"\r(?!\n)")
"""The line end of an old Mac, which becomes that of all systems."""
_ALLOW = "if you know it, allow it once with '--allow-outside'"


def find_remote(workspace: WorkspaceFolder, name: str | None) -> tuple[str, RemoteSettings]:
    """Return the name and the settings of a remote; without a name, of `origin` or the only one.

    Raises `EvalstoreError`.
    """
    remotes = workspace.settings.remotes
    if name is None:
        if DEFAULT_REMOTE in remotes or len(remotes) == 1:
            name = DEFAULT_REMOTE if DEFAULT_REMOTE in remotes else next(iter(remotes))
        elif remotes:
            raise EvalstoreError(
                "several remotes are set, and none is 'origin'", hint=_known(remotes)
            )
        else:
            raise EvalstoreError(
                "no remote is set",
                hint="'evalstore remote add origin FOLDER', with a folder that your team shares",
            )
    if name not in remotes:
        raise EvalstoreError(f"unknown remote '{name}'", hint=_known(remotes))
    return name, remotes[name]


def _known(remotes: Mapping[str, RemoteSettings]) -> str:
    if not remotes:
        return f"'evalstore remote add {DEFAULT_REMOTE} ADDRESS' sets one"
    return f"name one: {', '.join(remotes)}"


def locate_folder(workspace: WorkspaceFolder, name: str, address: str) -> Path:
    """Return the folder of a remote; raises `OutsideError` when the workspace may not use it."""
    path = folder_of(workspace.root, address)
    workspace.boundary.require(path, f"the remote '{name}'", _ALLOW)
    return path


def locate_url(workspace: WorkspaceFolder, name: str, address: str) -> RemoteUrl:
    """Return the parts of the URL of a remote, to which rows and keys may then be sent.

    Raises `OutsideError` when the user has not allowed it, and `EvalstoreError` for another URL.
    """
    with _placed(workspace, name):
        url = read_url(address)
    workspace.boundary.require_address(url.address, f"the remote '{name}'", _ALLOW)
    return url


def locate_database(workspace: WorkspaceFolder, name: str, address: str) -> DatabaseAddress:
    """Return the address of a database, to which rows and a password may then be sent.

    Raises `OutsideError` when the user has not allowed it with exactly its options, and
    `EvalstoreError` for another address.
    """
    with _placed(workspace, name):
        found = read_database(address, f"the remote '{name}'")
    workspace.boundary.require_address(str(found), f"the remote '{name}'", _ALLOW, whole=True)
    return found


@contextmanager
def _placed(workspace: WorkspaceFolder, name: str) -> Iterator[None]:
    """Begin the message of an error about the address of a remote with its place."""
    try:
        yield
    except EvalstoreError as error:
        remote = workspace.settings.remotes.get(name)
        if remote is None or remote.line is None:
            raise
        place = f"{workspace.config.name}:{remote.line}"
        raise EvalstoreError(f"{place}: {error}", hint=error.hint) from None


def folder_of(root: Path, address: str) -> Path:
    """Return the folder of an address; a relative one begins at `root`."""
    path = Path(address)
    with suppress(RuntimeError):  # `~` with the name of nobody is that of a folder
        path = path.expanduser()
    return Path(os.path.normpath(root / path))


def write_remote(workspace: WorkspaceFolder, name: str, address: str | None) -> None:
    """Add a remote to the file of settings, or remove it with `None`; all else stays as it is.

    That includes the line ends. Raises `EvalstoreError` for a file that cannot be edited line by
    line.
    """
    path = workspace.config
    data = workspace.boundary.read(path, LARGEST_TEXT)
    old = normalise(data)
    lines = (old if _LONE_RETURN.search(data) else data.decode()).split("\n")
    end_of_line = "\r" if lines[0].endswith("\r") else ""
    document = read_yaml(old)
    value: dict[str, Any] = document.value if isinstance(document.value, dict) else {}
    remotes = dict(value.get("remotes") or {})
    if address is None:
        del remotes[name]
        at = document.line("remotes", name) - 1
        end = at + 1
        while end < len(lines) and _indent(lines[end]) > _indent(lines[at]):
            end += 1  # what belongs to a mapping
        del lines[at:end]
        if not remotes:
            del lines[document.line("remotes") - 1]
            value = {key: setting for key, setting in value.items() if key != "remotes"}
    else:
        entry = write_yaml({name: address}).rstrip("\n") + end_of_line
        if remotes:
            first = document.line("remotes", next(iter(remotes))) - 1
            indent = lines[first][: len(lines[first]) - len(lines[first].lstrip())]
            lines.insert(first, f"{indent or '  '}{entry}")
        elif "remotes" in value:
            lines.insert(document.line("remotes"), f"  {entry}")
        else:
            text = "\n".join(lines).rstrip("\r\n")
            before = [f"{text}{end_of_line}"] if text else []
            lines = [*before, f"remotes:{end_of_line}", f"  {entry}", ""]
        remotes[name] = address
    expected = {**value, **({"remotes": remotes} if remotes else {})}
    text = "\n".join(lines)
    if not _has_value(text, expected):
        place = f"{path.name}:{document.line('remotes')}"
        words = f"remotes: {{{name}: {address}}}" if address else f"without '{name}'"
        raise EvalstoreError(
            f"{place}: 'remotes' is written in a way that cannot be edited here",
            hint=f"edit the file yourself: {words}",
        )
    write_whole(path, text.encode())


def _indent(line: str) -> int:
    """Return how many spaces are before the text of a line; -1 without any text."""
    text = line.lstrip()
    return len(line) - len(text) if text else -1


def _has_value(text: str, expected: Any) -> bool:
    try:
        return bool((read_yaml(normalise(text.encode())).value or {}) == expected)
    except FileProblem:
        return False
