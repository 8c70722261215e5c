"""Reads regular files up to a size, inside the folders of a workspace or an import.

A file is opened first and then examined by its descriptor, so it cannot be replaced between the
check and the reading. Opening never blocks: named pipes and devices are refused.

Media types are found by suffix from a table of our own, else from the bytes. The tables of the
machine are not used: they differ, and the media type is part of a file's identity.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO

from evalstore.core.errors import FileProblem

# Paths are texts here for speed: thousands of files are opened.
# ruff: noqa: PTH116


MIB = 2**20
LARGEST_TEXT = 10 * MIB
"""Bytes of the settings, and of a test, prompt, model or definition file."""
LARGEST_FILE = 100 * MIB
"""Bytes of a file that tests mention."""
LARGEST_DATASET = 2048 * MIB
"""Bytes of a data file, which is read row by row, packed and unpacked."""
LARGEST_DOCUMENT = 256 * MIB
"""Characters of a data file that is one JSON document, which is read into memory."""
LARGEST_SOURCE = 1024 * MIB
"""Bytes of a file of another system, packed and unpacked."""
LARGEST_CACHE = 256 * MIB
"""Bytes of a cache file of this program."""

FLAG = "--allow-outside"
_OPEN = os.O_RDONLY | sum(
    getattr(os, name, 0) for name in ("O_NONBLOCK", "O_CLOEXEC", "O_NOCTTY", "O_BINARY")
)
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class OutsideProblem(FileProblem):
    """A path is outside the folders that may be read."""


class Boundary:
    """The folders that may be read, and other places that the user has allowed.

    Paths are compared with links resolved. Hard links are not detected.
    """

    def __init__(
        self,
        roots: Iterable[str | Path],
        name: str,
        allowed: Callable[[], Iterable[str]] = tuple,
        *,
        allow_all: bool = False,
    ) -> None:
        """`name` is the name of the folders in messages; `allowed` is called on first use.

        With `allow_all` every place outside is allowed, and recorded in `added`.
        """
        self.name = name
        self.added: dict[str, None] = {}
        """Places outside that were not allowed before."""
        self._inside = _Places(map(os.path.realpath, roots))
        self._allowed: _Places | None = None
        self._load_allowed = allowed
        self._allow_all = allow_all

    def include(self, root: str | Path) -> None:
        """Allow one more folder or file."""
        self._inside.add(os.path.realpath(root))

    def contains(self, real: str) -> bool:
        """Return whether a real path may be read."""
        if self._inside.contain(real):
            return True
        if self._allowed is None:
            self._allowed = _Places(self._load_allowed())
        if self._allowed.contain(real):
            return True
        if self._allow_all:
            self._allowed.add(real)
            self.added[real] = None
        return self._allow_all

    def allows(self, name: str) -> bool:
        """Return whether a place that is not a path is allowed by exactly this name."""
        if self._allowed is None:
            self._allowed = _Places(self._load_allowed())
        if self._allow_all and not self._allowed.has(name):
            self._allowed.add(name)
            self.added[name] = None
        return self._allowed.has(name)

    def resolve(self, path: str | Path) -> str:
        """Return the real path; raises `OutsideProblem`, or `FileProblem` if it is not a path."""
        try:
            real = os.path.realpath(path)
        except (OSError, ValueError) as error:
            raise _unreadable(error) from error
        self._require(real)
        return real

    def open(self, path: str | Path, largest: int) -> BinaryIO:
        """Open a file; raises `FileProblem` unless it may be read and has at most `largest` bytes.

        More bytes can be read from it if the file grows meanwhile.
        """
        return os.fdopen(self._open(path, largest)[0], "rb")

    def read(self, path: str | Path, largest: int) -> bytes:
        """Read a file; raises like `open`, and for a file that has grown."""
        return _read(*self._open(path, largest), largest)

    def _open(self, path: str | Path, largest: int) -> tuple[int, int]:
        """Open a regular file; returns its descriptor and its size."""
        descriptor, status = _open(path, largest)
        try:
            self._require(_path_of(descriptor, path, status))
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor, status.st_size

    def _require(self, real: str) -> None:
        if not self.contains(real):
            raise OutsideProblem(
                f"leads to '{real}', which is outside the {self.name}",
                hint=f"copy it into the {self.name}, or allow it with '{FLAG}'",
            )


class _Places:
    """Folders and files by their real paths."""

    def __init__(self, places: Iterable[str]) -> None:
        self._exact: set[str] = set()
        self._below: tuple[str, ...] = ()
        for place in places:
            self.add(place)

    def add(self, real: str) -> None:
        """Add a file, or a folder with everything below it."""
        if real not in self._exact:
            self._exact.add(real)
            self._below += (real if real.endswith(os.sep) else real + os.sep,)

    def has(self, name: str) -> bool:
        """Return whether this is one of the paths."""
        return name in self._exact

    def contain(self, real: str) -> bool:
        """Return whether a path is one of these paths or below one."""
        return real.startswith(self._below) or real in self._exact


def open_file(path: str | Path, largest: int) -> BinaryIO:
    """Open a regular file wherever it is; raises `FileProblem` if it has more than `largest` bytes.

    This is for files that the user names.
    """
    return os.fdopen(_open(path, largest)[0], "rb")


def read_file(path: str | Path, largest: int) -> bytes:
    """Read a regular file wherever it is; raises like `open_file`."""
    descriptor, status = _open(path, largest)
    return _read(descriptor, status.st_size, largest)


def too_large(size: int, largest: int) -> FileProblem:
    """Return the problem of a file with so many bytes."""
    return FileProblem(
        f"the file has {-(-size * 10 // MIB) / 10:,} MiB; "
        f"at most {largest / MIB:,.0f} MiB are read",
        hint="split it, or take out what is not needed",
    )


def _open(path: str | Path, largest: int) -> tuple[int, os.stat_result]:
    try:
        _require_regular(os.stat(path))  # opening a device can have effects
        descriptor = os.open(path, _OPEN)
    except (OSError, ValueError) as error:
        raise _unreadable(error) from error
    try:
        status = os.fstat(descriptor)
        _require_regular(status)
        if status.st_size > largest:
            raise too_large(status.st_size, largest)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, status


def _require_regular(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        kind = next((words for is_kind, words in _KINDS if is_kind(status.st_mode)), "special")
        raise FileProblem(f"is {kind}, not a regular file")


def _path_of(descriptor: int, path: str | Path, status: os.stat_result) -> str:
    """Return the real path of an open file."""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")  # noqa: PTH115
    except OSError:  # not Linux
        real = os.path.realpath(path)
        try:
            same = os.path.samestat(os.stat(real), status)
        except OSError:
            same = False
        if not same:
            raise FileProblem("was replaced while it was opened") from None
        return real


def _read(descriptor: int, size: int, largest: int) -> bytes:
    """Read an open file of about this size, and close it."""
    parts: list[bytes] = []
    length, chunk = 0, size + 1
    try:
        while part := os.read(descriptor, min(chunk, largest + 1 - length)):
            parts.append(part)
            length += len(part)
            if length > largest:
                raise too_large(length, largest)
            chunk = max(size + 1 - length, 1 << 16)
    except OSError as error:
        raise _unreadable(error) from error
    finally:
        os.close(descriptor)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _unreadable(error: OSError | ValueError) -> FileProblem:
    return FileProblem(f"cannot be read: {getattr(error, 'strerror', None) or error}")


def normalise(data: bytes) -> str:
    """Decode the text of a file: UTF-8, no byte order mark, LF as the only line end."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FileProblem(
            f"is not UTF-8: byte 0x{data[error.start]:02x}", line, hint="save the file as UTF-8"
        ) from error
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def normal_path(folder: Path, name: Path | str) -> Path:
    """Return a path in a folder without `..`; as it is where a link makes that another place."""
    path = folder / name
    shorter = Path(os.path.normpath(path))
    return shorter if shorter.parent.resolve() == path.parent.resolve() else path


ADDRESS = "image/x-address"
"""A picture given by its URL, which is the content. It is not downloaded by evalstore."""

_TEXT = {
    "md": "text/markdown",
    "markdown": "text/markdown",
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "html": "text/html",
    "htm": "text/html",
    "json": "text/json",
    "jsonl": "text/jsonl",
    "yaml": "text/yaml",
    "yml": "text/yaml",
    "xml": "text/xml",
    "toml": "text/toml",
    "css": "text/css",
}
_PLAIN = (
    "txt text log rst tex ini cfg conf env py pyi js mjs ts tsx jsx c h cc cpp hpp cs java kt go "
    "rs rb php pl sh bash zsh ps1 bat sql r swift scala lua dart vue svelte srt vtt diff patch tf "
    "gradle cmake ipynb svg"
)
_BINARY = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "gif": "image/gif",
    "webp": "image/webp",
    "bmp": "image/bmp",
    "tif": "image/tiff",
    "tiff": "image/tiff",
    "heic": "image/heic",
    "avif": "image/avif",
    "pdf": "application/pdf",
    "mp3": "audio/mpeg",
    "wav": "audio/wav",
    "ogg": "audio/ogg",
    "flac": "audio/flac",
    "m4a": "audio/mp4",
    "aac": "audio/aac",
    "opus": "audio/opus",
    "mp4": "video/mp4",
    "webm": "video/webm",
    "mov": "video/quicktime",
    "zip": "application/zip",
    "doc": "application/msword",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xls": "application/vnd.ms-excel",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "ppt": "application/vnd.ms-powerpoint",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "odt": "application/vnd.oasis.opendocument.text",
    "epub": "application/epub+zip",
    "rtf": "application/rtf",
}
BY_SUFFIX = {**dict.fromkeys(_PLAIN.split(), "text/plain"), **_TEXT, **_BINARY}


def media_type(path: str, data: bytes) -> str:
    """Return the media type of a file: `text/…` for everything that is shown as text.

    Raises `FileProblem` when it cannot be determined, and for a text that is not UTF-8.
    """
    suffix = path.rpartition("/")[2].rpartition(".")
    known = BY_SUFFIX.get(suffix[2].lower()) if suffix[1] else None
    if known and not known.startswith("text/"):
        return known
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        if known:
            raise FileProblem(
                f"'{path}' is shown as text, but is not UTF-8", hint="save it as UTF-8"
            ) from error
        return _sniff(path, data)
    if known is None and b"\0" in data:
        return _sniff(path, data)
    if known is None and data.startswith(b"%PDF-"):  # may be ASCII throughout
        return "application/pdf"
    return known or "text/plain"


def _sniff(path: str, data: bytes) -> str:
    import filetype

    kind = filetype.guess(data)
    if kind is None:
        raise FileProblem(
            f"the media type of '{path}' is not known",
            hint="give the file a suffix such as .png, .pdf or .txt",
        )
    return str(kind.mime)
