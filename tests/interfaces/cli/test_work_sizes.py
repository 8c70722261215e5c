"""However a command divides its work, it prints and stores the same."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator
from itertools import permutations
from pathlib import Path
from random import Random

import pytest

from evalstore.interfaces.cli import output
from evalstore.interfaces.cli.main import main
from tests import work_sizes
from tests.interfaces.cli.conftest import normalise
from tests.interfaces.cli.random_histories import RandomHistory

_RUNS = 3
_DIFFS = (
    *((), ("-v",), ("--answers", "-v"), ("--flips",), ("--stat",), ("--json",)),
    *(("--json", "--answers"), ("-m", "one"), ("--exit-code", "-v")),
)
_ROW = "tests/a.md::city 1"
_READS = (
    *(("status",), ("status", "--json"), ("status", "-v"), ("status", "-k", "1", "--json")),
    *(("status", "--refresh", "--json"), ("status", "--lf", "--json"), ("check",)),
    *(("status", "--retry-errors", "--json"), ("status", "-m", "one", "--json"), ("fsck",)),
    *(("status", "--limit", "3", "--json"), ("status", "--sample", "3", "--json")),
    *(("run", "--dry-run"), ("run", "--dry-run", "--json"), ("log",), ("log", "--json")),
    *(("log", "--oneline"), ("log", "tests/a.md"), ("log", "tests/a.md", "--json")),
    *(("show", "@"), ("show", "@", "--json"), ("show", "@", "-v"), ("show", "tests/a.md")),
    *(("show", "tests/a.md", "--json"), ("show", _ROW), ("show", _ROW, "--json")),
    *(("stats",), ("stats", "@", "--json"), ("stats", "--by", "prompt"), ("stats", "@work")),
    *(("stats", "@", "--by", "tag", "--by", "file", "--json"), ("report", "--markdown")),
    *(("export", "--format", "jsonl"), ("export", "--format", "csv"), ("export", "@~1")),
    *(("export", "--format", "junit"), ("report", "@~1", "--markdown")),
    *(("grep", "Oslo"), ("grep", "Oslo", "--json"), ("grep", "city"), ("grep", "Be", "--json")),
    *(("ls", "tests"), ("ls", "cases"), ("ls", "cases", "--json"), ("ls", "runs", "--json")),
    *(("ls", "models"), ("ls", "tags"), ("ls", "prompts", "--json")),
)
_SHARING = (
    *("remote add r remote", "push r", "pull -n r", "fsck --remote r", "remote gc r"),
    *("push runs.bundle", "fsck --remote runs.bundle", "clone remote clone"),
    *("--store x.db pull r", "--store x.db fsck", "-C clone fsck"),
    *("--store y.db pull .evalstore/store.db", "--store y.db fsck"),
    *("--store z.db pull runs.bundle", "--store z.db fsck"),
)
Printed = tuple[int, str, str]
Call = Callable[..., Printed]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """Run one command; what it says of time is left out."""

    def run(*words: str) -> Printed:
        output._warned.clear()
        capsys.readouterr()
        code = main(words)
        printed = capsys.readouterr()
        out, err = (
            re.sub(r"\b[0-9.]+ ?m?s\b|just now|\d+ (?:second|minute)s? ago", "<time>", text)
            for text in (printed.out, printed.err)
        )
        return code, out, err

    return run


def _results(printed: Printed) -> Printed:
    """What two runs with equal results print."""
    # Which of two failures comes first depends on what is called at the same time.
    text = re.sub(r'"failures": \[.*?\]', "", printed[1], flags=re.DOTALL)
    text = re.sub(r'"(started|ended|seconds|began|at|time)": [^,\n]*', "", text)
    return printed[0], normalise(text), ""


def _compare(
    root: Path, seed: int, most: int, call: Call, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, object, object]]:
    """Make a history; yields what each command does by default, and with drawn sizes."""
    random = Random(seed)
    trees, drawn = work_sizes.draw_trees(random), work_sizes.draw(random)
    history = RandomHistory(root, random)
    with work_sizes.changed(trees):
        for number in range(_RUNS):
            history.write()
            words = ("run", "--json", "--yes", "--fail-on", "none", *history.choose_run())
            copied = shutil.copytree(root, root.with_name(f"{root.name}-{number}"))
            monkeypatch.chdir(copied)
            usual = _results(call(*words)), _results(call("status", "--json"))
            monkeypatch.chdir(root)
            with work_sizes.changed(drawn):
                divided = _results(call(*words)), _results(call("status", "--json"))
                yield "fsck", 0, call("fsck")[0]
            if "-x" not in words:  # what has begun before the first failure differs by chance
                yield " ".join(words), usual, divided
            if random.random() < 0.6:
                history.answer_otherwise()
            for _ in range(random.randrange(4)):
                history.edit()
        history.write()
        names = ["@work", *(f"@~{number}" for number in range(_RUNS))]
        diffs = [("diff", *pair, *form) for pair in permutations(names, 2) for form in _DIFFS]
        diffs += [("diff", name, "--model", "one", "--vs", "two") for name in names[1:]]
        reads = [*_READS, *random.sample(diffs, 40)]
        for words in random.sample(reads, min(most, len(reads))):
            call(*words)  # it may cache what it has found
            usual_print = call(*words)
            with work_sizes.changed(drawn):
                yield " ".join(words), usual_print, call(*words)
        with work_sizes.changed(drawn):
            for line in _SHARING:
                yield line, 0, call(*line.split())[0]
        for words in (("log", "--json"), ("show", "@", "--json"), ("stats", "@", "--json")):
            for store in ("x.db", "y.db", "z.db"):
                yield " ".join(words), call(*words)[:2], call("--store", store, *words)[:2]


@pytest.mark.parametrize(
    ("seeds", "most"),
    [
        pytest.param(range(1), 20, id="few"),
        pytest.param(range(10, 11), 40, id="some", marks=pytest.mark.extended),
        pytest.param(range(100, 400), 80, id="many", marks=pytest.mark.slow),
    ],
)
def test_what_is_printed_and_stored_does_not_depend_on_how_work_is_divided(
    seeds: range, most: int, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in seeds:
        root = tmp_path / str(seed)
        for what, usual, divided in _compare(root, seed, most, call, monkeypatch):
            random = Random(seed)
            sizes = {**work_sizes.draw_trees(random), **work_sizes.draw(random)}
            assert divided == usual, f"seed {seed}: {what}, with {sizes}"
