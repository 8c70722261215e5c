"""Queries for the costs and durations of answers and judgements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from evalstore.core.values import RECORDED, Usage, Vote
from evalstore.providers.base import SCRIPTED
from evalstore.store.contents import (
    as_digits,
    as_time,
    as_word,
    decode_content,
    require_kind,
    require_number,
)
from evalstore.store.database import Database
from evalstore.store.driver import Dialect

if TYPE_CHECKING:
    from evalstore.core.runs import Run
    from evalstore.core.values import Json
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


class CostQueries(Database):
    """The queries for costs and durations."""

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
