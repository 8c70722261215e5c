"""`trust`: allow files to run and variables to be sent on this machine; list, take it back."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalstore.clock import iso, now
from evalstore.errors import EvalstoreError, FileProblem
from evalstore.files.access import LARGEST_FILE, read_file
from evalstore.files.user_lists import default_place
from evalstore.providers.base_urls import host_of, normalise_host
from evalstore.workspace.allowed_paths import AllowedPath, AllowedPaths
from evalstore.workspace.trust import Grant, Trusted, TrustList, digest

if TYPE_CHECKING:
    from pathlib import Path

    from evalstore.planning.options import Location

_SHORTEST = 8
"""Digits of a hash that can stand for it."""
_TRUSTED = {"json_name": "trusted", "json_as": lambda at: iso(at) if at else None}
_CHANGE = {"json_as": lambda change: change or None}
_LINES = 12
"""Lines of a file that are shown."""


@dataclass(frozen=True, slots=True)
class ShownFile:
    """A file as its user sees it before and after a decision."""

    JSON_FIELDS = ("path", "sha256", "size", "network", "at", "change")

    path: str = field(metadata={"json_name": "file"})
    sha256: str
    size: int
    network: bool
    lines: tuple[str, ...] = ()
    """How it begins."""
    count: int = 0
    """How many lines it has."""
    at: int | None = field(default=None, metadata=_TRUSTED)
    """When it was trusted, in microseconds since 1970."""
    change: str = field(default="", metadata=_CHANGE)
    """`trusted`, `revoked`, or `kept`: it was trusted already."""


def trust(location: Location, names: Sequence[str], *, network: bool) -> list[ShownFile]:
    """Allow the files as they are now; nothing is, unless all can be read."""
    read = [_read(location, name) for name in names]
    known = TrustList(default_place())
    found = []
    for path, data in read:
        one = Trusted(digest(data), network, str(path), len(data), now())
        before = known.find(one.sha256)
        same = before is not None and before.network == network
        if not same:
            known.add(one)
        found.append(_show(one, data, "kept" if same else "trusted"))
    return found


def trusted_files() -> list[ShownFile]:
    """All files that are allowed, in the order in which they were."""
    return [
        ShownFile(entry.path, entry.sha256, entry.size, entry.network, at=entry.at)
        for entry in TrustList(default_place()).entries
    ]


def allowed_paths() -> list[AllowedPath]:
    """What workspaces may use outside of themselves, in the order in which it was allowed."""
    return AllowedPaths().entries


def revoke(location: Location, names: Sequence[str]) -> tuple[list[ShownFile], list[AllowedPath]]:
    """Allow files no longer: by their path, now or then, or by the beginning of their hash.

    A path that workspaces may use is taken from all of them, and by the folder of a workspace
    all that it may use.
    """
    known, allowed = TrustList(default_place()), AllowedPaths()
    chosen: dict[str, Trusted] = {}
    paths: list[AllowedPath] = []
    for name in names:
        matching = list(_matching(known, location, name))
        places = {name, str((location.directory / name).resolve())}
        outside = [entry for entry in allowed.entries if places & {entry.path, entry.workspace}]
        paths += outside
        if not matching and not outside:
            raise EvalstoreError(
                f"'{name}' is not trusted", hint="'evalstore trust --list' lists what is"
            )
        chosen |= {entry.sha256: entry for entry in matching}
    for sha256 in chosen:
        known.remove(sha256)
    if paths:
        allowed.remove(paths)
    files = [
        ShownFile(
            entry.path, entry.sha256, entry.size, entry.network, at=entry.at, change="revoked"
        )
        for entry in chosen.values()
    ]
    return files, list(dict.fromkeys(paths))


@dataclass(frozen=True, slots=True)
class ShownVariable:
    """A variable that may be sent to a host, before and after a decision."""

    variable: str
    host: str
    at: int | None = field(default=None, metadata=_TRUSTED)
    """When it was allowed, in microseconds since 1970."""
    change: str = field(default="", metadata=_CHANGE)
    """`trusted`, `revoked`, or `kept`: it was allowed already."""


def allow_variable(variable: str, host: str) -> ShownVariable:
    """Allow a variable of the environment to be sent to a host."""
    known = TrustList(default_place())
    one = Grant(_checked(variable), _host(host), now())
    is_new = known.grant(one)
    return ShownVariable(one.variable, one.host, one.at, "trusted" if is_new else "kept")


def allowed_variables() -> list[ShownVariable]:
    """All variables that may be sent, in the order in which they were allowed."""
    grants = TrustList(default_place()).grants
    return [ShownVariable(grant.variable, grant.host, grant.at) for grant in grants]


def revoke_variable(variable: str, host: str) -> ShownVariable:
    """Allow a variable for a host no longer."""
    found = TrustList(default_place()).withdraw(_checked(variable), _host(host))
    if found is None:
        raise EvalstoreError(
            f"'{variable}' is not allowed for '{host}'",
            hint="'evalstore trust --list' lists what is",
        )
    return ShownVariable(found.variable, found.host, found.at, "revoked")


def _checked(variable: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", variable):
        raise EvalstoreError(
            f"'{variable}' is not the name of a variable",
            hint="the name and not the value, as in: evalstore trust env DESK_KEY localhost:8000",
        )
    return variable


def _host(text: str) -> str:
    try:
        host = host_of(text) if "://" in text else normalise_host(text)
    except ValueError:
        host = None
    if host is None:
        raise EvalstoreError(
            f"'{text}' is not a host", hint="as in: evalstore trust env DESK_KEY localhost:8000"
        )
    return host


def _matching(known: TrustList, location: Location, name: str) -> Iterator[Trusted]:
    path = location.directory / name
    try:
        current = digest(read_file(path, LARGEST_FILE))
    except FileProblem:
        current = None
    for entry in known.entries:
        by_hash = len(name) >= _SHORTEST and entry.sha256.startswith(name.lower())
        if by_hash or entry.path == str(path.resolve()) or entry.sha256 == current:
            yield entry


def _read(location: Location, name: str) -> tuple[Path, bytes]:
    path = location.directory / name
    try:
        if not path.is_file():
            hint = None
            if path.is_dir():
                hint = (
                    "it is a folder; a workspace may use one after a command with --allow-outside"
                )
            elif re.fullmatch(r"[A-Z][A-Z0-9_]+", name):
                hint = f"for a variable: evalstore trust env {name} HOST"
            raise EvalstoreError(f"there is no file '{name}'", hint=hint)
        if path.suffix != ".py":
            raise EvalstoreError(
                f"'{name}' is not a Python file, so nothing would run it",
                hint="a workspace may use other files after a command with --allow-outside",
            )
        return path.resolve(), read_file(path, LARGEST_FILE)
    except FileProblem as problem:
        raise EvalstoreError(f"{name}: {problem.message}", hint=problem.hint) from problem


def _show(entry: Trusted, data: bytes, change: str) -> ShownFile:
    lines = data.decode("utf-8", "replace").splitlines()
    return ShownFile(
        entry.path,
        entry.sha256,
        entry.size,
        entry.network,
        tuple(lines[:_LINES]),
        len(lines),
        entry.at,
        change,
    )
