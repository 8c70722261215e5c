"""Queries for what is appended and never changed: runs, sessions, evaluations and failed calls."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, NamedTuple

from evalstore.core import batches, deserialize, hashing
from evalstore.core.deserialize import restore_failure
from evalstore.core.runs import Run, describe_run, restore_run
from evalstore.core.values import ComparedSession, Evaluation, Failure, Json, Sample, Session, Word
from evalstore.store.contents import (
    as_bytes,
    as_digits,
    as_time,
    decode_content,
    decode_row,
    missing,
    require,
    require_kind,
    require_number,
)
from evalstore.store.costs import select_people
from evalstore.store.database import NO_LIMIT, append, ensure
from evalstore.store.driver import Connection
from evalstore.store.leases import delete_leases, delete_work, take_leases, write_counts
from evalstore.store.records import make_rows
from evalstore.store.schema.table_definitions import EVALUATIONS, FAILURES, RUNS, SESSIONS
from evalstore.store.trees.tree_nodes import NodeQueries

RUNS_SEARCHED = 100
"""The number of newest runs that are searched for an earlier version or result of a case."""
_BEGIN, _END = -(2**63), 2**63 - 1
_LAST = (_END, b"\xff" * 16)
"""A time and an id after those of all runs."""


def _run(id: Any, content: Any) -> Run:
    return restore_run(*decode_row("runs", id, content))


Place = tuple[str, str | None, str]
"""Identifies a judgement by the ids of its subject, evaluation version and evaluator."""


class LoggedFailure(NamedTuple):
    """A failure with its id."""

    id: str
    failure: Failure


def _logged(id: Any, text: Any) -> LoggedFailure:
    digits = as_digits(id)
    return LoggedFailure(digits, restore_failure(decode_content("failures", digits, text)))


def describe_failures(failures: Iterable[Failure]) -> dict[str, str]:
    """Return the contents of failures by id."""
    return dict(hashing.identify(hashing.describe_failure(failure)) for failure in failures)


class Label(NamedTuple):
    """The label of a person on an answer."""

    at: int
    """Microseconds since 1970, UTC."""
    id: str
    """The id of the judgement."""
    person: str
    verdict: Word
    """The verdict; `none` if the label is removed."""
    note: str
    sessions: tuple[str, ...]
    evaluation: str
    """The id of the evaluation version."""


class LeaseChange(NamedTuple):
    """Leases that a runner takes or releases in the transaction of its facts."""

    runner: str
    taken: Sequence[str] = ()
    """Keys that no other runner can hold, because their subject is stored with these leases."""
    released: Sequence[str] = ()
    counts: str | None = None
    """What the runner has done of a shared run, with these facts, as JSON."""
    is_offered: bool = False
    """Whether the released keys may be among the offered items, which are then deleted."""


class EventQueries(NodeQueries):
    """The queries for runs, failures, sessions and evaluations."""

    # --- runs

    def record_run(self, run: Run) -> Run:
        """Append a run; returns it with its id."""
        id, content = hashing.identify(describe_run(run))
        rows = make_rows({id: content})
        self.write(lambda connection: ensure(connection, RUNS, rows))
        return replace(run, id=id)

    def find_runs(
        self, *, limit: int | None = None, offset: int = 0, since: int = _BEGIN, before: int = _END
    ) -> list[Run]:
        """Return runs, newest first: those that began at `since` or later, and before `before`."""
        query = (
            "SELECT id, content FROM runs WHERE started >= ? AND started < ? "
            "ORDER BY started DESC, id DESC LIMIT ? OFFSET ?"
        )
        most = NO_LIMIT if limit is None else limit
        rows = self._select(query, (since, before, most, offset))
        return [_run(*row) for row in rows]

    def find_recent_runs(
        self, before: Run | None = None, limit: int = RUNS_SEARCHED
    ) -> Iterator[Run]:
        """Yield the newest runs, or those before a run, newest first; they are read in batches."""
        query = "SELECT id, content FROM runs WHERE (started, id) < (?, ?)"
        left, last = limit, before
        while left > 0:
            place = (last.started, as_bytes(last.id)) if last else _LAST
            most = min(batches.SMALL_SIZE, left)
            rows = self._select(f"{query} ORDER BY started DESC, id DESC LIMIT ?", (*place, most))
            for row in rows:
                last = _run(*row)
                yield last
            if len(rows) < most:
                return
            left -= most

    def find_run_before(self, run: Run | None = None) -> Run | None:
        """Return the newest run before one, or of all; None without one.

        Results are compared with it where no run is named, whatever it covered.
        """
        return next(self.find_recent_runs(before=run, limit=1), None)

    def load_run(self, id: str) -> Run:
        """Return a run by its full id; raises `StoreError` when it is not there."""
        query = "SELECT id, content FROM runs WHERE id = ?"
        for row in self._select(query, (as_bytes(id),)):
            return _run(*row)
        raise missing("run", id)

    def count_runs(self, *, since: int = _BEGIN, before: int = _END) -> int:
        """Return how many runs began at `since` or later, and before `before`."""
        query = "SELECT count(*) FROM runs WHERE started >= ? AND started < ?"
        return int(self._select(query, (since, before))[0][0])

    # --- failures

    def find_failed(self, questions: Iterable[str]) -> dict[str, Failure]:
        """Return the newest failure of each of these questions that has one."""
        statement = "SELECT question, id, at, content FROM failures WHERE question IN"
        failures: dict[str, Failure] = {}
        rows = self._select_each(statement, questions, "ORDER BY at, id")
        for question, id, at, text in rows:
            as_time(at, "failures", as_digits(id))
            failures[as_digits(question)] = _logged(id, text).failure
        return failures

    def find_failures(self, limit: int | None = None) -> list[LoggedFailure]:
        """Return failures, newest first."""
        query = "SELECT id, content FROM failures ORDER BY at DESC, id LIMIT ?"
        rows = self._select(query, (NO_LIMIT if limit is None else limit,))
        return [_logged(*row) for row in rows]

    def find_failures_of(
        self, questions: Iterable[str], subjects: Iterable[str]
    ) -> list[LoggedFailure]:
        """Return failures to answer these questions or judge these sessions, newest first."""
        statement = "SELECT id, content FROM failures WHERE"
        subject = f"question IS NULL AND {self.dialect.text('subject')} IN"
        of_questions = self._select_each(f"{statement} question IN", questions)
        of_subjects = self._select_each(f"{statement} {subject}", subjects, as_value=str)
        failures = {_logged(*row) for row in chain(of_questions, of_subjects)}
        return sorted(failures, key=lambda logged: (-logged.failure.at, logged.id))

    def count_failures(self) -> int:
        """Return how many failures there are."""
        return int(self._select("SELECT count(*) FROM failures")[0][0])

    # --- sessions and evaluations

    def record(
        self,
        sessions: Mapping[str, str] | None = None,
        evaluations: Mapping[str, str] | None = None,
        failures: Sequence[Failure] = (),
        leases: LeaseChange | None = None,
        described: Mapping[str, Json] | None = None,
        *,
        wait: bool = True,
    ) -> None:
        """Append facts in one transaction; the contents of sessions and evaluations are by id.

        `leases` change in the same transaction. `described` has the values of some contents by id.
        """
        rows_by_table = (
            (SESSIONS, make_rows(sessions or {}, described)),
            (EVALUATIONS, make_rows(evaluations or {}, described)),
            (FAILURES, make_rows(describe_failures(failures))),
        )

        def write(connection: Connection) -> None:
            if leases:
                take_leases(connection, leases.runner, leases.taken)
                delete_leases(connection, leases.runner, leases.released)
                if leases.is_offered:
                    delete_work(connection, leases.released)
                if leases.counts is not None:
                    write_counts(connection, leases.runner, leases.counts)
            for table, rows in rows_by_table:
                if rows:
                    append(connection, table, rows)

        self.write(write, wait=wait)

    def find_samples(
        self, questions: Iterable[str], costs: dict[str, float] | None = None
    ) -> dict[str, list[Sample]]:
        """Return the sessions of these questions, oldest first; adds those in USD to `costs`."""
        by_question: dict[str, list[Sample]] = {}
        usd = "NULL" if costs is None else self.dialect.usd
        columns = f"question, started, id, token_limit, {usd}"
        statement = f"SELECT {columns} FROM sessions WHERE question IN"
        for row in self._select_each(statement, questions):
            question, started, id, limit, usd = row
            session = as_digits(id)
            if limit is not None:
                limit = require_kind(limit, int, "sessions", session)
            sample = Sample(as_time(started, "sessions", session), session, limit)
            by_question.setdefault(as_digits(question), []).append(sample)
            if usd is not None and costs is not None:
                costs[session] = require_number(usd, "sessions", session) or 0.0
        for samples in by_question.values():
            if len(samples) > 1:
                samples.sort(key=lambda sample: sample[:2])
        return by_question

    def find_times(self, table: str, ids: Iterable[str]) -> dict[str, int]:
        """Return when sessions, or evaluations, started, by id; missing ones are left out."""
        statement = f"SELECT id, started FROM {table} WHERE id IN"
        rows = [(as_digits(id), at) for id, at in self._select_each(statement, ids)]
        return {id: as_time(started, table, id) for id, started in rows}

    def load_sessions(self, ids: Iterable[str]) -> dict[str, Session]:
        """Return sessions by id; raises `StoreError` when one is missing."""
        unique_ids = list(dict.fromkeys(ids))
        return require(self.find_sessions(unique_ids), unique_ids, "session")

    def find_sessions(self, ids: Iterable[str]) -> dict[str, Session]:
        """Return sessions by id; those the store does not have are left out."""
        return {
            id: deserialize.restore_session(content) for id, content in self._decode(SESSIONS, ids)
        }

    def find_compared(self, ids: Iterable[str]) -> dict[str, ComparedSession]:
        """Return what is compared of sessions by id, also what a reader sees of their turns.

        Those the store does not have are left out.
        """
        return {
            id: ComparedSession(
                id,
                deserialize.restore_question(content),
                content["started"],
                [
                    (turn.get("text"), turn.get("refusal"), deserialize.restore_calls(turn))
                    for turn in content["turns"]
                ],
                tuple(
                    sorted({turn.get("resolvedModel") or "" for turn in content["turns"]} - {""})
                ),
            )
            for id, content in self._decode(SESSIONS, ids)
        }

    def load_evaluations(self, ids: Iterable[str]) -> dict[str, Evaluation]:
        """Return evaluations by id; raises `StoreError` when one is missing."""
        unique_ids = list(dict.fromkeys(ids))
        return require(self.find_evaluations(unique_ids), unique_ids, "judgement")

    def find_evaluations(self, ids: Iterable[str]) -> dict[str, Evaluation]:
        """Return evaluations by id; those the store does not have are left out."""
        return {
            id: deserialize.restore_evaluation_result(content)
            for id, content in self._decode(EVALUATIONS, ids)
        }

    def find_labels(self) -> list[Label]:
        """Return all labels of people, oldest first."""
        people = self._select(select_people(self.dialect, "id, content"))
        rows = (decode_row("evaluators", *row) for row in people)
        names = {id: content.get("human") for id, content in rows}
        if not names:
            return []
        statement = "SELECT id, evaluator, started, content FROM evaluations WHERE evaluator IN"
        labels = []
        for bytes_, by, started, content in self._select_each(statement, names):
            id, person = as_digits(bytes_), names[as_digits(by)]
            stored = decode_content("evaluations", id, content)
            said = deserialize.restore_evaluation_result(stored)
            subject = said.verdict, said.feedback, said.sessions, said.evaluation
            labels.append(Label(as_time(started, "evaluations", id), id, person, *subject))
        return sorted(labels)

    def count_labels(self) -> tuple[int, int]:
        """Return how many labels there are, and when the newest was given; 0 without any."""
        by_people = f"FROM evaluations WHERE evaluator IN ({select_people(self.dialect)})"
        query = f"SELECT count(*), coalesce(max(started), 0) {by_people}"
        ((count, newest),) = self._select(query)
        return int(count), int(newest)

    def find_questions_of(self, sessions: Iterable[str]) -> dict[str, str]:
        """Return the question of each of these sessions that is stored."""
        statement = "SELECT id, question FROM sessions WHERE id IN"
        rows = self._select_each(statement, sessions)
        return {as_digits(id): as_digits(question) for id, question in rows}

    def newest_time(self) -> int:
        """Return when the newest session or evaluation started; reads all of them."""
        times = {
            name: self._select(f"SELECT max(started) FROM {name}")[0][0]
            for name in (SESSIONS.name, EVALUATIONS.name)
        }
        return max(as_time(time or 0, name) for name, time in times.items())
