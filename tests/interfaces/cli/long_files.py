"""Treats files of some dozen rows as if they had many, so that tests of these are quick."""

from __future__ import annotations

import json

import pytest

from evalstore.comparison import pair_groups
from evalstore.core import batches
from evalstore.files import filed_mapping, filed_sequence, temporary_list
from evalstore.planning import planner
from evalstore.planning.cells import cell_batches
from evalstore.runs import run_plans
from evalstore.runs.status import status as plan_status
from evalstore.store.trees import case_chunks, case_files, cases_of_parts
from evalstore.workspace import digest_set
from evalstore.workspace.testfiles import context as kept
from evalstore.workspace.testfiles import expansion

HEAD = "---\ndataset: data.jsonl\ntags: [a, b]\n---\n\n"
CHECKED = f"{HEAD}# 👤\n\nWhere is {{{{country}}}}?\n\n---\n\n"
CHECK = "~~~checks\n- contains: '{{capital}}'\n~~~\n"
PRICE = "costs: [{costPerCall: 0.0007}]\n"
ONE = "id: one\nprovider: scripted\nresponses: [{when: ' 1.?[?]', answer: Rome}, {answer: Oslo}]\n"
TWO = "id: two\nprovider: scripted\nresponses: [{when: '7', error: 500}, {answer: Oslo}]\n"
JUDGE = (
    "id: judge\nprovider: scripted\n"
    "responses: [{when: '3', answer: {pass: false}}, {answer: {pass: true}}]\n"
)
ROWS = "".join(
    json.dumps({"country": f"land {number}", "capital": "Oslo"}) + "\n" for number in range(150)
)


def treat_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set all numbers from which on a file is long to small ones."""
    for module, name, number in (
        (expansion, "_MOST_AT_ONCE", 50),
        (kept, "KEPT_AT_ONCE", 50),
        (case_chunks, "MAX_PART", 8),
        (case_files, "MAX_PART", 8),
        (case_files, "_AT_ONCE", 8),
        (cell_batches, "FEW", 50),
        (planner, "FEW", 50),
        (digest_set, "_BUCKET_BITS", 6),
        (run_plans, "BATCH", 30),
        (run_plans, "LONGEST", 30),
        (plan_status, "FEW", 50),
        (plan_status, "BATCH", 30),
        (plan_status, "LONGEST", 30),
    ):
        monkeypatch.setattr(module, name, number)


def keep_in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep all but a few results of a comparison in files, and read them in small batches."""
    for module, name, number in (
        (filed_sequence, "_FEW", 9),
        (filed_mapping, "_FEW", 5),
        (temporary_list, "_AT_ONCE", 4),
        (batches, "_SIZE", 7),
        (pair_groups, "_AT_ONCE", 7),
        (cases_of_parts, "_FEW", 9),
        (cases_of_parts, "_AT_ONCE", 3),
    ):
        monkeypatch.setattr(module, name, number)
