"""What `diff` prints of very many pairs, which are in files, is what it prints of few."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalstore import Workspace
from evalstore.files import filed_mapping, filed_sequence, temporary_list
from evalstore.reports import case_edits, pair_groups
from tests.builders import tree
from tests.cli.conftest import Evalstore

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
    for module, name, number in (
        (filed_sequence, "_FEW", 9),
        (filed_mapping, "_FEW", 5),
        (temporary_list, "_AT_ONCE", 4),
        (case_edits, "_AT_ONCE", 7),
        (pair_groups, "_AT_ONCE", 7),
        (pair_groups, "_KEPT", 2),
    ):
        monkeypatch.setattr(module, name, number)
    assert printed == [evalstore("diff", *pair, *form).stdout for pair in sides for form in FORMS]
    diff = Workspace(Path.cwd()).diff("@~1", "@")
    assert len({*diff.feedback}) == len(diff.feedback) > 5
    assert all(diff.feedback[id] == text for id, text in diff.feedback.items())
    assert "no id" not in diff.feedback
    assert diff.broke == [*diff.broke] == [*diff.swapped().swapped().broke]
