"""Import of LVE repositories: folders with a `test.json`, prompts, instances and checkers."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path, PurePosixPath
from typing import Any

from evalstore.core.display import plural
from evalstore.core.errors import EvalstoreError
from evalstore.core.values import Json, Role
from evalstore.exchange.importers.base import (
    Imported,
    ImportOptions,
    JudgedAnswer,
    NotTakenError,
    ShownMessage,
    check_picture,
    is_file,
    parse_json,
    read_source,
    require,
    safe_file_name,
    short_json,
    skipping,
    source_text,
    taking,
)
from evalstore.exchange.importers.lve.checkers import CheckerTest, translate_checker
from evalstore.exchange.importers.lve.definition import (
    LAST,
    LveTest,
    mentioned,
    name_of_turn,
    names_of,
    read_definition,
)
from evalstore.exchange.importers.lve.test_writer import (
    LveConversation,
    Row,
    common_options,
    distinct_rows,
    model_arguments,
    read_conversations,
    repeated,
    shown_parameters,
    write,
)

_TEST = "test.json"
_ROOT = "repository"
"""The folder of a repository that contains the tests."""
_INSTANCES = (".jsonl", ".json")
"""Suffixes of instances files; competitions have `competition.json`."""
_NO_CATEGORY = 2
"""The number of path parts after the categories: the test and the model."""


def read(paths: list[Path], options: ImportOptions) -> Imported:
    """Import the tests in these folders; raises `EvalstoreError` if there are none."""
    imported = Imported()
    models: dict[str, TemperatureTags] = {}
    has_tests = False
    for path in paths:
        for folder, name, folders in _tests(path):
            has_tests = True
            _Reader(folder, name, folders, imported, options).read(models)
    if not has_tests:
        raise EvalstoreError(
            f"no '{_TEST}' in '{paths[0].name}'",
            hint="name a folder of an LVE repository, or one of its tests",
        )
    if models:
        if not options.sessions:
            models = {model: {} for model in models}  # asked once, for all of its tests
        imported.settings["candidates"] = list_candidates(models, default=options.temperature)
    return imported


def _tests(path: Path) -> Iterator[tuple[Path, PurePosixPath, tuple[str, ...]]]:
    """Yield each folder with a test, its path below `repository`, and its categories."""
    if path.name == _TEST and path.is_file():
        path = path.parent
    path = Path(os.path.normpath(path.absolute()))  # prompt files must be below it
    base = path.parent if (path / _TEST).is_file() else path
    is_root = False
    for parent in (path, *path.parents):
        if parent.name == _ROOT:
            base, is_root = parent, True
            break
    for folder, folders, files in os.walk(path):
        folders.sort()
        folders[:] = [folder_name for folder_name in folders if not folder_name.startswith(".")]
        if _TEST in files:
            below = Path(folder).relative_to(base).parts
            from_root = is_root or below[:1] == (_ROOT,)
            if below[:1] == (_ROOT,):
                below = below[1:]
            name = PurePosixPath(*map(safe_file_name, below or (Path(folder).name,)))
            categories = name.parts[:-_NO_CATEGORY]
            if from_root and len(name.parts) == _NO_CATEGORY:
                categories = name.parts[:1]  # a category and a test, without a model folder
            yield Path(folder), name, categories


@dataclass
class _Reader:
    """Imports one test."""

    folder: Path
    name: PurePosixPath
    folders: tuple[str, ...]
    """The categories of the test, outermost first."""
    imported: Imported
    options: ImportOptions

    def read(self, models: dict[str, TemperatureTags]) -> None:
        """Import the test, or report why it is skipped."""
        path = self.folder / _TEST
        with skipping(self.imported.left, path):
            definition = read_definition(source_text(path), self._prompt)
            tags = self._import_test(definition)
            models.setdefault(definition.model, {}).update(tags)

    def _prompt(self, path: str) -> str:
        """Return the text of a prompt file, which must be in the test's folder."""
        place = Path(os.path.normpath(self.folder / path))
        if not place.is_relative_to(self.folder):
            raise NotTakenError(f"the prompt file '{path}' is outside the test's folder")
        require(is_file(place), f"the prompt file '{path}' does not exist")
        return source_text(place)

    def _import_test(self, definition: LveTest) -> TemperatureTags:
        """Add the files of a test; returns the tag for the temperatures of its answers."""
        conversations = read_conversations(definition)
        lines = list(self._lines())
        model_columns = checker_columns(
            definition.arguments,
            definition.parameters,
            [line.arguments for line in lines],
        )
        definition = replace(definition, model_columns=model_columns)
        names = names_of(
            definition.columns,
            {name_of_turn(name) for conversation in conversations for name in conversation.names},
        )
        lines = [line for line in lines if self._fill_row(definition, conversations, line)]
        instances = [line for line in lines if line.fits]
        rows = distinct_rows([line.row for line in instances])
        if definition.columns and not rows:
            raise NotTakenError("no instance says what its parameters are ('prompt_parameters')")
        turns = tuple(conversation.names for conversation in repeated(conversations))
        parameters = shown_parameters(conversations)
        judging = translate_checker(
            CheckerTest(definition, names, turns, rows, parameters, self._custom_files())
        )
        for check in judging.checks:
            if "python" in check:  # Python files are in a folder next to the test
                check["python"]["file"] = f"{self.name.name}/{check['python']['file']}"
        current_lines = [line for line in instances if matches_current_prompt(conversations, line)]
        options, warnings = common_options(
            definition,
            [split_arguments(line.arguments, definition.parameters)[1] for line in instances],
        )
        recorded = (temperature_of(definition, line) for line in current_lines)
        temperatures = {number for number in recorded if number is not None}
        tags = tag_temperatures(definition.model, options, temperatures)
        source = f"From LVE: {self.name}"
        if definition.author:
            source += f", by {definition.author}"
        papers = [value for name, value in definition.tags if name == "paper"]
        test, data = write(
            definition,
            conversations,
            names,
            rows,
            judging,
            folders=self.folders,
            more_tags=list(tags),
            options=options,
            data=f"{self.name.name}.jsonl",
            comments=[" ".join(comment.split()) for comment in (source, *papers)],
        )
        place, files = f"tests/{self.name}", self.imported.files
        files[f"{place}.md"] = test
        if data is not None:
            files[f"{place}.jsonl"] = data
        files |= {f"{place}/{path}": source for path, source in judging.files.items()}
        self.imported.rows += len(rows) or 1
        if definition.ignored:
            warnings.append(f"has no effect in evalstore: {', '.join(definition.ignored)}")
        for reason in (*judging.warnings, *warnings):
            self.imported.warn(self.folder / _TEST, reason)
        if self.options.sessions:
            record(self.imported, definition, conversations, names, lines, f"{place}.md")
        return tags

    def _custom_files(self) -> dict[str, bytes]:
        """Return the Python files of custom checkers by their path below `checker`."""
        folder = self.folder / "checker"
        with taking():
            return {
                path.relative_to(folder).as_posix(): read_source(path)
                for path in sorted(folder.rglob("*.py"))
                if path.is_file() and path.name != "__init__.py"
            }

    def _lines(self) -> Iterator[RecordedLine]:
        """Yield the valid instances with their files."""
        folder = self.folder / "instances"
        for path in sorted(file for file in folder.glob("*") if file.suffix in _INSTANCES):
            with skipping(self.imported.left, path):
                for number, line in enumerate(source_text(path).split("\n"), 1):
                    if line.strip():
                        with skipping(self.imported.left, path, number):
                            yield read_instance(path, number, line)

    def _fill_row(
        self, definition: LveTest, conversations: tuple[LveConversation, ...], line: RecordedLine
    ) -> bool:
        """Set the row of an instance; returns False and reports it if it cannot be used.

        An instance with other parameters can be used if its messages were recorded.
        """
        line.row, _ = split_arguments(line.arguments, definition.columns)
        try:
            for name in definition.columns:
                require(name in line.row, f"the instance has no value for '{name}'")
            for conversation in conversations:
                for picture in (message.image for message in conversation.shown(line.row)):
                    if picture is not None:
                        check_picture(picture)
        except NotTakenError as problem:
            reason = str(problem)
        except (LookupError, TypeError, ValueError) as error:
            reason = f"the values do not fill the prompt: {error}"
        else:
            return True
        line.fits = False
        if self.options.sessions and line.shown is not None:
            return True
        self.imported.skip(line.path, reason, line.number)
        return False


# --- candidates for recorded answers: each model with the temperatures of its answers


DEFAULT = 0
"""The temperature of the first candidate of a model, which is LVE's default."""

TemperatureTags = dict[str, tuple[float, ...]]
"""Maps a tag to its temperatures."""


def tag_temperatures(
    model: str, options: Mapping[str, Json], temperatures: Collection[float]
) -> TemperatureTags:
    """Return the tag of a test with answers at these temperatures; empty if it needs none."""
    if "temperature" in options or set(temperatures) <= {DEFAULT}:
        return {}
    distinct = tuple(sorted(set(temperatures)))
    return {f"{model}@{'+'.join(f'{number:.9g}' for number in distinct)}": distinct}


def list_candidates(
    models: Mapping[str, TemperatureTags], *, default: float | None
) -> list[dict[str, Json]]:
    """Return the candidates of these models for `evalstore.yaml`.

    `default` is the workspace's default temperature; None: none is sent.
    """
    firsts: list[dict[str, Json]] = []
    others: list[dict[str, Json]] = []
    for model, tags in models.items():
        # The first is for tests that set a temperature or have answers at the default.
        first: dict[str, Json] = {"id": model, "requiredTags": [model]}
        if prohibited := [tag for tag, values in tags.items() if DEFAULT not in values]:
            first["prohibitedTags"] = prohibited
        if default != DEFAULT:
            first["temperature"] = DEFAULT
        firsts.append(first)
        for temperature in sorted({number for values in tags.values() for number in values}):
            required = [tag for tag, values in tags.items() if temperature in values]
            if temperature != DEFAULT:
                entry = {"id": model, "requiredTags": required, "temperature": temperature}
                others.append(entry)
    return firsts + others


# --- answers and verdicts of instances


def record(
    imported: Imported,
    definition: LveTest,
    conversations: tuple[LveConversation, ...],
    names: Mapping[str, str],
    lines: Sequence[RecordedLine],
    file: str,
) -> None:
    """Add the answers and verdicts of a test's instances, or the reasons why they are skipped."""
    seen: set[str] = set()
    for line in lines:
        if line.text in seen:  # each answer is stored once
            continue
        seen.add(line.text)
        with skipping(imported.left, line.path, line.number):
            older_messages = _older_messages(conversations, line)
            answers = answers_of(line.responses, _turn_names(conversations, older_messages))
            imported.recorded.append(
                JudgedAnswer(
                    file=file,
                    values={names[parameter]: value for parameter, value in line.row.items()},
                    model=definition.model,
                    answers=tuple(answers),
                    started=line.started,
                    verdict="pass" if line.passed else "fail",
                    temperature=temperature_of(definition, line),
                    judge=definition.checker,
                    source=str(line.path),
                    line=line.number,
                    messages=older_messages,
                )
            )


def matches_current_prompt(conversations: tuple[LveConversation, ...], line: RecordedLine) -> bool:
    """Return whether the messages of an instance, if recorded, equal those of the test."""
    recorded = line.shown
    if recorded is None or not line.fits:
        return line.fits
    current = tuple(conversation.shown(line.row) for conversation in repeated(conversations))
    if not line.pictures_kept:
        current = tuple(
            tuple(message._replace(image=None) for message in messages) for messages in current
        )
    return recorded == current


def temperature_of(definition: LveTest, line: RecordedLine) -> float | None:
    """Return the temperature of an instance; None if it is not a finite number."""
    _, own = split_arguments(line.arguments, definition.parameters)
    value = model_arguments(definition.model_arguments, own).get("temperature", "")
    try:
        temperature = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return temperature if isfinite(temperature) else None


def _older_messages(
    conversations: tuple[LveConversation, ...], line: RecordedLine
) -> tuple[tuple[ShownMessage, ...], ...] | None:
    """Return the messages of an answer to an older prompt; None if the prompt is current."""
    older = line.shown
    if older is None or matches_current_prompt(conversations, line):
        return None
    if not line.pictures_kept and any(any(conversation.images) for conversation in conversations):
        raise NotTakenError("it was recorded with other messages, and does not say which picture")
    for messages in older:
        if all(message.role == "system" for message in messages) or messages[0].text is None:
            raise NotTakenError("the messages that it was recorded with say nothing to the model")
        for address in (message.image for message in messages if message.image):
            check_picture(address)
    return older


def _turn_names(
    conversations: tuple[LveConversation, ...],
    older_messages: tuple[tuple[ShownMessage, ...], ...] | None,
) -> tuple[tuple[str, ...], ...]:
    """Return LVE's names of the answers of each conversation."""
    current = [conversation.names for conversation in repeated(conversations)]
    if older_messages is None:
        return tuple(current)
    names = []
    for number, messages in enumerate(older_messages):
        count = 1 + sum(message.text is None for message in messages)
        known = current[number] if number < len(current) else ()
        if count == 1:
            names.append(known[-1:] or (LAST,))
        elif count == len(known):
            names.append(known)
        else:
            raise NotTakenError(
                f"it was recorded with {count} turns to be filled, the test has {len(known)}"
            )
    return tuple(names)


# --- recorded instances: the arguments, the answer and the verdict


_TIMES = ("%a %b %d %H:%M:%S %Y", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S")


@dataclass
class RecordedLine:
    """One line of an instances file, and the row that is made from it."""

    path: Path
    number: int
    text: str
    arguments: dict[str, Json]
    """The recorded parameters of the prompt and of the model."""
    responses: list[str | dict[str, str]]
    """The answer of each conversation, or its answers by name."""
    passed: bool
    started: int
    """Microseconds since 1970; 0 if unknown."""
    shown: tuple[tuple[ShownMessage, ...], ...] | None
    """The messages of each conversation, without the last answer; None if not recorded."""
    pictures_kept: bool
    """Whether these messages contain the URLs of pictures."""
    row: Row = field(default_factory=dict)
    fits: bool = True
    """Whether the row fills the current test."""


def read_instance(path: Path, number: int, text: str) -> RecordedLine:
    """Parse a line of an instances file; raises `NotTakenError`."""
    try:
        document = parse_json(text)
    except ValueError as error:
        raise NotTakenError(f"is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise NotTakenError(f"an instance must be a mapping, not {short_json(document)}")
    for name in ("args", "run_info"):
        require(isinstance(document.get(name), dict), f"the instance has no '{name}'")
    response = document.get("response")
    responses: list[Any] = response if isinstance(response, list) else [response]
    answers = [[*each.values()] if isinstance(each, dict) else [each] for each in responses]
    texts = [text for listed in answers for text in listed]
    if not all([answers, *answers]) or not all(isinstance(text, str) for text in texts):
        value = short_json(response)
        raise NotTakenError(f"'response' must be a text, texts by name, or a list, not {value}")
    passed = document.get("passed", document.get("is_safe", True))  # the older name
    if not isinstance(passed, bool):
        raise NotTakenError(f"'passed' must be true or false, not {short_json(passed)}")
    return RecordedLine(
        path,
        number,
        text.strip(),
        document["args"],
        responses,
        passed,
        started=_microseconds(document["run_info"].get("timestamp")),
        shown=_kept_messages(document, set(texts)),
        pictures_kept=bool(document.get("prompt_out")),
    )


def _kept_messages(
    document: dict[str, Json], model_texts: set[str]
) -> tuple[tuple[ShownMessage, ...], ...] | None:
    """Return the recorded messages: `prompt_out` with answers, or the older `prompt` without."""
    messages = document.get("prompt_out") or document.get("prompt")
    if not isinstance(messages, list) or not messages:
        return None
    runs = messages if all(isinstance(run, list) for run in messages) else [messages]
    try:
        return tuple(_conversation(run, model_texts) for run in runs)
    except (AttributeError, LookupError, TypeError, ValueError):
        raise NotTakenError("the recorded prompt is not a list of messages") from None


_ROLES: dict[Json, Role] = {"user": "user", "system": "system", "assistant": "assistant"}


def _conversation(entries: list[Json], model_texts: Collection[str]) -> tuple[ShownMessage, ...]:
    """Return one conversation; texts of the model become filled turns."""
    messages = []
    for entry in entries:
        role = _ROLES[entry.get("role") or "user"]
        text, image = entry.get("content"), entry.get("image_url")
        if not isinstance(text, str | None):
            raise ValueError(role)
        if role == "assistant" and (
            entry.get("variable") or (text in model_texts and "variable" not in entry)
        ):
            text = None
        if text is None and role != "assistant":
            raise ValueError(role)
        messages.append(ShownMessage(role, text, image if isinstance(image, str) else None))
    while messages and messages[-1].role == "assistant":
        messages.pop()
    return tuple(messages)


def _microseconds(timestamp: Json) -> int:
    """Return a timestamp without time zone, taken as UTC, in microseconds since 1970; else 0."""
    for form in _TIMES if isinstance(timestamp, str) else ():
        try:
            time = datetime.strptime(timestamp.strip()[:24], form).replace(tzinfo=UTC)
        except ValueError:
            continue
        return int(time.timestamp()) * 1_000_000
    return 0


def split_arguments(
    arguments: Mapping[str, Json], parameters: Collection[str]
) -> tuple[dict[str, Json], dict[str, Json]]:
    """Split arguments into those of the prompt and those of the model; nulls are dropped."""
    split: tuple[dict[str, Json], dict[str, Json]] = {}, {}
    for name, value in arguments.items():
        if value is not None:
            split[name not in parameters][name] = value
    return split


def checker_columns(
    checker: Mapping[str, Json],
    parameters: Collection[str],
    arguments: Iterable[Mapping[str, Json]],
) -> tuple[str, ...]:
    """Return the model arguments of instances that the checker's arguments mention."""
    known = {name for call in arguments for name, value in call.items() if value is not None}
    texts = [text for text in checker.values() if isinstance(text, str)]
    names = dict.fromkeys(name for text in texts for name in mentioned(text))
    return tuple(name for name in names if name in known and name not in parameters)


def answers_of(
    responses: Sequence[str | Mapping[str, str]], names: tuple[tuple[str, ...], ...]
) -> list[tuple[str, ...]]:
    """Return the answers of each conversation; `names` are those of its turns.

    Raises `NotTakenError` if the answers do not match these conversations.
    """
    if len(responses) != len(names):
        raise NotTakenError(
            f"it has answers of {plural(len(responses), 'run')}, the test has {len(names)}"
        )
    answers: list[tuple[str, ...]] = []
    for texts, turns in zip(responses, names, strict=True):
        if isinstance(texts, str):
            require(len(turns) <= 1, f"it has one answer, the test has {len(turns)}")
            answers.append((texts,))
            continue
        for name in turns:
            require(name in texts, f"it has no answer '{name}'")
        answers.append(tuple(texts[name] for name in turns))
    return answers
