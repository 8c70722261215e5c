"""One example for each law; test_reuse has them as properties."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from evalstore.core.values import SPECIAL_TAGS
from evalstore.store import Store
from tests import stored_rows
from tests.laws.desk_model import PNG, Desk, File
from tests.laws.fakes import Fake, Place, counted


@pytest.fixture
def fake() -> Fake:
    return Fake()


@pytest.fixture
def place(folder: Path, fake: Fake, store_url: str | None) -> Place:
    return Place(folder, fake, store_url)


@pytest.fixture
def file_place(folder: Path, fake: Fake) -> Place:
    """A workspace whose store is a file, for what only files have."""
    return Place(folder, fake)


@pytest.fixture
def project() -> Desk:
    """Three files: a plain one, one with two rows and a tool, one with a schema and a picture."""
    return Desk(
        files={
            "plain": File(0),
            "rows": File(1, 1, ("Oslo", "Bergen"), tool=True),
            "form": File(2, 2, schema=True, picture=True),
        }
    )


def run(place: Place, project: Desk) -> tuple[list[str], list[str]]:
    """Write and run; the texts that were asked, the instructions that were judged by."""
    place.write(project.render())
    with counted(place.fake) as (asked, judged):
        report = place.run()
    assert report.status == "complete"
    return (
        sorted(element.text for element in asked.elements()),
        sorted(element.instructions for element in judged.elements()),
    )


def test_law_1_what_the_model_is_shown(place: Place, project: Desk) -> None:
    """An edit of what the model is shown makes a new test version: that case alone is asked."""
    assert len(run(place, project)[0]) == 4
    project.files["rows"].rows = ("Oslo", "Turku")
    assert run(place, project) == (["Question 1 Turku?"], ["Expect 1 Turku."])


def test_law_2_instructions(place: Place, project: Desk) -> None:
    """An edit after the last `---`: stored answers are judged again, none is asked."""
    run(place, project)
    project.files["rows"].instruction = 0
    assert run(place, project) == ([], ["Expect 0 Bergen.", "Expect 0 Oslo."])


def test_law_3_what_changes_no_id(place: Place, project: Desk) -> None:
    """Ordinary tags, file names, key order, line ends, comments change no id."""
    run(place, project)
    for noise in range(1, 12):
        for file in project.files.values():
            file.noise, file.tags = noise, (f"tag{noise}", "x")
        project.files = {
            f"{noise}/{name.split('/')[-1]}": item for name, item in project.files.items()
        }
        assert run(place, project) == ([], [])


@pytest.mark.parametrize(
    ("field", "asked"),
    [
        ("tool", ["Question 1 Bergen?", "Question 1 Oslo?"]),
        ("schema", ["Question 2?"]),
        ("picture", ["Question 2?"]),
        ("picture_name", ["Question 2?"]),
    ],
)
def test_law_4_what_tests_refer_to(
    place: Place, project: Desk, field: str, asked: list[str]
) -> None:
    """Tools, schemas, a file's bytes or path change the ids of just the tests using them."""
    run(place, project)
    setattr(project, field, "other.png" if field == "picture_name" else 1)
    assert run(place, project)[0] == asked


@pytest.mark.parametrize("tag", [tag for tag in SPECIAL_TAGS if tag != "_evaluator"])
def test_law_4_special_tags(place: Place, project: Desk, tag: str) -> None:
    """Special tags change the ids of just the tests using them."""
    run(place, project)
    project.files["plain"].special = (tag,)
    assert run(place, project)[0] == ["Question 0?"]


def test_law_5_an_empty_plan(place: Place, project: Desk) -> None:
    """After a complete run the plan is empty, for any settings."""
    project.candidates, project.judges = ("first", "twin", "plain"), ("judge", "judge2")
    project.attempts, project.per_judge, project.limit = 2, 2, 5
    project.files["plain"].instruction = 3
    project.files["copy"] = File(0, 1, attempts=1)
    run(place, project)
    assert place.status().items == []
    assert run(place, project) == ([], [])


def test_law_5_fewer_answers_are_judged_where_fewer_are_wanted(place: Place, project: Desk) -> None:
    """After a complete run the plan is empty, and nothing is judged that nobody wants judged."""
    project.files = {"three": File(0, 0, attempts=3), "one": File(0, 1, attempts=1)}
    asked, judged = run(place, project)
    assert asked == ["Question 0?"] * 3
    assert judged == ["Expect 0."] * 3 + ["Expect 1."]
    assert place.status().items == []


def test_law_6_nothing_is_overwritten(place: Place, project: Desk) -> None:
    """Nothing stored is overwritten or deleted."""
    run(place, project)
    before = place.rows()
    project.files = {"other": File(1, 3)}
    project.tool = 1
    run(place, project)
    assert before.items() <= place.rows().items()


def test_law_6_old_versions_stay_readable(place: Place, project: Desk) -> None:
    """Nothing stored is overwritten: going back to what was asked before asks nothing."""
    run(place, project)
    project.files["plain"].question = 2
    run(place, project)
    project.files["plain"].question = 0
    assert run(place, project) == ([], [])


def test_law_6_ids_do_not_depend_on_the_machine(
    place: Place, project: Desk, tmp_path: Path
) -> None:
    """Ids never depend on row numbers, clocks, machines or databases."""
    other = Place(tmp_path / "elsewhere", place.fake)
    other.root.mkdir()
    project.files = dict(reversed(project.files.items()))
    run(other, project)
    run(place, Desk())
    run(place, project)
    kinds = {"tests", "prompts", "models", "evaluators", "evaluation_versions", "tools", "schemas"}
    ids = {key for key in other.rows() if key[0] in kinds}
    assert ids <= place.rows().keys()


def test_law_7_what_is_left_of_a_run_in_vain(place: Place, project: Desk) -> None:
    """Running again finishes a run that failed; a failure is logged, and no answer."""
    place.write(project.render())
    place.fake.failing = True
    report = place.run()
    assert (report.status, report.failed, report.exit_code) == ("incomplete", 4, 3)
    assert {item.reason for item in place.status().items if item.kind == "ask"} == {
        "retry of a failure: nobody is there"
    }
    place.fake.failing = False
    assert len(run(place, project)[0]) == 4
    assert place.status().items == []


@pytest.mark.parametrize(
    ("table", "column"), [("sessions", "content"), ("evaluations", "verdict"), ("files", "data")]
)
def test_law_9_any_changed_byte(place: Place, project: Desk, table: str, column: str) -> None:
    """`fsck` recomputes every id from what is stored and finds any changed byte."""
    run(place, project)
    assert place.damages() == []
    changed = f"replace({column}, 'a', 'b') || 'x'"
    if not isinstance(place.store, Path):  # it computes columns, so a content must be JSON
        changed = {"content": "replace(content, 'a', 'b')", "data": "data || 'x'"}.get(
            column, changed
        )
    stored_rows.execute(place.store, f"UPDATE {table} SET {column} = {changed}")
    assert {damage.kind for damage in place.damages()} & {"session", "judgement", "file"}


def test_law_10_every_item_has_a_reason(place: Place, project: Desk) -> None:
    """For every question or judgement the plan contains, evalstore can say why it is there."""
    run(place, project)
    project.files["rows"].instruction = 0
    project.files["new"] = File(0, 1)
    project.tool, project.schema, project.picture, project.evaluator_prompt = 1, 1, 1, 1
    project.attempts, project.per_judge, project.candidates = 2, 2, ("first", "plain")
    place.write(project.render())
    items = place.status().items
    assert all(item.reason for item in items)
    assert {item.file for item in items} == {f"tests/{name}.md" for name in project.files}


def test_the_index_is_not_an_authority(file_place: Place, project: Desk) -> None:
    """Losing the index, or the store beside it, leads to no wrong reuse."""
    place = file_place
    run(place, project)
    (place.root / ".evalstore/index.json").unlink()
    assert run(place, project) == ([], [])
    shutil.rmtree(place.root / ".evalstore")
    assert len(run(place, project)[0]) == 4


def test_another_store_beside_the_same_index_knows_nothing(place: Place, project: Desk) -> None:
    """The index speaks of one store: another one is asked for what it has."""
    run(place, project)
    if isinstance(place.store, Path):
        for name in ("store.db", "store.db-wal", "store.db-shm"):
            (place.root / ".evalstore" / name).unlink(missing_ok=True)
    else:
        stored_rows.execute(place.store, f"DROP SCHEMA {place.store.schema} CASCADE")
        Store.open(place.store, create=True).close()
    assert len(run(place, project)[0]) == 4
    assert place.damages() == []
    assert PNG  # the picture is in the new store, too: fsck has followed the reference
