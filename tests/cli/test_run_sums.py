"""The sums that a run writes for `stats` are those that `stats` adds up itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from evalstore.operations import part_sums, run_sums
from evalstore.operations import stats as statistics
from evalstore.operations.part_sums import plain_grouping, read_sums
from evalstore.store import Store
from evalstore.workspace.allowed_paths import WorkspaceBoundary
from tests.builders import tree
from tests.cli.conftest import Evalstore
from tests.cli.long_files import CHECK, CHECKED, JUDGE, ONE, PRICE, ROWS, TWO, treat_as_long

pytestmark = pytest.mark.extended

T = TypeVar("T")

WORKSPACES = {
    "checks": {
        "evalstore.yaml": "candidates: [one]\n",
        "models/one.yaml": ONE,
        "tests/rows.md": CHECKED + CHECK,
    },
    "candidates with prices, one of which fails sometimes": {
        "evalstore.yaml": "candidates: [one, two]\nevaluators: [judge]\nretries: 0\n",
        "models/one.yaml": ONE + PRICE,
        "models/two.yaml": TWO,
        "models/judge.yaml": JUDGE + PRICE,
        "tests/rows.md": CHECKED + "Is it a city?\n\n" + CHECK,
        "tests/rows2.md": CHECKED.replace("Where", "What") + "Is it a city?\n",
    },
    "attempts and prompts": {
        "evalstore.yaml": (
            "candidates: [one]\nevaluators: [judge]\nattempts: 3\nevaluationsPerEvaluator: 2\n"
        ),
        "models/one.yaml": (
            ONE.replace("answer: Oslo", "answer: Oslo, times: 500}, {answer: Rome") + PRICE
        ),
        "models/judge.yaml": JUDGE,
        "prompts/short.md": "# ⚙️\n\nBe short.\n",
        "prompts/long.md": "# ⚙️\n\nBe long.\n",
        "tests/rows.md": CHECKED.replace("---\n", "---\nsystemPrompts: [short, long]\n", 1) + CHECK,
    },
    "answers in the file, and no judge": {
        "evalstore.yaml": "candidates: [one]\n",
        "models/one.yaml": ONE,
        "tests/rows.md": CHECKED.replace("---\n", "---\nanswer: '{{capital}}'\n", 1) + CHECK,
        "tests/asked.md": CHECKED + "Is it a city?\n",
    },
}
PENDING = {
    "attempts of which some lack a judgement": {
        "evalstore.yaml": "candidates: [one]\nevaluators: [judge]\nattempts: 2\nretries: 0\n",
        "models/one.yaml": ONE + PRICE,
        "models/judge.yaml": JUDGE.replace("answer: {pass: false}", "error: 400") + PRICE,
        "tests/rows.md": CHECKED + "Is it a city?\n\n" + CHECK,
    },
}
GROUPINGS = (
    ("model",),
    ("tag",),
    ("file", "prompt"),
    ("tag", "model", "file"),
    ("prompt", "tag", "model"),
)


@pytest.fixture(params=WORKSPACES)
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    treat_as_long(monkeypatch)
    root = tree(tmp_path / "ws", (WORKSPACES | PENDING)[request.param] | {"tests/data.jsonl": ROWS})
    monkeypatch.chdir(root)
    return root


def sums(root: Path) -> dict[str, tuple[set[int], Any]]:
    """The cached sums by node: the answers, and the groups of each grouping."""
    path = root / ".evalstore/sums"
    cache = read_sums(path, WorkspaceBoundary(root), "majority")
    return {node: ({*part.sessions}, part.groups) for node, part in cache.parts.items()}


def run(evalstore: Evalstore, *options: str) -> None:
    ran = evalstore("run", "--yes", "--fail-on", "none", *options)
    assert "run " in ran.stdout, ran


def test_a_run_writes_the_sums_that_stats_adds_up(place: Path, evalstore: Evalstore) -> None:
    for options in ((), ("-k", "1"), ()):
        run(evalstore, *options)
        written = sums(place)
        assert len(written) > 2
        printed = {by: stats(evalstore, by) for by in GROUPINGS}
        (place / ".evalstore/sums").unlink()
        added = {by: stats(evalstore, by) for by in GROUPINGS}
        assert printed == added
        for node, (answers, groups) in sums(place).items():
            if node in written:
                assert answers == written[node][0]
                assert groups == {by: written[node][1][by] for by in groups}
        for name in ("sums", "settled"):
            (place / ".evalstore" / name).unlink(missing_ok=True)


@pytest.mark.parametrize("place", [*WORKSPACES, *PENDING], indirect=True)
def test_the_sums_of_parts_are_those_of_the_results_one_by_one(
    place: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(evalstore)
    (place / ".evalstore/sums").unlink(missing_ok=True)
    added = {by: stats(evalstore, by) for by in GROUPINGS}
    assert sums(place)
    monkeypatch.setattr(statistics, "_MANY", 1_000_000)
    assert {by: stats(evalstore, by) for by in GROUPINGS} == added


@pytest.mark.parametrize("place", ["attempts and prompts"], indirect=True)
def test_each_judgement_of_attempts_is_read_once(
    place: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(evalstore)
    (place / ".evalstore/sums").unlink()
    read: list[str] = []

    def count(read_some: Callable[..., T]) -> Callable[..., T]:
        def find(store: Store, evaluations: Iterable[str]) -> T:
            ids = [*evaluations]
            read.extend(ids)
            return read_some(store, ids)

        return find

    for name in ("find_judgements", "find_judging_costs"):
        monkeypatch.setattr(Store, name, count(getattr(Store, name)))
    total = json.loads(stats(evalstore, ("model",)))["total"]
    assert len(read) == len({*read}) == total["evaluations"] > 150 * 3
    assert total["flakiness"]["cases"] > 150


def stats(evalstore: Evalstore, by: tuple[str, ...]) -> str:
    shown = evalstore("stats", "@", "--json", *(word for name in by for word in ("--by", name)))
    assert shown.exit_code == 0, shown
    return shown.stdout


@pytest.mark.parametrize("place", ["checks"], indirect=True)
def test_stats_after_a_run_reads_no_results(
    place: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(evalstore)
    monkeypatch.setattr("evalstore.operations.stats_parts._add_up_cells", None)
    assert "100.0%" not in stats(evalstore, ("model",))
    stats(evalstore, ("file", "tag"))


@pytest.mark.parametrize("place", ["checks"], indirect=True)
def test_a_run_with_nothing_to_do_keeps_the_sums(place: Path, evalstore: Evalstore) -> None:
    run(evalstore)
    before = sums(place)
    run(evalstore)
    assert sums(place) == before
    (place / ".evalstore/settled").unlink()
    (place / ".evalstore/sums").unlink()
    run(evalstore)
    assert sums(place) == before


@pytest.mark.parametrize("place", ["checks"], indirect=True)
def test_parts_with_very_many_groups_are_added_up_each_time(
    place: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as few:
        few.setattr(part_sums, "_MOST_GROUPS", 1)
        run(evalstore)
        shown = stats(evalstore, ("tag",))
        assert all(("tag",) not in groups for _, groups in sums(place).values())
    assert stats(evalstore, ("tag",)) == shown
    assert all(("tag",) in groups for _, groups in sums(place).values())


def test_groupings_are_those_that_others_follow_from() -> None:
    assert all(by == plain_grouping(by) for by in run_sums.GROUPINGS)
    assert plain_grouping(("tag", "file", "model")) == ("model", "tag")
    assert plain_grouping(("tag", "tag")) == ("tag", "tag")
