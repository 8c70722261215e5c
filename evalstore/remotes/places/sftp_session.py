"""One `sftp` of OpenSSH that runs commands from its input, so that each command needs no login.

Between commands there are comments with a random number. `sftp` repeats each line of its input
before it runs it, so the comment in the output is the end of what a command has printed.
"""

from __future__ import annotations

import os
import re
import secrets
import select
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE = 60.0
"""Seconds without anything from a server."""
_SLOWEST = 16 * 2**10
"""Bytes a second; a slower upload times out, as nothing shows its progress."""
_LOOK = 0.2
"""Seconds after which the size of a growing file is looked at."""
_LONGEST_LINE = 2_000
"""Bytes of a command; `sftp` would take the rest for another command."""
_LONGEST_OUTPUT = 256 * 2**20
_AT_ONCE = 20
"""Commands that are written before their output is read: more would fill the pipe."""
_NOISE = re.compile(rb"(?:sftp> |Fetching |Uploading |Connected to |\s*\Z)")


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

    def run(
        self,
        commands: Sequence[str],
        *,
        sending: int = 0,
        growing: Path | None = None,
        most: int = 0,
    ) -> list[list[bytes]]:
        """Run commands, and return the lines that each has printed.

        `sending` is how many bytes they upload. `growing` is the file they download to, of at
        most `most` bytes. Raises `SftpError`, `LimitError` and `ValueError` for a command that is
        too long; after the first two the session has ended.
        """
        encoded = [f"-{command}\n".encode() for command in commands]
        if any(len(line) > _LONGEST_LINE or line.count(b"\n") > 1 for line in encoded):
            raise ValueError("a command is too long")
        outputs: list[list[bytes]] = []
        try:
            for start in range(0, len(encoded), _AT_ONCE):
                outputs += self._run(encoded[start : start + _AT_ONCE], sending, growing, most)
        except BaseException:
            self.end(kill=True)
            raise
        return outputs

    def _run(
        self, lines: Sequence[bytes], sending: int, growing: Path | None, most: int
    ) -> list[list[bytes]]:
        marks = [b"#" + secrets.token_hex(16).encode() + b"\n" for _ in lines]
        self._write(b"".join(part for pair in zip(lines, marks, strict=True) for part in pair))
        last = b"sftp> " + marks[-1]
        output = self._read(lambda data: data.endswith(last), sending, growing, most)
        found: list[list[bytes]] = []
        for mark in marks:
            part, _, output = output.partition(b"sftp> " + mark)
            found.append([line for line in part.splitlines() if not _NOISE.match(line)])
        return found

    def _write(self, data: bytes) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):  # it has ended, and what it has printed says why
            while data:
                data = data[self._process.stdin.write(data) :]

    def _read(
        self, is_whole: Callable[[bytearray], bool], sending: int, growing: Path | None, most: int
    ) -> bytes:
        """Return what is printed until it is whole; raises `SftpError` if it ends before."""
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        output = bytearray()
        patience = self._patience + sending / _SLOWEST
        size, last = 0, time.monotonic()
        while not is_whole(output):
            wait = min(_LOOK, patience) if growing else patience
            if poll.poll(wait * 1000):
                data = os.read(descriptor, 2**16)
                if not data:
                    raise SftpError(bytes(output[-10_000:]).decode(errors="replace"))
                output += data
                if len(output) > _LONGEST_OUTPUT:
                    raise LimitError
                last = time.monotonic()
                continue
            before, size = size, _size(growing)
            if growing and size > most:
                raise LimitError
            if size != before:
                last = time.monotonic()
            elif time.monotonic() - last >= patience:
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
    """Return a path as a word of a command; inside of quotes nothing is a pattern."""
    return '"' + path.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _size(path: Path | None) -> int:
    try:
        return path.stat().st_size if path else 0
    except FileNotFoundError:
        return 0
