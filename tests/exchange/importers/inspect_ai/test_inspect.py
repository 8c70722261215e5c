"""Logs of Inspect, as conversations with their answers."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from evalstore.core.errors import EvalstoreError, FileProblem
from evalstore.exchange.importers import inspect_ai as reader
from tests.exchange.importers.importing import Made, imported

FILE = "tests/mockllm-model.md"
ASKED = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Capital of France?", "source": "input"},
]
ANSWER = {"role": "assistant", "content": "Paris", "source": "generate", "model": "mockllm/model"}
SAMPLE: dict[str, Any] = {
    "id": 1,
    "epoch": 1,
    "input": "Capital of France?",
    "target": "Paris",
    "messages": [*ASKED, ANSWER],
    "output": {
        "model": "mockllm/model",
        "choices": [{"message": ANSWER, "stop_reason": "stop"}],
        "usage": {"input_tokens": 2, "output_tokens": 5, "total_tokens": 7},
        "time": 0.5,
    },
    "scores": {"match": {"value": "C", "answer": "Paris"}},
}
EVALUATION = {"eval_id": "x", "task": "capitals", "model": "mockllm/model"}


def log(*samples: Any) -> str:
    """A log in JSON."""
    return json.dumps({"version": 2, "eval": EVALUATION, "samples": list(samples)}, indent=1)


def archive(
    *samples: Any, compression: int = zipfile.ZIP_DEFLATED, header: str = "header.json"
) -> bytes:
    """A log as an archive."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", compression) as file:
        file.writestr(header, json.dumps({"version": 2, "eval": EVALUATION}))
        for number, sample in enumerate(samples, 1):
            file.writestr(f"samples/{number}_epoch_1.json", json.dumps(sample))
        file.writestr("summaries.json", "[]")
    return packed.getvalue()


def made_of(path: Path, *samples: Any) -> Made:
    """What is made of samples in JSON."""
    return imported(path, "inspect", {"l.json": log(*samples)})


@pytest.mark.parametrize(
    "source",
    [
        {"l.json": log(SAMPLE)},
        {"l.eval": archive(SAMPLE)},
        {"l.eval": archive(SAMPLE, header="_journal/start.json")},
    ],
    ids=["JSON", "archive", "archive of an evaluation that did not end"],
)
def test_a_sample_becomes_a_recorded_answer(tmp_path: Path, source: dict[str, Any]) -> None:
    made = imported(tmp_path, "inspect", source)
    assert made.messages(FILE) == [[("system", "Be brief."), ("user", "Capital of France?")]]
    assert made.recorded(FILE) == ["Paris"]
    assert made.instructions(FILE) == ["The answer must agree with this:\n\nParis"]
    row = json.loads(made.text("tests/mockllm-model.jsonl"))
    assert (row["id"], row["recorded"]) == (
        "capitals-1",
        {
            "model": "mockllm/model",
            "task": "capitals",
            "scores": {"match": "C"},
            "usage": {"input_tokens": 2, "output_tokens": 5},
            "latency": 0.5,
            "finish_reason": "stop",
        },
    )


def test_epochs_are_rows_with_names_of_their_own(tmp_path: Path) -> None:
    made = made_of(tmp_path, SAMPLE, {**SAMPLE, "epoch": 2})
    rows = [case.row for case in made.read().files[FILE].cases]
    assert rows == ["id=capitals-1", "id=capitals-1-epoch-2"]


def test_attachments_stand_in_the_texts_that_name_them(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "attachment://k"}, ANSWER]
    sample = {**SAMPLE, "messages": messages, "attachments": {"k": "A long question?"}}
    assert made_of(tmp_path, sample).messages(FILE) == [[("user", "A long question?")]]


def test_a_picture_may_be_an_attachment(tmp_path: Path) -> None:
    picture = {"type": "image", "image": "attachment://k", "detail": "auto"}
    content = [{"type": "text", "text": "Which city?"}, picture]
    sample = {
        **SAMPLE,
        "messages": [{"role": "user", "content": content}, ANSWER],
        "attachments": {"k": "data:image/jpeg;base64,/9j/4A=="},
    }
    made = made_of(tmp_path, sample)
    (((text, path),),) = made.shown("tests/mockllm-model-pictures.md")
    assert (text, path and path.endswith(".jpg")) == ("Which city?", True)
    assert made.imported.files[f"tests/{path}"] == b"\xff\xd8\xff\xe0"


def test_an_agent_is_judged_by_its_last_answer(tmp_path: Path) -> None:
    call = {**ANSWER, "content": "", "tool_calls": [{"function": "add", "arguments": {"x": 1}}]}
    result = {"role": "tool", "content": "2", "function": "add"}
    made = made_of(tmp_path, {**SAMPLE, "messages": [*ASKED, call, result, ANSWER]})
    assert made.messages(FILE)[0][2:] == [
        ("assistant", '[calls add({"x": 1})]'),
        ("user", "[result of add] 2"),
    ]
    assert made.recorded(FILE) == ["Paris"]


def test_a_sample_without_messages_has_its_input(tmp_path: Path) -> None:
    made = made_of(tmp_path, {**SAMPLE, "messages": [], "target": ""})
    assert made.messages(FILE) == [[("user", "Capital of France?")]]
    assert made.instructions(FILE) == [
        "The answer must answer the last message correctly and completely."
    ]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"error": {"message": "x"}}, "the sample ended with an error"),
        ({"output": {"choices": []}, "messages": ASKED}, "the sample has no answer"),
    ],
)
def test_a_sample_without_an_answer_is_reported(
    tmp_path: Path, change: dict[str, Any], reason: str
) -> None:
    made = made_of(tmp_path, {**SAMPLE, **change})
    assert made.left == [("l.json", None, f"{reason} (sample '1')")]


def test_a_file_without_samples_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EvalstoreError, match="no Inspect samples"):
        made_of(tmp_path)


# --- archives that are damaged or meant to do harm


def test_a_bomb_is_read_up_to_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "LARGEST_DOCUMENT", 1 << 20)
    bomb = {**SAMPLE, "input": "x" * (4 << 20)}
    made = imported(tmp_path, "inspect", {"l.eval": archive(bomb, SAMPLE)})
    assert made.recorded(FILE) == ["Paris"]
    ((_, _, reason),) = made.left
    assert reason.startswith("'samples/1_epoch_1.json' the file has 1.1 MiB; at most 1 MiB")


def test_many_small_bombs_are_read_up_to_the_limit_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "LARGEST_SOURCE", 1 << 20)
    samples = [{**SAMPLE, "id": number, "more": "x" * 400_000} for number in range(5)]
    made = imported(tmp_path, "inspect", {"l.eval": archive(*samples)})
    assert (len(made.recorded(FILE)), len(made.left)) == (2, 3)


def test_an_archive_with_very_many_files_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "_MOST_FILES", 3)
    made = imported(tmp_path, "inspect", {"l.eval": archive(SAMPLE, SAMPLE)})
    assert made.left == [("l.eval", None, "the archive has more than 3 files")]


def test_names_in_an_archive_lead_nowhere(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        escaping = {**SAMPLE, "id": "../../../x", "output": {**SAMPLE["output"], "model": "../m"}}
        file.writestr("samples/../../../x.json", json.dumps(escaping))
    made = imported(tmp_path, "inspect", {"l.eval": packed.getvalue()})
    assert sorted(made.imported.files) == ["tests/m.jsonl", "tests/m.md"]
    assert json.loads(made.text("tests/m.jsonl"))["id"] == "x"


def test_a_deep_sample_is_reported(tmp_path: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr("samples/1.json", "[" * 100_000)
    made = imported(tmp_path, "inspect", {"l.eval": packed.getvalue()})
    assert made.left[0][2] == "'samples/1.json' not JSON: it is nested too deeply"


def damaged() -> bytes:
    """An archive whose samples do not have the checksum that it says."""
    content = bytearray(archive(SAMPLE, compression=zipfile.ZIP_STORED))
    content[content.index(b"Be brief.")] ^= 1
    return bytes(content)


def packed_with(method: int) -> bytes:
    """An archive whose files say that they are packed with another method."""
    content = bytearray(archive(SAMPLE))
    for mark, offset in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        at = content.find(mark)
        while at >= 0:
            content[at + offset : at + offset + 2] = method.to_bytes(2, "little")
            at = content.find(mark, at + 4)
    return bytes(content)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"PK\x03\x04nothing", "not an archive of Inspect: File is not a zip file"),
        (damaged(), "'samples/1_epoch_1.json' cannot be read: Bad CRC-32"),
        (archive("x" * 200 + "\ud800")[:-30], "not an archive of Inspect: "),
        (packed_with(97), "has an unknown compression: "),
    ],
    ids=["no archive", "checksum", "cut off", "method"],
)
def test_a_damaged_archive_is_reported(tmp_path: Path, content: bytes, reason: str) -> None:
    made = imported(tmp_path, "inspect", {"l.eval": content})
    assert made.left[0][2].startswith(reason)
    assert made.imported.files == {}


def test_the_package_that_unpacks_newer_archives_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(name)

    monkeypatch.setattr(reader, "import_module", missing)
    made = imported(tmp_path, "inspect", {"l.eval": packed_with(93)})
    assert made.left == [
        (
            "l.eval",
            None,
            "is compressed with Zstandard and needs the package 'zstandard': type "
            "'pip install zstandard', or write it as JSON with 'inspect log convert LOG --to json "
            "--output-dir DIR'",
        )
    ]


def test_newer_archives_are_unpacked_up_to_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    zstandard = pytest.importorskip("zstandard")
    monkeypatch.setattr(reader, "LARGEST_DOCUMENT", 1 << 20)
    packed = zstandard.ZstdCompressor().compress(b" " * (4 << 20))
    assert len(reader._unpack_zstandard(packed, 100)) == 100
    with pytest.raises(FileProblem, match="cannot be unpacked"):
        reader._unpack_zstandard(b"nothing", 100)
