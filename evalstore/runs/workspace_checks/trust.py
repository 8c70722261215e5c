"""The command `trust`: allows files to run and variables to be sent, lists and revokes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evalstore.checks.types.python import CodeFile
from evalstore.core.clock import iso, now
from evalstore.core.errors import EvalstoreError, FileProblem, WorkspaceError
from evalstore.files.access import LARGEST_FILE, read_file
from evalstore.files.atomic_write import default_place
from evalstore.files.fields import suggest_beside, suggest_file
from evalstore.files.processes.application import Application
from evalstore.planning.open_project import open_workspace
from evalstore.planning.options import Location
from evalstore.providers.base_urls import host_of, normalise_host
from evalstore.workspace.reader import read_workspace
from evalstore.workspace.settings.remotes import read_url
from evalstore.workspace.trust import AllowedPath, AllowedPaths, Grant, Trusted, TrustList, digest

_SHORTEST = 8
"""The fewest digits of a shortened hash."""
_TRUSTED = {"json_name": "trusted", "json_as": lambda at: iso(at) if at else None}
_CHANGE = {"json_as": lambda change: change or None}
_MODEL_FILES = (".yaml", ".yml")
_LINES = 12
"""The most lines of a file that are shown."""


@dataclass(frozen=True, slots=True)
class ShownFile:
    """A file that is trusted or revoked, as it is printed."""

    JSON_FIELDS = ("path", "sha256", "size", "network", "at", "change")

    path: str = field(metadata={"json_name": "file"})
    sha256: str
    size: int
    network: bool
    lines: tuple[str, ...] = ()
    """The first lines."""
    count: int = 0
    """The number of lines."""
    at: int | None = field(default=None, metadata=_TRUSTED)
    """When it was trusted, in microseconds since 1970."""
    change: str = field(default="", metadata=_CHANGE)
    """`trusted`, `revoked`, or `kept` if it was trusted already."""
    runs: str = ""
    """The application with its variables, if this is its model file; else empty."""
    is_application: bool = False


def trust(location: Location, names: Sequence[str], *, network: bool) -> list[ShownFile]:
    """Trust the current contents of the files; if one cannot be read, none is trusted."""
    applications = [name for name in names if name.endswith(_MODEL_FILES)]
    models = find_applications(location, applications) if applications else {}
    refuse_programs(location, (name for name in names if name not in models))
    read = [_read(location, name) for name in names if name not in models]
    trust_list = TrustList(default_place())
    shown = [_trust_application(trust_list, *model_file) for model_file in models.values()]
    for path, data in read:
        entry = Trusted(digest(data), network, str(path), len(data), now())
        before = trust_list.find(entry.sha256)
        same = before is not None and before.network == network
        if not same:
            trust_list.add(entry)
        lines = data.decode("utf-8", "replace").splitlines()
        shown.append(_show(entry, "kept" if same else "trusted", lines[:_LINES], len(lines)))
    return shown


def _trust_application(trust_list: TrustList, path: Path, application: Application) -> ShownFile:
    entry = Trusted(application.digest, True, str(path), application.size, now(), True)
    is_known = trust_list.allows_application(entry.sha256)
    if not is_known:
        trust_list.add(entry)
    lines, count = list[str](), 0
    for name, data in application.files.items():
        text = data.decode("utf-8", "replace").splitlines()
        lines += [f"--- {name}", *text[:_LINES]]
        count += len(text) + 1
    with_variables = ", ".join(application.variables) or "no variables of your environment"
    runs = f"runs {application.code} with the network and {with_variables}"
    return _show(entry, "kept" if is_known else "trusted", lines, count, runs)


def trusted_files() -> list[ShownFile]:
    """Return all trusted files, oldest first."""
    return [_show(entry) for entry in TrustList(default_place()).entries]


def revoke(location: Location, names: Sequence[str]) -> tuple[list[ShownFile], list[AllowedPath]]:
    """Revoke trust in files, named by a present or former path, or by the start of a hash.

    A path that workspaces may use is revoked for all of them. For the folder of a workspace, all
    paths that it may use are revoked.
    """
    trust_list, allowed = TrustList(default_place()), AllowedPaths()
    chosen: dict[str, Trusted] = {}
    paths: list[AllowedPath] = []
    for name in names:
        matching = list(_matching(trust_list, location, name))
        places = {name, str((location.directory / name).resolve()), _address(name)}
        outside = [entry for entry in allowed.entries if places & {entry.path, entry.workspace}]
        paths += outside
        if not matching and not outside:
            raise EvalstoreError(
                f"'{name}' is not trusted", hint="'evalstore trust --list' lists what is"
            )
        chosen |= {entry.sha256: entry for entry in matching}
    for sha256 in chosen:
        trust_list.remove(sha256)
    if paths:
        allowed.remove(paths)
    return [_show(entry, "revoked") for entry in chosen.values()], list(dict.fromkeys(paths))


@dataclass(frozen=True, slots=True)
class ShownVariable:
    """A variable that is allowed for a host or revoked, as it is printed."""

    variable: str
    host: str
    at: int | None = field(default=None, metadata=_TRUSTED)
    """When it was allowed, in microseconds since 1970."""
    change: str = field(default="", metadata=_CHANGE)
    """`trusted`, `revoked`, or `kept` if it was allowed already."""


def allow_variable(variable: str, host: str) -> ShownVariable:
    """Allow a variable of the environment to be sent to a host."""
    trust_list = TrustList(default_place())
    grant = Grant(_checked(variable), _host(host), now())
    is_new = trust_list.grant(grant)
    return ShownVariable(grant.variable, grant.host, grant.at, "trusted" if is_new else "kept")


def allowed_variables() -> list[ShownVariable]:
    """Return all variables that may be sent, oldest first."""
    grants = TrustList(default_place()).grants
    return [ShownVariable(grant.variable, grant.host, grant.at) for grant in grants]


def revoke_variable(variable: str, host: str) -> ShownVariable:
    """Revoke a variable for a host."""
    grant = TrustList(default_place()).withdraw(_checked(variable), _host(host))
    if grant is None:
        raise EvalstoreError(
            f"'{variable}' is not allowed for '{host}'",
            hint="'evalstore trust --list' lists what is",
        )
    return ShownVariable(grant.variable, grant.host, grant.at, "revoked")


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


def _matching(trust_list: TrustList, location: Location, name: str) -> Iterator[Trusted]:
    path = location.directory / name
    try:
        current = digest(read_file(path, LARGEST_FILE))
    except FileProblem:
        current = None
    for entry in trust_list.entries:
        by_hash = len(name) >= _SHORTEST and entry.sha256.startswith(name.lower())
        if by_hash or entry.path == str(path.resolve()) or entry.sha256 == current:
            yield entry


def _address(name: str) -> str:
    """Return the URL of a remote in its one form; anything else as it is."""
    try:
        return read_url(name).address
    except EvalstoreError:
        return name


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
            else:
                hint = suggest_beside(path, name)
            raise EvalstoreError(f"file '{name}' not found", hint=hint)
        if path.suffix != ".py":
            raise EvalstoreError(
                f"'{name}' is not a Python file, so nothing would run it",
                hint="name a Python file of checks, or the model file of an application; "
                "a workspace may use other files after a command with --allow-outside",
            )
        return path.resolve(), read_file(path, LARGEST_FILE)
    except FileProblem as problem:
        raise EvalstoreError(f"{name}: {problem.message}", hint=problem.hint) from problem


def _show(
    entry: Trusted, change: str = "", lines: Sequence[str] = (), count: int = 0, runs: str = ""
) -> ShownFile:
    return ShownFile(
        *(entry.path, entry.sha256, entry.size, entry.network, tuple(lines), count),
        *(entry.at, change, runs, entry.application),
    )


# --- the applications of model files that a command line names


def refuse_programs(location: Location, names: Iterable[str]) -> None:
    """Raise `EvalstoreError` for a file that runs only as a part of an application.

    Trust in an application is given by its model file, so trust in its program has no effect.
    """
    try:
        workspace = open_workspace(location)
    except EvalstoreError:
        return  # files can be trusted anywhere
    reading = read_workspace(workspace, tests=False)
    models = {
        (workspace.root / path).resolve(): reading.model_files[id]
        for id, model in reading.models.items()
        for path in (model.application.files if model.application else ())
    }
    own = [name for name in names if (location.directory / name).resolve() in models]
    if not own:
        return
    reading = read_workspace(workspace)
    checks = {
        (workspace.root / reading.references.locate(name.partition(":")[2], test)).resolve()
        for test, file in reading.files.items()
        for ids in [{CodeFile.read(text).id for text in file.runs}]
        for name, id in reading.depends.get(test, {}).items()
        if id in ids
    }
    for name in own:
        if (place := (location.directory / name).resolve()) not in checks:
            raise EvalstoreError(
                f"'{name}' is part of the application '{models[place]}', trusted as a whole",
                hint=f"evalstore trust {models[place]}",
            )


def find_applications(
    location: Location, names: Sequence[str]
) -> dict[str, tuple[Path, Application]]:
    """Return model files and their applications by name; raises `EvalstoreError`."""
    workspace = open_workspace(location)
    reading = read_workspace(workspace, tests=False)
    places = {
        (workspace.root / path).resolve(): reading.models[id]
        for id, path in reading.model_files.items()
    }
    applications: dict[str, tuple[Path, Application]] = {}
    for name in names:
        place = (location.directory / name).resolve()
        model = places.get(place)
        if model is None:
            errors = [
                error
                for error in reading.errors
                if (workspace.root / error.file).resolve() == place
            ]
            if errors:
                raise WorkspaceError(errors)
            if not place.is_file():
                hint = suggest_file(name, reading.model_files.values(), "model files")
                raise EvalstoreError(f"file '{name}' not found", hint=hint)
            raise EvalstoreError(
                f"'{name}' is not a model file of this workspace, so nothing would run it",
                hint="'evalstore status' names the files that wait for trust",
            )
        if model.application is None:
            raise EvalstoreError(
                f"'{name}' is not the model file of an application, so nothing would run",
                hint="that is a model with 'provider: python' or 'provider: command'",
            )
        applications[name] = place, model.application
    return applications
