"""Matches recorded answers to cases: rows by their values, models by their names."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from evalstore.checks.aggregation import combine_votes
from evalstore.core import hashing
from evalstore.core.batches import in_batches
from evalstore.core.deserialize import restore_test
from evalstore.core.display import as_text, plural
from evalstore.core.errors import EvalstoreError
from evalstore.core.results import Evaluation, Session
from evalstore.core.values import (
    Case,
    FileRef,
    FileVersion,
    Json,
    Message,
    Part,
    Question,
    Reply,
    Text,
    Verdict,
)
from evalstore.exchange.importers.base import JudgedAnswer, NotTakenError, ShownMessage, SkippedItem
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
    candidate: Candidate


class _Attempt(NamedTuple):
    """The sessions of one attempt at a row, with their verdict."""

    sessions: tuple[str, ...]
    verdict: Verdict | None
    evaluations: tuple[str, ...]


def place(
    project: Project,
    system: str,
    recorded: Sequence[JudgedAnswer],
    files: Mapping[str, str],
    suggested: Sequence[Mapping[str, Json]] = (),
) -> MatchedAnswers:
    """Return the history of these answers; `files` maps imported test files to written ones.

    An answer keeps its recorded temperature even if the settings have another one.
    `suggested` are the candidates that the import suggests for the settings.
    """
    placed = MatchedAnswers(project, system, files, suggested)
    for entries in _together(recorded):
        placed.add(entries)
    placed.finish()
    return placed


def _together(recorded: Iterable[JudgedAnswer]) -> Iterator[list[JudgedAnswer]]:
    """Yield groups of consecutive answers to one row, numbered by their runs."""
    group: list[JudgedAnswer] = []
    for answer in recorded:
        if group and (answer.run != len(group) or _origin(answer) != _origin(group[0])):
            yield group
            group = []
        group.append(answer)
    if group:
        yield group


def _origin(answer: JudgedAnswer) -> tuple[Json, ...]:
    return answer.file, answer.source, answer.line, answer.model, answer.values


class MatchedAnswers:
    """The recorded answers that were matched, and those that were not."""

    def __init__(
        self,
        project: Project,
        system: str,
        files: Mapping[str, str],
        suggested: Sequence[Mapping[str, Json]],
    ) -> None:
        self.history = ImportedHistory(system)
        self.left: list[SkippedItem] = []
        self.warnings: list[SkippedItem] = []
        self.temperatures: dict[str, list[float]] = {}
        """Model -> temperatures of answers to current tests that no candidate has."""
        self._project = project
        self._files = files
        self._candidates = CandidateFinder(project, suggested, self.temperatures)
        self._rows: dict[str, Rows] = {}
        self._turns: dict[str, int] = {}
        """Test version -> how many answers its conversation has."""
        self._times: Counter[tuple[str, str, str, int]] = Counter()
        self._older = OlderVersions(project, self.history)
        self._numbers: dict[tuple[str, str, tuple[str, ...]], int] = {}
        self._older_cases: dict[_Place, Case] = {}
        """Places of answers to an older version of a test, with its case."""
        self._sources: dict[str, tuple[str, int | None]] = {}
        """Session -> its file and line."""
        self._repeated: dict[str, list[int | None]] = {}
        """File -> lines that repeat an answer of another file."""
        self._attempts: dict[_Place, list[_Attempt]] = {}
        self._evaluation_ids: dict[_Place, str] = {}
        self._left: dict[tuple[str, str], tuple[int | None, int]] = {}
        """File and reason -> the first line, and how many answers."""

    def add(self, entries: list[JudgedAnswer]) -> None:
        """Match the answers to all conversations of a row, or record why they have no place."""
        first = entries[0]
        try:
            self._add(first, entries)
        except NotTakenError as problem:
            place = (first.source or first.file, str(problem))
            line, count = self._left.get(place, (first.line, 0))
            self._left[place] = (line, count + len(entries))

    def _add(self, first: JudgedAnswer, entries: list[JudgedAnswer]) -> None:
        file = self._files.get(first.file)
        if file is None:
            raise NotTakenError("the test file was edited since the import, or was not written")
        rows = self._rows_of(file)
        if first.messages is None:
            indexes = rows.find(first.values)
            case = rows.cases[indexes[0]]
        else:
            case = self._older.case(rows, entries)
            number = self._numbers.setdefault((file, case.key, case.tests), len(self._numbers))
            indexes = [-1 - number]
        candidate = self._candidates.find(first, case)
        if None not in case.prompts:
            raise NotTakenError(
                "the test has a system prompt, which the recorded conversation did not have"
            )
        if len(entries) != len(case.tests):
            raise NotTakenError(
                f"it has answers of {plural(len(entries), 'conversation')}, "
                f"the test has {len(case.tests)}"
            )
        sessions = self._sessions(file, first, entries, case, candidate)
        if first.messages is not None:
            self.history.older_sessions |= set(sessions)
        evaluation = self.history.evaluation_of(first.judge)
        evaluations = self._evaluations(first, sessions, evaluation)
        for index in indexes:
            place = _Place(file, index, candidate)
            if index < 0:
                self._older_cases[place] = case
            self._evaluation_ids[place] = evaluation
            self._attempts.setdefault(place, []).append(
                _Attempt(sessions, first.verdict, evaluations)
            )

    def _sessions(
        self,
        file: str,
        first: JudgedAnswer,
        entries: list[JudgedAnswer],
        case: Case,
        candidate: Candidate,
    ) -> tuple[str, ...]:
        for entry, test in zip(entries, case.tests, strict=True):
            if test not in self._turns:  # of a test as it was before
                self._turns[test] = _count_turns(json.loads(self.history.contents[test][1]))
            turns = self._turns[test]
            if len(entry.answers) != turns:
                raise NotTakenError(
                    f"it has {plural(len(entry.answers), 'answer')} of a conversation "
                    f"that asks for {turns}"
                )
        # The order of answers is that of their times: runs of one row must differ in them.
        moment = (file, case.key, candidate.id, first.started)
        began = first.started + self._times[moment] * len(entries)
        self._times[moment] += 1
        temperature = first.temperature
        if temperature is None:
            temperature = asks_at(candidate, case)
        try:
            sessions = tuple(
                self.history.add_session(
                    Session(
                        Question(test, None, candidate.model, temperature, case.seed),
                        tuple([Reply(answer) for answer in entry.answers]),
                        began + number,
                        f"{self.history.system} {number}",
                        origin=IMPORTED,
                    )
                )
                for number, (entry, test) in enumerate(zip(entries, case.tests, strict=True))
            )
        except UnicodeEncodeError:
            raise NotTakenError("the answer holds half a surrogate pair") from None
        source = first.source, first.line
        if self._sources.setdefault(sessions[0], source) != source:
            self._repeated.setdefault(first.source, []).append(first.line)
        return sessions

    def _evaluations(
        self, first: JudgedAnswer, sessions: tuple[str, ...], evaluation_id: str
    ) -> tuple[str, ...]:
        history = self.history
        if first.verdict is None:
            return ()
        words = f"recorded by {history.system}" + (f" ({first.judge})" if first.judge else "")
        evaluation = Evaluation(
            sessions,
            evaluation_id,
            history.evaluator(),
            first.verdict,
            first.started,
            history.system,
            feedback=f"{words}: {first.feedback}" if first.feedback else words,
            origin=IMPORTED,
        )
        return (history.add_evaluation(evaluation),)

    # --- rows

    def _rows_of(self, file: str) -> Rows:
        if file not in self._rows:
            self._rows[file] = rows = read_test_rows(self._project, file)
            for batch in in_batches(
                dict.fromkeys(test for case in rows.cases for test in case.tests)
            ):
                for test, content in self._project.versions.require("test", batch).items():
                    self._turns[test] = _count_turns(content)
        return self._rows[file]

    # --- result

    def finish(self) -> None:
        """Make cells of the matched answers, and messages about the others."""
        settings = self._project.settings
        more: Counter[tuple[str, int]] = Counter()
        older: list[tuple[ImportedCase, Case, int]] = []
        for place, recorded in self._attempts.items():
            file = self._project.reading.files[place.file]
            attempts = file.attempts or settings.attempts
            counted = sorted(recorded, key=self._began)[:attempts]
            cell = self._imported_case(place, counted)
            more[place.file, attempts] += len(recorded) > attempts
            if case := self._older_cases.get(place):
                older.append((cell, case, self._began(counted[0])))
            else:
                self.history.cells.append(cell)
        self.history.older = by_age(older, self._project)
        self._project.reading.blobs |= self._older.files
        for path, lines in self._repeated.items():
            words = f"{len(lines):,} lines repeat" if len(lines) > 1 else "this line repeats"
            reason = f"{words} an answer of another test or file: each answer is stored once"
            self.warnings.append(SkippedItem(path, reason, lines[0]))
        for (source, reason), (line, count) in self._left.items():
            words = f"{reason} ({count:,} answers are not stored)" if count > 1 else reason
            self.left.append(SkippedItem(source, words, line))
        for (name, attempts), count in more.items():
            if count:
                has = "has" if count == 1 else "have"
                words = f"{plural(count, 'row')} {has} more recorded answers than are judged"
                hint = f"'attempts: {attempts}' takes the oldest"
                self.warnings.append(SkippedItem(name, f"{words}: {hint}"))

    def _imported_case(self, place: _Place, counted: Sequence[_Attempt]) -> ImportedCase:
        """Return the cell of a place, with the recorded verdict of the answers that count."""
        verdicts = [(attempt.verdict, None) for attempt in counted if attempt.verdict]
        is_judged = len(verdicts) == len(counted)
        judged = combine_votes(verdicts, self._project.settings.verdict) if is_judged else None
        return ImportedCase(
            place.file,
            place.number,
            place.candidate,
            self._evaluation_ids[place],
            tuple(id for attempt in counted for id in attempt.sessions),
            tuple(id for attempt in counted for id in attempt.evaluations),
            judged.verdict if judged else None,
            required_answers=sum(len(attempt.sessions) for attempt in counted),
        )

    def _began(self, attempt: _Attempt) -> int:
        return self.history.sessions[attempt.sessions[0]][0].started


def _count_turns(test: Json) -> int:
    """Return how many answers a conversation has."""
    return 1 + sum("filled" in message for message in test["messages"])


# --- finds the candidate of a recorded answer, so that a later run asks the same one


class CandidateFinder:
    """Finds the candidates of recorded answers by model and temperature."""

    def __init__(
        self,
        project: Project,
        suggested: Sequence[Mapping[str, Json]],
        temperatures: dict[str, list[float]],
    ) -> None:
        """Collect in `temperatures` those that no candidate has, by model."""
        self._project = project
        self._suggested = suggested
        self._temperatures = temperatures
        self._candidates: dict[str, list[Candidate] | str] = {}

    def find(self, first: JudgedAnswer, case: Case) -> Candidate:
        """Return the candidate with the model and the temperature, else a new one."""
        if first.model not in self._candidates:
            try:
                self._candidates[first.model] = self._candidates_of(first.model)
            except EvalstoreError as problem:
                self._candidates[first.model] = f"{problem}; write a model file with this id"
        candidates = self._candidates[first.model]
        if isinstance(candidates, str):
            raise NotTakenError(candidates)
        fitting = [
            candidate
            for candidate in candidates
            if first.temperature is None or asks_at(candidate, case) == first.temperature
        ]
        meant = [
            candidate
            for candidate in fitting
            if suits(case, candidate.required_tags, candidate.prohibited_tags)
        ] or fitting
        if meant:
            return meant[0]
        assert first.temperature is not None
        is_suggested = any(
            (suggestion["id"], self._temperature_of(suggestion)) == (first.model, first.temperature)
            for suggestion in self._suggested
        )
        counts = first.messages is None and case.temperature is None
        if counts and not is_suggested:
            listed = self._temperatures.setdefault(first.model, [])
            if first.temperature not in listed:
                listed.append(first.temperature)
        name = name_at(first.model, first.temperature)
        return Candidate(name, candidates[0].model, first.temperature)

    def _candidates_of(self, model: str) -> list[Candidate]:
        """Return the candidates with a model: of the settings, else suggested by the import."""
        candidates = self._project.candidates(SelectionOptions(models=(model,)))
        suggested = [suggestion for suggestion in self._suggested if suggestion["id"] == model]
        if not suggested or any(
            candidate.id == model for candidate in self._project.settings.candidates
        ):
            return candidates
        temperatures = [self._temperature_of(suggestion) for suggestion in suggested]
        return [
            Candidate(
                name_at(model, temperature) if number else model,
                candidates[0].model,
                temperature,
                required_tags=tuple(suggestion.get("requiredTags", ())),
                prohibited_tags=tuple(suggestion.get("prohibitedTags", ())),
            )
            for number, (suggestion, temperature) in enumerate(
                zip(suggested, temperatures, strict=True)
            )
        ]

    def _temperature_of(self, suggested: Mapping[str, Json]) -> float | None:
        value = suggested.get("temperature", self._project.settings.candidates_temperature)
        return None if value is None else float(value)


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


# --- cases of older versions of a test, from the messages recorded with their answers


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
            raise NotTakenError("a message holds half a surrogate pair") from None

    def _message(self, message: ShownMessage) -> Message:
        if message.text is None:
            return Message(message.role, (), filled=True)
        parts: list[Part] = [Text(message.text)] if message.text else []
        if message.image:
            version = FileVersion(access.ADDRESS, message.image.encode())
            id, _ = hashing.identify(hashing.describe_file(version))
            self.files[id] = version
            parts.append(FileRef(message.image, access.ADDRESS, id))
        return Message(message.role, tuple(parts))


def _base(rows: Rows, answer: JudgedAnswer) -> Case:
    """Return the case of the same row; else the first one, labelled with the recorded values."""
    try:
        return rows.cases[rows.find(answer.values)[0]]
    except NotTakenError:
        texts = {name: as_text(value) for name, value in answer.values.items()}
        label = ", ".join(f"{name}={shorten_value(text)}" for name, text in texts.items())
        return rows.cases[0]._replace(row=label, key=hashing.row_key(dict(answer.values)))


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
