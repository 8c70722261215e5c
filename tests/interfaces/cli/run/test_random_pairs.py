"""What `diff` prints of random histories from files is what it prints from memory."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from random import Random

import pytest

from evalstore.interfaces.cli import output
from evalstore.interfaces.cli.main import main
from evalstore.store import Store
from evalstore.store.location import read_address
from tests.interfaces.cli.long_files import keep_in_files, treat_as_long
from tests.interfaces.cli.random_histories import RandomHistory
from tests.postgresql_server import PostgreSQLServer

_FORMS = (
    *((), ("-v",), ("--answers", "-v"), ("--flips",), ("--stat",), ("--name-only",)),
    *(("-o", name) for name in ("json", "jsonl", "csv", "md")),
    *(("--json", "--answers"), ("-m", "one"), ("--exit-code", "-v", "--", "tests/a.md")),
)
_WITHIN = ("--model", "one", "--vs", "two")
_RUNS = 3

NewStore = Callable[[], None]
Printed = tuple[int, str, str]


def _print(capsys: pytest.CaptureFixture[str], *words: str) -> Printed:
    output._warned.clear()
    capsys.readouterr()
    code = main(words)
    printed = capsys.readouterr()
    return code, re.sub(r"just now|\d+ \w+ ago", "<when>", printed.out), printed.err


def _compare(
    root: Path,
    seed: int,
    most: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> list[str]:
    """Make a history, and compare so many of its comparisons; returns what was printed of them."""
    random = Random(seed)
    history = RandomHistory(root, random)
    history.write()
    monkeypatch.chdir(root)
    for _ in range(_RUNS):
        _print(capsys, "run", "--yes", "--fail-on", "none", *history.choose_run())
        if random.random() < 0.6:
            history.answer_otherwise()
        for _ in range(random.randrange(4)):
            history.edit()
        history.write()
    names = ["@work", *(f"@~{number}" for number in range(_RUNS))]
    calls = [
        *(("diff", *pair, *form) for pair in permutations(names, 2) for form in _FORMS),
        *(("diff", name, *_WITHIN, *form) for name in names[1:] for form in _FORMS[:6]),
    ]
    chosen = calls if len(calls) <= most else random.sample(calls, most)
    in_memory = [_print(capsys, *call) for call in chosen]
    keep_in_files(monkeypatch)
    in_files = [_print(capsys, *call) for call in chosen]
    for call, expected, actual in zip(chosen, in_memory, in_files, strict=True):
        assert actual == expected, f"seed {seed}: {' '.join(call)}"
    return [out for _, out, _ in in_memory]


@pytest.fixture
def new_store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> NewStore:
    """Return what makes the next store: a file in the workspace, or one in PostgreSQL."""
    if request.param == "sqlite":
        return lambda: None
    server: PostgreSQLServer = request.getfixturevalue("postgresql_server")
    schemas: list[str] = []

    def make() -> None:
        # With the tables of a hundred stores in the catalogue each command takes longer to begin.
        while schemas:
            server.drop_schema(schemas.pop())
        address = read_address(server.url())
        schemas.append(address.schema)
        Store.open(address, create=True).close()
        monkeypatch.setenv("EVALSTORE_STORE", str(address))

    return make


# What a database changes is read alike in all histories, and there each takes twice as long.
@pytest.mark.extended
@pytest.mark.parametrize(
    ("new_store", "seeds", "most"),
    [
        pytest.param("sqlite", range(4), 25, id="some-sqlite"),
        pytest.param("postgresql", range(1, 3), 25, id="some-postgresql"),
        pytest.param("sqlite", range(100, 250), 60, id="many-sqlite", marks=pytest.mark.slow),
        pytest.param(
            "postgresql", range(100, 150), 60, id="many-postgresql", marks=pytest.mark.slow
        ),
    ],
    indirect=["new_store"],
)
def test_comparisons_of_random_histories_are_printed_from_files_as_from_memory(
    seeds: range,
    most: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    new_store: NewStore,
) -> None:
    printed: list[str] = []
    for seed in seeds:
        new_store()
        with monkeypatch.context() as patched:
            if seed % 2:
                treat_as_long(patched)
            printed += _compare(tmp_path / str(seed), seed, most, patched, capsys)
    for word in ("Broke (", "Fixed (", "Changed (", "New (", "Gone ("):
        assert any(word in text for text in printed), word
