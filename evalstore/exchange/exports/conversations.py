"""Reads the conversations that lead to answers, as plain turns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from evalstore.core.deserialize import restore_messages
from evalstore.results.rendering import joined, text_of

if TYPE_CHECKING:
    from evalstore.core.results import Session
    from evalstore.core.values import Message, Reply
    from evalstore.store import Store


class ExportedTurn(NamedTuple):
    """A turn of a conversation."""

    role: str
    text: str
    """The text; files are named in it."""
    reply: Reply | None = None
    """The candidate's answer; None for a turn of the test."""


def read_turns(
    store: Store, sessions: Mapping[str, Session]
) -> dict[str, tuple[ExportedTurn, ...]]:
    """Return the turns before the last answer of each session, by id of the session."""
    questions = [session.question for session in sessions.values()]
    tests = store.load_contents("test", {question.test for question in questions})
    prompts = store.load_contents(
        "prompt", {question.prompt for question in questions if question.prompt}
    )
    return {
        id: tuple(
            _fill(
                joined(
                    restore_messages(
                        prompts.get(session.question.prompt or "", {}).get("messages", ())
                    ),
                    restore_messages(tests.get(session.question.test, {}).get("messages", ())),
                ),
                session,
            )
        )
        for id, session in sessions.items()
    }


def _fill(messages: tuple[Message, ...], session: Session) -> Iterator[ExportedTurn]:
    """Yield the turns with the candidate's answers in their places."""
    replies = iter(session.turns[:-1])
    for message in messages:
        if not message.filled:
            yield ExportedTurn(message.role, text_of(message.parts))
        elif reply := next(replies, None):
            yield ExportedTurn("assistant", reply.text or "", reply)
