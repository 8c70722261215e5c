"""A `.env` file of any kind and content is read, or is an error with its place, and at once."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from evalstore.core.errors import EvalstoreError
from evalstore.workspace.folder import LARGEST, parse_env_file, read_env_files
from tests.builders import tree
from tests.interfaces.cli.conftest import Evalstore

GOOD = "# keys\nexport A_KEY='one two'\n\nB_KEY=three # words\nC_KEY=\"a\\nb\"\nD_KEY=ä\n"
VALUES = {"A_KEY": "one two", "B_KEY": "three", "C_KEY": "a\nb", "D_KEY": "ä"}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_it_is_read_with_any_line_ends_and_mark(encoding: str, end: str) -> None:
    assert parse_env_file(GOOD.replace("\n", end).encode(encoding), ".env").values == VALUES


def test_a_line_that_says_nothing_is_passed_over() -> None:
    actual = parse_env_file(b"A_KEY=1\nwhat is this\n=x\nB_KEY\nC_KEY=2\n", ".env")
    assert actual.values == {"A_KEY": "1", "C_KEY": "2"}
    assert actual.unread == (2, 3)


WRONG = {
    "Latin-1": (b"A_KEY=1\nB_KEY=\xe4\n", ".env:2: is not UTF-8: byte 0xe4"),
    "UTF-16 without a mark": ("A_KEY=1\n".encode("utf-16-le"), ".env:1: holds a NUL character"),
    "a NUL": (b"A_KEY=1\nB_KEY=\0\n", ".env:2: holds a NUL character"),
    "UTF-16": ("A_KEY=1\n".encode("utf-16"), ".env:1: is not UTF-8: byte 0xff"),
    "many lines": (b"A_KEY=1\n" * 100_000, ".env: has more than 10,000 lines"),
    "many empty lines": (b"\n" * 900_000, ".env: has more than 10,000 lines"),
    "much": (b"x" * (LARGEST + 1), ".env: the file has 1.1 MiB; at most 1 MiB are read"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_what_cannot_be_read_is_an_error_with_its_place(folder: Path, kind: str) -> None:
    data, message = WRONG[kind]
    (folder / ".env").write_bytes(data)
    with pytest.raises(EvalstoreError) as raised:
        read_env_files(folder)
    assert str(raised.value) == message
    assert raised.value.hint


def outside(path: Path) -> None:
    (path.parent.parent / "other.env").write_text("A_KEY=1\n")
    path.symlink_to("../other.env")


def sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 3 * 2**30)


KINDS: dict[str, tuple[Callable[[Path], None], str]] = {
    "a pipe": (lambda path: os.mkfifo(path), "is a named pipe, not a regular file"),
    "a folder": (lambda path: path.mkdir(), "is a folder, not a regular file"),
    "a device": (lambda path: path.symlink_to("/dev/zero"), "is a device, not a regular file"),
    "a link in a circle": (lambda path: path.symlink_to(path.name), "cannot be read"),
    "a link to outside": (outside, "leads to '.*', which is outside the workspace"),
    "3 GiB": (sparse, "the file has 3,072.0 MiB"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [".env", ".env.local"])
def test_only_a_regular_file_of_the_workspace_is_read(folder: Path, kind: str, name: str) -> None:
    make, message = KINDS[kind]
    make(folder / name)
    with pytest.raises(EvalstoreError, match=f"^{name}: {message}"):
        read_env_files(folder)


def test_a_link_inside_of_the_workspace_is_followed(folder: Path) -> None:
    tree(folder, {"keys/mine": "A_KEY=1\n"})
    (folder / ".env").symlink_to("keys/mine")
    assert read_env_files(folder)[".env"].values == {"A_KEY": "1"}


@pytest.mark.parametrize(
    "text",
    [
        "A_KEY=1\n" * 9_999,
        "".join(f"A_{number}_KEY=1\n" for number in range(9_999)),
        "x\n" * 9_999,
        "A_KEY='" + "\\x" * 400_000,
        "'" * 1_000_000,
        "A_KEY=" + " " * 1_000_000,
        'A_KEY="' + "\\n" * 400_000 + '"',
    ],
    ids=["lines", "names", "no lines", "escapes", "quotes", "blanks", "newlines"],
)
def test_the_largest_file_takes_a_moment(text: str) -> None:
    started = time.process_time()
    parse_env_file(text.encode(), ".env")
    assert time.process_time() - started < 2


@pytest.mark.parametrize("command", ["run", "doctor"])
@pytest.mark.parametrize("kind", ["a pipe", "a folder"])
def test_a_command_says_so_and_ends(
    folder: Path,
    evalstore: Evalstore,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    kind: str,
) -> None:
    tree(
        folder,
        {
            "evalstore.yaml": "candidates: [one]\n",
            "models/one.yaml": "id: one\nprovider: scripted\nresponses: [{answer: Hi}]\n",
            "tests/one.md": "# 👤\n\nHello\n\n---\n\n```checks\n- contains: Hi\n```\n",
        },
    )
    KINDS[kind][0](folder / ".env")
    monkeypatch.chdir(folder)
    ran = evalstore(command)
    assert ran.exit_code == 2
    assert ", not a regular file" in ran.stdout + ran.stderr


@pytest.mark.opens_no_store
def test_settings_of_20_gib_are_an_error(folder: Path, evalstore: Evalstore) -> None:
    path = folder / "evalstore.yaml"
    path.touch()
    os.truncate(path, 20 * 2**30)
    ran = evalstore("-C", str(folder), "status")
    assert ran.exit_code == 2
    assert "evalstore.yaml: the file has 20,480.0 MiB; at most 10 MiB are read" in ran.stderr
