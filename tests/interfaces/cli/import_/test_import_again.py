"""Importing again after the source has changed: what nobody has touched follows the source."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import tree
from tests.interfaces.cli.conftest import Evalstore
from tests.interfaces.cli.import_.test_import import JOB, ROWS

ONE = '{"input": "Capital of Norway?", "ideal": "Oslo"}\n'
TWO = ONE + '{"input": "Capital of Italy?", "ideal": "Rome"}\n'
IMPORT = ("import", "openai-evals", "source/capitals.jsonl")
DATA, TEST = "tests/capitals/capitals.jsonl", "tests/capitals/capitals.md"
RECORD = "tests/capitals/.imported.json"


@pytest.fixture
def imported(workspace: Path, documents: Any) -> Path:
    """A workspace after an import whose source has changed since."""
    tree(workspace, {"source/capitals.jsonl": ONE})
    documents(*IMPORT)
    tree(workspace, {"source/capitals.jsonl": TWO})
    return workspace


def test_a_file_that_nobody_touched_follows_the_source(imported: Path, documents: Any) -> None:
    document = documents(*IMPORT)
    assert (document["written"], document["unchanged"], document["kept"]) == ([DATA], [TEST], [])
    assert "Rome" in (imported / DATA).read_text()
    assert documents(*IMPORT)["unchanged"] == [DATA, TEST]


def test_an_edited_file_is_kept_beside_one_that_follows(imported: Path, documents: Any) -> None:
    tree(imported, {TEST: (imported / TEST).read_text() + "\nMine.\n"})
    document = documents(*IMPORT)
    assert (document["written"], document["unchanged"], document["kept"]) == ([DATA], [], [TEST])
    assert "Mine." in (imported / TEST).read_text()


def test_an_edit_that_was_undone_is_not_an_edit(imported: Path, documents: Any) -> None:
    written = (imported / DATA).read_bytes()
    tree(imported, {DATA: "{}\n"})
    assert documents(*IMPORT)["kept"] == [DATA]
    tree(imported, {DATA: written})
    assert documents(*IMPORT)["written"] == [DATA]


def test_a_file_that_no_import_wrote_is_kept(workspace: Path, evalstore: Evalstore) -> None:
    tree(workspace, {"source/capitals.jsonl": ONE, DATA: "mine\n"})
    ran = evalstore(*IMPORT)
    assert ran.exit_code == 1
    reason = "it was edited, or no import wrote it; remove it or use --force"
    assert f"kept {DATA}: {reason}\n" in ran.stdout
    assert (workspace / DATA).read_text() == "mine\n"


def test_a_dry_run_says_what_would_follow_and_remembers_nothing(
    imported: Path, documents: Any
) -> None:
    before = (imported / RECORD).read_bytes()
    assert documents(*IMPORT, "-n")["written"] == [DATA]
    assert (imported / RECORD).read_bytes() == before
    assert "Rome" not in (imported / DATA).read_text()


def test_an_import_that_changes_nothing_leaves_the_record_alone(
    imported: Path, documents: Any
) -> None:
    documents(*IMPORT)
    before = (imported / RECORD).stat().st_ino
    documents(*IMPORT)
    assert (imported / RECORD).stat().st_ino == before


def test_a_link_in_the_place_of_a_file_is_kept(imported: Path, documents: Any) -> None:
    outside = imported.parent / "outside.jsonl"
    (imported / DATA).rename(outside)
    (imported / DATA).symlink_to(outside)
    assert documents(*IMPORT)["kept"] == [DATA]
    assert "Rome" not in outside.read_text()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"format": 2, "files": {}}', '{"format": 1, "files": []}']
)
def test_a_record_that_cannot_be_read_is_reported(
    imported: Path, evalstore: Evalstore, text: str
) -> None:
    tree(imported, {RECORD: text})
    ran = evalstore(*IMPORT)
    assert ran.exit_code == 2
    assert "the record of imports cannot be read\nhint: remove it: " in ran.stderr


def test_the_record_holds_digests_by_path(imported: Path) -> None:
    document = json.loads((imported / RECORD).read_text())
    assert (document["format"], list(document["files"])) == (1, [DATA, TEST])


# --- what 'check' would refuse is taken back

FROM_JOB = ("import", "nemo", "source/job.json")
QUESTIONS = "tests/job/qa.md"
REFUSED = JOB.replace("rows.jsonl", "hf://datasets/me/rows")


@pytest.fixture
def refused(workspace: Path, documents: Any) -> Path:
    """A workspace after an import whose source has become one that 'check' would refuse."""
    tree(workspace, {"source/job.json": JOB, "source/rows.jsonl": ROWS})
    documents(*FROM_JOB)
    tree(workspace, {"source/job.json": REFUSED})
    return workspace


def digests(workspace: Path) -> dict[str, str]:
    """What the record says of files."""
    actual: dict[str, str] = json.loads((workspace / "tests/job/.imported.json").read_text())[
        "files"
    ]
    return actual


def test_a_file_whose_successor_is_refused_stays_as_it_was(
    refused: Path, documents: Any, evalstore: Evalstore
) -> None:
    before = (refused / QUESTIONS).read_bytes(), digests(refused)
    document = documents(*FROM_JOB)
    assert QUESTIONS not in document["written"]
    assert [item["file"] for item in document["left"]] == [QUESTIONS]
    assert ((refused / QUESTIONS).read_bytes(), digests(refused)) == before
    assert evalstore("check").exit_code == 0
    other = JOB.replace("Q: {{item.q}}", "Question: {{item.q}}")
    tree(refused, {"source/job.json": other})
    assert documents(*FROM_JOB)["written"] == [QUESTIONS]


def test_an_edited_file_whose_successor_is_refused_stays_edited(
    refused: Path, documents: Any
) -> None:
    recorded = digests(refused)
    mine = (refused / QUESTIONS).read_bytes() + b"\nMine.\n"
    tree(refused, {QUESTIONS: mine})
    (refused / QUESTIONS).chmod(0o640)
    assert [item["file"] for item in documents(*FROM_JOB, "--force")["left"]] == [QUESTIONS]
    assert (refused / QUESTIONS).read_bytes() == mine
    assert (refused / QUESTIONS).stat().st_mode & 0o777 == 0o640
    assert digests(refused) == recorded
    assert documents(*FROM_JOB)["kept"] == [QUESTIONS]


def test_a_link_whose_successor_is_refused_stays_a_link(refused: Path, documents: Any) -> None:
    mine = refused / "tests/mine.md"
    (refused / QUESTIONS).rename(mine)
    (refused / QUESTIONS).symlink_to("../mine.md")
    assert [item["file"] for item in documents(*FROM_JOB, "--force")["left"]] == [QUESTIONS]
    assert (refused / QUESTIONS).readlink() == Path("../mine.md")


def test_a_file_that_is_refused_the_first_time_is_not_recorded(
    workspace: Path, documents: Any
) -> None:
    tree(workspace, {"source/job.json": REFUSED})
    documents(*FROM_JOB)
    assert not (workspace / QUESTIONS).exists()
    assert QUESTIONS not in digests(workspace)
