"""Reading and writing the store.

Writing is insert-or-ignore: content decides the id, so a second writer has nothing
left to write; but an id with other content is an error. Every call is one
transaction. Many writers may share a store; each waits for the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from evalstore import deserialize, hashing
from evalstore.store.contents import (
    as_blob,
    as_count,
    as_number,
    as_text,
    as_time,
    as_word,
    decode,
    missing,
    require,
)
from evalstore.store.costs import PEOPLE, CostQueries
from evalstore.store.database import append, ensure, select_each
from evalstore.store.failures import FailureQueries, failure_rows
from evalstore.store.ids import as_bytes, as_digits
from evalstore.store.leases import delete_leases, insert_leases
from evalstore.store.nodes import NodeQueries
from evalstore.store.table_columns import (
    EVALUATIONS,
    EVENTS,
    FAILURES,
    FILES,
    RUNS,
    SESSIONS,
    TABLES,
    VERSIONS,
    TableColumns,
)
from evalstore.values import Evaluation, Failure, FileVersion, Json, Sample, Session, Vote


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
    """Keys that no other runner can hold: their subject is stored with these leases."""
    given: Sequence[str] = ()


class Store(FailureQueries, NodeQueries, CostQueries):
    """An open store."""

    # --- versions

    def ensure_versions(
        self,
        contents: Mapping[str, tuple[str, str]],
        blobs: Mapping[str, FileVersion] | None = None,
    ) -> None:
        """Store versions unless they are there; contents are by id: kind and canonical JSON."""
        by_table: dict[TableColumns, dict[str, dict[str, Any]]] = {}
        for id, (kind, content) in contents.items():
            by_table.setdefault(VERSIONS[kind], {})[id] = {"id": id, "content": content}
        for id, file in (blobs or {}).items():
            content = hashing.canonical_json(hashing.describe_file(file))
            by_table.setdefault(FILES, {})[id] = {"id": id, "content": content, "data": file.data}
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
        return dict(self._decode(VERSIONS[kind], ids, kind))

    def load_lengths(self, kind: str, ids: Iterable[str]) -> dict[str, int]:
        """The characters of the contents of those of these versions that the store has."""
        statement = f"SELECT id, length(content) FROM {VERSIONS[kind].name} WHERE id IN"
        with self._reading() as connection:
            return {as_digits(id): size for id, size in select_each(connection, statement, ids)}

    def load_files(self, ids: Iterable[str]) -> dict[str, FileVersion]:
        """Referenced files by id; raises `StoreError` when one is missing."""
        wanted = list(dict.fromkeys(ids))
        query = "SELECT content, data FROM files WHERE id = ?"
        found: dict[str, FileVersion] = {}
        with self._reading() as connection:
            for id in wanted:
                row = connection.execute(query, (as_bytes(id),)).fetchone()
                if row is None:
                    raise missing("file", id)
                content = decode("files", id, row[0])
                found[id] = FileVersion(content["mediaType"], as_blob(row[1], "files", id))
        return found

    def missing_files(self, ids: Iterable[str]) -> set[str]:
        """Those of these referenced files that the store does not have."""
        wanted = set(ids)
        with self._reading() as connection:
            present = select_each(connection, "SELECT id FROM files WHERE id IN", wanted)
            return wanted - {as_digits(id) for (id,) in present}

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
                (SESSIONS, _session_rows(sessions or {})),
                (EVALUATIONS, _evaluation_rows(evaluations or {})),
                (FAILURES, failure_rows(failures)),
            ):
                if rows:
                    append(connection, table, rows)

    def record_run(self, content: Json) -> str:
        """Append a run; returns its id."""
        id, canonical = hashing.identify(content)
        row = {"id": id, "content": canonical, "started": content["started"]}
        with self.writing() as connection:
            ensure(connection, RUNS, {id: row})
        return id

    def find_samples(self, questions: Iterable[str]) -> dict[str, list[Sample]]:
        """The sessions of these questions, oldest first."""
        statement = "SELECT question, started, id, token_limit FROM sessions WHERE question IN"
        found: dict[str, list[Sample]] = {}
        with self._reading() as connection:
            for question, started, id, limit in select_each(connection, statement, questions):
                session = as_digits(id)
                sample = Sample(
                    as_time(started, "sessions", session),
                    session,
                    as_count(limit, "sessions", session),
                )
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
            people = {id for (id,) in connection.execute(PEOPLE)}
            for subject, started, *ids, verdict, score in select_each(
                connection, statement, subjects
            ):
                id, evaluation, evaluator = map(as_digits, ids)
                human = ids[2] in people
                vote = Vote(
                    as_time(started, "evaluations", id),
                    id,
                    evaluation,
                    evaluator,
                    as_word(verdict),
                    as_number(score, "evaluations", id),
                    human,
                )
                found.setdefault(as_digits(subject), []).append(vote)
        for votes in found.values():
            votes.sort(key=lambda vote: vote[:2])
        return found

    def load_sessions(self, ids: Iterable[str]) -> dict[str, Session]:
        """Sessions by id; raises `StoreError` when one is missing."""
        wanted = list(dict.fromkeys(ids))
        return require(self.find_sessions(wanted), wanted, "session")

    def find_sessions(self, ids: Iterable[str]) -> dict[str, Session]:
        """Sessions by id; those the store does not have are left out."""
        return {
            id: deserialize.restore_session(content) for id, content in self._decode(SESSIONS, ids)
        }

    def find_feedback(self, ids: Iterable[str]) -> dict[str, str]:
        """The feedback of these evaluations, of those that have some."""
        statement = (
            "SELECT id, json_extract(content, '$.feedback') AS feedback FROM evaluations "
            "WHERE feedback IS NOT NULL AND id IN"
        )
        with self._reading() as connection:
            found = [(as_digits(id), text) for id, text in select_each(connection, statement, ids)]
        return {id: as_text(text, "evaluations", id) for id, text in found}

    def load_evaluations(self, ids: Iterable[str]) -> dict[str, Evaluation]:
        """Evaluations by id; raises `StoreError` when one is missing."""
        wanted = list(dict.fromkeys(ids))
        return require(self.find_evaluations(wanted), wanted, "judgement")

    def find_evaluations(self, ids: Iterable[str]) -> dict[str, Evaluation]:
        """Evaluations by id; those the store does not have are left out."""
        return {
            id: deserialize.restore_evaluation_result(content)
            for id, content in self._decode(EVALUATIONS, ids)
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
                    as_time(started, "evaluations", id),
                    id,
                    names[as_digits(person)],
                    deserialize.restore_evaluation_result(decode("evaluations", id, content)),
                )
                for bytes_, person, started, content in select_each(connection, statement, names)
                for id in (as_digits(bytes_),)
            )

    def _people(self) -> list[tuple[str, Json]]:
        with self._reading() as connection:
            found = connection.execute(PEOPLE.replace("SELECT id", "SELECT id, content"))
            return [_decoded("evaluators", *row) for row in found]

    def load_all(self, kind: str) -> dict[str, Json]:
        """All versions of a kind by id: for evaluators and models, of which there are few."""
        with self._reading() as connection:
            table = VERSIONS[kind].name
            found = connection.execute(f"SELECT id, content FROM {table}")
            return dict(_decoded(table, *row) for row in found)

    def find_questions_of(self, sessions: Iterable[str]) -> dict[str, str]:
        """The question of each of these sessions that is there."""
        statement = "SELECT id, question FROM sessions WHERE id IN"
        with self._reading() as connection:
            found = select_each(connection, statement, sessions)
            return {as_digits(id): as_digits(question) for id, question in found}

    # --- runs

    def find_runs(self, *, limit: int | None = None, offset: int = 0) -> list[tuple[str, Json]]:
        """Runs with their contents, newest first."""
        query = "SELECT id, content FROM runs ORDER BY started DESC, id DESC LIMIT ? OFFSET ?"
        with self._reading() as connection:
            found = connection.execute(query, (-1 if limit is None else limit, offset))
            return [_decoded("runs", *row) for row in found]

    def newest_time(self) -> int:
        """When the newest session or evaluation started; looks at all of them."""
        with self._reading() as connection:
            times = {
                name: connection.execute(f"SELECT max(started) FROM {name}").fetchone()[0]
                for name in (SESSIONS.name, EVALUATIONS.name)
            }
        return max(as_time(time or 0, name) for name, time in times.items())

    def count_runs(self) -> int:
        """How many runs there are."""
        with self._reading() as connection:
            return int(connection.execute("SELECT count(*) FROM runs").fetchone()[0])

    # --- anything by its id

    def find_prefix(self, prefix: str, most: int = 20) -> list[tuple[str, str]]:
        """Everything whose id starts with these digits: kind and id."""
        found: list[tuple[str, str]] = []
        with self._reading() as connection:
            for name in TABLES:
                query = f"SELECT id, content FROM {name} WHERE id BETWEEN ? AND ? LIMIT ?"
                rows = connection.execute(query, (*_range(prefix), most))
                contents = (_decoded(name, *row) for row in rows)
                found += [(content["kind"], id) for id, content in contents]
        return sorted(found, key=lambda one: one[1])

    def load_any(self, kind: str, id: str) -> Stored:
        """One thing by its kind and full id; raises `StoreError` when it is not there."""
        table = {**VERSIONS, **EVENTS}[kind].name
        query = f"SELECT content FROM {table} WHERE id = ?"
        with self._reading() as connection:
            row = connection.execute(query, (as_bytes(id),)).fetchone()
        if row is None:
            raise missing(kind, id)
        return Stored(kind, id, decode(table, id, row[0], kind, shown=True))

    def find_questions(self, prefix: str, most: int = 20) -> list[str]:
        """Ids of questions that have a session or a failure and start with these digits."""
        found: set[str] = set()
        with self._reading() as connection:
            for name in (SESSIONS.name, FAILURES.name):
                query = f"SELECT DISTINCT question FROM {name} WHERE question BETWEEN ? AND ?"
                rows = connection.execute(f"{query} LIMIT ?", (*_range(prefix), most))
                found |= {as_digits(id) for (id,) in rows}
        return sorted(found)[:most]


def _range(prefix: str) -> tuple[bytes | None, bytes | None]:
    """The first and the last id that start with these digits."""
    return as_bytes(prefix.ljust(32, "0")), as_bytes(prefix.ljust(32, "f"))


def _decoded(table: str, id: Any, content: Any) -> tuple[str, Json]:
    digits = as_digits(id)
    return digits, decode(table, digits, content)


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
