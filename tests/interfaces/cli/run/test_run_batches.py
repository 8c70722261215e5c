"""A run in several batches says and costs what it would in one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalstore.planning import cells
from tests.builders import tree
from tests.interfaces.cli.conftest import Evalstore

SAME = "# 👤\n\nThe same question\n\n---\n\nThe same instructions.\n"
SCRIPT = "provider: scripted\ncosts: [{costPerCall: 0.1}]\nresponses: "
GOOD = "[{answer: {pass: true, feedback: fine}}]\n"
WORKSPACE = {
    "evalstore.yaml": "candidates: [one]\nevaluators: [judge]\n",
    "models/one.yaml": f"id: one\n{SCRIPT}[{{answer: Yes}}]\n",
    "models/judge.yaml": f"id: judge\n{SCRIPT}{GOOD}",
    "models/other.yaml": f"id: other\n{SCRIPT}{GOOD}",
    "tests/a.md": SAME,
    "tests/b.md": "# 👤\n\nAnother one\n\n---\n\nJudge.\n",
    "tests/z.md": SAME,
}


@pytest.fixture(autouse=True, params=[1, 4_000], ids=["batches", "whole"])
def _batch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cells, "BATCH", request.param)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tree(tmp_path, WORKSPACE)


def run(evalstore: Evalstore, *options: str) -> Any:
    ran = evalstore("run", "--json", *options)
    assert ran.exit_code == 0, ran
    return json.loads(ran.stdout)


def numbers(report: Any) -> tuple[Any, ...]:
    return (
        report["asked"],
        report["judged"],
        report["reused"],
        pytest.approx(report["cost"]),
        pytest.approx(report["saved"]),
    )


def test_what_two_files_ask_is_asked_and_counted_once(place: Path, evalstore: Evalstore) -> None:
    assert numbers(run(evalstore)) == (2, 2, 0, 0.4, 0)
    assert numbers(run(evalstore)) == (0, 0, 2, 0, 0.4)


def test_a_later_file_that_wants_more_answers_gets_them(place: Path, evalstore: Evalstore) -> None:
    (place / "tests/z.md").write_text("---\nattempts: 3\n---\n\n" + SAME)
    assert numbers(run(evalstore)) == (4, 4, 0, 0.8, 0)
    assert numbers(run(evalstore)) == (0, 0, 4, 0, 0.8)


def test_a_judge_that_only_a_later_file_wants_judges(place: Path, evalstore: Evalstore) -> None:
    (place / "evalstore.yaml").write_text("candidates: [one]\nevaluators: [judge, other]\n")
    for name, who in (("a", "judge"), ("b", "judge"), ("z", "other")):
        path = place / f"tests/{name}.md"
        path.write_text(f"---\nevaluators: [{who}]\n---\n\n" + path.read_text())
    assert numbers(run(evalstore)) == (2, 3, 0, 0.5, 0)


def test_the_price_is_that_of_all_files(place: Path, evalstore: Evalstore) -> None:
    (place / "tests/z.md").write_text("---\nattempts: 30\n---\n\n" + SAME)
    with (place / "evalstore.yaml").open("a") as settings:
        settings.write("confirmAbove: 3\n")
    assert evalstore("run").exit_code == 4


def test_a_refresh_asks_what_two_files_ask_once(place: Path, evalstore: Evalstore) -> None:
    run(evalstore)
    assert numbers(run(evalstore, "--refresh")) == (2, 2, 0, 0.4, 0)


def test_a_retry_judges_what_two_files_share_once(place: Path, evalstore: Evalstore) -> None:
    good = (place / "models/judge.yaml").read_text()
    (place / "models/judge.yaml").write_text(f"id: judge\n{SCRIPT}[{{answer: What?}}]\n")
    assert evalstore("run").exit_code == 3
    ran = evalstore("run", "--retry-errors", "--json")
    assert (ran.exit_code, json.loads(ran.stdout)["judged"]) == (3, 2)
    (place / "models/judge.yaml").write_text(good)
    assert numbers(run(evalstore, "--retry-errors"))[:2] == (0, 2)
    assert evalstore("status").stdout.startswith("Nothing to do")


def test_what_fails_is_tried_as_often(place: Path, evalstore: Evalstore) -> None:
    (place / "tests/z.md").write_text("---\nattempts: 3\n---\n\n" + SAME)
    (place / "models/one.yaml").write_text(f"id: one\n{SCRIPT}[{{error: 400}}]\n")
    ran = evalstore("run", "--json")
    assert (ran.exit_code, json.loads(ran.stdout)["failed"]) == (3, 4)


def test_two_names_of_one_model_cost_what_each_of_them_costs(
    place: Path, evalstore: Evalstore
) -> None:
    script = "provider: scripted\nproviderModelCode: same\nresponses: [{answer: Yes}]\n"
    (place / "models/one.yaml").write_text(f"id: one\n{script}costs: [{{costPerCall: 0.1}}]\n")
    (place / "models/dear.yaml").write_text(f"id: dear\n{script}costs: [{{costPerCall: 5}}]\n")
    (place / "evalstore.yaml").write_text(
        "candidates:\n  - {id: one, prohibitedTags: [x]}\n  - {id: dear, requiredTags: [x]}\n"
        "evaluators: [judge]\n"
    )
    (place / "tests/b.md").write_text("---\ntags: [x]\n---\n\n# 👤\n\nDear?\n\n---\n\nJudge.\n")
    output = run(evalstore)
    costs = {
        item["model"]: item["cost"] for item in output["spending"] if item["part"] == "candidate"
    }
    assert costs == {"one": pytest.approx(0.1), "dear": pytest.approx(5)}


ROWS = "".join(f'{{"number": {number}}}\n' for number in range(70))
"""The rows of a file whose cases are in several nodes."""


def remove_a_row(place: Path) -> None:
    (place / "tests/data.jsonl").write_text(ROWS[: ROWS.index('{"number": 69}')])


def edit_a_row(place: Path) -> None:
    (place / "tests/data.jsonl").write_text(ROWS.replace("69", "70"))


def add_a_tag(place: Path) -> None:
    test = place / "tests/a.md"
    test.write_text(test.read_text().replace("---\n", "---\ntags: [new]\n", 1))


@pytest.mark.parametrize("edit", [remove_a_row, edit_a_row, add_a_tag])
def test_a_run_after_an_edit_that_leaves_the_first_batches_nothing_to_do(
    edit: Callable[[Path], None],
    place: Path,
    evalstore: Evalstore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cells, "BATCH", min(15, cells.BATCH))
    (place / "tests/data.jsonl").write_text(ROWS)
    checked = "# 👤\n\nWhat is {{number}}?\n\n---\n\n~~~checks\n- contains: Yes\n~~~\n"
    (place / "tests/a.md").write_text(f"---\ndataset: data.jsonl\n---\n\n{checked}")
    assert run(evalstore)["verdicts"]["pass"] == 72
    edit(place)
    assert run(evalstore)["asked"] == (1 if edit is edit_a_row else 0)
    assert evalstore("fsck").exit_code == 0
    assert evalstore("status").stdout.startswith("Nothing to do")
