"""Writes the files of an import to the workspace."""

from __future__ import annotations

import json
import os
import posixpath
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from evalstore.checks.judge_replies import model_that_judges
from evalstore.checks.parser import implied_checks
from evalstore.core import hashing
from evalstore.core.errors import EvalstoreError, FileProblem
from evalstore.core.values import (
    RECORDED,
    Evaluation,
    EvaluationVersion,
    Json,
    Message,
    PromptVersion,
    Question,
    Session,
    TestVersion,
    Text,
)
from evalstore.exchange.importers.base import (
    CountedReasons,
    Imported,
    JudgedAnswer,
    NotTakenError,
    RecordedAnswer,
    RecordedModel,
    RecordedVerdict,
    SkippedItem,
    parse_json,
    require,
    safe_file_name,
    unique,
)
from evalstore.exchange.imports.records import IMPORTED, ImportedHistory
from evalstore.files.access import LARGEST_SOURCE, LARGEST_TEXT, normalise, read_file
from evalstore.files.atomic_write import remove_abandoned, write_whole
from evalstore.files.markdown_lines import SPACE
from evalstore.files.yaml12 import read_yaml, write_yaml
from evalstore.planning.open_project import locate_store, open_store
from evalstore.planning.options import Location
from evalstore.planning.project import Project
from evalstore.providers.price_table import is_listed
from evalstore.workspace.catalogue import read_catalogue
from evalstore.workspace.folder import WorkspaceFolder
from evalstore.workspace.model_files import Model, Part, bare_model
from evalstore.workspace.reader import read_workspace
from evalstore.workspace.testfiles.parser import parse_prompt
from evalstore.workspace.testfiles.template_filling import expand_prompt


class PlacedFiles(NamedTuple):
    """The paths of imported files in the workspace, by their names in the import."""

    written: dict[str, str]
    unchanged: dict[str, str]
    kept: dict[str, str]
    replaced: dict[str, Older]
    """By place."""
    gone: tuple[str, ...] = ()
    """Files of earlier imports into the same folder that the source no longer has."""


def write_files(
    workspace: WorkspaceFolder, folder: str, imported: Imported, *, force: bool, dry_run: bool
) -> PlacedFiles:
    """Write the imported files; those that `check` would refuse are removed again, and reported."""
    places = {name: import_path_of(workspace, folder, name) for name in imported.files}
    models = {
        places[name]: content
        for name, content in imported.files.items()
        if name.startswith("models/")
    }
    taken = find_taken(workspace, models)
    imported.warnings += taken.values()
    new = {name: content for name, content in imported.files.items() if places[name] not in taken}
    tests = import_path_of(workspace, folder, "tests/")
    workspace.boundary.require(workspace.root / tests, tests)
    record = workspace.root / tests / NAME
    before = _load_record(record)
    digests = dict(before)
    files = _write(workspace, new, places, digests, force=force, dry_run=dry_run)
    gone = sorted(before.keys() - set(places.values()))
    files = files._replace(gone=tuple(place for place in gone if (workspace.root / place).exists()))
    if dry_run:
        return files
    refused = take_refused_back(workspace, files.written.values(), files.replaced)
    imported.left += refused
    removed = {item.file for item in refused}
    for place in removed:
        digests.pop(place, None)
    digests |= {place: before[place] for place in removed & before.keys()}
    if digests != before:
        document = {"format": _FORMAT, "files": dict(sorted(digests.items()))}
        with _writing(tests):
            record.parent.mkdir(parents=True, exist_ok=True)
            write_whole(
                record, (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode()
            )
    kept = {name: path for name, path in files.written.items() if path not in removed}
    return files._replace(written=kept)


def import_path_of(workspace: WorkspaceFolder, folder: str, name: str) -> str:
    """Return the path of an imported file, relative to the workspace."""
    kind, _, rest = name.partition("/")
    return posixpath.normpath(posixpath.join(workspace.settings.paths[kind], folder, rest))


def _write(
    workspace: WorkspaceFolder,
    files: Mapping[str, bytes],
    places: Mapping[str, str],
    digests: dict[str, str],
    *,
    force: bool,
    dry_run: bool,
) -> PlacedFiles:
    """Write files that would not replace others, and set their digests in the record of imports."""
    placed_files = PlacedFiles({}, {}, {}, {})
    for name, content in sorted(files.items()):
        place = places[name]
        path = workspace.root / place
        workspace.boundary.require(path.parent, posixpath.dirname(place))
        digest = hashing.hash_bytes(content)
        found = None if path.is_symlink() else _digest_of(path)
        if found == digest:
            placed_files.unchanged[name] = place
            digests[place] = digest
            continue
        is_untouched = found is not None and found == digests.get(place)
        replaces = (force and path.is_file()) or is_untouched
        if os.path.lexists(path) and not replaces:
            placed_files.kept[name] = place
            continue
        placed_files.written[name] = place
        digests[place] = digest
        if not dry_run:
            if replaces:
                placed_files.replaced[place] = read_older(path, place)
            with _writing(place):
                path.parent.mkdir(parents=True, exist_ok=True)
                write_whole(path, content, exclusive=not replaces)
    if not dry_run:
        # An import that was killed may have left some where nothing is written this time.
        ours = (*placed_files.written.values(), *placed_files.unchanged.values())
        for directory in {(workspace.root / written).parent for written in ours}:
            remove_abandoned(directory)
    return placed_files


@contextmanager
def _writing(place: str) -> Iterator[None]:
    """Raise `EvalstoreError` if a file at a place cannot be written."""
    try:
        yield
    except OSError as error:
        raise EvalstoreError(f"{place}: cannot be written: {error.strerror}") from error


def _digest_of(path: Path) -> str | None:
    """Return the digest of a file; None if it cannot be read as a file."""
    try:
        return hashing.hash_bytes(read_file(path, LARGEST_SOURCE))
    except (FileProblem, OSError):
        return None


# --- removes imported files that `check` refuses, so that an import never breaks a workspace


Older = bytes | Path
"""A file before it was replaced: its content, or the target of its link."""


def read_older(path: Path, place: str) -> Older:
    """Return the content of a file to be replaced; raises `EvalstoreError` if unreadable."""
    try:
        return path.readlink() if path.is_symlink() else read_file(path, LARGEST_SOURCE)
    except FileProblem as problem:
        raise EvalstoreError(
            f"{place}: cannot be replaced: {problem.message}", hint=problem.hint
        ) from problem


def take_refused_back(
    workspace: WorkspaceFolder, written: Collection[str], older: Mapping[str, Older]
) -> list[SkippedItem]:
    """Remove written files that have errors, until none has; returns them with the reasons.

    `written` are paths relative to the workspace. A test is removed with the prompt that it
    names. A file that replaced another, of `older` by path, is restored. Raises
    `EvalstoreError` when that is not possible.
    """
    removed: list[SkippedItem] = []
    remaining = set(written)
    while remaining:
        refused = [error for error in read_workspace(workspace).errors if error.file in remaining]
        if not refused:
            break
        for problem in refused:
            reason = f"it is not written, as 'check' would refuse it: {problem.message}"
            removed.append(SkippedItem(problem.file, reason, problem.line, problem.column))
            if problem.file in remaining:
                _take_back(workspace.root / problem.file, problem.file, older.get(problem.file))
                remaining.discard(problem.file)
    return removed


def _take_back(path: Path, place: str, older: Older | None) -> None:
    with _writing(place):
        if isinstance(older, bytes):
            write_whole(path, older)
        else:
            path.unlink(missing_ok=True)
        if isinstance(older, Path):
            path.symlink_to(older)


def find_taken(workspace: WorkspaceFolder, models: Mapping[str, bytes]) -> dict[str, SkippedItem]:
    """Return the model files whose id another file of the workspace has, with the reason.

    `models` are paths relative to the workspace, with their new contents.
    """
    if not models:
        return {}
    files = read_catalogue(workspace, []).model_files
    taken = {}
    for path, content in models.items():
        try:
            document = read_yaml(content.decode()).value
        except (FileProblem, UnicodeDecodeError):
            continue  # refused when it exists
        id = document.get("id") if isinstance(document, dict) else None
        if isinstance(id, str) and files.get(id, path) != path:
            reason = f"there is a model '{id}' in '{files[id]}', which is left unchanged"
            taken[path] = SkippedItem(path, reason)
    return taken


# --- records which files imports wrote, to distinguish them from files that were edited since


NAME = ".imported.json"
_FORMAT = 1


def _load_record(path: Path) -> dict[str, str]:
    """Return the digests of files that imports into a folder have written, by path.

    Raises `EvalstoreError` when the record cannot be read.
    """
    if not path.exists():
        return {}
    try:
        document = parse_json(read_file(path, LARGEST_SOURCE))
        files = document["files"] if document["format"] == _FORMAT else None
    except (FileProblem, ValueError, TypeError, KeyError):
        files = None
    if not isinstance(files, dict):
        raise EvalstoreError(
            f"{path}: the record of imports cannot be read",
            hint="remove it: existing files are then kept, as edited files are",
        )
    return files


# --- model files for models of recorded answers that cannot be called


_WORDS = (
    "# Its answers were recorded elsewhere, and it is never called. Name another provider to call\n"
    "# it: that makes it another model, and the recorded answers stay with this one.\n"
)


def write_models(
    location: Location,
    workspace: WorkspaceFolder,
    recorded: Iterable[JudgedAnswer],
    place_of: Callable[[str], str],
) -> dict[str, bytes]:
    """Return the model files for models of recorded answers that have no other model file.

    A file that an earlier import wrote is one of them. `place_of` returns the path of a file in
    the workspace.
    """
    ids = [
        id for id in dict.fromkeys(answer.model for answer in recorded) if id not in ("", RECORDED)
    ]
    known = read_catalogue(workspace, []).model_files
    bare = {id: model for id in ids if (model := bare_model(id))}
    unlisted = {
        id: model for id, model in bare.items() if not is_listed(model.provider.type, model.code)
    }
    called = (bare.keys() - unlisted.keys()) | _stored_as_called(location, workspace, unlisted)
    names: list[str] = []
    files: dict[str, bytes] = {}
    for id in ids:
        if id in called:
            continue
        name = unique(f"models/{safe_file_name(id.replace('/', '--'))}", names)
        content = f"{_WORDS}{write_yaml({'id': id, 'provider': RECORDED})}\n"
        file = known.get(id)
        if file is None or (
            file == place_of(f"{name}.yaml") and _is_written(workspace, file, content)
        ):
            names.append(name)
            files[f"{name}.yaml"] = content.encode()
    return files


def _stored_as_called(
    location: Location, workspace: WorkspaceFolder, models: dict[str, Model]
) -> set[str]:
    """Return the models that the store has as models to be called; they are not changed."""
    place = locate_store(workspace, location)
    if not models or (isinstance(place, Path) and not place.is_file()):
        return set()
    versions = {
        id: hashing.identify(hashing.describe_model(model.version("candidate")))[0]
        for id, model in models.items()
    }
    with open_store(location) as store:
        stored = store.load_contents("model", versions.values())
    return {id for id, version in versions.items() if version in stored}


def _is_written(workspace: WorkspaceFolder, file: str, content: str) -> bool:
    """Return whether a file has this content, maybe with other quotes, as imports once wrote."""
    try:
        text = normalise(workspace.read_bytes(file, LARGEST_TEXT))
        is_same = read_yaml(text).value == read_yaml(content).value
    except FileProblem:
        return False
    return bool(is_same and text.count("\n") == content.count("\n"))


_PARTS: tuple[Part, ...] = ("candidate", "evaluator")
_OVERRIDES = ("candidateOverrides", "evaluatorOverrides")
_NOT_RECORDED = ("extraIdentifier", "structured", "uniqueProperties")
"""Parts of a model version that a database does not record among the options."""


def adopt_answers(
    project: Project, system: str, answers: Sequence[RecordedAnswer], source: str
) -> tuple[ImportedHistory, list[SkippedItem]]:
    """Return the history of these answers, and those that are not imported."""
    adopter = _Adopter(project, ImportedHistory(system), CountedReasons(source))
    for answer in answers:
        adopter.add(answer)
    return adopter.history, adopter.left.items()


class _Adopter:
    def __init__(self, project: Project, history: ImportedHistory, left: CountedReasons) -> None:
        self.history = history
        self.left = left
        self._project = project
        self._models: dict[tuple[str, str, Part], list[Model]] = {}
        """Models by provider, code and part."""
        for model in project.reading.models.values():
            for part in _PARTS:
                place = (model.provider.code, model.version(part).code, part)
                self._models.setdefault(place, []).append(model)
        self._judge_prompts: dict[tuple[str, tuple[str, ...]], str] = {}
        self._times: Counter[tuple[str, str, int]] = Counter()

    def add(self, answer: RecordedAnswer) -> None:
        """Add an answer and its verdicts, or the reason why not."""
        try:
            session = self._session(answer)
        except NotTakenError as problem:
            self.left.add(str(problem), answer.place)
            return
        test = self._test(answer)
        for ruling in answer.rulings:
            try:
                self._evaluation(ruling, session, test)
            except NotTakenError as problem:
                self.left.add(str(problem), f"a verdict on {answer.place}")

    # --- the answer

    def _session(self, answer: RecordedAnswer) -> str:
        model = self._model(answer.by, "candidate")
        prompt = PromptVersion((Message("system", _text(answer.prompt)),))
        question = Question(
            self.history.keep("test", hashing.describe_test(self._test(answer))),
            self.history.keep("prompt", hashing.describe_prompt(prompt)),
            model,
            answer.temperature,
        )
        started = self._time("session", hashing.question_id(question), answer.started)
        return self.history.add_session(
            Session(question, (answer.reply,), started, self.history.system, origin=IMPORTED)
        )

    def _test(self, answer: RecordedAnswer) -> TestVersion:
        return TestVersion(
            messages=tuple([Message(role, (Text(text),)) for role, text in answer.messages]),
            special_tags=answer.special_tags,
            tools=tuple(
                [self.history.keep("tool", hashing.describe_tool(tool)) for tool in answer.tools]
            ),
            schema=None
            if answer.schema is None
            else self.history.keep("schema", hashing.describe_schema(answer.schema)),
        )

    def _time(self, kind: str, about: str, started: int) -> int:
        """Return a distinct time for each of several in the same second, in their order."""
        place = (kind, about, started)
        self._times[place] += 1
        return started + self._times[place] - 1

    # --- verdicts

    def _evaluation(self, ruling: RecordedVerdict, session: str, test: TestVersion) -> None:
        if "{{_file:" in ruling.instructions:
            raise NotTakenError("its instructions name a file, which the database does not keep")
        version = EvaluationVersion(_text(ruling.instructions), implied_checks(test))
        voice = model_that_judges(
            self._model(ruling.by, "evaluator"),
            self._judge_prompt(ruling),
            ruling.temperature,
        )
        evaluator = self.history.keep("evaluator", hashing.describe_evaluator(voice))
        evaluation = self.history.keep("evaluation", hashing.describe_evaluation(version))
        started = self._time(evaluator + evaluation, session, ruling.started)
        self.history.add_evaluation(
            Evaluation(
                (session,),
                evaluation,
                evaluator,
                ruling.verdict,
                started,
                self.history.system,
                feedback=ruling.feedback,
                reasoning=ruling.reasoning,
                usage=ruling.usage,
                latency=ruling.latency,
                origin=IMPORTED,
            )
        )

    def _judge_prompt(self, ruling: RecordedVerdict) -> str:
        """Return the version of a judge prompt, read as a file of the workspace would be."""
        place = (ruling.prompt, ruling.tags)
        if place not in self._judge_prompts:
            assert self._project.reading.library is not None
            front = json.dumps({"id": "judge", "tags": list(ruling.tags)})
            try:
                prompt = parse_prompt("judge.md", f"---\n{front}\n---\n\n{ruling.prompt}\n")
                (id,), expansion = expand_prompt(prompt, self._project.reading.library)
            except (FileProblem, ValueError):
                raise NotTakenError("its judge prompt cannot be read") from None
            self.history.contents |= expansion.contents
            self._judge_prompts[place] = id
        return self._judge_prompts[place]

    # --- models

    def _model(self, by: RecordedModel, part: Part) -> str:
        """Return the version of the model with this name, if it is called with the same options."""
        models = self._models.get((by.provider, by.code, part), [])
        require(models, f"no model file has the code '{by.code}' at '{by.provider}'")
        alike = [model for model in models if by.current and _is_same(by, model, part)]
        if not alike:
            ids = "' and '".join(model.id for model in models)
            were = "models '{}' were" if len(models) > 1 else "model '{}' was"
            raise NotTakenError(f"the {were.format(ids)} called with other options at that time")
        alike = [model for model in alike if model.active] or alike
        version = alike[0].version(part)
        if any(model.version(part) != version for model in alike):
            ids = "' or '".join(model.id for model in alike)
            raise NotTakenError(f"the source does not name the model: '{ids}'")
        return self.history.keep("model", hashing.describe_model(version))


def _text(text: str) -> tuple[Text, ...]:
    return (Text(text.strip(SPACE)),)


def _is_same(by: RecordedModel, model: Model, part: Part) -> bool:
    """Return whether a model is called with the recorded options, as far as they are known."""
    extra = str(model.options.get("extraIdentifier") or "").strip()
    if by.extra_identifier is not None and by.extra_identifier != extra:
        return False
    if by.options is None:
        return True
    if not isinstance(by.options, Mapping):
        return False
    now = dict(model.version(part).options or {})
    for name in _NOT_RECORDED:
        now.pop(name, None)
    if isinstance(now.get("thinking"), str):
        now["thinking"] = {"effort": now["thinking"]}
    return bool(_without_empty(_effective(by.options, part)) == _without_empty(now))


def _effective(then: Mapping[str, Json], part: Part) -> dict[str, Json]:
    """Return the options of a part, from the formats of newer and of older databases."""
    overrides = then.get(f"{part}Overrides")
    options = {name: value for name, value in then.items() if name not in _OVERRIDES}
    for name, value in overrides.items() if isinstance(overrides, Mapping) else ():
        base = options.get(name)
        if isinstance(base, Mapping) and isinstance(value, Mapping):
            options[name] = {**base, **value}
        elif value is not None:
            options[name] = value
    return options


def _without_empty(value: Json) -> Json:
    """Return a value without empty parts."""
    if not isinstance(value, Mapping):
        return value
    members = {name: _without_empty(inner) for name, inner in value.items()}
    return {name: inner for name, inner in members.items() if inner not in (None, {})} or None
