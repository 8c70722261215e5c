"""What `diff` prints of many pairs, which are in files, is what it prints of few."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest

from evalstore import Workspace
from evalstore.core import batches
from evalstore.store import results
from tests.builders import tree
from tests.interfaces.cli.conftest import Evalstore
from tests.interfaces.cli.long_files import keep_in_files, treat_as_long

TEST = "---\ndataset: data.jsonl\n---\n\n# 👤\n\nWhere is {{city}}?\n\n---\n\n~~~checks\n- "
FORMS = (("-v",), ("--json",), ("-o", "csv"), ("--answers", "-v"), ("--name-only",), ("--flips",))


def _rows(numbers: range) -> str:
    return "".join(json.dumps({"city": f"city {number}"}) + "\n" for number in numbers)


def _candidate(edition: int, digit: int) -> str:
    responses = f"responses: [{{when: '{digit}.?[?]', answer: Rome}}, {{answer: Oslo {edition}}}]"
    return f"id: one\nprovider: scripted\nextraIdentifier: v{edition}\n{responses}\n"


@pytest.fixture
def edited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evalstore: Evalstore) -> None:
    """Two runs whose rows are new, gone, in another order, broken, fixed or otherwise answered."""
    monkeypatch.chdir(tmp_path)
    tree(tmp_path, {"evalstore.yaml": "candidates: [one]\n"})
    for edition, numbers, check in (
        (1, range(60), "contains: Oslo"),
        (2, range(70, 5, -1), "{contains: Rome, not: true}"),
    ):
        tree(
            tmp_path,
            {"tests/data.jsonl": _rows(numbers), "models/one.yaml": _candidate(edition, edition)},
        )
        tree(tmp_path, {"tests/a.md": f"{TEST}{check}\n~~~\n"})
        evalstore("run", "--fail-on", "none")


@pytest.mark.usefixtures("edited")
def test_pairs_in_files_are_printed_like_those_in_memory(
    evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    sides = (("@~1", "@"), ("@", "@~1"), ("@~1", "@work"), ("@work", "@~1"))
    printed = [evalstore("diff", *pair, *form).stdout for pair in sides for form in FORMS]
    assert all(
        word in printed[0] for word in ("Broke (", "Fixed (", "Changed (", "New (", "Gone (")
    )
    keep_in_files(monkeypatch)
    assert printed == [evalstore("diff", *pair, *form).stdout for pair in sides for form in FORMS]
    diff = Workspace(Path.cwd()).diff("@~1", "@")
    assert len({*diff.feedback}) == len(diff.feedback) > 5
    assert all(diff.feedback[each] == text for each, text in diff.feedback.items())
    assert ("pass", ("no id",)) not in diff.feedback
    assert diff.broke == [*diff.broke]


@pytest.mark.extended
def test_a_comparison_needs_little_memory_for_a_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evalstore: Evalstore
) -> None:
    treat_as_long(monkeypatch)
    keep_in_files(monkeypatch)
    for module, name, number in (
        (batches, "SIZE", 20),
        (results, "_MOST_KEPT", 20),
        (batches, "SMALL_SIZE", 20),
    ):
        monkeypatch.setattr(module, name, number)
    most = {
        ("diff", "@~1", "@"): 1_100,
        ("report", "--markdown"): 1_400,
        ("report", "@", "-o", "page.html"): 4_500,  # 1,500 of thousands: its batches are larger
        ("diff", "@", "@~1", "--"): 1_550,
    }
    """The last one is of a run of some edited cases, which lacks the others."""
    peaks: dict[tuple[str, ...], list[int]] = {command: [] for command in most}
    for place, count in enumerate((80, 150, 450)):
        root = tree(tmp_path / str(place), {"evalstore.yaml": "candidates: [one]\n"})
        monkeypatch.chdir(root)
        tree(root, {"tests/data.jsonl": _rows(range(count))})
        tree(root, {"tests/a.md": f"{TEST}contains: Oslo\n~~~\n"})
        for edition in (1, 2):
            tree(root, {"models/one.yaml": _candidate(edition, edition)})
            assert "complete" in evalstore("run", "--fail-on", "none", "--yes").stdout
        for command, of_command in peaks.items():
            if command[-1] == "--":
                tree(root, {"tests/a.md": f"{TEST}contains: Rome\n~~~\n"})
                evalstore("run", "--fail-on", "none", "--yes", "--limit", str(count // 2))
            tracemalloc.start()
            assert evalstore(*command).exit_code in (0, 1)
            of_command.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    grown = {command: (last - before) / 300 for command, (_, before, last) in peaks.items()}
    assert all(grown[command] < most[command] for command in most), grown
