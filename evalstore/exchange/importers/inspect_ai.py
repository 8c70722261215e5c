"""Import of logs of Inspect, `.eval` archives or JSON: answers that are judged without a call."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from importlib import import_module
from io import BytesIO
from lzma import LZMAError
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile, ZipInfo

from evalstore.core.errors import FileProblem
from evalstore.core.values import Json
from evalstore.exchange.importers.base import (
    CountedReasons,
    Imported,
    ImportOptions,
    NotTakenError,
    SkippedItem,
    as_list,
    as_mapping,
    parse_json,
    read_source,
    reason_of,
    require,
)
from evalstore.exchange.importers.json_lines import find_sources, read_documents
from evalstore.exchange.importers.recorded_messages import (
    RecordedConversation,
    finite,
    read_answer,
    read_conversation,
    token_counts,
    write_conversations,
)
from evalstore.files.access import LARGEST_DOCUMENT, LARGEST_SOURCE, too_large

_ARCHIVE = b"PK\x03\x04"
_SUFFIXES = (".eval", ".json", ".json.gz")
_TOKENS = {"input_tokens": ("input_tokens",), "output_tokens": ("output_tokens",)}


LogSample = tuple[dict[str, Any], dict[str, Any]]
"""The description of an evaluation, and a sample."""


def read(paths: list[Path], options: ImportOptions) -> Imported:
    """Import the samples of logs, one test per model."""
    imported = Imported()
    conversations: list[RecordedConversation] = []
    for path in find_sources(paths, _SUFFIXES):
        conversations += _read_file(path, imported)
    write_conversations(conversations, imported)
    imported.require_any(
        "the sources contain no Inspect samples", "name a log of Inspect ('.eval' or '.json')"
    )
    return imported


def _read_file(path: Path, imported: Imported) -> Iterator[RecordedConversation]:
    skipped = CountedReasons(str(path))
    for evaluation, sample in _read_samples(path, imported.left):
        try:
            yield _read_sample(evaluation, sample)
        except NotTakenError as problem:
            skipped.add(str(problem), f"sample {_id_of(sample)!r}")
    imported.left += skipped.items()


def _read_samples(path: Path, left: list[SkippedItem]) -> Iterator[LogSample]:
    try:
        data = read_source(path)
        if data.startswith(_ARCHIVE):
            archive = EvalArchive(data)
            evaluation = as_mapping(archive.header().get("eval"))
            for name, sample in archive.samples():
                if isinstance(sample, FileProblem):
                    left.append(_unread(path, sample, f"'{name[:100]}' "))
                else:
                    yield evaluation, sample
            return
    except FileProblem as problem:
        left.append(_unread(path, problem))
        return
    for _, document in read_documents(path, left):
        log = as_mapping(document)
        for sample in as_list(log.get("samples")):
            yield as_mapping(log.get("eval")), as_mapping(sample)


def _unread(path: Path, problem: FileProblem, subject: str = "") -> SkippedItem:
    hint = f": {problem.hint}" if problem.hint else ""
    return SkippedItem(str(path), f"{subject}{reason_of(problem)}{hint}")


def _read_sample(evaluation: dict[str, Any], sample: dict[str, Any]) -> RecordedConversation:
    """Return the conversation of a sample; raises `NotTakenError`."""
    require(not sample.get("error"), "the sample ended with an error")
    messages, answer = _messages_of(sample)
    attachments = as_mapping(sample.get("attachments"))
    output, epoch = as_mapping(sample.get("output")), sample.get("epoch")
    choice = as_mapping(next(iter(as_list(output.get("choices"))), None))
    model, task = evaluation.get("model") or output.get("model"), evaluation.get("task")
    target = sample.get("target")
    prefix = f"{task}-" if isinstance(task, str) else ""
    suffix = f"-epoch-{epoch}" if isinstance(epoch, int) and epoch > 1 else ""
    return RecordedConversation(
        f"{prefix}{_id_of(sample)}{suffix}",
        read_conversation(messages, attachments),
        read_answer(answer, attachments),
        model if isinstance(model, str) else "",
        ideal=tuple(
            text
            for text in (target if isinstance(target, list) else [target])
            if isinstance(text, str) and text.strip()
        ),
        details={
            "task": task if isinstance(task, str) else None,
            "scores": {
                name: value
                for name, score in as_mapping(sample.get("scores")).items()
                if (value := as_mapping(score).get("value")) is not None
            },
            "usage": token_counts(as_mapping(output.get("usage")), _TOKENS),
            "latency": finite(output.get("time")),
            "finish_reason": reason
            if isinstance(reason := choice.get("stop_reason"), str)
            else None,
        },
    )


def _id_of(sample: dict[str, Any]) -> str:
    id = sample.get("id")
    return str(id)[:100] if isinstance(id, str | int) else "sample"


def _messages_of(sample: dict[str, Any]) -> tuple[list[Json], Json]:
    """Return the messages before the last answer, and that answer; raises `NotTakenError`."""
    messages = as_list(sample.get("messages"))
    numbers = [
        number
        for number, message in enumerate(messages)
        if as_mapping(message).get("role") == "assistant"
    ]
    choices = as_list(as_mapping(sample.get("output")).get("choices"))
    answer = as_mapping(next(iter(choices), None)).get("message")
    if answer is None and numbers:
        answer = messages[numbers[-1]]
    require(answer is not None, "the sample has no answer")
    if messages:
        return messages[: numbers[-1]] if numbers else messages, answer
    asked = sample.get("input")
    is_text = isinstance(asked, str)
    return [{"role": "user", "content": asked}] if is_text else as_list(asked), answer


# --- reading of `.eval` archives: zip files with a header and one file per sample


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
        try:
            return as_mapping(parse_json(content))
        except ValueError as error:
            raise FileProblem(f"not JSON: {error}") from error

    def _unpack(self, info: ZipInfo, most: int) -> bytes:
        if info.compress_type == _ZSTANDARD:
            return _unpack_zstandard(self._packed(info), most)
        try:
            with self._zip.open(info) as file:
                return file.read(most)
        except NotImplementedError as error:
            raise FileProblem(f"has an unknown compression: {error}", hint=_CONVERT) from error

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
            "is compressed with Zstandard and needs the package 'zstandard'",
            hint=f"type 'pip install zstandard', or {_CONVERT}",
        ) from None
    try:
        with zstandard.ZstdDecompressor().stream_reader(packed) as reader:
            content: bytes = reader.read(most)
    except zstandard.ZstdError as error:
        raise FileProblem(f"cannot be unpacked: {error}") from error
    return content
