"""Reading and writing the store.

Writing is insert-or-ignore: content decides the id, so whoever comes second has nothing
left to write; but an id that stands for other content is a loud error. Every call is one
transaction. Many writers may share a store; each waits for the others.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Select, func, select
from sqlmodel import col

from evalstore import hashing, restoring
from evalstore.errors import StoreError
from evalstore.store.database import Database, append, chunks, ensure, select_each
from evalstore.store.leases import delete_leases, insert_leases
from evalstore.store.tables import (
    EVENTS,
    TABLES,
    VERSIONS,
    EvaluationRow,
    FailureRow,
    FileRow,
    NodeRow,
    RunRow,
    SessionRow,
    as_digits,
)
from evalstore.values import (
    WORDS,
    CaseFile,
    Evaluation,
    Failure,
    FileVersion,
    Json,
    Sample,
    Session,
    Vote,
    Word,
)

_PEOPLE = "SELECT id FROM evaluators WHERE json_extract(content, '$.human') IS NOT NULL"


class Stored(NamedTuple):
    """One version with its kind: what `show` prints."""

    kind: str
    id: str
    content: Json


class Label(NamedTuple):
    """What a person has said of an answer."""

    at: int
    """Microseconds since 1970, UTC."""
    id: str
    person: str
    evaluation: Evaluation


class LeaseChange(NamedTuple):
    """Leases that a runner takes or gives back together with what it stores."""

    runner: str
    taken: Sequence[str] = ()
    """On what nobody can have a lease yet: what it is about is stored with it."""
    given: Sequence[str] = ()


class Trouble(NamedTuple):
    """A logged failure."""

    at: int
    """Microseconds since 1970, UTC."""
    message: str


class Spent(NamedTuple):
    """What a session took."""

    started: int
    """Microseconds since 1970, UTC."""
    model: str
    """Id of the model version."""
    usd: float | None
    """None: it was free, or its price was not known."""
    seconds: float | None
    """Of all its turns; None: not known."""


class Judgement(NamedTuple):
    """A vote with what it is about and what it has cost."""

    vote: Vote
    subject: str
    usd: float | None


class Store(Database):
    """An open store."""

    # --- versions

    def ensure_versions(
        self,
        contents: Mapping[str, tuple[str, str]],
        blobs: Mapping[str, FileVersion] | None = None,
    ) -> None:
        """Store versions unless they are there; contents are by id: kind and canonical JSON."""
        by_table: dict[Any, dict[str, dict[str, Any]]] = {}
        for id, (kind, content) in contents.items():
            by_table.setdefault(VERSIONS[kind], {})[id] = {"id": id, "content": content}
        for id, file in (blobs or {}).items():
            content = hashing.canonical_json(hashing.describe_file(file))
            by_table.setdefault(FileRow, {})[id] = {"id": id, "content": content, "data": file.data}
        if not by_table:
            return
        with self.writing() as connection:
            for table, rows in by_table.items():
                ensure(connection, table, rows)

    def ensure_files(self, blobs: Mapping[str, FileVersion]) -> None:
        """Store referenced files unless they are there."""
        self.ensure_versions({}, blobs)

    def load_contents(self, kind: str, ids: Iterable[str]) -> dict[str, Json]:
        """The contents of those of these versions that the store has."""
        return {id: json.loads(content) for id, content in self._find(VERSIONS[kind], ids)}

    def load_lengths(self, kind: str, ids: Iterable[str]) -> dict[str, int]:
        """The characters of the contents of those of these versions that the store has."""
        statement = f"SELECT id, length(content) FROM {VERSIONS[kind].__tablename__} WHERE id IN"
        with self._reading() as connection:
            return {as_digits(id): size for id, size in select_each(connection, statement, ids)}

    def load_files(self, ids: Iterable[str]) -> dict[str, FileVersion]:
        """Referenced files by id; raises `StoreError` when one is missing."""
        wanted = list(dict.fromkeys(ids))
        found: dict[str, FileVersion] = {}
        with self._connect() as connection:
            for id in wanted:
                row = connection.execute(
                    select(col(FileRow.content), col(FileRow.data)).where(col(FileRow.id) == id)
                ).one_or_none()
                if row is None:
                    raise StoreError(f"the store has no file {id}", hint="run 'evalstore fsck'")
                found[id] = FileVersion(json.loads(row[0])["mediaType"], row[1])
        return found

    def load_case_files(self, ids: list[str]) -> dict[str, CaseFile]:
        """Leaves of snapshots by id; those the store does not have are missing."""
        return {
            id: restoring.restore_case_file(content)
            for id, content in self.load_contents("cases", ids).items()
        }

    def missing_files(self, ids: Iterable[str]) -> set[str]:
        """Those of these referenced files that the store does not have."""
        wanted = set(ids)
        with self._connect() as connection:
            for some in chunks(wanted):
                wanted -= set(
                    connection.scalars(select(col(FileRow.id)).where(col(FileRow.id).in_(some)))
                )
        return wanted

    def _find(self, table: Any, ids: Iterable[str]) -> Iterator[tuple[str, str]]:
        statement = f"SELECT id, content FROM {table.__tablename__} WHERE id IN"
        with self._reading() as connection:
            for id, content in select_each(connection, statement, ids):
                yield as_digits(id), content

    # --- facts

    def record(
        self,
        sessions: Mapping[str, tuple[Session, str]] | None = None,
        evaluations: Mapping[str, tuple[Evaluation, str]] | None = None,
        failures: Sequence[Failure] = (),
        leases: LeaseChange | None = None,
        *,
        wait: bool = True,
    ) -> None:
        """Append facts in one transaction; sessions and evaluations by id, with their content.

        With `leases`: what is worked on next, and what is done with these facts.
        """
        with self.writing(wait=wait) as connection:
            if leases:
                insert_leases(connection, leases.runner, leases.taken)
                delete_leases(connection, leases.runner, leases.given)
            for table, rows in (
                (SessionRow, _session_rows(sessions or {})),
                (EvaluationRow, _evaluation_rows(evaluations or {})),
                (FailureRow, _failure_rows(failures)),
            ):
                if rows:
                    append(connection, table, rows)

    def record_run(self, content: Json) -> str:
        """Append a run; returns its id."""
        id, canonical = hashing.identify(content)
        row = {"id": id, "content": canonical, "started": content["started"]}
        with self.writing() as connection:
            ensure(connection, RunRow, {id: row})
        return id

    def find_samples(self, questions: Iterable[str]) -> dict[str, list[Sample]]:
        """The sessions of these questions, oldest first."""
        statement = "SELECT question, started, id, token_limit FROM sessions WHERE question IN"
        found: dict[str, list[Sample]] = {}
        with self._reading() as connection:
            for question, started, id, limit in select_each(connection, statement, questions):
                sample = Sample(started, as_digits(id), limit)
                found.setdefault(as_digits(question), []).append(sample)
        for samples in found.values():
            samples.sort(key=lambda sample: sample[:2])
        return found

    def find_votes(self, subjects: Iterable[str]) -> dict[str, list[Vote]]:
        """The evaluations of these subjects, oldest first."""
        statement = (
            "SELECT subject, started, id, evaluation, evaluator, verdict, score "
            "FROM evaluations WHERE subject IN"
        )
        found: dict[str, list[Vote]] = {}
        with self._reading() as connection:
            people = {id for (id,) in connection.execute(_PEOPLE)}
            for subject, started, *ids, verdict, score in select_each(
                connection, statement, subjects
            ):
                id, evaluation, evaluator = map(as_digits, ids)
                human = ids[2] in people
                vote = Vote(started, id, evaluation, evaluator, _verdict(verdict), score, human)
                found.setdefault(as_digits(subject), []).append(vote)
        for votes in found.values():
            votes.sort(key=lambda vote: vote[:2])
        return found

    def find_failed(self, questions: Iterable[str]) -> dict[str, Trouble]:
        """The newest failure of each of these questions that has one."""
        row = FailureRow
        found: dict[str, Trouble] = {}
        with self._connect() as connection:
            for some in chunks(questions):
                query = (
                    select(col(row.question), col(row.at), col(row.content))
                    .where(col(row.question).in_(some))
                    .order_by(col(row.at), col(row.id))
                )
                for question, at, content in connection.execute(query):
                    found[str(question)] = Trouble(at, json.loads(content)["message"])
        return found

    def find_failed_judgements(self) -> dict[tuple[str, str], Trouble]:
        """The newest failure of each session and evaluator that have one."""
        row = FailureRow
        query = (
            select(col(row.at), col(row.content))
            .where(col(row.question).is_(None))
            .order_by(col(row.at), col(row.id))
        )
        found: dict[tuple[str, str], Trouble] = {}
        with self._connect() as connection:
            for at, text in connection.execute(query):
                content = json.loads(text)
                if content.get("subject") and content.get("evaluator"):
                    place = (content["subject"], content["evaluator"])
                    found[place] = Trouble(at, content["message"])
        return found

    def load_sessions(self, ids: Iterable[str]) -> dict[str, Session]:
        """Sessions by id."""
        return {
            id: restoring.restore_session(json.loads(content))
            for id, content in self._find(SessionRow, ids)
        }

    def find_feedback(self, ids: Iterable[str]) -> dict[str, str]:
        """The feedback of these evaluations, of those that have some."""
        found: dict[str, str] = {}
        with self._connect() as connection:
            for some in chunks(ids):
                feedback = func.json_extract(col(EvaluationRow.content), "$.feedback")
                query = select(col(EvaluationRow.id), feedback).where(
                    col(EvaluationRow.id).in_(some), feedback.is_not(None)
                )
                found |= {row[0]: row[1] for row in connection.execute(query)}
        return found

    def load_evaluations(self, ids: Iterable[str]) -> dict[str, Evaluation]:
        """Evaluations by id."""
        return {
            id: restoring.restore_evaluation_result(json.loads(content))
            for id, content in self._find(EvaluationRow, ids)
        }

    def find_labels(self) -> list[Label]:
        """What people have said, oldest first."""
        names = {id: content.get("human") for id, content in self._people()}
        if not names:
            return []
        statement = "SELECT id, evaluator, started, content FROM evaluations WHERE evaluator IN"
        with self._reading() as connection:
            return sorted(
                Label(
                    started,
                    as_digits(id),
                    names[as_digits(person)],
                    restoring.restore_evaluation_result(json.loads(content)),
                )
                for id, person, started, content in select_each(connection, statement, names)
            )

    def _people(self) -> list[tuple[str, Json]]:
        with self._reading() as connection:
            found = connection.execute(_PEOPLE.replace("SELECT id", "SELECT id, content"))
            return [(as_digits(id), json.loads(content)) for id, content in found]

    def find_spent(self, sessions: Iterable[str]) -> dict[str, Spent]:
        """What these sessions took, by id."""
        statement = (
            "SELECT id, started, json_extract(content, '$.model'), "
            "json_extract(content, '$.cost.usd'), CASE "
            "json_array_length(content, '$.turns') "
            "WHEN 1 THEN json_extract(content, '$.turns[0].latency') "
            "ELSE (SELECT sum(json_extract(value, '$.latency')) "
            "FROM json_each(content, '$.turns')) END FROM sessions WHERE id IN"
        )
        with self._reading() as connection:
            return {
                as_digits(id): Spent(*found)
                for id, *found in select_each(connection, statement, sessions)
            }

    def find_judgements(self, evaluations: Iterable[str]) -> dict[str, Judgement]:
        """These evaluations as votes, by id."""
        statement = (
            "SELECT id, started, subject, evaluation, evaluator, verdict, score, "
            "json_extract(content, '$.cost.usd') FROM evaluations WHERE id IN"
        )
        found: dict[str, Judgement] = {}
        with self._reading() as connection:
            people = {id for (id,) in connection.execute(_PEOPLE)}
            for row in select_each(connection, statement, evaluations):
                id, started, subject, evaluation, evaluator, word, score, usd = row
                vote = Vote(
                    started,
                    as_digits(id),
                    as_digits(evaluation),
                    as_digits(evaluator),
                    _verdict(word),
                    score,
                    evaluator in people,
                )
                found[vote.id] = Judgement(vote, as_digits(subject), usd)
        return found

    def load_all(self, kind: str) -> dict[str, Json]:
        """All versions of a kind by id: for evaluators and models, of which there are few."""
        with self._reading() as connection:
            table = VERSIONS[kind].__tablename__
            return {
                as_digits(id): json.loads(content)
                for id, content in connection.execute(f"SELECT id, content FROM {table}")
            }

    def sum_costs(self, kind: str, ids: Iterable[str]) -> float:
        """What these sessions, or judgements, have cost together in USD, as far as it is known."""
        table = EVENTS[kind]
        total = 0.0
        with self._connect() as connection:
            for some in chunks(ids):
                cost = func.json_extract(col(table.content), "$.cost.usd")
                query = select(func.sum(cost)).where(col(table.id).in_(some))
                total += float(connection.scalar(query) or 0.0)
        return total

    def find_failures(self, limit: int | None = None) -> list[tuple[str, Json]]:
        """Failures with their contents, newest first."""
        return self._load_failures(_newest_failures().limit(limit))

    def find_failures_of(
        self, questions: Iterable[str], subjects: Iterable[str]
    ) -> list[tuple[str, Json]]:
        """The failures to answer these questions and to judge these sessions, newest first."""
        row, found = FailureRow, dict[str, Json]()
        for some in chunks(questions):
            found |= self._load_failures(_newest_failures().where(col(row.question).in_(some)))
        subject = func.json_extract(col(row.content), "$.subject")
        for some in chunks(subjects):
            query = _newest_failures().where(col(row.question).is_(None), subject.in_(some))
            found |= self._load_failures(query)
        return sorted(found.items(), key=lambda one: (-one[1]["at"], one[0]))

    def _load_failures(self, query: Select[str, str]) -> list[tuple[str, Json]]:
        with self._connect() as connection:
            return [(id, json.loads(content)) for id, content in connection.execute(query)]

    def count_failures(self) -> int:
        """How many failures there are."""
        with self._connect() as connection:
            return int(connection.scalar(select(func.count()).select_from(FailureRow)) or 0)

    def find_questions_of(self, sessions: Iterable[str]) -> dict[str, str]:
        """The question of each of these sessions that is there."""
        row = SessionRow
        found: dict[str, str] = {}
        with self._connect() as connection:
            for some in chunks(sessions):
                query = select(col(row.id), col(row.question)).where(col(row.id).in_(some))
                found |= {str(id): str(question) for id, question in connection.execute(query)}
        return found

    # --- runs

    def find_runs(self, *, limit: int | None = None, offset: int = 0) -> list[tuple[str, Json]]:
        """Runs with their contents, newest first."""
        query = (
            select(col(RunRow.id), col(RunRow.content))
            .order_by(col(RunRow.started).desc(), col(RunRow.id).desc())
            .offset(offset)
            .limit(limit)
        )
        with self._connect() as connection:
            return [(id, json.loads(content)) for id, content in connection.execute(query)]

    def newest_time(self) -> int:
        """When the newest session or evaluation started; looks at all of them."""
        with self._connect() as connection:
            times = [
                connection.scalar(select(func.max(col(table.started)))) or 0
                for table in (SessionRow, EvaluationRow)
            ]
        return max(times)

    def count_runs(self) -> int:
        """How many runs there are."""
        with self._connect() as connection:
            return int(connection.scalar(select(func.count()).select_from(RunRow)) or 0)

    # --- anything by its id

    def find_prefix(self, prefix: str, most: int = 20) -> list[tuple[str, str]]:
        """Everything whose id starts with these digits: kind and id."""
        low, high = prefix.ljust(32, "0"), prefix.ljust(32, "f")
        found: list[tuple[str, str]] = []
        with self._connect() as connection:
            for table in TABLES.values():
                query = (
                    select(col(table.id), col(table.content))
                    .where(col(table.id) >= low, col(table.id) <= high)
                    .limit(most)
                )
                found += [
                    (json.loads(content)["kind"], id) for id, content in connection.execute(query)
                ]
        return sorted(found, key=lambda one: one[1])

    def load_any(self, kind: str, id: str) -> Stored:
        """One thing by its kind and full id; raises `StoreError` when it is not there."""
        table = {**VERSIONS, **EVENTS}[kind]
        with self._connect() as connection:
            content = connection.scalar(select(col(table.content)).where(col(table.id) == id))
        if content is None:
            raise StoreError(f"the store has no {kind} {id}", hint="run 'evalstore fsck'")
        return Stored(kind, id, json.loads(content))

    def find_questions(self, prefix: str, most: int = 20) -> list[str]:
        """Ids of questions that have a session or a failure and start with these digits."""
        low, high = prefix.ljust(32, "0"), prefix.ljust(32, "f")
        found: set[str] = set()
        with self._connect() as connection:
            for question in (col(SessionRow.question), col(FailureRow.question)):
                query = select(question).where(question >= low, question <= high).distinct()
                found |= {str(id) for id in connection.scalars(query.limit(most))}
        return sorted(found)[:most]

    def load_text(self, node: str) -> str:
        """The canonical JSON of a node; raises `StoreError` when it is missing."""
        for _, content in self._find(NodeRow, [node]):
            return content
        raise StoreError(f"the store has no node {node}", hint="run 'evalstore fsck'")

    def load_nodes(self, ids: Iterable[str]) -> dict[str, Json]:
        """Nodes of trees by id; raises `StoreError` when one is missing."""
        wanted = list(dict.fromkeys(ids))
        found = {id: json.loads(content) for id, content in self._find(NodeRow, wanted)}
        for id in wanted:
            if id not in found:
                raise StoreError(f"the store has no node {id}", hint="run 'evalstore fsck'")
        return found


def _verdict(word: str) -> Word:
    for verdict in WORDS:
        if verdict == word:
            return verdict
    raise StoreError(
        f"the store is damaged: '{word}' is no verdict", hint="'evalstore fsck' lists what is wrong"
    )


def _session_rows(sessions: Mapping[str, tuple[Session, str]]) -> dict[str, dict[str, Any]]:
    return {
        id: {
            "id": id,
            "content": content,
            "question": hashing.question_id(session.question),
            "started": session.started,
            "token_limit": session.limit,
        }
        for id, (session, content) in sessions.items()
    }


def _evaluation_rows(
    evaluations: Mapping[str, tuple[Evaluation, str]],
) -> dict[str, dict[str, Any]]:
    return {
        id: {
            "id": id,
            "content": content,
            "subject": hashing.subject_of(evaluation.sessions),
            "evaluation": evaluation.evaluation,
            "evaluator": evaluation.evaluator,
            "started": evaluation.started,
            "verdict": evaluation.verdict,
            "score": evaluation.score,
        }
        for id, (evaluation, content) in evaluations.items()
    }


def _newest_failures() -> Select[str, str]:
    return select(col(FailureRow.id), col(FailureRow.content)).order_by(
        col(FailureRow.at).desc(), col(FailureRow.id)
    )


def _failure_rows(failures: Sequence[Failure]) -> dict[str, dict[str, Any]]:
    rows = {}
    for failure in failures:
        id, content = hashing.identify(hashing.describe_failure(failure))
        rows[id] = {
            "id": id,
            "content": content,
            "question": failure.question,
            "at": failure.at,
        }
    return rows
