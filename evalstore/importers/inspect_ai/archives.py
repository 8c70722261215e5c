"""Reading of `.eval` archives: zip files with a header and one file per sample.

Nothing is unpacked to disk, and names in the archive name no file outside of it.
"""

from __future__ import annotations

import zlib
from importlib import import_module
from io import BytesIO
from lzma import LZMAError
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile, ZipFile, ZipInfo

from evalstore.errors import FileProblem
from evalstore.files.access import LARGEST_DOCUMENT, LARGEST_SOURCE, too_large
from evalstore.importers.coerce import as_mapping, parse_json

if TYPE_CHECKING:
    from collections.abc import Iterator

_ENTRY = b"PK\x01\x02"
"""Begins each entry of the list of files."""
_MOST_FILES = 200_000
_HEADERS = ("header.json", "_journal/start.json")
"""Files with the description of the evaluation; only the second is there before it ends."""
_ZSTANDARD = 93
_CONVERT = "write it as JSON with 'inspect log convert LOG --to json --output-dir DIR'"


class EvalArchive:
    """An archive in memory, read up to a total size."""

    def __init__(self, data: bytes) -> None:
        """Open an archive; raises `FileProblem` if it is damaged or has too many files."""
        self._data = data
        self._left = LARGEST_SOURCE
        if data.count(_ENTRY) > _MOST_FILES:
            raise FileProblem(f"the archive has more than {_MOST_FILES:,} files")
        try:
            self._zip = ZipFile(BytesIO(data))
        except (BadZipFile, ValueError, OSError, NotImplementedError) as error:
            raise FileProblem(f"not an archive of Inspect: {error}") from error

    def header(self) -> dict[str, Any]:
        """Return the description of the evaluation; raises `FileProblem`."""
        infos = (self._zip.NameToInfo.get(name) for name in _HEADERS)
        info = next((info for info in infos if info is not None), None)
        return {} if info is None else self._read_json(info)

    def samples(self) -> Iterator[tuple[str, dict[str, Any] | FileProblem]]:
        """Yield the name of each sample with its content, or the problem of its file."""
        for info in self._zip.infolist():
            if not (info.filename.startswith("samples/") and info.filename.endswith(".json")):
                continue
            try:
                yield info.filename, self._read_json(info)
            except FileProblem as problem:
                yield info.filename, problem

    def _read_json(self, info: ZipInfo) -> dict[str, Any]:
        content = self._read(info)
        try:
            return as_mapping(parse_json(content))
        except ValueError as error:
            raise FileProblem(f"not JSON: {error}") from error

    def _read(self, info: ZipInfo) -> bytes:
        largest = min(self._left, LARGEST_DOCUMENT)
        try:
            content = self._unpack(info, largest + 1)
        except (OSError, EOFError, ValueError, RuntimeError, BadZipFile) as error:
            raise FileProblem(f"cannot be read: {error}") from error
        except (zlib.error, LZMAError) as error:
            raise FileProblem(f"cannot be unpacked: {error}") from error
        self._left = max(self._left - len(content), 0)
        if len(content) > largest:
            raise too_large(len(content), largest)
        return content

    def _unpack(self, info: ZipInfo, most: int) -> bytes:
        if info.compress_type == _ZSTANDARD:
            return _unpack_zstandard(self._packed(info), most)
        try:
            with self._zip.open(info) as file:
                return file.read(most)
        except NotImplementedError as error:
            raise FileProblem(f"is packed in an unknown way: {error}", hint=_CONVERT) from error

    def _packed(self, info: ZipInfo) -> bytes:
        """Return the packed bytes of a file, behind its name and its extra field."""
        at = info.header_offset
        lengths = self._data[at + 26 : at + 30]
        start = at + 30 + sum(int.from_bytes(part, "little") for part in (lengths[:2], lengths[2:]))
        return self._data[start : start + info.compress_size]


def _unpack_zstandard(packed: bytes, most: int) -> bytes:
    """Return up to `most` bytes; raises `FileProblem` without the package that unpacks them."""
    try:
        zstandard = import_module("zstandard")
    except ImportError:
        raise FileProblem(
            "is packed with Zstandard, which the package 'zstandard' reads",
            hint=f"type 'pip install zstandard', or {_CONVERT}",
        ) from None
    try:
        with zstandard.ZstdDecompressor().stream_reader(packed) as reader:
            content: bytes = reader.read(most)
    except zstandard.ZstdError as error:
        raise FileProblem(f"cannot be unpacked: {error}") from error
    return content
