"""Parts of long files that a run leaves settled: plans without them are what whole plans are."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable, Sequence
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from evalstore.core.runs import Run
from evalstore.core.values import Case, Json, Result
from evalstore.planning import settled_parts
from evalstore.planning.options import Location
from evalstore.planning.settled_parts import SettledParts
from evalstore.runs import run, run_record
from evalstore.runs.execution.sharing.work_sharing import RunnerPresence
from evalstore.runs.status.dashboard import read_dashboard
from evalstore.store import Store
from evalstore.store.location import read_location
from evalstore.store.rows.result_sums import TemporaryRows
from evalstore.store.rows.row_queries import RowQueries
from tests.builders import tree
from tests.interfaces.cli.conftest import Evalstore
from tests.interfaces.cli.long_files import treat_as_long

pytestmark = pytest.mark.extended

TEST = (
    "---\ndataset: data.jsonl\ntags: [a]\n---\n\n# 👤\n\nWhat is the capital of {{country}}?\n\n"
    "---\n\n~~~checks\n- contains: '{{capital}}'\n~~~\n"
)
OTHER = "# 👤\n\nWhere is Oslo?\n\n---\n\n~~~checks\n- contains: Oslo\n~~~\n"
FILES = {
    "evalstore.yaml": "candidates: [one]\n",
    "models/one.yaml": (
        "id: one\nprovider: scripted\n"
        "responses: [{when: ' 1.?[?]', answer: Rome}, {answer: Oslo 1}]\n"
        "costs: [{costPerCall: 0.0005}]\n"
    ),
    "tests/rows.md": TEST,
    "tests/other.md": OTHER,
}
ROWS = [{"country": f"country {number}", "capital": "Oslo 1"} for number in range(40)]
CASES = len(ROWS) + 1
"""The rows, and the one case of the other file."""


STORE = "EVALSTORE_STORE"
"""The variable with the address of a store on a server."""
_copies = count()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with a file of dozens of rows, which is treated as one of many."""
    return make_place(tmp_path, monkeypatch)


@pytest.fixture
def any_place(place: Path, store_url: str | None) -> Path:
    """The same with a store in a file, and with one in PostgreSQL."""
    del store_url  # commands take it from the environment
    return place


def make_place(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    treat_as_long(monkeypatch, most=4)
    root = tree(folder / "ws", FILES)
    write_rows(root, ROWS)
    monkeypatch.chdir(root)
    return root


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many settled parts each command has found."""
    counts: list[int] = []
    only = SettledParts.only

    def count(parts: SettledParts, keys: list[tuple[str, int]]) -> SettledParts:
        counts.append(len(keys))
        return only(parts, keys)

    monkeypatch.setattr(SettledParts, "only", count)
    return counts


def write_rows(root: Path, rows: list[Json]) -> None:
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (root / "tests/data.jsonl").write_text(lines, encoding="utf-8")


def forget(root: Path) -> None:
    (root / ".evalstore/settled").unlink(missing_ok=True)


def results_of(root: Path) -> list[str]:
    """The roots of the results of all runs, the newest first."""
    place = os.environ.get(STORE) or str(root / ".evalstore/store.db")
    with closing(Store.open(read_location(place))) as store:
        return [run.results for run in store.find_runs()]


COMMANDS = (
    ("status", "--json"),
    ("diff", "--json"),
    ("status",),
    ("stats", "--by", "prompt"),
)
"""They look at the workspace: what is said of runs alone is not found by settled parts.

On a server the first two are compared, as the others say the same in words.
"""


def dashboard_of(root: Path) -> tuple[object, ...]:
    """What the first screen of the browser says, which adds up all cases."""
    seen = read_dashboard(Location(root, store=os.environ.get(STORE)))
    assert seen.problem is None
    return seen.rate, dict(seen.verdicts), seen.broken


def compare(evalstore: Evalstore, root: Path) -> None:
    """Compare what commands print with the caches and without them."""
    shown = dashboard_of(root)
    known = root / ".evalstore/settled"
    if known.exists():
        known.rename(known.with_suffix(".hidden"))
        whole = dashboard_of(root)
        known.with_suffix(".hidden").rename(known)
        assert shown == whole
    for command in COMMANDS[: 2 if os.environ.get(STORE) else None]:
        first = evalstore(*command)
        hidden = known.with_suffix(".hidden")
        if known.exists():
            known.rename(hidden)
        uncached = evalstore(*command)
        known.unlink(missing_ok=True)
        if hidden.exists():
            hidden.rename(known)
        assert (first.exit_code, first.stdout, first.stderr) == (
            uncached.exit_code,
            uncached.stdout,
            uncached.stderr,
        )


def run_both(evalstore: Evalstore, root: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Json, str]:
    """Run here and in a copy without caches; returns the report when they agree."""
    copy = root.with_name("copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(root, copy)
    forget(copy)
    with monkeypatch.context() as there:
        there.chdir(copy)
        if url := os.environ.get(STORE):
            there.setenv(STORE, f"{url}_{next(_copies)}")
            merged = evalstore("pull", url)
            assert merged.exit_code == 0, merged
        whole = evalstore("run", "--yes", "--json", "--fail-on", "none")
        same = results_of(copy)[0]
    ran = evalstore("run", "--yes", "--json", "--fail-on", "none")
    assert (ran.exit_code, whole.exit_code) == (0, 0), whole
    reports = [json.loads(each.stdout) for each in (ran, whole)]
    actual, expected = map(without_ids, reports)
    assert actual == expected
    if not (expected["asked"] or expected["judged"]):
        assert results_of(root)[0] == same
    return actual, results_of(root)[0]


def without_ids(report: Json) -> Json:
    """The report without what differs between two runs of the same plan."""
    report = {**report, "run": "", "seconds": 0}
    shown = report.get("cases", [])
    return {**report, "cases": [{**case, "session": "", "sessions": 0} for case in shown]}


def test_a_run_after_a_run_plans_no_settled_part(
    any_place: Path, evalstore: Evalstore, found: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (
        json.loads(evalstore("run", "--yes", "--json", "--fail-on", "none").stdout)["asked"]
        == CASES
    )
    for _ in range(2):
        found.clear()
        report, _ = run_both(evalstore, any_place, monkeypatch)
        assert (report["asked"], report["judged"], report["reused"]) == (0, 0, CASES)
        assert found[-1] > 2
    assert len(set(results_of(any_place))) == 1
    compare(evalstore, any_place)


def test_recorded_answers_that_are_read_again_after_a_sleep_count_once(
    place: Path, evalstore: Evalstore, found: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = TEST.replace("tags: [a]", "answer: '{{capital}}'")
    (place / "tests/rows.md").write_text(text, encoding="utf-8")
    (place / "tests/other.md").unlink()
    slept = count()
    monkeypatch.setattr(RunnerPresence, "count_sleeps", lambda _: min(next(slept), 40))
    report = json.loads(evalstore("run", "--yes", "--json", "--fail-on", "none").stdout)
    assert (report["asked"], report["recorded"]) == (0, len(ROWS))
    monkeypatch.setattr(settled_parts, "_MOST_NEW", 0)
    found.clear()
    evalstore("run", "--yes", "--json", "--fail-on", "none")
    assert found[-1] > 2


def test_statistics_of_what_is_as_in_the_last_run_are_read_from_its_rows(
    any_place: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    evalstore("run", "--yes", "--fail-on", "none")
    copied: list[int] = []
    add = TemporaryRows.add

    def note(rows: TemporaryRows, store: RowQueries, cells: Sequence[tuple[Result, Case]]) -> None:
        copied.append(len(cells))
        add(rows, store, cells)

    monkeypatch.setattr(TemporaryRows, "add", note)
    assert f"{CASES}/{CASES}" in evalstore("stats").stdout
    assert copied == []
    tree(any_place, {"tests/other.md": OTHER.replace("Where", "And where")})
    assert f"{len(ROWS)}/{CASES}" in evalstore("stats").stdout
    assert sum(copied) == CASES


def test_statistics_have_a_long_file_that_the_last_run_left_out(
    any_place: Path, evalstore: Evalstore
) -> None:
    evalstore("run", "--yes", "--fail-on", "none")
    evalstore("run", "--yes", "--fail-on", "none", "tests/other.md")
    assert f"{CASES}/{CASES}" in evalstore("stats").stdout


def test_a_settled_part_is_planned_again_when_an_answer_of_it_is_new(
    any_place: Path, evalstore: Evalstore, found: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    evalstore("run", "--yes", "--fail-on", "none")
    evalstore("status")
    before = found[-1]
    row = "tests/rows.md::country=country 7"
    again = evalstore("run", row, "--yes", "--fail-on", "none", "--refresh")
    assert "1 new answer" in again.stdout, again
    report, _ = run_both(evalstore, any_place, monkeypatch)
    assert report["reused"] == CASES
    assert 0 < found[-1] < before
    labelled = evalstore("label", row, "fail")
    assert labelled.exit_code == 0, labelled
    compare(evalstore, any_place)
    run_both(evalstore, any_place, monkeypatch)
    compare(evalstore, any_place)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("evalstore.yaml", "candidates: [one]\nattempts: 2\n"),
        ("evalstore.yaml", "candidates: [one]\nverdict: all\n"),
        ("evalstore.yaml", "candidates: [one]\nprohibitedTags: [a]\n"),
        ("tests/rows.md", TEST.replace("tags", "attempts: 3\ntags")),
        ("tests/rows.md", TEST.replace("contains", "startsWith")),
        ("models/one.yaml", FILES["models/one.yaml"].replace("Rome", "Paris")),
    ],
)
def test_settled_parts_follow_settings(
    place: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch, name: str, text: str
) -> None:
    evalstore("run", "--yes", "--fail-on", "none")
    tree(place, {name: text})
    compare(evalstore, place)
    run_both(evalstore, place, monkeypatch)
    compare(evalstore, place)


def test_rows_that_share_a_question_are_planned(
    any_place: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two files ask the same questions, and judge the answers differently."""
    evalstore("run", "--yes", "--fail-on", "none")
    tree(any_place, {"tests/same.md": TEST.replace("contains", "startsWith")})
    for _ in range(2):
        run_both(evalstore, any_place, monkeypatch)
        compare(evalstore, any_place)


@pytest.mark.parametrize("options", [("--attempts", "1"), ("--refresh",), ("-k", "country_7")])
def test_status_tells_outcomes_as_it_does_without_settled_parts(
    place: Path, evalstore: Evalstore, options: tuple[str, ...]
) -> None:
    """A run that counts other answers has other verdicts than what is settled."""
    tree(place, {"evalstore.yaml": "candidates: [one]\nattempts: 2\nverdict: all\n"})
    evalstore("run", "--yes", "--fail-on", "none")
    evalstore("label", "tests/rows.md::country=country 7", "pass")
    compare(evalstore, place)
    evalstore("run", "--yes", "--fail-on", "none", *options)
    compare(evalstore, place)
    evalstore("label", "tests/rows.md::country=country 7", "fail")
    compare(evalstore, place)


def test_outcomes_are_told_when_a_newer_run_has_other_verdicts(
    place: Path, evalstore: Evalstore, found: list[int]
) -> None:
    """What the newest run of a file has is compared, and not what the cache knows."""
    evalstore("run", "--yes", "--fail-on", "none")
    edited = FILES["models/one.yaml"].replace("Oslo 1", "Rome")
    settings = "candidates: [one]\nattempts: 2\nverdict: all\n"
    tree(place, {"evalstore.yaml": settings, "models/one.yaml": edited})
    evalstore("run", "--yes", "--fail-on", "none")
    evalstore("status")
    assert found[-1] > 2
    ran = evalstore("run", "--yes", "--fail-on", "none", "--attempts", "1")
    assert "0 new answers" in ran.stdout, ran
    status = json.loads(evalstore("status", "--json").stdout)
    assert status["broke"] > len(ROWS) / 2, status
    compare(evalstore, place)


def test_a_label_that_another_program_gives_during_a_run_is_seen(
    any_place: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = "tests/rows.md::country=country 7"
    evalstore("run", "--yes", "--fail-on", "none")
    write_rows(any_place, [*ROWS[:-1], {"country": "new", "capital": "Oslo"}])
    record = run_record.record

    def label_first(*arguments: Any) -> Run:
        """Label a case of a part that is settled while the run has planned it already."""
        monkeypatch.setattr(run, "record", record)
        labelled = evalstore("label", row, "fail")
        assert labelled.exit_code == 0, labelled
        return record(*arguments)

    monkeypatch.setattr(run, "record", label_first)
    assert "1 new answer" in evalstore("run", "--yes", "--fail-on", "none").stdout
    assert failing(evalstore, row) == ["pass"]
    run_both(evalstore, any_place, monkeypatch)
    assert failing(evalstore, row) == ["fail"]
    compare(evalstore, any_place)


def failing(evalstore: Evalstore, row: str) -> list[str]:
    """The verdicts of a row in the newest run."""
    lines = map(json.loads, evalstore("export", "@", "--format", "jsonl").stdout.splitlines())
    return [line["verdict"] for line in lines if f"{line['file']}::{line['row']}" == row]


@pytest.mark.parametrize("damage", [b"", b"x", None])
def test_a_damaged_cache_is_not_read(
    place: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch, damage: bytes | None
) -> None:
    evalstore("run", "--yes", "--fail-on", "none")
    evalstore("stats", "@")
    cache = place / ".evalstore/settled"
    data = cache.read_bytes()
    cache.write_bytes(data[:-9] + b"\x00" + data[-8:] if damage is None else damage)
    assert evalstore("stats", "@").exit_code == 0
    assert run_both(evalstore, place, monkeypatch)[0]["reused"] == CASES


def test_another_store_has_no_settled_parts(
    place: Path, evalstore: Evalstore, found: list[int]
) -> None:
    evalstore("run", "--yes", "--fail-on", "none")
    store = place / ".evalstore/store.db"
    shutil.copy(store, place / "copy.db")
    found.clear()
    assert f"{CASES} answers" in evalstore("status", "--store", "copy.db").stdout
    assert not any(found)


def edit_row(rows: list[Json], chance: random.Random) -> None:
    number = chance.randrange(len(rows))
    rows[number] = {**rows[number], "country": f"country {chance.randrange(2 * len(ROWS))}"}


def edit_check(rows: list[Json], chance: random.Random) -> None:
    number = chance.randrange(len(rows))
    rows[number] = {**rows[number], "capital": chance.choice(["Oslo", "Oslo 1", "Rome"])}


def add_row(rows: list[Json], chance: random.Random) -> None:
    rows.insert(chance.randrange(len(rows)), {"country": "new", "capital": "Oslo"})


def remove_row(rows: list[Json], chance: random.Random) -> None:
    del rows[chance.randrange(len(rows))]


def repeat_row(rows: list[Json], chance: random.Random) -> None:
    rows.append(chance.choice(rows))


EDITS: tuple[Callable[[list[Json], random.Random], None], ...] = (
    *(edit_row, edit_check, add_row, remove_row, repeat_row),
)


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2, 3))]
)
def test_edits_of_rows_have_the_plans_they_have_without_settled_parts(
    place: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    edit_and_compare(place, evalstore, monkeypatch, seed)


@pytest.mark.parametrize("store_url", ["postgresql"], indirect=True)
def test_edits_of_rows_have_these_plans_on_a_server(
    any_place: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit_and_compare(any_place, evalstore, monkeypatch, 4, rounds=2)


def edit_and_compare(
    place: Path,
    evalstore: Evalstore,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
    rounds: int = 4,
) -> None:
    chance = random.Random(seed)
    rows = [*ROWS]
    evalstore("run", "--yes", "--fail-on", "none")
    for _ in range(rounds):
        for _ in range(chance.randrange(1, 3)):
            chance.choice(EDITS)(rows, chance)
        write_rows(place, rows)
        compare(evalstore, place)
        if chance.random() < 0.3:
            monkeypatch.setattr(settled_parts, "_MOST_NEW", chance.choice([0, 100_000]))
        if chance.random() < 0.3:
            evalstore("run", "--yes", "--fail-on", "none", "-k", "country_1 or new")
        run_both(evalstore, place, monkeypatch)
        compare(evalstore, place)
    assert evalstore("fsck").exit_code == 0


@pytest.mark.parametrize("is_recorded", [True, False])
def test_rows_that_a_long_file_got_from_another_one_are_new_there(
    place: Path, evalstore: Evalstore, is_recorded: bool
) -> None:
    """Both files have the same results of the same cases afterwards."""
    others = [{**row, "country": f"other {row['country']}"} for row in ROWS]
    tree(place, {"tests/z/rows.md": TEST, "tests/z/data.jsonl": ""})
    lines = "".join(json.dumps(row) + "\n" for row in others)
    (place / "tests/z/data.jsonl").write_text(lines, encoding="utf-8")
    evalstore("run", "--yes", "--fail-on", "none")
    shutil.copy(place / "tests/data.jsonl", place / "tests/z/data.jsonl")
    if is_recorded:
        evalstore("run", "--yes", "--fail-on", "none")
    else:
        (place / "tests/data.jsonl").write_text(lines, encoding="utf-8")
    changed = json.loads(evalstore("diff", *["@~1", "@"] * is_recorded, "--json").stdout)
    count = len(ROWS) if is_recorded else 2 * len(ROWS)
    assert [len(changed[name]) for name in ("new", "gone")] == [count, count], changed
    compare(evalstore, place)


def test_parts_whose_judgements_are_used_again_are_settled(
    any_place: Path, evalstore: Evalstore, found: list[int]
) -> None:
    judge = "id: judge\nprovider: scripted\nresponses: [{answer: {pass: true}}]\n"
    settings = {"evalstore.yaml": "candidates: [one]\nevaluators: [judge]\n"}
    told = TEST.replace("---\n\n~~~", "---\n\nIs it a city?\n\n~~~")
    tree(any_place, {**settings, "models/judge.yaml": judge, "tests/rows.md": told})
    evalstore("run", "--fail-on", "none")
    (any_place / "tests/rows.md").write_text(
        told.replace("- contains", "- startsWith: Oslo\n- contains"), encoding="utf-8"
    )
    report = json.loads(evalstore("run", "--fail-on", "none", "--json").stdout)
    assert report["judged"] == len(ROWS)
    assert not [model for model in report["spending"] if model["part"] == "evaluator"]
    found.clear()
    assert evalstore("status").stdout.startswith("Nothing to do")
    assert found[0] > 1
