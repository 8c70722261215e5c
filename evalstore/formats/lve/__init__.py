"""Import of LVE: a repository of folders with a `test.json`, prompts, instances and checkers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from evalstore.errors import EvalstoreError, FileProblem
from evalstore.formats.base import Imported, Left, Options, Recorded
from evalstore.formats.lve.checkers import translate
from evalstore.formats.lve.composing import (
    Conversation,
    Row,
    common_options,
    compare_shown,
    conversations,
    distinct_rows,
    shown_parameters,
    write,
)
from evalstore.formats.lve.definition import Definition, read_definition
from evalstore.formats.lve.formatting import fill, names_of
from evalstore.formats.lve.instances import (
    Instance,
    answers_of,
    model_arguments,
    read_instance,
    split_arguments,
)
from evalstore.formats.lve.judging import Test
from evalstore.formats.lve.prompts import name_of_turn
from evalstore.formats.lve.taking import NotTakenError, line_of, shown
from evalstore.formats.sources import read_source, reason_of
from evalstore.formats.writing import file_name

_TEST = "test.json"
_ROOT = "repository"
"""The folder of a repository that holds the tests."""
_INSTANCES = (".jsonl", ".json")
"""Files of recorded lines: those of competitions are called `competition.json`."""
_NO_CATEGORY = 2
"""The last parts of a path: the name of the test, and the model."""


def read(paths: list[Path], options: Options) -> Imported:
    """The tests in these folders; raises `EvalstoreError` when there are none."""
    imported = Imported()
    models: dict[str, None] = {}
    found = False
    for path in paths:
        for folder, name in _tests(path):
            found = True
            _Reader(folder, name, imported, options).read(models)
    if not found:
        raise EvalstoreError(
            f"there is no '{_TEST}' in '{paths[0].name}'",
            hint="name a folder of an LVE repository, or one of its tests",
        )
    if models:
        imported.settings["candidates"] = [{"id": one, "requiredTags": [one]} for one in models]
    return imported


def _tests(path: Path) -> Iterator[tuple[Path, PurePosixPath]]:
    """The folders with tests, and what each is called: its path below `repository`."""
    if path.name == _TEST and path.is_file():
        path = path.parent
    path = Path(os.path.normpath(path.absolute()))  # a prompt file must lie below it
    base = path.parent if (path / _TEST).is_file() else path
    for parent in (path, *path.parents):
        if parent.name == _ROOT:
            base = parent
            break
    for folder, folders, files in os.walk(path):
        folders.sort()
        folders[:] = [one for one in folders if not one.startswith(".")]
        if _TEST in files:
            below = Path(folder).relative_to(base).parts
            if below[:1] == (_ROOT,):
                below = below[1:]
            yield Path(folder), PurePosixPath(*map(file_name, below or (Path(folder).name,)))


@dataclass
class _Reader:
    """Reads one test."""

    folder: Path
    name: PurePosixPath
    imported: Imported
    options: Options

    def read(self, models: dict[str, None]) -> None:
        """Add what the test comes to, or why it is left."""
        path = self.folder / _TEST
        text = ""
        try:
            text = self._text(path)
            definition = read_definition(text, self._prompt)
            self._take(definition, text)
            models.setdefault(definition.model)
        except NotTakenError as problem:
            line = problem.line or line_of(text, problem.place)
            self.imported.left.append(Left(str(path), problem.reason, line))

    def _text(self, path: Path) -> str:
        try:
            return self._bytes(path).decode("utf-8-sig")
        except UnicodeDecodeError:
            raise NotTakenError("is not UTF-8") from None

    def _bytes(self, path: Path) -> bytes:
        try:
            return read_source(path)
        except FileProblem as problem:
            raise NotTakenError(reason_of(problem)) from problem

    def _prompt(self, path: str) -> str:
        """The text of a prompt file of the test; one from elsewhere is not read."""
        place = Path(os.path.normpath(self.folder / path))
        if not place.is_relative_to(self.folder):
            raise NotTakenError(f"the prompt file '{path}' lies outside of the test's folder")
        if not place.is_file():
            raise NotTakenError(f"the prompt file '{path}' is not there")
        return self._text(place).replace("\r\n", "\n").replace("\r", "\n")

    def _take(self, definition: Definition, text: str) -> None:
        held = conversations(definition)
        names = names_of(
            definition.parameters, {name_of_turn(name) for one in held for name in one.names}
        )
        instances = list(self._instances(definition, held))
        rows = distinct_rows([row for _, row, _ in instances])
        if definition.parameters and not rows:
            raise NotTakenError("no instance says what its parameters are", "prompt_parameters")
        turns = tuple(one.names for one in held for _ in range(one.run.repetitions))
        custom = self._custom()
        judged = translate(Test(definition, names, turns, rows, shown_parameters(held), custom))
        options, words = common_options(
            definition,
            [split_arguments(one.arguments, definition.parameters)[1] for one, _, _ in instances],
        )
        model = self.name.name
        for check in judged.checks:
            if "python" in check:
                check["python"]["file"] = f"{model}/{check['python']['file']}"
        written, lines = write(
            definition,
            held,
            names,
            rows,
            judged,
            folders=self.name.parts[:-_NO_CATEGORY],
            options=options,
            data=f"{model}.jsonl",
            comments=self._comments(definition),
        )
        place = f"tests/{self.name}"
        self.imported.files[f"{place}.md"] = written
        if lines is not None:
            self.imported.files[f"{place}.jsonl"] = lines
        for path, source in judged.files.items():
            self.imported.files[f"{place}/{path}"] = source
        self.imported.rows += len(rows) or 1
        for reason in [*words, *judged.warnings]:
            self._warn(
                reason, line_of(text, ("checker_args",)) if reason in judged.warnings else None
            )
        if definition.ignored:
            self._warn(f"has no effect here: {', '.join(definition.ignored)}", None)
        if self.options.sessions:
            self._record(definition, held, names, instances, f"{place}.md")

    def _warn(self, reason: str, line: int | None) -> None:
        self.imported.warnings.append(Left(str(self.folder / _TEST), reason, line))

    def _comments(self, definition: Definition) -> list[str]:
        found = [
            f"From LVE: {self.name}" + (f", by {definition.author}" if definition.author else "")
        ]
        found += [value for name, value in definition.tags if name == "paper"]
        return [" ".join(one.split()) for one in found]

    def _custom(self) -> dict[str, bytes]:
        """The Python files of the test's own checkers, by their path below `checker`."""
        folder = self.folder / "checker"
        return {
            path.relative_to(folder).as_posix(): self._bytes(path)
            for path in sorted(folder.rglob("*.py"))
            if path.is_file() and path.name != "__init__.py"
        }

    def _instances(
        self, definition: Definition, held: tuple[Conversation, ...]
    ) -> Iterator[tuple[Instance, Row, Path]]:
        """The instances that fill the test, with the values of the parameters."""
        folder = self.folder / "instances"
        for path in sorted(one for one in folder.glob("*") if one.suffix in _INSTANCES):
            try:
                lines = self._text(path).split("\n")
            except NotTakenError as problem:
                self.imported.left.append(Left(str(path), problem.reason))
                continue
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                try:
                    instance = read_instance(number, line)
                    row, _ = split_arguments(instance.arguments, definition.parameters)
                    self._fill(definition, held, row)
                except NotTakenError as problem:
                    self.imported.left.append(Left(str(path), problem.reason, number))
                    continue
                yield instance, row, path

    def _fill(self, definition: Definition, held: tuple[Conversation, ...], row: Row) -> None:
        """Raise unless the values fill all texts."""
        for name in definition.parameters:
            if name not in row:
                raise NotTakenError(f"the instance has no value for '{name}'")
        for one in held:
            try:
                for pieces in (pieces for _, pieces in one.turns):
                    fill(pieces, row)
                pictures = one.pictures(row)
            except (LookupError, TypeError, ValueError) as error:
                raise NotTakenError(f"the values do not fill the prompt: {error}") from None
            for address in pictures:
                if not address.startswith(("https://", "http://")):
                    raise NotTakenError(f"{shown(address)} is no address of a picture (https://…)")

    def _record(
        self,
        definition: Definition,
        held: tuple[Conversation, ...],
        names: dict[str, str],
        instances: list[tuple[Instance, Row, Path]],
        file: str,
    ) -> None:
        """Add the answers and verdicts of the instances."""
        turns = tuple(one.names for one in held for _ in range(one.run.repetitions))
        for instance, row, path in self._distinct(instances):
            try:
                answers = answers_of(instance.response, turns)
                compare_shown(held[0], row, instance)
            except NotTakenError as problem:
                self.imported.left.append(Left(str(path), problem.reason, instance.line))
                continue
            _, own = split_arguments(instance.arguments, definition.parameters)
            temperature = model_arguments(definition.model_arguments, own)["temperature"]
            for run, given in enumerate(answers):
                self.imported.recorded.append(
                    Recorded(
                        file=file,
                        values={names[one]: value for one, value in row.items()},
                        model=definition.model,
                        answers=given,
                        started=instance.started,
                        run=run,
                        verdict="pass" if instance.passed else "fail",
                        temperature=float(temperature),
                        judge=definition.checker,
                        source=str(path),
                        line=instance.line,
                    )
                )

    def _distinct(
        self, instances: list[tuple[Instance, Row, Path]]
    ) -> Iterator[tuple[Instance, Row, Path]]:
        """Each line once: the same answer of the same second is no second answer."""
        seen: set[str] = set()
        repeated: dict[Path, list[int]] = {}
        for one in instances:
            instance, _, path = one
            if instance.text in seen:
                repeated.setdefault(path, []).append(instance.line)
                continue
            seen.add(instance.text)
            yield one
        for path, lines in repeated.items():
            words = f"{len(lines):,} lines repeat" if len(lines) > 1 else "this line repeats"
            reason = f"{words} one before word for word: each answer is stored once"
            self.imported.warnings.append(Left(str(path), reason, lines[0]))
