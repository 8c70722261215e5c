"""The command `init`: creates a workspace, optionally the example or from an ai-tester project.

With a file, it writes a test file into the workspace.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path

from evalstore.core.errors import EvalstoreError, FileProblem
from evalstore.exchange.importers.base import reading_from
from evalstore.files.access import LARGEST_TEXT
from evalstore.files.atomic_write import write_whole
from evalstore.planning.open_project import locate_store, open_workspace, warn_before_opening
from evalstore.planning.options import Location
from evalstore.providers.base import EXAMPLE
from evalstore.store import Store
from evalstore.store.location import DatabaseAddress, StoreLocation, is_url, read_address
from evalstore.workspace.folder import WorkspaceFolder
from evalstore.workspace.settings.settings import FILE, Settings
from evalstore.workspace.trust import AllowedPaths, WorkspaceBoundary

_STARTER = Path(__file__).parent / "starter"
"""A first workspace, and a commented test file that can be run at once, for `init FILE.md`."""
_STARTER_FILES = (FILE, "tests/hello.md", "models/parrot.yaml", "models/judge.yaml")
_NEW_TEST = _STARTER / "tests" / "new.md"
BARE = f"""\
# candidates: [{EXAMPLE}]  # models that answer
# evaluators: [{EXAMPLE}]  # models that judge
# candidatesTemperature: 0  # none is sent without this line, as some models refuse it
# evaluatorsTemperature: 0
"""
"""The settings of a workspace without tests."""
IGNORED = (b".evalstore/", b".env", b".env.local", b"evalstore-report.html")


@dataclass
class InitReport:
    """The files that `init` wrote, and those it kept."""

    root: Path = field(metadata={"json_name": "workspace"})
    written: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    """Existing files, which were not changed."""
    notes: list[str] = field(default_factory=list)
    next: list[str] = field(default_factory=list)
    """The commands that a user types next, from the folder in which `init` was started."""


def init(
    directory: Path,
    *,
    example: bool = False,
    bare: bool = False,
    adopt_from: Path | None = None,
    store: str | None = None,
    allow_outside: bool = False,
    start: Path | None = None,
    warn: Callable[[str], None] = lambda _message: None,
) -> InitReport:
    """Create a workspace and its store; existing files are never overwritten.

    A database is the first to be tried, so that nothing is left behind where that fails. The
    settings are written last: an `init` that was interrupted can be repeated. `start` is the folder
    in which the next commands are typed (default: the workspace), and `warn` is told of variables
    in its `.env` that have no effect.
    """
    report = InitReport(directory)
    address = read_address(store) if store and is_url(store) else None
    location = Location(directory, store=store, allow_outside=allow_outside)
    with _made(directory):
        if adopt_from is not None:
            with reading_from([adopt_from, directory], allow_outside=allow_outside):
                files = _adopt(report, adopt_from, address)
        elif example:
            files = _read_example()
        elif (directory / FILE).exists():
            files = {}
            report.kept.append(FILE)
        elif bare:
            files = {FILE: BARE.encode()}
        else:
            files = {name: (_STARTER / name).read_bytes() for name in _STARTER_FILES}
        if FILE in files and not (directory / FILE).exists():
            place: StoreLocation | None = address
        else:
            place = locate_store(open_workspace(location), location)
        if isinstance(place, DatabaseAddress):
            warn_before_opening(directory, warn)
            Store.open(place, create=True).close()
    if address:  # the user has named it on the command line
        AllowedPaths().add(os.path.realpath(directory), [str(address)])
    if files:
        _write_all(report, files, address)
    _ignore(report)
    workspace = open_workspace(location)
    store = workspace.settings.store
    if address and not (is_url(store) and str(read_address(store)) == str(address)):
        report.notes.append(
            f"{FILE} is left unchanged: to use this store without --store, add to it: "
            f"store: {json.dumps(str(address))}"
        )
    place = locate_store(workspace, location)
    if isinstance(place, Path) and not place.exists():
        report.written.append(os.path.relpath(place, directory).replace(os.sep, "/"))
    Store.open(place, create=True).close()
    report.next = first_commands(workspace, start or directory, needs_test=not example)
    return report


@contextmanager
def _made(directory: Path) -> Iterator[None]:
    """Make a folder, and remove it again if an `EvalstoreError` is raised in the block."""
    if directory.exists() and not directory.is_dir():
        raise EvalstoreError(f"'{directory}' is not a folder")
    made = [each for each in (directory, *directory.parents) if not each.exists()]
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EvalstoreError(f"'{directory}' cannot be made: {error.strerror}") from error
    try:
        yield
    except EvalstoreError:
        with suppress(OSError):  # something else is in it by now
            for each in made:
                each.rmdir()
        raise


def _with_address(settings: bytes, address: DatabaseAddress | None) -> bytes:
    """Return new settings with the address of the store, if it has one, without a password.

    They are written in one step: settings without it would mean a file.
    """
    if address is None:
        return settings
    return b"%s\n\nstore: %s\n" % (settings.rstrip(), json.dumps(str(address)).encode())


def _read_example() -> dict[str, bytes]:
    source = example_folder()
    return {
        name: path.read_bytes()
        for path in sorted(source.rglob("*"))
        if path.is_file()
        and not (name := path.relative_to(source).as_posix()).startswith(".evalstore/")
    }


def _write_all(
    report: InitReport, files: Mapping[str, bytes], address: DatabaseAddress | None
) -> None:
    """Write the missing files, the settings last; list them in the order of `files`."""
    files = {**files, FILE: _with_address(files[FILE], address)}
    last = sorted(files, key=lambda name: name == FILE)
    written = {name: _write(report.root, name, files[name]) for name in last}
    report.written += [name for name in files if written[name]]
    report.kept += [name for name in files if not written[name]]


def _write(root: Path, name: str, data: bytes, *, exclusive: bool = True) -> bool:
    """Write a file; returns False if it exists and is kept."""
    try:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        write_whole(root / name, data, exclusive=exclusive)
    except OSError as error:
        if isinstance(error, FileExistsError) and os.path.lexists(root / name):
            return False
        raise EvalstoreError(f"{name}: cannot be written: {error.strerror}") from error
    return True


def _adopt(report: InitReport, source: Path, address: DatabaseAddress | None) -> dict[str, bytes]:
    """Return the settings of an ai-tester project; raises `EvalstoreError` if there are others."""
    from evalstore.exchange.importers.ai_tester import adopt

    settings = report.root / FILE
    text, notes = adopt(source.absolute(), report.root.absolute())
    data = _with_address(text.encode(), address)
    if settings.exists() and not (settings.is_file() and settings.read_bytes() == data):
        raise EvalstoreError(
            f"'{settings}' exists already", hint="remove it first, or choose another folder"
        )
    report.notes += notes
    return {FILE: text.encode()}


def _ignore(report: InitReport) -> None:
    path = report.root / ".gitignore"
    data = b""
    if os.path.lexists(path):
        try:
            data = WorkspaceBoundary(report.root).read(path, LARGEST_TEXT)
        except FileProblem as problem:
            report.notes.append(f".gitignore: {problem.message}; add '.evalstore/' to it")
            return
    missing = [line for line in IGNORED if line not in data.split()]
    if missing:
        lines = [data.removesuffix(b"\n"), *missing] if data else missing
        _write(report.root, ".gitignore", b"\n".join([*lines, b""]), exclusive=False)
        report.written.append(".gitignore")


def example_folder() -> Path:
    """Return the example workspace: in the package when installed, else in the checkout."""
    package = Path(__file__).parent.parent
    installed = package / "example"
    return installed if installed.is_dir() else package.parent / "example"


# --- a new test file, for `init FILE.md`


@dataclass(frozen=True, slots=True)
class NewTest:
    """A test file that was written, and the command that runs it."""

    written: str
    """The path, relative to the workspace."""
    next: str
    """The command that runs it from the current folder."""


def new_test(location: Location, name: str) -> NewTest:
    """Write a commented test file; a file that exists is never overwritten.

    `name` is relative to the current folder, and must be inside the folder of tests. Raises
    `EvalstoreError`.
    """
    workspace = open_workspace(location)
    file = Path(os.path.normpath(location.directory / name))
    _require_place(workspace, file, name)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, _NEW_TEST.read_bytes(), exclusive=True)
    except FileExistsError as error:
        if not os.path.lexists(file):
            raise EvalstoreError(f"'{name}' cannot be written: {error.strerror}") from error
        raise EvalstoreError(
            f"'{name}' exists already", hint="choose another name; files are never overwritten"
        ) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise EvalstoreError(f"'{name}' cannot be written: {reason}") from error
    return NewTest(workspace.name_of(file), run_command(workspace.settings, name))


def _require_place(workspace: WorkspaceFolder, file: Path, name: str) -> None:
    """Raise `EvalstoreError` unless a file at this place would be read as a test."""
    folder = workspace.folder("tests")
    prefix = workspace.name_of(folder)
    workspace.boundary.require(folder, prefix)
    try:
        inner = file.relative_to(folder)
    except ValueError as error:
        raise EvalstoreError(
            f"'{name}' is not in the folder of tests, '{prefix}'",
            hint=f"write 'evalstore init {shlex.quote(workspace.name_of(folder / file.name))}'",
        ) from error
    real = Path(os.path.realpath(folder), *inner.parts[:-1])
    if (
        any(part.startswith(".") for part in inner.parts)
        or file.name == "README.md"
        or "::" in name
        or os.path.realpath(file.parent) != str(real)
    ):
        raise EvalstoreError(
            f"'{name}' would not be read as a test",
            hint="hidden files, README.md, names with '::' and linked folders are ignored",
        )


# --- suggests the commands that a user types next in a workspace


_NAMES = ("hello", "first", "second", "third")
"""Names for a first test; the first one that is free is used."""


def run_command(settings: Settings, path: str | None = None) -> str:
    """Return the command that runs all tests, or those at a path, with the models of the settings.

    Models that the settings do not name are named on the command line.
    """
    words = ["evalstore", "run"]
    if path is not None:
        words.append(path)
    if not settings.candidates:
        words += ["-m", EXAMPLE]
    if not settings.evaluators:
        words += ["-J", EXAMPLE]
    return shlex.join(words)


def first_commands(
    workspace: WorkspaceFolder, start: Path, *, needs_test: bool = True
) -> list[str]:
    """Return the commands that add a first test if one is needed, run all and show the answers.

    `start` is the folder in which they are typed; when the workspace is another folder, the first
    command changes to it.
    """
    folder = os.path.relpath(workspace.root, start)
    tests = workspace.name_of(workspace.folder("tests"))
    commands = [] if folder == os.curdir else [shlex.join(["cd", folder])]
    if needs_test:
        name = f"{tests}/{_free_name(workspace.folder('tests'))}.md"
        commands.append(shlex.join(["evalstore", "init", name]))
    return [
        *commands,
        run_command(workspace.settings),
        "evalstore view",
    ]


def _free_name(folder: Path) -> str:
    """Return a name without a suffix that no file in a folder has."""
    names = chain(_NAMES, (f"test{number}" for number in count(1)))
    return next(name for name in names if not os.path.lexists(folder / f"{name}.md"))
