"""Queries for what is appended and never changed: runs, sessions, evaluations and failed calls.

Also for what they cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from evalstore.core import batches, deserialize, hashing
from evalstore.core.deserialize import restore_failure
from evalstore.core.runs import Run, describe_run, restore_run
from evalstore.core.values import (
    RECORDED,
    ComparedSession,
    Evaluation,
    Failure,
    Json,
    Sample,
    Session,
    Usage,
    Vote,
    Word,
)
from evalstore.providers.base import SCRIPTED
from evalstore.store.contents import (
    as_bytes,
    as_digits,
    as_time,
    as_word,
    decode_content,
    decode_row,
    missing,
    require,
    require_kind,
    require_number,
)
from evalstore.store.driver import Connection, Dialect
from evalstore.store.leases import delete_leases, delete_work, take_leases, write_counts
from evalstore.store.records import NO_LIMIT, append, ensure, make_rows
from evalstore.store.schema.table_definitions import EVALUATIONS, FAILURES, RUNS, SESSIONS
from evalstore.store.trees.tree_nodes import NodeQueries

if TYPE_CHECKING:
    from evalstore.store import Store


_NEWEST = 1_000
"""The sessions, or judgements, from which their usual tokens and costs are measured."""
_MADE = {
    "session": ("sessions", "answer_rows", "r.model", "TRUE"),
    "judgement": (
        "evaluations",
        "judgement_rows",
        "newest.evaluator",
        "(SELECT j.is_carried FROM judgement_rows j WHERE j.id = evaluations.id) = 0",
    ),
}
"""The table of a kind, that of its rows, who makes them, and which are not carried over."""


class Spent(NamedTuple):
    """The cost and the duration of a session, or of a judgement."""

    started: int
    """Microseconds since 1970, UTC."""
    maker: str
    """The id of the model version of a session, or of the evaluator of a judgement."""
    usd: float | None
    """None when it was free or its price was not known."""
    seconds: float | None = None
    """The duration of all turns; None when it is not known."""


class StoredJudgement(NamedTuple):
    """A vote with its subject and its cost."""

    vote: Vote
    subject: str
    usd: float | None
    feedback: str = ""
    """Empty if it was not asked for."""


class OutputTokens(NamedTuple):
    """The output tokens of the newest answers, or judgements, of a model."""

    mean: int
    """Of all turns of a session together."""
    most: int
    """The most of one turn."""


def select_people(sql: Dialect, columns: str = "id") -> str:
    """Return the query for the evaluators who are people."""
    return f"SELECT {columns} FROM evaluators WHERE {sql.field('human')} IS NOT NULL"


def _read_feedback(id: str, text: Any, content: Any) -> str:
    """Return the feedback in the columns of `Dialect.feedback`; empty when there is none."""
    if content is not None:
        text = decode_content("evaluations", id, content).get("feedback")
    return "" if text is None else require_kind(text, str, "evaluations", id)


def is_all_scripted(store: Store, run: Run) -> bool:
    """Return whether every candidate and judge of a run is scripted, and there is one."""
    models = {each.model for each in run.candidates if each.id != RECORDED}
    judges = store.load_contents("evaluator", {each.evaluator for each in run.evaluators})
    models |= {judge["model"] for judge in judges.values() if judge.get("model")}
    contents = store.load_contents("model", models)
    return bool(models) and all(
        contents.get(model, {}).get("provider") == SCRIPTED for model in models
    )


def is_by_script(store: Store, evaluator: Json) -> bool:
    """Return whether an evaluator, as it is described, is a scripted model."""
    model = str(evaluator.get("model") or "") if evaluator else ""
    contents = store.load_contents("model", [model]) if model else {}
    return any(content.get("provider") == SCRIPTED for content in contents.values())


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

    # --- costs and durations

    def find_spent(self, sessions: Iterable[str]) -> dict[str, Spent]:
        """Return the cost and the duration of these sessions, by id."""
        statement = "SELECT id, started, model, usd, seconds FROM answer_rows WHERE id IN"
        return {
            digits: Spent(
                as_time(started, "sessions", digits),
                as_digits(model),
                require_number(usd, "sessions", digits),
                require_number(seconds, "sessions", digits),
            )
            for id, started, model, usd, seconds in self._select_each(statement, sessions)
            for digits in [as_digits(id)]
        }

    def find_judgements(
        self, evaluations: Iterable[str], *, feedback: bool = False
    ) -> dict[str, StoredJudgement]:
        """Return these evaluations as votes, by id; with `feedback`, each with its own."""
        texts = self.dialect.feedback if feedback else "NULL, NULL"
        found = self._find_judgements("id", evaluations, f"{self.dialect.usd}, {texts}")
        return {
            vote.id: StoredJudgement(
                vote,
                subject,
                require_number(usd, "evaluations", vote.id),
                _read_feedback(vote.id, *columns),
            )
            for vote, subject, usd, *columns in found
        }

    def find_votes(
        self, subjects: Iterable[str], costs: dict[str, float] | None = None
    ) -> dict[str, list[Vote]]:
        """Return the evaluations of these subjects, oldest first; adds what is known to `costs`."""
        by_subject: dict[str, list[Vote]] = {}
        usd = "NULL" if costs is None else self.dialect.usd
        for vote, subject, cost in self._find_judgements("subject", subjects, usd):
            by_subject.setdefault(subject, []).append(vote)
            if cost is not None and costs is not None:
                costs[vote.id] = require_number(cost, "evaluations", vote.id) or 0.0
        for votes in by_subject.values():
            if len(votes) > 1:
                votes.sort(key=lambda vote: vote[:2])
        return by_subject

    def _find_judgements(
        self, column: str, ids: Iterable[str], columns: str
    ) -> Iterator[tuple[Any, ...]]:
        """Yield judgements with one of these ids in a column: the vote, its subject, columns."""
        statement = (
            "SELECT id, started, subject, evaluation, evaluator, verdict, score, "
            f"{columns} FROM evaluations WHERE {column} IN"
        )
        people = {id for (id,) in self._select(select_people(self.dialect))}
        evaluators: dict[bytes, tuple[str, bool]] = {}
        for row in self._select_each(statement, ids):
            id, started, subject, evaluation, evaluator, verdict, score, *others = row
            if evaluator not in evaluators:
                evaluators[evaluator] = as_digits(evaluator), evaluator in people
            maker, is_human = evaluators[evaluator]
            digits = as_digits(id)
            if score is not None:
                score = require_number(score, "evaluations", digits)
            vote = Vote(
                as_time(started, "evaluations", digits),
                digits,
                as_digits(evaluation),
                maker,
                as_word(verdict),
                score,
                is_human,
            )
            yield (vote, as_digits(subject), *others)

    def find_judging_usage(self, evaluators: Iterable[str]) -> dict[str, Usage]:
        """Return the mean tokens of a judgement of these evaluators, by id.

        Only the newest judgements of the store are read.
        """
        tokens = "round(avg(r.input)), round(avg(r.output))"
        return {
            evaluator: Usage(int(shown), int(written))
            for evaluator, shown, written in self._newest_of("judgement", evaluators, tokens)
            if shown is not None and written is not None
        }

    def find_usual_costs(self, kind: str, makers: Iterable[str]) -> dict[str, float]:
        """Return the mean cost of a session, or a judgement, of each of its makers, in USD.

        Those are the model versions of sessions, and the evaluators of judgements, by id. Only the
        newest rows are read, and those whose cost is known.
        """
        usd = self._newest_of(kind, makers, "avg(r.usd)")
        return {maker: float(mean) for maker, mean in usd if mean is not None}

    def find_output_tokens(self, kind: str, makers: Iterable[str]) -> dict[str, OutputTokens]:
        """Return the tokens of a session, or a judgement, of each of its makers.

        Those are the model versions of sessions, and the evaluators of judgements, by id. Only the
        newest rows are read, and those whose tokens are known.
        """
        longest = "r.output" if kind == "judgement" else self.dialect.longest_output
        columns = f"avg(r.output), max({longest})"
        return {
            maker: OutputTokens(round(mean), int(most))
            for maker, mean, most in self._newest_of(kind, makers, columns)
            if mean is not None
        }

    def _newest_of(
        self, kind: str, makers: Iterable[str], columns: str
    ) -> Iterator[tuple[Any, ...]]:
        """Yield these columns of the newest rows of each of their makers, with its id first."""
        table, rows, maker, is_made = _MADE[kind]
        statement = (
            f"SELECT {maker}, {columns} FROM (SELECT * FROM {table} "
            f"WHERE {is_made} ORDER BY {self.dialect.newest_first} LIMIT {_NEWEST}) AS newest "
            f"CROSS JOIN {rows} r WHERE r.id = newest.id AND {maker} IN"
        )
        for id, *values in self._select_each(statement, {*makers}, f"GROUP BY {maker}"):
            yield (as_digits(id), *values)
