"""Treats files of some dozen rows as if they had many, so that tests of these are quick."""

from __future__ import annotations

import json

import pytest

from evalstore.core import batches, hashing
from evalstore.files import temporary_list
from evalstore.planning import cells
from evalstore.store.trees import case_chunks, tree_nodes
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
    json.dumps({"country": f"land {number}", "capital": "Oslo"}) + "\n" for number in range(75)
)


def treat_as_long(monkeypatch: pytest.MonkeyPatch, *, most: int = 8) -> None:
    """Set all numbers from which on a file is long to small ones.

    A part of a file has `most` nodes of `most` rows.
    """
    for module, name, number in (
        (expansion, "_MOST_AT_ONCE", 25),
        (kept, "KEPT_AT_ONCE", 25),
        (case_chunks, "_MIN_PART", most),
        (case_chunks, "MAX_UNDIVIDED", 2 * most),
        (case_chunks, "MAX_PART", most),
        (tree_nodes, "MAX_PART", most),
        (cells, "BATCH", 15),
        (hashing, "_BUCKET_BITS", 6),
    ):
        monkeypatch.setattr(module, name, number)


def keep_in_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep all but a few results of a comparison in files, and read them in small batches."""
    for module, name, number in (
        (temporary_list, "_FEW", 9),
        (batches, "SIZE", 7),
    ):
        monkeypatch.setattr(module, name, number)
