"""Matches recorded answers to cases: rows by their values, models by their names."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import NamedTuple

from evalstore.checks.aggregation import combine_votes
from evalstore.core import hashing
from evalstore.core.deserialize import restore_test
from evalstore.core.display import as_text, plural
from evalstore.core.errors import EvalstoreError
from evalstore.core.values import (
    Case,
    Evaluation,
    FileRef,
    FileVersion,
    Json,
    Message,
    Part,
    Question,
    Reply,
    Session,
    Text,
    Verdict,
)
from evalstore.exchange.importers.base import (
    JudgedAnswer,
    NotTakenError,
    ShownMessage,
    SkippedItem,
    require,
)
from evalstore.exchange.imports.records import IMPORTED, ImportedCase, ImportedHistory, OlderCases
from evalstore.files import access
from evalstore.files.access import LARGEST_TEXT, normalise
from evalstore.planning.cells import Candidate, ask_of
from evalstore.planning.options import SelectionOptions
from evalstore.planning.project import Project
from evalstore.planning.selection import suits
from evalstore.workspace.settings.settings import name_at
from evalstore.workspace.testfiles.case_builder import CaseBuilder
from evalstore.workspace.testfiles.parser import parse_test
from evalstore.workspace.testfiles.replacements import shorten_value


class _Place(NamedTuple):
    """A case and a candidate that answers belong to."""

    file: str
    number: int
    """The index of the case in its file; -1 if it is of an older version."""
    older: tuple[str, tuple[str, ...]]
    """The key and the tests of a case of an older version; else empty."""
    candidate: Candidate


class _Attempt(NamedTuple):
    """The answers to all conversations of a case, with their verdict."""

    started: int
    sessions: tuple[str, ...]
    verdict: Verdict
    evaluation: str
    """The id of the verdict."""


class MatchedAnswers:
    """The recorded answers that were matched, and those that were not.

    An answer keeps its recorded temperature even if the settings have another one.
    """

    def __init__(
        self,
        project: Project,
        system: str,
        files: Mapping[str, str],
        suggested: Sequence[Mapping[str, Json]] = (),
    ) -> None:
        """`files` maps imported test files to written ones.

        `suggested` are the candidates that the import suggests for the settings.
        """
        self.history = ImportedHistory(system)
        self.left: list[SkippedItem] = []
        self.warnings: list[SkippedItem] = []
        self._project = project
        self._files = files
        self._suggested = suggested
        self._candidates: dict[str, list[Candidate] | str] = {}
        self._rows: dict[str, Rows] = {}
        self._times: Counter[tuple[str, str, str, int]] = Counter()
        self._older_cases: dict[_Place, Case] = {}
        """Places of answers to an older version of a test, with its case."""
        self._attempts: dict[_Place, list[_Attempt]] = {}
        self._evaluation_ids: dict[_Place, str] = {}
        self._left: dict[tuple[str, str], tuple[int | None, int]] = {}
        """File and reason -> the first line, and how many answers."""

    def add(self, answer: JudgedAnswer) -> None:
        """Match the answers to all conversations of a row, or record why they have no place."""
        try:
            self._add(answer)
        except NotTakenError as problem:
            place = (answer.source or answer.file, str(problem))
            line, count = self._left.get(place, (answer.line, 0))
            self._left[place] = (line, count + len(answer.answers))

    def _add(self, answer: JudgedAnswer) -> None:
        file = self._files.get(answer.file)
        if file is None:
            raise NotTakenError("the test file was edited since the import, or was not written")
        if file not in self._rows:
            self._rows[file] = read_test_rows(self._project, file)
        rows = self._rows[file]
        older: tuple[str, tuple[str, ...]] = ("", ())
        if answer.messages is None:
            numbers = rows.find(answer.values)
            case = rows.cases[numbers[0]]
        else:
            case = self._older_case(rows, answer)
            numbers, older = [-1], (case.key, case.tests)
        recorded = plural(len(answer.answers), "conversation")
        require(
            len(answer.answers) == len(case.tests),
            f"it has answers to {recorded}, the test has {len(case.tests)}",
        )
        candidate = self._find_candidate(answer, case)
        attempt, evaluation = self._attempt(file, answer, case, candidate)
        for number in numbers:
            place = _Place(file, number, older, candidate)
            if number < 0:
                self._older_cases[place] = case
                self.history.older_sessions |= set(attempt.sessions)
            self._evaluation_ids[place] = evaluation
            self._attempts.setdefault(place, []).append(attempt)

    def _attempt(
        self, file: str, answer: JudgedAnswer, case: Case, candidate: Candidate
    ) -> tuple[_Attempt, str]:
        """Keep the answers and their verdict; returns the evaluation version's id with them."""
        history = self.history
        # The order of answers is that of their times: runs of one row must differ in them.
        moment = (file, case.key, candidate.id, answer.started)
        began = answer.started + self._times[moment] * len(answer.answers)
        self._times[moment] += 1
        temperature = answer.temperature
        if temperature is None:
            temperature = asks_at(candidate, case)
        sessions = tuple(
            [
                history.add_session(
                    Session(
                        Question(test, None, candidate.model, temperature, case.seed),
                        tuple(map(Reply, turns)),
                        began + number,
                        f"{history.system} {number}",
                        origin=IMPORTED,
                    )
                )
                for number, (turns, test) in enumerate(zip(answer.answers, case.tests, strict=True))
            ]
        )
        evaluation = history.evaluation_of(answer.judge)
        verdict = Evaluation(
            sessions,
            evaluation,
            history.evaluator(),
            answer.verdict,
            answer.started,
            history.system,
            feedback=f"recorded by {history.system}"
            + (f" ({answer.judge})" if answer.judge else ""),
            origin=IMPORTED,
        )
        id = history.add_evaluation(verdict)
        return _Attempt(began, sessions, answer.verdict, id), evaluation

    # --- candidates

    def _find_candidate(self, answer: JudgedAnswer, case: Case) -> Candidate:
        """Return the candidate with the model and the temperature, else a new one.

        So a later run asks the same one.
        """
        model = answer.model
        if model not in self._candidates:
            try:
                self._candidates[model] = self._candidates_of(model)
            except EvalstoreError as problem:
                self._candidates[model] = f"{problem}; write a model file with this id"
        candidates = self._candidates[model]
        if isinstance(candidates, str):
            raise NotTakenError(candidates)
        fitting = [
            candidate
            for candidate in candidates
            if answer.temperature is None or asks_at(candidate, case) == answer.temperature
        ]
        meant = [
            candidate
            for candidate in fitting
            if suits(case, candidate.required_tags, candidate.prohibited_tags)
        ] or fitting
        if meant:
            return meant[0]
        name = name_at(model, answer.temperature)
        return Candidate(name, candidates[0].model, answer.temperature)

    def _candidates_of(self, model: str) -> list[Candidate]:
        """Return the candidates with a model: of the settings, else suggested by the import."""
        settings = self._project.settings
        candidates = self._project.candidates(SelectionOptions(models=(model,)))
        if any(candidate.id == model for candidate in settings.candidates):
            return candidates
        suggested = [
            Candidate(
                model,
                candidates[0].model,
                None if value is None else float(value),
                required_tags=tuple(suggestion.get("requiredTags", ())),
                prohibited_tags=tuple(suggestion.get("prohibitedTags", ())),
            )
            for suggestion in self._suggested
            if suggestion["id"] == model
            for value in [suggestion.get("temperature", settings.candidates_temperature)]
        ]
        others = [
            candidate._replace(id=name_at(model, candidate.temperature))
            for candidate in suggested[1:]
        ]
        return [*suggested[:1], *others] or candidates

    # --- older versions of a test, from the messages recorded with their answers

    def _older_case(self, rows: Rows, answer: JudgedAnswer) -> Case:
        """Return the case of these answers, with all its conversations.

        Everything else is taken from the current test, because only the messages are recorded. A
        row that the test has no more is labelled with the recorded values.
        """
        try:
            base = rows.cases[rows.find(answer.values)[0]]
        except NotTakenError:
            texts = {name: as_text(value) for name, value in answer.values.items()}
            label = ", ".join(f"{name}={shorten_value(text)}" for name, text in texts.items())
            key = hashing.row_key(dict(answer.values))
            base = rows.cases[0]._replace(row=label, key=key)
        tests = []
        for number, messages in enumerate(answer.messages or ()):
            now = base.tests[min(number, len(base.tests) - 1)]
            content = self._project.versions.require("test", [now])[now]
            shown = tuple([self._message(message) for message in messages])
            version = replace(restore_test(content), messages=shown)
            tests.append(self.history.keep("test", hashing.describe_test(version)))
        return base._replace(tests=tuple(tests))

    def _message(self, message: ShownMessage) -> Message:
        if message.text is None:
            return Message(message.role, (), filled=True)
        parts: list[Part] = [Text(message.text)] if message.text else []
        if message.image:
            version = FileVersion(access.ADDRESS, message.image.encode())
            id, _ = hashing.identify(hashing.describe_file(version))
            self._project.reading.blobs[id] = version
            parts.append(FileRef(message.image, access.ADDRESS, id))
        return Message(message.role, tuple(parts))

    # --- result

    def finish(self) -> None:
        """Make cells of the matched answers, and messages about the others."""
        settings = self._project.settings
        more: Counter[tuple[str, int]] = Counter()
        older: list[tuple[ImportedCase, Case, int]] = []
        for place, recorded in self._attempts.items():
            attempts = self._project.reading.files[place.file].attempts or settings.attempts
            counted = sorted(recorded, key=attrgetter("started"))[:attempts]
            votes = [(attempt.verdict, None) for attempt in counted]
            cell = ImportedCase(
                place.file,
                place.number,
                place.candidate,
                self._evaluation_ids[place],
                tuple(id for attempt in counted for id in attempt.sessions),
                tuple(attempt.evaluation for attempt in counted),
                combine_votes(votes, settings.verdict).verdict,
            )
            more[place.file, attempts] += len(recorded) > attempts
            if case := self._older_cases.get(place):
                older.append((cell, case, counted[0].started))
            else:
                self.history.cells.append(cell)
        self.history.older = by_age(older, self._project)
        for (source, reason), (line, count) in self._left.items():
            words = f"{reason} ({count:,} answers are not stored)" if count > 1 else reason
            self.left.append(SkippedItem(source, words, line))
        for (name, attempts), count in more.items():
            if count:
                has = "has" if count == 1 else "have"
                words = f"{plural(count, 'row')} {has} more recorded answers than are judged"
                hint = f"'attempts: {attempts}' takes the oldest"
                self.warnings.append(SkippedItem(name, f"{words}: {hint}"))


def asks_at(candidate: Candidate, case: Case) -> float | None:
    """Return the temperature at which a candidate is asked for a case."""
    return ask_of(case, None, candidate).temperature


# --- the rows of a test file by their values


_LONGEST = 80
"""Characters of values in a message."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The cases of a test file, indexed by their values."""

    cases: Sequence[Case]
    numbers: Mapping[str, list[int]]
    """Key -> the numbers of the cases that have it."""
    columns: tuple[str, ...]
    """Columns of the data that a text or a check uses."""
    names: frozenset[str]
    """Names of the replacements."""

    def find(self, values: Mapping[str, Json]) -> list[int]:
        """Return the numbers of the cases with these values; raises `NotTakenError` for none."""
        key_values = {name: values[name] for name in self.columns if name in values}
        key_values |= {name: as_text(values[name]) for name in self.names if name in values}
        matches = self.numbers.get(hashing.row_key(key_values), [])
        if not matches:
            text = json.dumps(key_values, ensure_ascii=False)
            text = text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
            raise NotTakenError(f"no row of the test has the values {text}")
        return matches


def read_test_rows(project: Project, file: str) -> Rows:
    """Return the rows of a test file of the workspace; raises `NotTakenError` for errors."""
    case_file, library = project.reading.files.get(file), project.reading.library
    if case_file is None or library is None:
        raise NotTakenError("the test file has errors: 'evalstore check' lists them")
    test = parse_test(file, normalise(project.workspace.read_bytes(file, LARGEST_TEXT)))
    data = library.open_data(test.dataset, file)[0] if test.dataset else None
    filler = CaseBuilder(test, data, (), None).filler
    numbers: dict[str, list[int]] = {}
    for number, case in enumerate(case_file.cases):
        numbers.setdefault(case.key, []).append(number)
    return Rows(case_file.cases, numbers, tuple(filler.used_columns), frozenset(filler.known))


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
    cases: dict[tuple[int, str], dict[tuple[str, tuple[str, ...]], Case]] = {}
    labels: set[tuple[int, str, str]] = set()
    indexes: dict[tuple[int, str, str, tuple[str, ...]], int] = {}
    for cell, case, _ in entries:
        versions = list(history[cell.file, case.key])
        age = len(versions) - 1 - versions.index(case.tests)
        while len(changes) <= age:
            changes.append(OlderCases())
        gathered = cases.setdefault((age, cell.file), {})
        place = case.key, case.tests
        if place not in gathered:
            label = case.row
            while (age, cell.file, label) in labels:
                label += "'"
            labels.add((age, cell.file, label))
            indexes[age, cell.file, *place] = len(gathered)
            gathered[place] = case._replace(row=label)
        index = indexes[age, cell.file, *place]
        changes[age].cells.append(replace(cell, index=index))
    for (age, file), gathered in cases.items():
        found = tuple(gathered.values())
        changes[age].files[file] = replace(project.reading.files[file], cases=found)
    return changes
