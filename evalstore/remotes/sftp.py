"""A remote in a folder of another machine, through OpenSSH's `sftp`.

`sftp` reads the user's settings, keys and agent, as `ssh` does, and never asks for anything.
"""

from __future__ import annotations

import os
import re
import secrets
import select
import shutil
import subprocess
import tempfile
import time
import weakref
from calendar import isleap
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from evalstore.core.clock import now
from evalstore.core.errors import RemoteError
from evalstore.files.atomic_write import write_whole
from evalstore.remotes.layout import GRACE, ListedFile, MissingFileError, UnreadableFileError
from evalstore.workspace.settings.remotes import RemoteUrl

PATIENCE = 60.0
"""Seconds without anything from a server."""
_SLOWEST = 16 * 2**10
"""Bytes a second; a slower upload times out, as nothing shows its progress."""
_LOOK = 0.2
"""Seconds after which the size of a growing file is looked at."""
_LONGEST_LINE = 2_000
"""Bytes of a command; `sftp` would take the rest for another command."""
_LONGEST_OUTPUT = 256 * 2**20
_NOISE = re.compile(rb"(?:sftp> |Fetching |Uploading |Connected to |\s*\Z)")
_OPTIONS = {
    "BatchMode": "yes",
    "ConnectTimeout": "10",
    "ConnectionAttempts": "1",
    "ServerAliveInterval": "15",
    "ServerAliveCountMax": "3",
    "LogLevel": "ERROR",
}
"""No questions, and no long silence."""
_LARGE = 2**16
"""Bytes from which on it is worth to ask whether a file exists before it is sent."""
_TEMPORARY = ".tmp-"
"""What the names of unfinished files begin with; the time in seconds and a random number follow."""
_UNFINISHED = re.compile(rb"\.tmp-([0-9a-f]{8,10})-[0-9a-f]{16}\Z")
_AT_ONCE = 20
"""Commands that are written before their output is read: more would fill the pipe."""
_MISSING = re.compile(rb"(?:not found\.?|No such file or directory)\Z")
_DENIED = re.compile(rb"Permission denied\Z")
_ENTRY = re.compile(rb"([-a-z])\S*\s+\S+\s+\S+\s+\S+\s+([0-9]+)\s+(\S+\s+\S+\s+\S+)\s+(.+)\Z")
"""The type of a file, its size, its time and its name."""
_CONNECTING = (
    (
        r"Host key verification failed|HOST IDENTIFICATION HAS CHANGED|host key is known",
        "the key of its host is unknown or has changed",
        "connect once with ssh, and compare the key of the host",
    ),
    (
        r"Permission denied|Too many authentication failures",
        "its host accepts none of your keys",
        "add a key to ssh-agent or to ~/.ssh/config; 'ssh -o BatchMode=yes HOST' tests it",
    ),
    (r"Could not resolve hostname", "the name of its host is unknown", "check the address"),
    (r"Connection refused", "its host refuses connections", "check the host and the port"),
    (r"timed out|timeout", "its host did not answer in time", "check the network"),
    (r"subsystem request failed", "its host does not offer SFTP", None),
)
"""What `ssh` prints, what it means, and a hint."""


class Transfer(NamedTuple):
    """What commands transfer."""

    sending: int = 0
    """Bytes that they upload."""
    growing: Path | None = None
    """The file that they download to."""
    most: int = 0
    """The most bytes of that file."""


_NOTHING = Transfer()


class SftpFiles:
    """The files of a remote on another machine; implements `RemoteFiles`.

    The connection is made when it is first needed, and ends with this object.
    """

    def __init__(
        self, address: str, folder: str, command: Sequence[str], patience: float = PATIENCE
    ) -> None:
        """`folder` is absolute, or begins with `.` and is relative to the home of the user."""
        self.address = address
        self._root = folder.rstrip("/")
        self._command = command
        self._patience = patience
        self._session: SftpSession | None = None
        self._local: Path | None = None
        self._is_clean = False

    def exists(self) -> bool:
        """Return whether the folder exists."""
        output = self._run([_list(f"{self._root}/.")])[0]
        return not any(map(_MISSING.search, output))

    def iterate(self, folder: str) -> Iterator[ListedFile]:
        """Yield the files below a folder of the remote; temporary files are left out."""
        waiting = [folder]
        while waiting:
            current, waiting = waiting[:_AT_ONCE], waiting[_AT_ONCE:]
            outputs = self._run([_list(f"{self._path(name)}/.") for name in current])
            for parent, lines in zip(current, outputs, strict=True):
                for line in lines:
                    entry = _ENTRY.match(line)
                    if entry is None:
                        if _MISSING.search(line):
                            continue
                        raise self._problem([line], "read")
                    base = entry[4].rpartition(b"/")[2].decode(errors="replace")
                    if base.startswith("."):
                        continue
                    name = f"{parent}/{base}" if parent else base
                    if entry[1] == b"d":
                        waiting.append(name)
                    else:
                        modified = latest_time(entry[3].decode(errors="replace"), now())
                        yield ListedFile(name, int(entry[2]), modified=modified)

    def read(self, name: str, most: int) -> bytes:
        """Return a whole file of at most `most` bytes."""
        local = self._folder() / "received"
        local.unlink(missing_ok=True)
        command = f"get {quote(self._path(name))} {quote(str(local))}"
        try:
            errors = self._run([command], Transfer(growing=local, most=most))[0]
            if errors or not local.exists():
                if any(map(_MISSING.search, errors)):
                    raise MissingFileError(f"the remote '{self.address}' has no file '{name}'")
                raise self._problem(errors, "read")
            return local.read_bytes()
        except LimitError:
            raise UnreadableFileError(
                f"'{name}' of the remote '{self.address}' has more than {most:,} bytes"
            ) from None
        finally:
            local.unlink(missing_ok=True)

    def create(self, name: str, data: bytes) -> bool:
        """Write a file in one step, unless it exists."""
        path = self._path(name)
        if len(data) >= _LARGE and self._has(path):
            return False
        local = self._folder() / "sent"
        write_whole(local, data, durable=False)
        self._clean_up()
        started = now() // 1_000_000
        temporary = f"{self._root}/{_TEMPORARY}{started:x}-{secrets.token_hex(8)}"
        put = f"put -f {quote(str(local))} {quote(temporary)}"
        errors = self._run([put], Transfer(len(data)))[0]
        if any(map(_MISSING.search, errors)):
            self._make_folders(name)
            errors = self._run([put], Transfer(len(data)))[0]
        if any(map(_MISSING.search, errors)):
            raise RemoteError(
                f"the folder above the remote '{self.address}' does not exist",
                hint="make that folder first, or correct the address of the remote",
            )
        if errors:
            self._run([f"rm {quote(temporary)}"])
            raise self._problem(errors, "written to")
        # Without `-l` the servers of OpenSSH would replace an existing file.
        rename = f"rename -l {quote(temporary)} {quote(path)}"
        errors = self._run([rename])[0]
        if errors and not self._has(path):  # servers differ in what they say of a missing folder
            self._make_folders(name)
            errors = self._run([rename])[0]
        if not errors:
            return True
        self._run([f"rm {quote(temporary)}"])
        if self._has(path):
            return False
        raise self._problem(errors, "written to")

    def delete(self, name: str) -> None:
        """Remove a file, unless it is missing already."""
        path = self._path(name)
        errors = self._run([f"rm {quote(path)}"])[0]
        if errors and self._has(path):
            raise self._problem(errors, "written to")

    def _clean_up(self) -> None:
        """Remove what writers have left that were killed long ago; once, before anything else.

        All unfinished files are in the folder of the remote, so that one listing finds them.
        """
        if self._is_clean:
            return
        self._is_clean = True
        oldest = now() // 1_000_000 - GRACE
        lines = self._run([f"ls -lnaf {quote(f'{self._root}/.')}"])[0]
        for line in lines:
            found = _UNFINISHED.search(line)
            if found and int(found[1], 16) < oldest:
                self._run([f"rm {quote(f'{self._root}/{found[0].decode()}')}"])

    def _has(self, path: str) -> bool:
        return any(map(_ENTRY.match, self._run([_list(path)])[0]))

    def _make_folders(self, name: str) -> None:
        """Make the folders of a file, but no folder above the remote; those that exist stay."""
        made = [self._root]
        for part in name.split("/")[:-1]:
            made.append(f"{made[-1]}/{part}")
        self._run([f"mkdir {quote(folder)}" for folder in made])

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root

    def _folder(self) -> Path:
        """Return the folder for files that are sent and received."""
        if self._local is None:
            self._local = Path(tempfile.mkdtemp(prefix="evalstore-"))
            weakref.finalize(self, shutil.rmtree, self._local, ignore_errors=True)
        return self._local

    def _run(self, commands: Sequence[str], transfer: Transfer = _NOTHING) -> list[list[bytes]]:
        try:
            if self._session is None:
                self._session = SftpSession(self._command, self._patience)
                weakref.finalize(self, self._session.end)
            return self._session.run(commands, transfer)
        except SftpError as error:
            self._session = None
            raise self._unreachable(str(error)) from None
        except LimitError:
            self._session = None
            if transfer.growing:
                raise
            raise RemoteError(f"the remote '{self.address}' lists too many files") from None
        except FileNotFoundError:
            raise RemoteError(
                f"the remote '{self.address}' needs OpenSSH's sftp, which is not installed",
                hint="install the system package: openssh-client or openssh",
            ) from None
        except ValueError as error:
            raise RemoteError(f"the remote '{self.address}' cannot be used: {error}") from None

    def _unreachable(self, output: str) -> RemoteError:
        for pattern, reason, hint in _CONNECTING:
            if re.search(pattern, output):
                return RemoteError(
                    f"the remote '{self.address}' cannot be reached: {reason}", hint=hint
                )
        lines = [line for line in output.splitlines() if not line.startswith("sftp> ")]
        detail = f": {lines[-1][:200]}" if lines else ""
        return RemoteError(f"the connection to the remote '{self.address}' was lost{detail}")

    def _problem(self, errors: Sequence[bytes], verb: str) -> RemoteError:
        if any(map(_DENIED.search, errors)):
            reason = "Permission denied"
        else:
            reason = (
                errors[-1][-200:].decode(errors="replace") if errors else "no file was received"
            )
        return RemoteError(f"the remote '{self.address}' cannot be {verb}: {reason}")


def open_sftp(url: RemoteUrl) -> SftpFiles:
    """Return the files of a remote on another machine; there is no connection yet."""
    folder = f".{url.path[2:]}" if url.path == "/~" or url.path.startswith("/~/") else url.path
    return SftpFiles(url.address, folder, sftp_command(url))


def sftp_command(url: RemoteUrl) -> list[str]:
    """Return the command that connects to the host of a URL."""
    command = ["sftp", "-b", "-"]
    for name, value in _OPTIONS.items():
        command += ["-o", f"{name}={value}"]
    if url.port is not None:
        command += ["-P", str(url.port)]
    return [*command, "--", f"{url.user}@{url.host}" if url.user else url.host]


def _list(path: str) -> str:
    return f"ls -lnf {quote(path)}"


# --- the times in listings of `sftp`, which leaves out the year or the time of day


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_OLDEST = timedelta(days=184)
"""The age up to which `sftp` prints the time of day in place of the year."""


def latest_time(text: str, now: int) -> int | None:
    """Return the latest time that is printed as `text`, in microseconds since 1970.

    It is such as `Nov 23 17:10` or `Nov 23 2025`, in UTC; None for another text. `now` is the
    current time: a time without a year is one of the last six months, or in the future.
    """
    try:
        month, day, last = text.split()
        date = (_MONTHS.index(month) + 1, int(day))
        if ":" not in last:
            return _microseconds(datetime(int(last), *date, 23, 59, 59, tzinfo=UTC))
        hour, minute = map(int, last.split(":"))
        current = datetime.fromtimestamp(now / 1_000_000, tz=UTC)
        for year in (current.year - 1, current.year, current.year + 1):
            if date == (2, 29) and not isleap(year):
                continue
            moment = datetime(year, *date, hour, minute, 59, tzinfo=UTC)
            if moment >= current - _OLDEST:
                return _microseconds(moment)
    except ValueError:
        pass
    return None


def _microseconds(moment: datetime) -> int:
    return int(moment.timestamp()) * 1_000_000


# --- one `sftp` of OpenSSH that runs commands from its input, so that each needs no login


class SftpError(Exception):
    """The connection has ended; contains the last lines that were printed."""


class LimitError(Exception):
    """A server has sent a larger file than allowed."""


class SftpSession:
    """A running `sftp`."""

    def __init__(self, command: Sequence[str], patience: float = PATIENCE) -> None:
        """Start it; raises `OSError` where it is not installed."""
        self._patience = patience
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            bufsize=0,
            env={**os.environ, "LC_ALL": "C", "TZ": "UTC"},  # names and times in listings
            start_new_session=True,  # no terminal to ask for a password
        )

    def run(self, commands: Sequence[str], transfer: Transfer = _NOTHING) -> list[list[bytes]]:
        """Run commands, and return the lines that each has printed.

        Raises `SftpError`, `LimitError` and `ValueError` for a command that is
        too long; after the first two the session has ended.
        """
        encoded = [f"-{command}\n".encode() for command in commands]
        if any(len(line) > _LONGEST_LINE or line.count(b"\n") > 1 for line in encoded):
            raise ValueError("a command is too long")
        outputs: list[list[bytes]] = []
        try:
            for start in range(0, len(encoded), _AT_ONCE):
                outputs += self._run(encoded[start : start + _AT_ONCE], transfer)
        except BaseException:
            self.end(kill=True)
            raise
        return outputs

    def _run(self, lines: Sequence[bytes], transfer: Transfer) -> list[list[bytes]]:
        marks = [b"#" + secrets.token_hex(16).encode() + b"\n" for _ in lines]
        data = b"".join(part for pair in zip(lines, marks, strict=True) for part in pair)
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended, and what it has printed says why
            while data:
                data = data[self._process.stdin.write(data) :]
        output = self._read(b"sftp> " + marks[-1], transfer)
        found: list[list[bytes]] = []
        for mark in marks:
            part, _, output = output.partition(b"sftp> " + mark)
            found.append([line for line in part.splitlines() if not _NOISE.match(line)])
        return found

    def _read(self, last: bytes, transfer: Transfer) -> bytes:
        """Return what is printed until it ends so; raises `SftpError` if the session ends."""
        sending, growing, most = transfer
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        output = bytearray()
        patience = self._patience + sending / _SLOWEST
        size, latest = 0, time.monotonic()
        while not output.endswith(last):
            wait = min(_LOOK, patience) if growing else patience
            if poll.poll(wait * 1000):
                data = os.read(descriptor, 2**16)
                if not data:
                    raise SftpError(bytes(output[-10_000:]).decode(errors="replace"))
                output += data
                if len(output) > _LONGEST_OUTPUT:
                    raise LimitError
                latest = time.monotonic()
                continue
            before, size = size, _size(growing)
            if growing and size > most:
                raise LimitError
            if size != before:
                latest = time.monotonic()
            elif time.monotonic() - latest >= patience:
                raise SftpError("timed out: the server did not answer in time")
        if _size(growing) > most:
            raise LimitError
        return bytes(output)

    def end(self, *, kill: bool = False) -> None:
        """End it; may be called again."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(OSError):
            process.stdin.close()
        if kill:
            process.kill()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def quote(path: str) -> str:
    """Return a path as a word of a command; inside quotes nothing is a pattern."""
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _size(path: Path | None) -> int:
    try:
        return path.stat().st_size if path else 0
    except FileNotFoundError:
        return 0
