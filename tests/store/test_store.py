"""Reading and writing: storing twice stores once, and nothing stored ever changes."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from evalstore.core import hashing
from evalstore.core.errors import STORE_UNUSABLE, StoreError
from evalstore.core.values import (
    Cost,
    Failure,
    FileVersion,
    Question,
    Reply,
    Sample,
    Session,
    ToolCall,
    Usage,
)
from evalstore.exchange.sync.fsck import check_store
from evalstore.results.value_text import answer_text
from evalstore.store import Store, events
from evalstore.store.events import OutputTokens, Spent
from tests.store.sessions import a_run, a_session, a_test, an_evaluation, fill, id_of, session_row

ASKED = Question("a" * 32, None, "b" * 32, 0)
KEY = hashing.question_id(ASKED)


def test_a_missing_store_is_made_only_when_asked_for(path: Path) -> None:
    with pytest.raises(StoreError, match="no store") as caught:
        Store.open(path)
    assert caught.value.exit_code == STORE_UNUSABLE
    assert not path.exists()


@pytest.mark.parametrize("name", ["a b", "what?", "50%25", "#1", "ü"])
def test_any_folder_name_will_do(tmp_path: Path, name: str) -> None:
    path = tmp_path / name / "store.db"
    Store.open(path, create=True).close()
    assert path.stat().st_size


def test_an_empty_file_is_an_empty_store(path: Path) -> None:
    path.touch()
    with closing(Store.open(path)) as store:
        assert store.count_runs() == 0


def test_the_database_of_another_program_is_left_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE bookmarks (url TEXT)")
        other.commit()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="not a store of evalstore"):
        Store.open(path)
    assert path.read_bytes() == before


def test_storing_twice_stores_once(store: Store) -> None:
    fill(store)
    before = check_store(store)
    store_again = list(store.iterate())
    fill(store)
    assert check_store(store) == before == (len(store_again), [])


def test_an_id_with_other_content_is_an_error(store: Store) -> None:
    id = next(iter(a_test("one")))
    store.ensure_versions({id: ("test", '{"kind":"test"}')})
    with pytest.raises(StoreError, match=f"id {id} has other content"):
        store.ensure_versions(a_test("one"))


def test_a_fact_with_a_known_id_and_other_content_is_an_error(store: Store) -> None:
    id, _, content = a_session(ASKED)
    store.record({id: content})
    store.record({id: content})
    with pytest.raises(StoreError, match="other content"):
        store.record({id: content + " "})


def test_what_cannot_be_stored_is_not_passed_over(store: Store) -> None:
    id = next(iter(a_test("one")))
    with pytest.raises(StoreError):
        store.ensure_versions({id: ("test", None)})  # type: ignore[dict-item]


def test_a_batch_is_stored_whole_or_not_at_all(store: Store) -> None:
    good, bad = a_session(ASKED, 1), a_session(ASKED, 2)
    store.record({bad[0]: bad[2] + " "})
    with pytest.raises(StoreError):
        store.record({good[0]: good[2], bad[0]: bad[2]})
    assert [sample.id for sample in store.find_samples([KEY])[KEY]] == [bad[0]]


def test_samples_are_oldest_first_whatever_the_order_they_came_in(store: Store) -> None:
    sessions = [a_session(ASKED, started, nonce=nonce) for started in (3, 1, 2) for nonce in "ba"]
    random.Random(1).shuffle(sessions)
    for id, _, content in sessions:
        store.record({id: content})
    samples = store.find_samples([KEY])[KEY]
    assert samples == sorted(Sample(session.started, id, None) for id, session, _ in sessions)


def test_samples_know_the_limit_that_cut_them_off(store: Store) -> None:
    id, _, content = a_session(ASKED, limit=400)
    store.record({id: content})
    assert store.find_samples([KEY]) == {KEY: [Sample(1, id, 400)]}


def test_votes_are_oldest_first(store: Store) -> None:
    votes = [an_evaluation("c" * 32, started) for started in (3, 1, 2)]
    store.record(None, {id: content for id, _, content in votes})
    stored = store.find_votes(["c" * 32])["c" * 32]
    assert [vote.started for vote in stored] == [1, 2, 3]


def test_sessions_and_evaluations_come_back_as_they_were(store: Store) -> None:
    session, judged = a_session(ASKED, limit=3), an_evaluation("c" * 32, score=0.5, label="x")
    store.record({session[0]: session[2]}, {judged[0]: judged[2]})
    assert store.load_sessions([session[0]]) == {session[0]: session[1]}
    assert store.load_evaluations([judged[0]]) == {judged[0]: judged[1]}


@pytest.mark.parametrize("latencies", [(0.5,), (0.5, 0.25), (0.0, 0.0), (0.0, 0.5)])
def test_the_costs_and_times_of_answers_are_found(
    store: Store, latencies: tuple[float, ...]
) -> None:
    turns = tuple(Reply(f"turn {number}", latency=s) for number, s in enumerate(latencies))
    sessions = [
        session_row(Session(ASKED, turns, 1, "n", Cost(0.25, {"input": 1}))),
        session_row(Session(ASKED, turns, 2, "n")),
    ]
    store.record({id: content for id, _, content in sessions})
    ids = [id for id, _, _ in sessions]
    answers, spent = store.find_sessions(ids), store.find_spent(ids)
    seconds = sum(latencies) if any(latencies) else None
    assert [spent[id] for id in ids] == [
        Spent(1, ASKED.model, 0.25, seconds),
        Spent(2, ASKED.model, None, seconds),
    ]
    assert [answers[id].answer.text for id in ids] == [turns[-1].text] * 2


@pytest.mark.parametrize(
    "reply",
    [
        Reply("text", finish_reason="stop", usage=Usage(1, 2), resolved_model="m"),
        Reply("begun", finish_reason="length"),
        Reply(None, (ToolCall("call", {"a": [1]}), ToolCall("other", "x")), "tool_calls"),
        Reply(None, refusal="No."),
        Reply(""),
    ],
)
def test_an_answer_is_shown_as_the_session_that_has_it(store: Store, reply: Reply) -> None:
    id, _, content = session_row(Session(ASKED, (Reply("first"), reply), 1, "n"))
    store.record({id: content})
    (compared,) = store.find_compared([id, "f" * 32]).values()
    assert compared.turns == [("first", None, ()), (reply.text, reply.refusal, reply.tool_calls)]
    assert answer_text(store.find_sessions([id])[id].answer) == answer_text(reply)


def test_samples_and_votes_have_the_costs_that_are_found_alone(store: Store) -> None:
    price = Cost(0.25, {"input": 1})
    turns = (Reply("a", latency=0.5), Reply("b"))
    sessions = [
        session_row(Session(ASKED, turns, 1, "n", price)),
        session_row(Session(ASKED, (Reply("c"),), 2, "n", Cost(0.0, {}))),
        session_row(Session(ASKED, (Reply("d"),), 3, "n")),
    ]
    judged = [an_evaluation("c" * 32, 1, cost=price), an_evaluation("c" * 32, 2)]
    store.record(
        {id: content for id, _, content in sessions},
        {id: content for id, _, content in judged},
    )
    costs: dict[str, float] = {}
    assert store.find_samples([KEY], costs) == store.find_samples([KEY])
    assert store.find_votes(["c" * 32], costs) == store.find_votes(["c" * 32])
    spent = store.find_spent([id for id, _, _ in sessions])
    paid = store.find_judgements([id for id, _, _ in judged])
    usd = {id: each.usd for id, each in spent.items()}
    usd |= {id: each.usd for id, each in paid.items()}
    assert costs == {id: cost for id, cost in usd.items() if cost is not None}
    assert len(costs) == 3


def test_the_tokens_of_answers_and_judgements_are_measured(store: Store) -> None:
    def reply(tokens: int | None) -> Reply:
        return Reply("a", usage=Usage(5, tokens))

    other = replace(ASKED, model="d" * 32)
    sessions = [
        session_row(Session(ASKED, (reply(10), reply(30)), 1, "n")),
        session_row(Session(ASKED, (reply(20),), 2, "n")),
        session_row(Session(ASKED, (reply(None),), 3, "n")),
        session_row(Session(other, (Reply("b"),), 4, "n")),
    ]
    judged = [
        an_evaluation("c" * 32, time, usage=Usage(1, tokens)) for time, tokens in ((1, 4), (2, 8))
    ]
    store.record(
        {id: content for id, _, content in sessions},
        {id: content for id, _, content in judged},
    )
    models, evaluator = {ASKED.model, other.model, "e" * 32}, judged[0][1].evaluator
    assert store.find_output_tokens("session", models) == {ASKED.model: OutputTokens(30, 30)}
    assert store.find_output_tokens("judgement", [evaluator]) == {evaluator: OutputTokens(6, 8)}
    assert store.find_output_tokens("session", []) == {}


def test_usual_tokens_and_costs_are_of_the_newest_judgements_that_were_not_carried_over(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "_NEWEST", 2)
    made = [
        an_evaluation("c" * 32, time, usage=Usage(time, 2 * time), cost=Cost(float(time), {}))
        for time in (1, 2, 4)
    ]
    carried = [
        an_evaluation("c" * 32, time, usage=Usage(70, 70), cost=Cost(7.0, {}), taken_from="a" * 32)
        for time in (5, 6, 7)
    ]
    for id, _, content in (*made, *carried):
        store.record(None, {id: content})
    evaluator = made[0][1].evaluator
    assert store.find_judging_usage([evaluator]) == {evaluator: Usage(3, 6)}
    assert store.find_usual_costs("judgement", [evaluator]) == {evaluator: 3.0}
    assert store.find_output_tokens("judgement", [evaluator]) == {evaluator: OutputTokens(6, 8)}


def test_feedback_is_found_with_the_votes_only_if_it_is_asked_for(store: Store) -> None:
    judged = [an_evaluation("c" * 32, feedback="Why."), an_evaluation("c" * 32, 2)]
    store.record(None, {id: content for id, _, content in judged})
    ids = [id for id, _, _ in judged]
    found = store.find_judgements(ids, feedback=True)
    assert [found[id].feedback for id in ids] == ["Why.", ""]
    assert [each.feedback for each in store.find_judgements(ids).values()] == ["", ""]


def test_the_newest_failure_of_a_question_is_found(store: Store) -> None:
    failures = [Failure(KEY, None, None, "k", f"at {at}", at, "n") for at in (2, 3, 1)]
    store.record(None, None, failures)
    assert store.find_failed([KEY]) == {KEY: failures[1]}


def test_failures_to_judge_some_answers_are_found(store: Store) -> None:
    session, other, judge, second_judge = "a" * 32, "b" * 32, "e" * 32, "f" * 32
    failures = [
        Failure(None, session, judge, "k", "first", 1, "n"),
        Failure(None, session, judge, "k", "second", 2, "n"),
        Failure(None, session, judge, "k", "third", 3, "n", evaluation=second_judge),
        Failure(None, other, judge, "k", "other", 1, "n"),
        Failure(KEY, None, None, "k", "of a question", 3, "n"),
    ]
    store.record(None, None, failures)
    found = [logged.failure for logged in store.find_failures_of((), [session])]
    assert found == [failures[2], failures[1], failures[0]]


def test_runs_are_newest_first(store: Store) -> None:
    ids = {n: store.record_run(a_run(n)).id for n in (2, 3, 1)}
    assert [run.id for run in store.find_runs()] == [ids[3], ids[2], ids[1]]
    assert [run.id for run in store.find_runs(limit=1, offset=1)] == [ids[2]]


def test_more_ids_than_fit_into_one_query_are_found(store: Store) -> None:
    contents: dict[str, tuple[str, str]] = {}
    for number in range(40_000):
        description = {"kind": "test", "n": number}
        id, content = hashing.identify(description)
        contents[id] = ("test", content)
    store.ensure_versions(contents)
    assert len(store.load_contents("test", contents)) == 40_000


def test_files_come_back_with_their_bytes(store: Store) -> None:
    file = FileVersion("image/png", bytes(range(256)))
    id = id_of(hashing.describe_file(file))
    store.ensure_versions({}, {id: file})
    assert store.load_files([id, id]) == {id: file}


def test_a_missing_file_or_node_is_an_error(store: Store) -> None:
    with pytest.raises(StoreError, match="no file"):
        store.load_files(["0" * 32])
    with pytest.raises(StoreError, match="no node"):
        store.load_nodes(["0" * 32])
    with pytest.raises(StoreError, match="no run"):
        store.load_any("run", "0" * 32)


def test_a_store_can_be_read_while_nobody_may_write_to_it(path: Path, file_store: Store) -> None:
    fill(file_store)
    file_store.close()
    path.chmod(0o400)
    with closing(Store.open(path)) as reading:
        assert reading.count_runs() == 1


def test_failures_are_newest_first(store: Store) -> None:
    failures = [Failure(KEY, None, None, "k", "m", at, "n") for at in (2, 3, 1)]
    store.record(None, None, failures)
    assert [failure.at for _, failure in store.find_failures()] == [3, 2, 1]
    assert [failure.at for _, failure in store.find_failures(1)] == [3]
    assert store.count_failures() == 3


def test_failures_to_answer_and_to_judge_are_found_by_what_failed(store: Store) -> None:
    store.record(
        None,
        None,
        [
            Failure(KEY, None, None, "k", "asked", 1, "n"),
            Failure("e" * 32, None, None, "k", "asked another", 2, "n"),
            Failure(None, "c" * 32, "d" * 32, "k", "judged", 3, "n"),
            Failure(None, "b" * 32, "d" * 32, "k", "judged another", 4, "n"),
        ],
    )
    failures = store.find_failures_of([KEY], ["c" * 32])
    assert [failure.message for _, failure in failures] == ["judged", "asked"]
    assert store.find_failures_of([], []) == []


def test_a_question_that_only_failed_is_found(store: Store) -> None:
    store.record(None, None, [Failure(KEY, None, None, "k", "m", at, "n") for at in (1, 2)])
    assert store.find_questions(KEY[:6]) == [KEY]


def test_sessions_lead_to_their_questions(store: Store) -> None:
    id, _, content = a_session(ASKED)
    store.record({id: content})
    assert store.find_questions_of([id, "c" * 32]) == {id: KEY}
