"""Checkouts of one workspace that share a remote: real processes, a real server that counts."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from evalstore.exchange.sync.fsck import check_store
from evalstore.remotes.layout import FolderFiles
from tests import endpoint
from tests.builders import tree
from tests.forked_programs import Starter
from tests.remotes import stores

CITIES = ("Oslo", "Rome", "Bonn", "Riga")
CHECKOUTS = 8


@pytest.fixture
def server() -> Iterator[endpoint.Endpoint]:
    """A model that answers, and a judge that is content; it counts what it is asked."""
    with endpoint.running() as running:
        running.reply = lambda body: (
            '{"pass": true, "feedback": ""}' if body["model"] == "judge" else "It is."
        )
        yield running


def _files(server: endpoint.Endpoint, cities: tuple[str, ...]) -> dict[str, str]:
    return {
        "evalstore.yaml": json.dumps(
            {
                "candidates": ["first"],
                "evaluators": ["judge"],
                "remotes": {"origin": "../team"},
            }
        ),
        "providers/loopback.yaml": json.dumps(
            {"code": "loopback", "type": "openai-compatible", "baseURL": f"{server.url}/v1"}
        ),
        "models/first.yaml": "id: first\nprovider: loopback\n",
        "models/judge.yaml": "id: judge\nprovider: loopback\n",
        "tests/cities.md": "---\nreplacements:\n"
        + "".join(f"  - {{city: {city}}}\n" for city in cities)
        + "---\n# 👤\n\nIs {{city}} large?\n\n---\n\nExpect an answer about {{city}}.\n",
    }


def _run(start: Starter, folder: Path, *arguments: str) -> str:
    code, out, err = start(*arguments, "--allow-outside", folder=folder).finish()
    assert code == 0, (out, err)
    return out


def test_two_clones_and_a_job_of_ci_pay_once(
    start: Starter, server: endpoint.Endpoint, tmp_path: Path
) -> None:
    ann = tree(tmp_path / "ann", _files(server, CITIES[:2]))
    bob, job = tmp_path / "bob", tmp_path / "job"
    _run(start, ann, "run", "-q")
    _run(start, ann, "push")
    tree(bob, _files(server, CITIES[:3]))
    _run(start, bob, "pull")
    assert "1 new answer, 2 reused" in _run(start, bob, "run", "-q")
    _run(start, bob, "push")
    tree(job, _files(server, CITIES))
    out = _run(start, job, "run", "--remote", "origin")
    assert "1 new answer, 3 reused" in out
    _run(start, ann, "pull")
    tree(ann, _files(server, CITIES))
    assert "0 new answers, 4 reused, 0 new verdicts" in _run(start, ann, "run", "-q")
    asked = Counter(json.dumps(received.body, sort_keys=True) for received in server.received)
    assert len(asked) == 2 * len(CITIES)
    assert set(asked.values()) == {1}  # each answer and each judgement was paid once
    assert len(_run(start, ann, "log", "--oneline").splitlines()) == 4


@pytest.mark.parametrize("count", [2, CHECKOUTS])
def test_processes_that_push_at_once_lose_nothing(
    start: Starter, server: endpoint.Endpoint, tmp_path: Path, count: int
) -> None:
    first = tree(tmp_path / "0", _files(server, CITIES[:1]))
    _run(start, first, "run", "-q")
    checkouts = [first]
    for number in range(1, count):
        folder = tmp_path / str(number)
        shutil.copytree(first, folder)
        tree(folder, _files(server, (f"City{number}", *CITIES[:1])))
        _run(start, folder, "run", "-q")
        checkouts.append(folder)
    started = [start("push", "--allow-outside", folder=folder) for folder in checkouts]
    for program in started:
        code, _, err = program.finish()
        assert code == 0, err
    expected: dict[tuple[str, bytes], object] = {}
    for folder in checkouts:
        with stores.opened(folder / ".evalstore/store.db") as store:
            expected |= stores.rows(store)
    with stores.opened(tmp_path / "all.db") as store:
        stores.pull(store, FolderFiles(tmp_path / "team"))
        assert stores.rows(store) == expected
        assert check_store(store)[1] == []
