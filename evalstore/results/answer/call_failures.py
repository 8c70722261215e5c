"""Reads why an answer or a judgement is missing: the messages of failed calls, with hints."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from evalstore.core import hashing
from evalstore.results.failed_results import judged_subjects
from evalstore.results.log.failure_hints import hint_for

if TYPE_CHECKING:
    from evalstore.core.results import Failure
    from evalstore.results.show.session_details import SessionDetails
    from evalstore.store import Store

MOST_FAILURES = 3
"""The most failed calls that are shown for one result."""


def failure_text(failure: Failure) -> str:
    """Return the message of a failed call with its hint."""
    hint = hint_for(failure.kind, failure.status, failure.message)
    model = f"{failure.model}: " if failure.model else ""
    return f"{model}{failure.message}" + (f"\nhint: {hint}" if hint else "")


def failure_texts(
    store: Store, questions: Collection[str], subjects: Collection[str]
) -> tuple[str, ...]:
    """Return the messages of the newest failures, each once, with hints."""
    messages: dict[str, None] = {}
    for _, failure in store.find_failures_of(questions, subjects):
        messages.setdefault(failure_text(failure))
    return tuple(messages)[:MOST_FAILURES]


def failures_of_answer(store: Store, details: SessionDetails) -> tuple[str, ...]:
    """Return why the results of a session are pending, as `failure_texts`; empty if none is.

    A judgement may be missing although another one counts: a judge may be called after checks, or
    several judges, and each attempt is judged.
    """
    missing = [cell for cell in details.cells if cell.is_missing]
    counts = any(not judgement.why_not for judgement in details.judgements)
    if counts and not missing:
        return ()
    subjects = {id for ids in judged_subjects(missing).values() for id in ids}
    if not counts:
        subjects |= {*map(hashing.subject_of, details.subjects)}
    lacks_answers = any(len(cell.sessions) < cell.required_answers for cell in missing)
    questions = [hashing.question_id(details.session.question)] if lacks_answers else []
    return failure_texts(store, questions, subjects)
