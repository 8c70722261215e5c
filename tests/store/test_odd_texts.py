"""NUL, quotes, placeholders and the like come back as they were, from either database."""

from __future__ import annotations

import math
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalstore.core import hashing
from evalstore.core.errors import StoreError
from evalstore.core.values import (
    Cost,
    Failure,
    FileVersion,
    Question,
    Reply,
    Session,
    ToolCall,
    Usage,
)
from evalstore.exchange.sync.fsck import check_store
from evalstore.planning.cell_results import find_feedback
from evalstore.store import Store
from evalstore.store.location import read_address
from evalstore.store.records import StoredRecord, check_record
from evalstore.store.search.index import split_words
from tests.postgresql_server import PostgreSQLServer
from tests.store.sessions import a_run, a_session, a_test, an_evaluation, session_row
from tests.store.test_search_index import open_index

TEXTS = {
    "NUL": "before\0after",
    "only NUL": "\0",
    "NULs": "\0\0a\0",
    "an escape": r"\u0000 is no NUL, and \\u0000 neither",
    "an escape behind NUL": "\0\\u0000\\\0\\\\u0000",
    "backslashes": "\\ \\\\ \\n \\' \\\"",
    "quotes": "it's \"quoted\" ''twice'' $$dollar$$ $1",
    "placeholders": "%s %(x)s ? %% :x :1 {0} 100%",
    "comments": "-- /* */ ; DROP TABLE sessions;",
    "4 bytes": "😀 𝔘𝔫𝔦 👩‍👩‍👧 🏳️‍🌈",
    "marks": "e\u0301 \u202e right \ufeff \ufffd \u2028 \x7f \x1b[31m",
    "controls": "".join(map(chr, range(1, 32))),
    "last": "\U0010ffff\uffff\ufffe",
    "JSON": '{"usd": 1, "latency": [1e400]}, "feedback": null',
    "long": "\0ä😀'%?\\" * 3_000,
}
odd = pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS.keys())


def store_all(store: Store, text: str) -> dict[str, Any]:
    """Store a text wherever there may be one; returns what every query says."""
    ((test, content),) = a_test(text).items()
    data = text.encode()
    file = FileVersion("text/plain", data)
    file_id = hashing.identify(hashing.describe_file(file))[0]
    store.ensure_versions({test: content}, {file_id: file})
    question = Question(test, None, "f" * 32, 0)
    turns = (
        Reply(text, usage=Usage(1, 2), latency=0.25),
        Reply(None, (ToolCall(text, {text: [text]}),), latency=0.5),
    )
    cost = Cost(0.125, {"source": text})
    id, session, row = session_row(Session(question, turns, 5, f"n{text}", cost=cost))
    judged = an_evaluation(
        id, feedback=text, reasoning=text, cost=cost, nonce=text, usage=Usage(3, 4)
    )
    person = an_evaluation(id, started=2, nonce="p", feedback=text, origin=text or "x")
    failure = Failure(hashing.question_id(question), None, None, "timeout", text, 8, "n")
    store.record(
        {id: row},
        {judged[0]: judged[2], person[0]: person[2]},
        [failure],
    )
    store.record_run(a_run(9, message=text, candidates=[{"id": text, "model": "f" * 32}]))
    key = hashing.question_id(question)
    return {
        "samples": store.find_samples([key]),
        "votes": store.find_votes([id]),
        "sessions": store.load_sessions([id]),
        "feedback": find_feedback(store, [("pass", (judged[0], person[0]))]),
        "evaluations": store.load_evaluations([judged[0], person[0]]),
        "labels": store.find_labels(),
        "spent": store.find_spent([id]),
        "judgements": store.find_judgements([judged[0], person[0]]),
        "judging usage": store.find_judging_usage(["1" * 32]),
        "usual costs": [
            store.find_usual_costs("session", ["f" * 32]),
            store.find_usual_costs("judgement", ["1" * 32]),
        ],
        "failures": store.find_failures(),
        "failed": store.find_failed([key]),
        "runs": store.find_runs(),
        "contents": store.load_contents("test", [test]),
        "lengths": store.load_lengths("test", [test]),
        "files": store.load_files([file_id]),
        "text": (session.turns, judged[1].feedback),
        "rows": sorted(
            ((table, *row.values()) for table, row in store.iterate()), key=lambda row: row[:2]
        ),
        "damage": sorted(check_store(store)[1], key=str),
    }


@odd
def test_a_text_is_the_same_to_every_query_of_both_databases(
    text: str, tmp_path: Path, postgresql_server: PostgreSQLServer
) -> None:
    with (
        closing(Store.open(tmp_path / "store.db", create=True)) as file,
        closing(Store.open(read_address(postgresql_server.url()), create=True)) as database,
    ):
        expected, found = store_all(file, text), store_all(database, text)
        for query, answer in expected.items():
            assert (query, found[query]) == (query, answer)
        ((_, session),) = expected["sessions"].items()
        assert session.turns[0].text == text
        assert session.turns[1].tool_calls[0].arguments == {text: [text]}
        assert list(expected["feedback"].values()) == [text] * len(expected["feedback"])
        missing = [damage for damage in expected["damage"] if "not there" not in damage.message]
        assert missing == []
        searched = []
        for store in (file, database):
            with closing(open_index(tmp_path)) as index:
                index.update(store)
                searched.append(
                    [index.find_sessions(split_words(some)) for some in (text, "after", "uni", "x")]
                )
        assert searched[0] == searched[1]
        has_words = any(map(str.isalnum, text))
        assert searched[0][0] == (frozenset(expected["sessions"]) if has_words else frozenset())


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.text(
        st.one_of(st.sampled_from("\0\\u0'\"%?{}$"), st.characters(exclude_categories=["Cs"]))
    )
)
def test_any_text_comes_back(store: Store, text: str) -> None:
    id, session, row = a_session(Question("a" * 32, None, "b" * 32, 0), nonce=f"n{text}")
    judged = an_evaluation(id, feedback=text, nonce=f"n{text}")
    store.record({id: row}, {judged[0]: judged[2]})
    assert store.load_sessions([id]) == {id: session}
    decision = None, (judged[0],)
    assert find_feedback(store, [decision]).get(decision, "") == text
    assert store.load_evaluations([judged[0]]) == {judged[0]: judged[1]}


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\udc80\ud83d"])
def test_half_of_a_pair_is_refused_and_nothing_is_stored(store: Store, text: str) -> None:
    """Providers and checks replace them; this is for what may come from elsewhere."""
    version = ("test", f'{{"kind":"test","text":"{text}"}}')
    with pytest.raises((StoreError, UnicodeEncodeError)):
        store.ensure_versions({"a" * 32: version})
    assert list(store.iterate()) == []


NUMBERS = {
    "the largest": '{"price":null,"usd":1.7976931348623157e+308}',
    "the smallest": '{"price":null,"usd":5e-324}',
    "too large": '{"price":null,"usd":1e400}',
    "too small": '{"price":null,"usd":1e-400}',
    "whole": '{"price":null,"usd":3}',
    "huge": '{"price":null,"usd":' + "9" * 400 + "}",
    "a text": '{"price":null,"usd":"much"}',
    "a list": '{"price":null,"usd":[1]}',
    "null": '{"price":null,"usd":null}',
    "none": "null",
}


@pytest.mark.parametrize("cost", NUMBERS.values(), ids=NUMBERS.keys())
def test_a_row_of_another_store_is_taken_or_refused_by_both_databases(
    cost: str, tmp_path: Path, postgresql_server: PostgreSQLServer
) -> None:
    """A row that one of them takes must reach the other, or no `pull` would ever end."""
    _, _, row = a_session(Question("a" * 32, None, "b" * 32, 0), cost=Cost(7.5, None))
    content = row.replace('{"price":null,"usd":7.5}', cost)
    assert content != row
    record = StoredRecord("sessions", hashing.hash_content(content), content)
    taken = []
    for location in (tmp_path / "store.db", read_address(postgresql_server.url())):
        with closing(Store.open(location, create=True)) as store:
            try:
                store.ensure_records([check_record(record)])
            except StoreError:
                taken.append(0)
            else:
                usd = store.find_spent([record.id])[record.id].usd
                assert usd is None or math.isfinite(usd)
                taken.append(len(list(store.iterate())))
    assert taken in ([0, 0], [1, 1])


@pytest.mark.parametrize("depth", [10, 350, 400, 5_000, 100_000])
def test_a_deep_content_is_taken_or_refused_by_both_databases(
    depth: int, tmp_path: Path, postgresql_server: PostgreSQLServer
) -> None:
    call = ToolCall("f", {"a": "DEEP"})
    _, _, row = session_row(
        Session(Question("a" * 32, None, "b" * 32, 0), (Reply(None, (call,)),), 1, "n")
    )
    content = row.replace('"DEEP"', "[" * depth + "]" * depth)
    record = StoredRecord("sessions", hashing.hash_content(content), content)
    taken = []
    for location in (tmp_path / "store.db", read_address(postgresql_server.url())):
        with closing(Store.open(location, create=True)) as store:
            try:
                store.ensure_records([check_record(record)])
            except StoreError:
                taken.append(0)
            else:
                taken.append(len(list(store.iterate())))
    assert taken in ([0, 0], [1, 1])
