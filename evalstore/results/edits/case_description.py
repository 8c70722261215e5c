"""Describes the messages, instructions and checks of cases for `ls cases --full`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from evalstore.core import deserialize
from evalstore.core.errors import FileProblem
from evalstore.core.values import AnswerRef, Case, Json, Message, Part, SampleRef, Text
from evalstore.files.access import LARGEST_TEXT, normalise
from evalstore.workspace.testfiles.parser import read_test

if TYPE_CHECKING:
    from evalstore.planning.project import Project
    from evalstore.workspace.testfiles.conversations import RepeatedConversation


class CaseDescriber:
    """Describes cases of a workspace, and caches the runs of the last test file."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._contents: dict[str, Json] = {}
        self._runs: tuple[str, tuple[RepeatedConversation, ...]] = ("", ())

    def read(self, cases: Iterable[Case]) -> None:
        """Read the versions of the cases that are described next, and forget those read before.

        Raises `StoreError` when one is missing.
        """
        tests, evaluations = list[str](), list[str]()
        for case in cases:
            tests += case.tests
            evaluations += [case.evaluation] if case.evaluation else []
        versions = self._project.versions
        self._contents = versions.require("test", tests)
        self._contents |= versions.require("evaluation", evaluations)

    def describe(self, path: str, case: Case) -> dict[str, Json]:
        """Return the messages, system prompts, instructions and checks of a case of a test file.

        It is one of those that were read last.
        """
        evaluation = self._contents[case.evaluation] if case.evaluation else {}
        instructions = deserialize.restore_parts(evaluation.get("instructions", ()))
        conversations = [deserialize.restore_test(self._contents[id]).messages for id in case.tests]
        runs = self._runs_of(path, conversations)
        return {
            "messages": [
                list(_messages(messages, run))
                for messages, run in zip(conversations, runs, strict=True)
            ],
            "systemPrompts": list(case.prompts),
            "instructions": _parts(instructions) if instructions else "",
            "checks": evaluation.get("checks", []),
        }

    def _runs_of(
        self, path: str, conversations: Sequence[tuple[Message, ...]]
    ) -> Iterator[RepeatedConversation | None]:
        """Yield the run of the file for each conversation; only the file has the names of turns."""
        if not any(message.filled for messages in conversations for message in messages):
            yield from [None] * len(conversations)
            return
        if self._runs[0] != path:
            self._runs = (path, self._read(path))
        held = [run for run in self._runs[1] for _ in range(run.count)]
        for number, messages in enumerate(conversations):
            in_order = held[number : number + 1] if len(held) == len(conversations) else []
            yield next((run for run in (*in_order, *held) if _is_of(messages, run)), None)

    def _read(self, path: str) -> tuple[RepeatedConversation, ...]:
        try:
            text = normalise(self._project.workspace.read_bytes(path, LARGEST_TEXT))
            return read_test(path, text)[0].runs
        except FileProblem:  # it was removed or edited in the meantime
            return ()


def _is_of(messages: Sequence[Message], run: RepeatedConversation) -> bool:
    """Return whether messages have the roles of a run, and the same model-generated turns."""
    shown = [(message.role, message.filled) for message in messages]
    return shown == [(turn.role, turn.name is not None) for turn in run.turns]


def _messages(messages: Sequence[Message], run: RepeatedConversation | None) -> Iterator[Json]:
    names = iter(run.turn_names if run else ())
    for message in messages:
        if message.filled:
            yield {"role": message.role, "fill": next(names, None)}
        else:
            speaker = {"name": message.name} if message.name else {}
            yield {"role": message.role, **speaker, "content": _parts(message.parts)}


def _parts(parts: tuple[Part, ...]) -> Json:
    """Return plain text as one text; with files or answers, return a list of parts."""
    if all(isinstance(part, Text) for part in parts):
        return "".join(part.text for part in parts if isinstance(part, Text))
    return [_part(part) for part in parts]


def _part(part: Part) -> Json:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    if isinstance(part, AnswerRef):
        return {"type": "answers", "places": [list(place) for place in part.places]}
    if isinstance(part, SampleRef):
        return {"type": "sample", "expression": part.expression}
    return {"type": "file", "path": part.path, "mediaType": part.media_type, "id": part.id}
