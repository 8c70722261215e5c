"""Runs: one writer, one reader, and ids that stay."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import evalstore
from evalstore.core import hashing
from evalstore.core.runs import (
    Run,
    RunCandidate,
    RunCommit,
    RunEvaluator,
    RunSources,
    describe_run,
    describe_sources,
    restore_run,
    restore_sources,
)
from evalstore.store.contents import validator_of

SNAPSHOT, RESULTS, MODEL, EVALUATOR = ("1" * 32, "2" * 32, "3" * 32, "4" * 32)
VERDICTS = {"pass": 3, "fail": 1, "undecided": 0, "error": 0, "pending": 2}
WHOLE = Run(
    id="",
    started=1_700_000_000_000_000,
    ended=1_700_000_001_000_000,
    status="incomplete",
    snapshot=SNAPSHOT,
    results=RESULTS,
    asked=4,
    judged=5,
    reused=6,
    verdicts=VERDICTS,
    recorded=2,
    failed=1,
    candidates=(RunCandidate("m", MODEL, 0.5), RunCandidate("n", MODEL, None)),
    evaluators=(RunEvaluator("j", EVALUATOR),),
    message="before the change",
    selection={"paths": ["tests/a.md"], "lastFailed": True},
    settings={"attempts": 2, "verdict": "unanimous"},
    judge_only=True,
    cost=0.25,
    spending=[{"model": "m", "cost": 0.25}],
    git=RunCommit("a" * 40, None),
    origin="import",
    version="0.1",
    nonce="n",
)
PLAIN = Run("", 1, 2, "complete", SNAPSHOT, RESULTS, 0, 0, 0, VERDICTS)
STORED = {
    "asked": 4,
    "candidates": [
        {"id": "m", "model": MODEL, "temperature": 0.5},
        {"id": "n", "model": MODEL, "temperature": None},
    ],
    "cost": 0.25,
    "ended": 1_700_000_001_000_000,
    "evaluators": [{"evaluator": EVALUATOR, "id": "j"}],
    "failed": 1,
    "git": {"commit": "a" * 40, "dirty": None},
    "judgeOnly": True,
    "judged": 5,
    "kind": "run",
    "message": "before the change",
    "nonce": "n",
    "origin": "import",
    "recorded": 2,
    "results": RESULTS,
    "reused": 6,
    "scheme": 1,
    "selection": {"paths": ["tests/a.md"], "lastFailed": True},
    "settings": {"attempts": 2, "verdict": "unanimous"},
    "snapshot": SNAPSHOT,
    "spending": [{"model": "m", "cost": 0.25}],
    "started": 1_700_000_000_000_000,
    "status": "incomplete",
    "verdicts": VERDICTS,
    "version": "0.1",
}


def test_a_run_is_stored_as_it_always_was() -> None:
    assert describe_run(WHOLE) == STORED
    assert hashing.identify(describe_run(WHOLE))[0] == "08d83a96148b545330564ea071c43677"
    assert hashing.identify(describe_run(PLAIN))[0] == "f355f89a879c82be7939ca16f4278cbb"


@pytest.mark.parametrize("run", [WHOLE, PLAIN], ids=["whole", "plain"])
def test_a_run_is_read_as_it_was_written(run: Run) -> None:
    assert restore_run("", describe_run(run)) == run


def test_the_digests_of_a_run_are_read_as_they_were_written() -> None:
    digests = {"tests/a.md": {"test": "0123456789ab", "dataset:tests/a.csv": "ba9876543210"}}
    for sources in (RunSources(digests), RunSources({}, is_cut=True)):
        content = describe_sources(sources)
        assert validator_of("sources").isinstance_python(content)
        assert restore_sources(content) == sources
    id, _ = hashing.identify(describe_sources(RunSources(digests)))
    content = describe_run(replace(PLAIN, sources=id))
    assert validator_of("run").isinstance_python(content)
    assert restore_run("", content).sources == id
    assert RunSources(digests).of("tests/b.md") == {}
    assert RunSources(digests, is_cut=True).of("tests/b.md") is None


def test_every_field_of_a_stored_run_is_known() -> None:
    validator = validator_of("run")
    assert validator.isinstance_python(STORED)
    required = {
        name
        for name in STORED
        if not validator.isinstance_python({k: v for k, v in STORED.items() if k != name})
    }
    old: dict[str, Any] = {name: value for name, value in STORED.items() if name in required}
    for name in STORED.keys() - {"kind", "scheme"}:
        was = {**old, name: STORED[name]}
        assert describe_run(restore_run("", was)).get(name) == STORED[name], name


def test_a_run_of_an_older_program_is_read_with_defaults() -> None:
    old = {name: value for name, value in describe_run(PLAIN).items() if name != "failed"}
    run = restore_run("f" * 32, old)
    assert (run.id, run.failed, run.candidates, run.git) == ("f" * 32, 0, (), None)
    assert run.verdict_rule == "majority"
    assert run.find_candidate("m") is None


def test_no_other_module_knows_how_a_run_is_stored() -> None:
    by_key = re.compile(r"\brun(?:\[\"|\.get\(\")|\[\"snapshot\"\]")
    root = Path(evalstore.__file__).parent
    listed = {
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if by_key.search(path.read_text(encoding="utf-8"))
    }
    assert listed == set()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cases", "ab"),
        ("cases", [1, 2, 3]),
        ("nonce", 1),
        ("author", []),
        ("judgeOnly", "yes"),
        ("selection", {"paths": [[None]]}),
    ],
)
def test_a_run_with_a_field_of_another_type_is_not_one(name: str, value: Any) -> None:
    validator = validator_of("run")
    content = describe_run(WHOLE)
    assert validator.isinstance_python(content)
    assert not validator.isinstance_python({**content, name: value})
