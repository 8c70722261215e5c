"""`--retry-errors` of long files that share questions selects and plans as all rows together do."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable
from contextlib import suppress
from operator import le
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from evalstore.core.errors import NothingSelectedError
from evalstore.planning import cells, failed_work
from evalstore.planning.cells import EarlierBatches, StreamedCells, batches
from evalstore.planning.failed_work import FailedWork
from evalstore.planning.open_project import open_project
from evalstore.planning.options import Location, SelectionOptions
from evalstore.planning.plan import Plan
from evalstore.planning.planner import plan_cells, resolve_scope
from evalstore.runs.status import status as plan_status
from tests.builders import tree
from tests.interfaces.cli.conftest import Evalstore
from tests.interfaces.cli.long_files import CHECK, JUDGE, ONE, TWO, treat_as_long

pytestmark = pytest.mark.extended

_RETRIED = SelectionOptions(retry_errors=True)


_SETTINGS = "candidates: [one, two]\nretries: 0\n"


def _settings(choice: random.Random) -> dict[str, str]:
    """Models and a judge of the same versions as before, which fail at other rows."""
    return {
        "evalstore.yaml": f"{_SETTINGS}evaluators: [judge]\n",
        "models/one.yaml": ONE.replace(
            "[{", f"[{{when: '{choice.randrange(10)}', error: 500}}, {{"
        ),
        "models/two.yaml": TWO.replace("'7'", f"'{choice.randrange(10)}'"),
        "models/judge.yaml": JUDGE.replace(
            "[{", f"[{{when: 'land {choice.randrange(1, 6)}', error: 500}}, {{"
        ),
    }


def _files(choice: random.Random, *, equal: bool) -> dict[str, str]:
    """Files of the same rows, each with its own attempts unless they are `equal`."""
    rows = [f'{{"country": "land {number}", "capital": "Oslo"}}\n' for number in range(30)]
    files = {**_settings(choice), "evalstore.yaml": _SETTINGS}
    for number in range(3):
        files[f"tests/rows{number}.jsonl"] = "".join(choice.sample(rows, 25))
        attempts = 1 if equal else choice.randint(1, 3)
        turn = "# 👤\n\nWhere is {{country}}?\n\n"
        more, times = choice.random() < 0.3, "" if equal else " ×2"
        files[f"tests/t{number}.md"] = (
            f"---\ndataset: rows{number}.jsonl\nattempts: {attempts}\n---\n\n"
            + (f"# ▶ same{times}\n\n{turn}# ▶ other\n\n# 👤\n\nHi\n\n" if more else turn)
            + "---\n\n"
            + choice.choice(("Is it the capital of {{country}}?\n\n", "Is it a city?\n\n", ""))
            + CHECK
        )
    return files


def _selected(project: Any, busy: bytearray, tried: FailedWork, cells: StreamedCells) -> list[Any]:
    questions = sorted({id for cell in cells for id in cell.questions})
    return [
        [*busy],
        [id for id in questions if id in tried.questions],
        sorted(tried.judgements),
    ]


def _compare_selected(root: Path, *, equal: bool) -> int:
    """Compare what is selected with what a plan of all cells selects; returns how many cells.

    Unless all need `equal` numbers of answers, that plan has more cells, which lack none.
    """
    counts: list[int] = []
    find = failed_work.find_tried

    def find_both(project: Any, cells: Any, selection: Any, *ages: Any) -> Any:
        flags, whole = bytearray(len(cells)), FailedWork(set(), set())
        with (
            mock.patch.object(failed_work, "batches", lambda cells: [[*cells]]),
            suppress(NothingSelectedError),
        ):
            flags, whole = find(project, cells, selection, *ages)
        counts.append(sum(flags))
        busy, tried = find(project, cells, selection, *ages)
        found, (every, *others) = (
            _selected(project, *each, cells) for each in ((busy, tried), (flags, whole))
        )
        assert found[1:] == others
        assert found[0] == every or (not equal and all(map(le, found[0], every)))
        return busy, tried

    with (
        open_project(Location(root)) as project,
        mock.patch.object(failed_work, "find_tried", find_both),
    ):
        try:
            scope = resolve_scope(project, _RETRIED)
        except NothingSelectedError:
            assert counts == [0]
        else:
            _compare_plans(project, scope)
    return counts[0]


def _compare_plans(project: Any, scope: Any) -> None:
    """Compare the plans of batches with that of all cells."""
    earlier = EarlierBatches(scope.cells.shared)
    plans = [plan_cells(project, scope, batch, earlier=earlier) for batch in batches(scope.cells)]
    whole = plan_cells(project, scope, [*scope.cells])
    assert _counts(*plans) == _counts(whole)
    judged = {judgement.place for judgement in whole.judgements}
    assert all(plan.judged_earlier.keys() <= judged for plan in plans)


def _counts(*plans: Plan) -> Counter[Hashable]:
    """How many answers and judgements these plans have, by what is asked and judged."""
    counts: Counter[Hashable] = Counter()
    for plan in plans:
        counts.update({ask.key: ask.count for ask in plan.asks})
        counts.update({judgement.key: judgement.count for judgement in plan.judgements})
    return counts


@pytest.mark.parametrize(
    ("seed", "equal"),
    [
        (0, True),
        (3, False),
        (5, True),
        *(pytest.param(seed, seed % 2 == 0, marks=pytest.mark.slow) for seed in (0, 1, 2, 3, 4, 5)),
    ],
)
def test_what_is_retried_is_that_of_a_plan_of_all_rows(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    evalstore: Evalstore,
    seed: int,
    equal: bool,
) -> None:
    treat_as_long(monkeypatch)
    choice = random.Random(seed)
    root = tree(tmp_path / "ws", _files(choice, equal=equal))
    monkeypatch.chdir(root)
    compared = 0
    for options in (["--attempts", "1"], ["--limit", "35"], [], ["--retry-errors"]):
        assert evalstore("run", "--yes", "--fail-on", "none", *options).exit_code in (0, 3, 5)
        tree(root, _settings(choice))
        count = _compare_selected(root, equal=equal)
        compared += count
        if count:
            several = plan_status.status(Location(root), _RETRIED)
            with monkeypatch.context() as patch:
                patch.setattr(cells, "BATCH", 10**9)
                one = plan_status.status(Location(root), _RETRIED)
            assert not equal or [*several.items] == [*one.items]
            assert (several.ask, several.judge) == (one.ask, one.judge)
            assert not equal or several.changes == one.changes
    assert compared


def _asking(settings: str, criterion: str) -> str:
    head = (
        f"---\ndataset: rows.jsonl\n{settings}---\n\n# 👤\n\nWhere is {{{{country}}}}?\n\n---\n\n"
    )
    return f"{head}{criterion}\n"


_FAILING = {
    "evalstore.yaml": "candidates: [one]\nevaluators: [judge]\nretries: 0\n",
    "models/one.yaml": ONE.replace("[{", "[{when: '[0-8]', error: 500}, {"),
    "models/judge.yaml": JUDGE,
    "tests/rows.jsonl": "".join(f'{{"country": "land {number}"}}\n' for number in range(20)),
    "tests/a.md": _asking("attempts: 2\n", "Is it a city?"),
    "tests/b.md": _asking("", "Is it a capital?"),
    "tests/c.md": _asking("", "Is it a city?"),
}


def test_a_case_of_a_later_batch_is_judged_by_the_answer_that_an_earlier_one_retried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evalstore: Evalstore, documents: Any
) -> None:
    treat_as_long(monkeypatch)
    monkeypatch.chdir(root := tree(tmp_path / "ws", _FAILING))
    evalstore("run", "--fail-on", "none")
    tree(root, {"models/one.yaml": ONE})
    planned = documents("status", "--retry-errors")
    ran = documents("run", "--retry-errors", "--fail-on", "none")
    counts = planned["ask"], planned["judge"]
    assert (ran["asked"], ran["judged"]) == counts == (38, 57)
    assert evalstore("status").stdout.startswith("Nothing to do")


def test_verdicts_on_answers_that_no_failure_lacks_are_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evalstore: Evalstore, documents: Any
) -> None:
    head = "---\nattempts: 2\n---\n\n# ▶ a\n\n# 👤\n\nWhere is land 5?\n\n# ▶ b\n\n# 👤\n\nHi\n\n"
    only = {"tests/two.md": f"{head}---\n\nIs it a city?\n"}
    files = {name: text for name, text in _FAILING.items() if not name.startswith("tests/")}
    monkeypatch.chdir(root := tree(tmp_path / "ws", files | only))
    evalstore("run", "--fail-on", "none", "--attempts", "1")
    tree(root, {"models/one.yaml": ONE})
    planned = documents("status", "--retry-errors")
    ran = documents("run", "--retry-errors", "--fail-on", "none")
    assert (ran["asked"], ran["judged"]) == (planned["ask"], planned["judge"]) == (2, 1)
