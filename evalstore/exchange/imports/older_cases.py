"""Cases of older versions of a test, built from the messages recorded with their answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from evalstore.core import hashing
from evalstore.core.deserialize import restore_test
from evalstore.core.display import as_text
from evalstore.core.values import Case, FileRef, FileVersion, Message, Part, Text
from evalstore.exchange.imports.records import OlderCases
from evalstore.exchange.imports.row_lookup import NotPlacedError, Rows
from evalstore.files import media_types
from evalstore.workspace.testfiles.replacements import shorten_value

if TYPE_CHECKING:
    from evalstore.exchange.importers.base import JudgedAnswer, ShownMessage
    from evalstore.exchange.imports.records import ImportedCase, ImportedHistory
    from evalstore.planning.project import Project


class OlderVersions:
    """Creates the test versions of answers to older versions of a test."""

    def __init__(self, project: Project, history: ImportedHistory) -> None:
        self._project = project
        self._history = history
        self.files: dict[str, FileVersion] = {}
        """Pictures by the ids of their addresses."""

    def case(self, rows: Rows, entries: Sequence[JudgedAnswer]) -> Case:
        """Return the case of these answers, with all its conversations.

        Everything else is taken from the current test, because only the messages are recorded.
        """
        base = _base(rows, entries[0])
        tests = [
            self._test(base.tests[min(number, len(base.tests) - 1)], entry.messages or ())
            for number, entry in enumerate(entries)
        ]
        return base._replace(tests=tuple(tests))

    def _test(self, now: str, messages: Sequence[ShownMessage]) -> str:
        """Return the id of a test version with these messages, kept in the history."""
        content = self._project.versions.require("test", [now])[now]
        version = replace(
            restore_test(content), messages=tuple([self._message(message) for message in messages])
        )
        try:
            return self._history.keep("test", hashing.describe_test(version))
        except UnicodeEncodeError:
            raise NotPlacedError("a message holds half a surrogate pair") from None

    def _message(self, message: ShownMessage) -> Message:
        if message.text is None:
            return Message(message.role, (), filled=True)
        parts: list[Part] = [Text(message.text)] if message.text else []
        if message.image:
            version = FileVersion(media_types.ADDRESS, message.image.encode())
            id, _ = hashing.identify(hashing.describe_file(version))
            self.files[id] = version
            parts.append(FileRef(message.image, media_types.ADDRESS, id))
        return Message(message.role, tuple(parts))


def _base(rows: Rows, answer: JudgedAnswer) -> Case:
    """Return the case of the same row; else the first one, labelled with the recorded values."""
    try:
        return rows.cases[rows.find(answer.values)[0]]
    except NotPlacedError:
        texts = {name: as_text(value) for name, value in answer.values.items()}
        label = ", ".join(f"{name}={shorten_value(text)}" for name, text in texts.items())
        key = hashing.row_key(dict(answer.values))
        return rows.cases[0]._replace(row=label, key=key)


def by_age(
    imported: Iterable[tuple[ImportedCase, Case, int]], project: Project
) -> list[OlderCases]:
    """Return older cases by the number of changes since, newest first.

    `imported` has cells with their cases, and when their first answer was given.
    """
    history: dict[tuple[str, str], dict[tuple[str, ...], int]] = {}
    entries = sorted(imported, key=lambda entry: entry[2])
    for cell, case, began in entries:
        history.setdefault((cell.file, case.key), {}).setdefault(case.tests, began)
    changes: list[OlderCases] = []
    gathered: dict[tuple[int, str], _Gathered] = {}
    for cell, case, _ in entries:
        versions = list(history[cell.file, case.key])
        age = len(versions) - 1 - versions.index(case.tests)
        while len(changes) <= age:
            changes.append(OlderCases())
        index = gathered.setdefault((age, cell.file), _Gathered()).add(case)
        changes[age].cells.append(replace(cell, index=index))
    for (age, file), cases in gathered.items():
        changes[age].files[file] = replace(project.reading.files[file], cases=tuple(cases.cases))
    return changes


class _Gathered:
    """The older cases of a file, each with a unique label."""

    def __init__(self) -> None:
        self.cases: list[Case] = []
        self._places: dict[tuple[str, tuple[str, ...]], int] = {}
        self._labels: set[str] = set()

    def add(self, case: Case) -> int:
        """Add a case unless it is there; returns its index."""
        place = self._places.setdefault((case.key, case.tests), len(self.cases))
        if place == len(self.cases):
            label = case.row
            while label in self._labels:
                label += "'"
            self._labels.add(label)
            self.cases.append(case._replace(row=label))
        return place
