"""Runs Python checks on sessions, if their files are trusted.

The plan leaves out stored files that are not trusted. Here the bytes that would run are checked
again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from evalstore.checks.check_verdict import HeldConversation, RunCode, describe_answers
from evalstore.checks.types.python import MEMORY, SECONDS, code_of
from evalstore.core.errors import NotRunError
from evalstore.core.results import Session
from evalstore.core.values import Json, Message, Text
from evalstore.files.processes.pool import Code, Workers
from evalstore.runs.execution.content_cache import ContentCache
from evalstore.runs.execution.requests import build_parts
from evalstore.workspace.trust import digest

Allows = Callable[[str, bool], bool]
"""Whether a file of this SHA-256 may run, with the network or without."""
_SINGLE_TURN: Json = {"turns": ["response"]}


class CodeChecks:
    """Runs the Python checks of one execution."""

    def __init__(self, contents: ContentCache, allows: Allows) -> None:
        self._contents = contents
        self._allows = allows
        self._workers = Workers()
        self._sources: dict[str, bytes] = {}

    def close(self) -> None:
        """End all processes."""
        self._workers.close()

    def prepare(self, checks: Sequence[Json]) -> RunCode | None:
        """Return a function that runs the Python checks among these; None if there are none.

        Their files are read here, so that the function may be called from another thread.
        """
        files = code_of(checks)
        for file in files:
            if file.id not in self._sources:
                self._sources[file.id] = self._contents.file(file.id).data
        return self._run if files else None

    def show(self, session: Session) -> tuple[Json, ...]:
        """Return the conversation as texts; the turns of the candidate are marked."""
        shown: list[Json] = []
        answers = iter([turn.text or "" for turn in session.turns])
        for message in self._contents.test(session.question.test).messages:
            if message.filled:
                shown.append({"role": message.role, "content": next(answers), "filled": True})
            else:
                shown.append({"role": message.role, "content": self._text_of(message)})
        shown += [{"role": "assistant", "content": text, "filled": True} for text in answers]
        return tuple(shown)

    def _text_of(self, message: Message) -> str:
        parts = build_parts(self._contents, message.parts)
        return "".join(
            part.text if isinstance(part, Text) else f"[file {part.path}]" for part in parts
        )

    def _run(
        self, check: Mapping[str, Json], actual: Json, sessions: Sequence[HeldConversation]
    ) -> Json:
        path, network = check["file"]["path"], bool(check.get("network"))
        source = self._sources[check["file"]["id"]]
        if not self._allows(digest(source), network):
            raise NotRunError(f"{path} is not trusted on this machine, so its checks wait")
        request = {
            "name": check.get("function") or check["class"],
            "isClass": "class" in check,
            "args": check.get("args", {}),
            "given": describe_arguments(check, actual, sessions),
        }
        code = Code(source, path, check.get("memory", MEMORY), network)
        return self._workers.call(code, request, check.get("timeout", SECONDS))


def describe_arguments(
    check: Mapping[str, Json], actual: Json, sessions: Sequence[HeldConversation]
) -> Json:
    """Return the arguments of a check function for sessions that are judged together."""
    named = list(check.get("conversations", [_SINGLE_TURN]))
    named += [_SINGLE_TURN] * (len(sessions) - len(named))
    runs = [
        list(_name_turns(session.shown, names.get("turns", ())))
        for session, names in zip(sessions, named, strict=False)
    ]
    answers: dict[str, list[str]] = {}
    for session, names in zip(sessions, named, strict=False):
        texts = [reply.text or "" for reply in session.replies]
        for name, text in zip(names.get("turns", ()), texts, strict=False):
            if name is not None:
                answers.setdefault(name, []).append(text)
        if "run" in names:
            answers.setdefault(names["run"], []).append(texts[-1])
    is_single = len(sessions) == 1
    return {
        **describe_answers(sessions),
        "answer": actual,
        "item": check.get("item", {}),
        "turns": {name: texts[-1] if is_single else texts for name, texts in answers.items()},
        "messages": runs[-1],
        "runs": runs,
    }


def _name_turns(shown: Sequence[Json], names: Sequence[str | None]) -> Iterator[Json]:
    """Yield the messages of a conversation; the candidate's turns have their names."""
    remaining = iter(names)
    for message in shown:
        turn = {"role": message["role"], "content": message["content"]}
        name = next(remaining, None) if message.get("filled") else None
        yield turn if name is None else {**turn, "name": name}
