"""Which rows may be shared: it is decided from few contents, and with all they refer to."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from evalstore.core.hashing import canonical_json, hash_content
from evalstore.exchange.sync.push import find_shared_rows
from evalstore.remotes.upload import find_reached
from evalstore.store import Store
from evalstore.store.records import COPIED_TABLES, IdSnapshot, StoredRecord, check_record
from tests.remotes import stores

_EVENTS = ("sessions", "evaluations", "runs")


def test_without_excluded_tests_all_that_is_referred_to_is_shared(full: Store) -> None:
    ids = [id for _, id in stores.rows(full)]
    shared = find_shared_rows(full, frozenset(ids), frozenset()).ids
    assert shared
    events = [id for table, id in stores.rows(full) if table in _EVENTS]
    assert shared.joined == find_reached(full, events).joined
    assert set(shared.joined) == set(COPIED_TABLES) - {"tools", "schemas", "failures"}


def test_no_answer_or_judgement_is_decoded(full: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[str] = []
    iterate = IdSnapshot.iterate_contents

    def note(self: IdSnapshot, table: str, *arguments: tuple[str, ...]) -> object:
        decoded.append(table)
        for row in iterate(self, table, *arguments):
            assert table in ("nodes", "runs", "evaluators") or "dot.png" in str(row)
            yield row

    monkeypatch.setattr(IdSnapshot, "iterate_contents", note)
    find_shared_rows(full, frozenset(id for _, id in stores.rows(full)), frozenset())
    assert not {*decoded} & {"sessions", "evaluations"}


def test_a_test_is_shared_with_its_tools_and_schema(empty: Store) -> None:
    tool = _record("tools", {"kind": "tool", "name": "look"})
    schema = _record("schemas", {"kind": "schema", "schema": {"type": "object"}})
    other = _record("tools", {"kind": "tool", "name": "SECRET"})
    test = {"kind": "test", "messages": [], "tools": [tool.id], "schema": schema.id}
    prompt = {"kind": "prompt", "messages": []}
    model = _record("models", {"kind": "model", "provider": "p", "code": "c"})
    versions = [tool, schema, other, _record("tests", test), _record("prompts", prompt), model]
    session = {
        "kind": "session",
        "test": versions[3].id,
        "model": model.id,
        "turns": [{"text": "a"}],
        "started": 1,
        "nonce": "n",
        "origin": "model",
    }
    empty.ensure_records([*map(check_record, [*versions, _record("sessions", session)])])
    shared = find_shared_rows(empty, frozenset([bytes.fromhex(versions[3].id)]), frozenset()).ids
    assert shared
    assert set(shared.joined) == {"tools", "schemas", "tests", "models", "sessions"}
    assert shared.joined["tools"].hex() == tool.id


def _record(table: str, content: Mapping[str, object]) -> StoredRecord:
    text = canonical_json({"scheme": 1, **content})
    return StoredRecord(table, hash_content(text), text)
