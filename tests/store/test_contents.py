"""Contents are decoded only if they match their id and have the fields and types of their kind."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from evalstore.core import hashing
from evalstore.core.deserialize import restore_case_file, restore_session
from evalstore.core.errors import StoreError
from evalstore.core.hashing import canonical_json
from evalstore.core.values import Case, CaseFile, Json, Question, Reply, Session
from evalstore.store import Store
from evalstore.store.contents import (
    SHAPES,
    as_time,
    decode_content,
    require_number,
    validator_of,
)
from evalstore.store.schema.table_definitions import EVENTS, TABLES, VERSIONS
from tests.store.sessions import fill, run_content

RUN = run_content(1)


def decoded(content: Json, table: str = "runs") -> Json:
    text = content if isinstance(content, str) else canonical_json(content)
    return decode_content(table, hashing.hash_bytes(text.encode("utf-8", "surrogatepass")), text)


def test_every_kind_has_a_shape() -> None:
    assert SHAPES.keys() == {*VERSIONS, *EVENTS}


def test_what_is_stored_has_the_shape_of_its_kind(path: Path) -> None:
    with closing(Store.open(path, create=True)) as store:
        fill(store)
    with closing(sqlite3.connect(path)) as raw:
        for table in TABLES:
            rows = raw.execute(f"SELECT id, content FROM {table}").fetchall()
            assert rows
            for id, text in rows:
                assert decode_content(table, id.hex(), text)["kind"]


def test_fields_of_a_later_version_are_kept() -> None:
    assert decoded(RUN | {"later": [1]}) == RUN | {"later": [1]}


def test_fields_of_a_later_version_are_not_taken_for_values_that_are_not_stored() -> None:
    session = Session(Question("1" * 32, None, "2" * 32, None), (Reply("An answer."),), 5, "n")
    content = hashing.describe_session(session)
    (turn,) = content["turns"]
    later = {"question": {"text": "Why?"}, "turns": [turn | {"wait": "long", "cost": {}}]}
    assert restore_session(decoded(content | later, "sessions")) == session
    file = CaseFile((Case("", "k", ("1" * 32,), None, (), (None,), code=("checks/a.py",)),))
    codes: tuple[Json, ...] = (5, [])
    for code in codes:
        content = hashing.describe_case_file(file) | {"code": code}
        assert restore_case_file(decoded(content, "nodes")).runs == ["checks/a.py"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("started", "1"),
        ("started", True),
        ("started", 1.0),
        ("started", 10**30),
        ("started", 2**62),
        ("snapshot", 7),
        ("snapshot", "short"),
        ("asked", "3"),
        ("asked", -1),
        ("message", 5),
        ("verdicts", {"pass": "1"}),
        ("candidates", [{"id": "m", "model": 5}]),
        ("candidates", {}),
        ("git", {"commit": "x", "dirty": "true"}),
        ("cost", "0.5"),
    ],
)
def test_a_field_of_another_type_is_named(field: str, value: Any) -> None:
    with pytest.raises(StoreError, match=rf"table 'runs': the field '{field}"):
        decoded(RUN | {field: value})


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("[]", "is not a run"),
        ("null", "is not a run"),
        ("NaN", "NaN is not JSON"),
        ('{"kind":"run","started":Infinity}', "Infinity is not JSON"),
        ("9" * 6_000, "cannot be read"),
        ("[" * 50_000 + "]" * 50_000, "nested too deeply"),
        ('{"kind":"tool"}', "is not a run"),
        ('{"kind":["run"]}', "is not a run"),
        ('{"kind":"run","message":"\\ud800"}', "surrogates not allowed"),
        ("{", "cannot be read"),
    ],
    ids=lambda text: text if len(text) < 60 else "long",
)
def test_invalid_content_is_named(content: str, words: str) -> None:
    with pytest.raises(StoreError, match=words):
        decoded(content)


def test_a_content_must_match_its_id() -> None:
    with pytest.raises(StoreError, match=f"row {'0' * 32} of the table 'runs'.*match its id"):
        decode_content("runs", "0" * 32, canonical_json(RUN))


def test_unknown_fields_may_not_be_deep_where_they_are_shown() -> None:
    deep: Json = 1
    for _ in range(500):
        deep = [deep]
    with pytest.raises(StoreError, match="more than 400 levels deep"):
        decoded(RUN | {"later": deep})


def test_a_large_content_may_not_have_very_many_values() -> None:
    text = '{"kind":"results","scheme":1,"x":[' + "[]," * 6_000_000 + "1]}"
    with pytest.raises(StoreError, match="too many values"):
        decode_content("nodes", hashing.hash_content(text), text)


def test_a_text_is_never_taken_for_a_number_in_any_record() -> None:
    assert validator_of("evaluation").isinstance_python({"instructions": [{"answers": [[0, 0]]}]})
    assert not validator_of("evaluation").isinstance_python(
        {"instructions": [{"answers": [["0", 0]]}]}
    )


@pytest.mark.parametrize("value", [b"1", "1", None, 1.0, True, 2**62])
def test_a_time_of_another_type_is_read_as_none(value: Any) -> None:
    with pytest.raises(StoreError, match="a time in it is not valid"):
        as_time(value, "runs", "0" * 32)


@pytest.mark.parametrize("value", [b"1", "1", float("inf"), float("nan"), True])
def test_a_number_of_another_type_is_read_as_none(value: Any) -> None:
    with pytest.raises(StoreError, match="a number in it is not valid"):
        require_number(value, "evaluations", "0" * 32)
