"""A crafted repository costs little time and memory to read."""

from __future__ import annotations

import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from tests.workspace.git.test_status import git

pytestmark = pytest.mark.extended

ROOT = Path(__file__).parents[3]
COMMIT = "c0" * 20
READ = """
import resource, sys
from pathlib import Path
from evalstore.workspace.git import read_state

MIB = 2**20
resource.setrlimit(resource.RLIMIT_CPU, (5, 5))
resource.setrlimit(resource.RLIMIT_AS, (640 * MIB, 640 * MIB))
print(read_state(Path(sys.argv[1])))
"""


def short_refs(folder: Path) -> None:
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    lines = b"ab\n" * 10_000_000
    (folder / "packed-refs").write_bytes(lines + f"{COMMIT} refs/heads/main\n".encode())


def deltas(folder: Path) -> None:
    """An object whose delta is made on a delta, and so on, each of them 4 MiB of zeros."""
    ids = [bytes.fromhex(COMMIT), *(number.to_bytes(20, "big") for number in range(1, 150))]
    delta = zlib.compress(b"\0" * (4 * 2**20 - 1), 9)
    write_pack(folder, {id: b"\x70" + base + delta for id, base in pairwise(ids)})


def large_object(folder: Path) -> None:
    write_pack(folder, {bytes.fromhex(COMMIT): b"\x10" + zlib.compress(b"\0" * 2**28, 1)})


def large_loose_object(folder: Path) -> None:
    path = folder / "objects" / COMMIT[:2] / COMMIT[2:]
    path.parent.mkdir(parents=True)
    path.write_bytes(zlib.compress(b"commit 9\0" + b"\0" * 2**28, 1))


def write_pack(folder: Path, objects: dict[bytes, bytes]) -> None:
    """A pack of objects as they are stored, and its index."""
    ids = sorted(objects)
    pack, offsets = b"PACK", []
    for id in ids:
        offsets.append(len(pack))
        pack += objects[id]
    counts = [sum(id[0] <= first for id in ids) for first in range(256)]
    index = b"\xfftOc\0\0\0\2" + struct.pack(">256I", *counts) + b"".join(ids)
    index += bytes(4 * len(ids)) + struct.pack(f">{len(ids)}I", *offsets)
    place = folder / "objects/pack"
    place.mkdir(parents=True)
    (place / "pack-1.pack").write_bytes(pack)
    (place / "pack-1.idx").write_bytes(index)


@pytest.mark.parametrize(
    "craft",
    [
        short_refs,
        deltas,
        large_object,
        large_loose_object,
    ],
)
def test_it_is_read_within_limits(folder: Path, craft: Callable[[Path], None]) -> None:
    repository = folder / ".git"
    repository.mkdir()
    (repository / "HEAD").write_text(f"{COMMIT}\n")
    craft(repository)
    # No object can be read, so it is not known whether files differ.
    assert read(folder) == f"State(commit='{COMMIT}', dirty=None)\n"


def test_a_configuration_of_blank_lines(folder: Path) -> None:
    (folder / "a.md").write_text("a\n")
    for arguments in (("init", "-q"), ("add", "a.md"), ("commit", "-qm", "first")):
        git(folder, *arguments)
    (folder / ".git/config").write_bytes(b"\n" * (2**20 - 1))
    assert read(folder).endswith("dirty=False)\n")


def read(folder: Path) -> str:
    """What a program with limits reads of a checkout."""
    command = [sys.executable, "-c", READ, str(folder)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout
