"""The gate on regressions says the same on a machine that begins with an empty store."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.builders import tree
from tests.interfaces.cli.conftest import Evalstore
from tests.remotes import stores

MODEL = "id: scripted/{}\nprovider: scripted\nresponses: [{{answer: Warm.}}]\n"
TEST = "# 👤\n\nHow is {}?\n\n---\n\n```checks\n- contains: {}\n```\n"
WORKSPACE = {
    "evalstore.yaml": "candidates: [scripted/a, scripted/b]\nremotes: {origin: ../team}\n",
    "models/a.yaml": MODEL.format("a"),
    "models/b.yaml": MODEL.format("b"),
    "tests/x.md": TEST.format("Rome", "Warm"),
    "tests/y.md": "---\nreplacements: {city: [Oslo, Bonn, Kiel, Genf, Turin]}\n---\n"
    + TEST.format("{{city}}", "Warm"),
}
BREAK, REMOVE, RESTORE = "break", "remove", "restore"
"""Steps that edit tests/x.md; all others are the options of a run."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A workspace beside a remote."""
    return tree(tmp_path / "w", WORKSPACE)


def _do(folder: Path, evalstore: Evalstore, steps: Sequence[str]) -> None:
    x = folder / "tests/x.md"
    for step in steps:
        if step == BREAK:
            x.write_text(TEST.format("Rome", "Hot"))
        elif step == REMOVE:
            x.unlink()
        elif step == RESTORE:
            x.write_text(TEST.format("Rome", "Warm"))
        else:
            ran = evalstore("-C", str(folder), "run", "-q", "--fail-on", "none", *step.split())
            assert ran.exit_code == 0, ran.stderr


@pytest.mark.parametrize(
    ("steps", "options", "regressions", "split"),
    [
        (["", BREAK], "", 2, True),
        (["", BREAK, "", "", ""], "", 2, False),
        (["", REMOVE, "", BREAK], "", 2, True),
        (["-m scripted/a", "-m scripted/b", BREAK], "", 2, False),
        (["", "-m scripted/b", BREAK], "-m scripted/a", 1, True),
        (["tests/x.md", "tests/y.md", BREAK], "", 2, False),
        (["tests/x.md", "tests/y.md", BREAK], "tests/x.md", 2, True),
        (["--shard 1/2", "--shard 2/2", BREAK], "--shard 1/2", None, False),
        (["--shard 1/2", "--shard 2/2", BREAK], "--shard 2/2", None, True),
        ([BREAK, "", RESTORE, "", BREAK], "", 0, False),
        ([BREAK, "", "tests/y.md"], "", 0, True),
        (["tests/x.md", "tests/y.md", BREAK], "--baseline @", 2, False),
        (["tests/x.md", BREAK, "tests/x.md", "tests/y.md"], "--baseline @", 0, True),
    ],
)
def test_a_gate_does_not_depend_on_what_the_store_had(
    folder: Path,
    tmp_path: Path,
    evalstore: Evalstore,
    steps: list[str],
    options: str,
    regressions: int | None,
    *,
    split: bool,
) -> None:
    _do(folder, evalstore, steps)
    evalstore("-C", str(folder), "--allow-outside", "push")
    with stores.opened(folder / ".evalstore/store.db") as store:
        newest = store.find_runs(limit=1)[0].id
    words = [newest if word == "@" else word for word in options.split()]
    fresh = tmp_path / "fresh"
    shutil.copytree(folder, fresh, ignore=shutil.ignore_patterns(".evalstore"))
    gate = ["run", "--fail-on", "regression", "--json", *words]
    evalstore("-C", str(fresh), "--allow-outside", "pull", "-n")
    shutil.rmtree(fresh / ".evalstore")
    if split:
        baseline = words if "--baseline" in words else []
        evalstore("-C", str(fresh), "pull", "--for-plan", *baseline)
        there = evalstore("-C", str(fresh), *gate)
    else:
        there = evalstore("-C", str(fresh), *gate, "--remote", "origin")
    here = evalstore("-C", str(folder), *gate)
    assert there.exit_code == here.exit_code, there.stderr
    found = [len(json.loads(ran.stdout)["regressions"]) for ran in (here, there)]
    assert found[0] == found[1]
    assert regressions is None or found[0] == regressions


def test_it_is_said_when_the_remote_has_no_runs(folder: Path, evalstore: Evalstore) -> None:
    tree(folder, {"tests/private.md": "---\ntags: [private]\n---\n" + TEST.format("Bonn", "Warm")})
    _do(folder, evalstore, [""])
    evalstore("-C", str(folder), "--allow-outside", "push", "--exclude-tag", "private")
    gate = ("-C", str(folder), "run", "-q", "--remote", "origin", "--store", "new.db")
    ran = evalstore(*gate, "--fail-on", "regression")
    assert "'origin' has no runs: no failure can be told from a regression\n" in ran.stderr
    assert "has no runs" not in evalstore(*gate, "--fail-on", "none").stderr
