"""The setting `remotes`: names for places where results are shared."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from evalstore.core.errors import EvalstoreError, FileProblem, OutsideError
from evalstore.files.access import LARGEST_TEXT, normalise
from evalstore.files.atomic_write import write_whole
from evalstore.files.yaml12 import read_yaml, write_yaml
from evalstore.store.location import DatabaseAddress
from evalstore.workspace.folder import WorkspaceFolder
from evalstore.workspace.settings.remote_names import DEFAULT_REMOTE
from evalstore.workspace.settings.remote_urls import RemoteUrl, read_database, read_url
from evalstore.workspace.settings.settings import RemoteSettings

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
    try:
        workspace.boundary.require(path, f"the remote '{name}'")
    except OutsideError as error:
        raise OutsideError(str(error), hint=_ALLOW) from error
    return path


def locate_url(workspace: WorkspaceFolder, name: str, address: str) -> RemoteUrl:
    """Return the parts of the URL of a remote, to which rows and keys may then be sent.

    Raises `OutsideError` when the user has not allowed it, and `EvalstoreError` for another URL.
    """
    with _placed(workspace, name):
        url = read_url(address)
    try:
        workspace.boundary.require_address(url.address, f"the remote '{name}'")
    except OutsideError as error:
        raise OutsideError(str(error), hint=_ALLOW) from error
    return url


def locate_database(workspace: WorkspaceFolder, name: str, address: str) -> DatabaseAddress:
    """Return the address of a database, to which rows and a password may then be sent.

    Raises `OutsideError` when the user has not allowed it with exactly its options, and
    `EvalstoreError` for another address.
    """
    with _placed(workspace, name):
        found = read_database(address, f"the remote '{name}'")
    try:
        workspace.boundary.require_server(str(found), f"the remote '{name}'")
    except OutsideError as error:
        raise OutsideError(str(error), hint=_ALLOW) from error
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
