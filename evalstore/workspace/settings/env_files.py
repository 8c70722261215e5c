"""Reads the `.env` files of a workspace into values, never into the environment of a process.

Only regular files of the workspace up to a certain size are read, so that a command cannot
hang; their contents are never part of a message.
"""

from __future__ import annotations

import codecs
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path

from evalstore.core.errors import EvalstoreError

NAMES = (".env.local", ".env")
"""The files that are read; the first one that sets a variable takes precedence."""
LARGEST = 2**20
"""The largest size of a file, in bytes."""
MOST_LINES = 10_000
_SAVE = "save it as UTF-8"
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""Byte order marks and encodings; longer marks come first, as one is a prefix of another."""


@dataclass(frozen=True, slots=True)
class EnvFile:
    """The contents of one file."""

    values: dict[str, str] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    """The number of the line with each value."""
    unread: tuple[int, ...] = ()
    """The numbers of lines that are not of the form `NAME=value`."""


def read_env_files(root: Path) -> dict[str, EnvFile]:
    """Read the `.env` files of a workspace by name; raises `EvalstoreError` with the place."""
    files = {}
    for name in NAMES:
        data = _read_bytes(root, name)
        if data is not None:
            files[name] = parse_env_file(data, name)
    return files


def variables_of(root: Path) -> list[tuple[str, str]]:
    """Return the names and values of all `.env` files of a workspace."""
    return [item for file in read_env_files(root).values() for item in file.values.items()]


def mentions(root: Path, names: Sequence[str]) -> bool:
    """Return whether a file may set a variable whose name begins so; it may be in UTF-16, too.

    Raises `EvalstoreError` for a file that cannot be read.
    """
    files = (_read_bytes(root, name) or b"" for name in NAMES)
    return any(
        name.encode() in data.replace(b"\0", b"") for data in files for name in names if data
    )


def parse_env_file(data: bytes, name: str) -> EnvFile:
    """Parse the variables of a file; `name` is shown in errors. Raises `EvalstoreError`."""
    text = _decode(data, name)
    if text.count("\n") >= MOST_LINES:
        raise EvalstoreError(
            f"{name}: has more than {MOST_LINES:,} lines",
            hint="keep only keys and addresses of providers in it",
        )
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise EvalstoreError(f"{name}:{line}: holds a NUL character", hint=_SAVE)
    from dotenv.parser import parse_stream

    values: dict[str, str] = {}
    lines: dict[str, int] = {}
    unread: list[int] = []
    for binding in parse_stream(StringIO(text)):
        if binding.error:
            unread.append(binding.original.line)
        elif binding.key is not None and binding.value is not None:
            values[binding.key] = binding.value
            blank = len(binding.original.string) - len(binding.original.string.lstrip())
            before = binding.original.string[:blank].count("\n")
            lines[binding.key] = binding.original.line + before
    return EnvFile(values, lines, tuple(unread))


def _decode(data: bytes, name: str) -> str:
    encoding = next((known for mark, known in _MARKS if data.startswith(mark)), "utf-8")
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        label = encoding.removesuffix("-sig").upper()
        raise EvalstoreError(f"{name}:{line}: is not {label}", hint=_SAVE) from error


def _read_bytes(root: Path, name: str) -> bytes | None:
    """Read a regular file in the workspace; None when there is no file."""
    path = root / name
    try:
        # Without O_NONBLOCK opening a pipe would block.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(name, error) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            hint = f"write keys into a file '{name}', or remove this one"
            raise EvalstoreError(f"{name}: is not a regular file", hint=hint)
        if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root)):
            raise EvalstoreError(
                f"{name}: is a link to a file outside the workspace",
                hint="copy the file into the workspace, or set its variables in your environment",
            )
        if status.st_size > LARGEST:
            raise EvalstoreError(
                f"{name}: is too large: {status.st_size / 2**20:,.1f} MiB, "
                f"at most {LARGEST // 2**20} MiB are read",
                hint="keep only keys and addresses of providers in it",
            )
        with os.fdopen(os.dup(descriptor), "rb") as file:
            return file.read(LARGEST)
    except OSError as error:
        raise _unreadable(name, error) from error
    finally:
        os.close(descriptor)


def _unreadable(name: str, error: OSError) -> EvalstoreError:
    return EvalstoreError(f"{name}: cannot be read: {error.strerror}")
