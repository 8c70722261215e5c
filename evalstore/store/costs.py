"""Queries for the costs and durations of answers and judgements."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from evalstore.core.results import Vote
from evalstore.core.values import RECORDED, Usage
from evalstore.providers.kinds import SCRIPTED
from evalstore.store.contents import (
    as_time,
    as_word,
    decode_content,
    require_number,
    require_text,
)
from evalstore.store.database import Database, select_each
from evalstore.store.driver import Connection, Dialect
from evalstore.store.ids import as_digits
from evalstore.store.schema.table_definitions import EVENTS

if TYPE_CHECKING:
    from evalstore.core.runs import Run
    from evalstore.core.values import Json
    from evalstore.store import Store

_NEWEST = 1_000
"""The sessions, or judgements, from which their usual tokens and costs are measured."""


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


class CostQueries(Database):
    """The queries for costs and durations."""

    def find_spent(self, sessions: Iterable[str]) -> dict[str, Spent]:
        """Return the cost and the duration of these sessions, by id."""
        with self._reading() as connection:
            sql = connection.dialect
            fields = f"{sql.model}, {sql.usd}, {sql.seconds}"
            statement = f"SELECT id, started, {fields} FROM sessions WHERE id IN"
            rows = select_each(connection, statement, sessions)
            return {
                digits: Spent(
                    as_time(started, "sessions", digits),
                    require_text(model, "sessions", digits),
                    require_number(usd, "sessions", digits),
                    require_number(seconds, "sessions", digits),
                )
                for id, started, model, usd, seconds in rows
                for digits in [as_digits(id)]
            }

    def find_judgements(
        self, evaluations: Iterable[str], *, feedback: bool = False
    ) -> dict[str, StoredJudgement]:
        """Return these evaluations as votes, by id; with `feedback`, each with its own."""
        judgements: dict[str, StoredJudgement] = {}
        with self._reading() as connection:
            sql = connection.dialect
            statement = (
                "SELECT id, started, subject, evaluation, evaluator, verdict, score, "
                f"{sql.usd}, {sql.feedback if feedback else 'NULL, NULL'} "
                "FROM evaluations WHERE id IN"
            )
            people = {id for (id,) in connection.execute(select_people(connection))}
            for row in select_each(connection, statement, evaluations):
                id, started, subject, evaluation, evaluator, word, score, usd, *texts = row
                digits = as_digits(id)
                vote = Vote(
                    as_time(started, "evaluations", digits),
                    digits,
                    as_digits(evaluation),
                    as_digits(evaluator),
                    as_word(word),
                    require_number(score, "evaluations", digits),
                    evaluator in people,
                )
                cost = require_number(usd, "evaluations", digits)
                text = _read_feedback(digits, *texts)
                judgements[digits] = StoredJudgement(vote, as_digits(subject), cost, text)
        return judgements

    def find_judging_usage(self, evaluators: Iterable[str]) -> dict[str, Usage]:
        """Return the mean tokens of a judgement of these evaluators, by id.

        Only the newest judgements of the store are read.
        """
        wanted = set(evaluators)
        if not wanted:
            return {}
        with self._reading() as connection:
            sql = connection.dialect
            shown, written = sql.number("usage.inputTokens"), sql.number("usage.outputTokens")
            statement = (
                f"SELECT evaluator, round(avg({shown})), round(avg({written})) FROM "
                f"(SELECT * FROM evaluations ORDER BY {sql.newest_first} LIMIT {_NEWEST}) "
                "AS newest WHERE evaluator IN"
            )
            rows = select_each(connection, statement, wanted, "GROUP BY evaluator")
            return {
                as_digits(evaluator): Usage(int(shown), int(written))
                for evaluator, shown, written in rows
                if shown is not None and written is not None
            }

    def find_usual_costs(self, kind: str, makers: Iterable[str]) -> dict[str, float]:
        """Return the mean cost of a session, or a judgement, of each of its makers, in USD.

        Those are the model versions of sessions, and the evaluators of judgements, by id. Only the
        newest rows are read, and those whose cost is known.
        """
        usd = self._newest_of(kind, makers, lambda sql: f"avg({sql.usd})")
        return {maker: float(mean) for maker, mean in usd if mean is not None}

    def find_output_tokens(self, kind: str, makers: Iterable[str]) -> dict[str, OutputTokens]:
        """Return the tokens of a session, or a judgement, of each of its makers.

        Those are the model versions of sessions, and the evaluators of judgements, by id. Only the
        newest rows are read, and those whose tokens are known.
        """

        def columns(sql: Dialect) -> str:
            if kind == "judgement":
                tokens = sql.number("usage.outputTokens")
                return f"avg({tokens}), max({tokens})"
            return f"avg({sql.output_tokens('sum')}), max({sql.output_tokens('max')})"

        return {
            maker: OutputTokens(round(mean), int(most))
            for maker, mean, most in self._newest_of(kind, makers, columns)
            if mean is not None
        }

    def _newest_of(
        self, kind: str, makers: Iterable[str], columns: Callable[[Dialect], str]
    ) -> list[tuple[Any, ...]]:
        """Return these columns of the newest rows of each of their makers, with its id first."""
        wanted, table = set(makers), EVENTS[kind].name
        if not wanted:
            return []
        with self._reading() as connection:
            sql = connection.dialect
            maker = sql.digits("evaluator") if kind == "judgement" else sql.model
            statement = (
                f"SELECT {maker}, {columns(sql)} FROM "
                f"(SELECT * FROM {table} ORDER BY {sql.newest_first} LIMIT {_NEWEST}) "
                f"AS newest WHERE {sql.field('takenFrom')} IS NULL AND {maker} IN"
            )
            rest = f"GROUP BY {maker}"
            return list(select_each(connection, statement, wanted, rest, as_value=str))


def select_people(connection: Connection, columns: str = "id") -> str:
    """Return the query for the evaluators who are people."""
    return f"SELECT {columns} FROM evaluators WHERE {connection.dialect.field('human')} IS NOT NULL"


def _read_feedback(id: str, text: Any, content: Any) -> str:
    """Return the feedback in the columns of `Dialect.feedback`; empty when there is none."""
    if content is not None:
        text = decode_content("evaluations", id, content).get("feedback")
    return "" if text is None else require_text(text, "evaluations", id)


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
