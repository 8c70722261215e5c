"""The workspace: the folder with `evalstore.yaml`; this module is the only reader of its files.

Reading yields the cases of every test file, the versions they name, the models, and all
problems of all files at once. Unchanged files are taken from the index.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalstore import catalogue, hashing
from evalstore.allowed_paths import WorkspaceBoundary
from evalstore.bounded_process import limited_together
from evalstore.case_tree import build_case_tree, collect
from evalstore.checks.registry import is_installed
from evalstore.dataset import DatasetSpec
from evalstore.definitions import read_schema, read_tool
from evalstore.errors import EvalstoreError, FileProblem, Problem, WorkspaceError
from evalstore.expand import expand_prompt, expand_test
from evalstore.fields import is_json, suggest
from evalstore.file_access import LARGEST_TEXT, read_file
from evalstore.index import Entry, Index, Stamp, is_settled, walk
from evalstore.judge_prompts import INSTRUCTIONS, shows_instructions
from evalstore.library import KEPT_AT_ONCE, Library, Sink
from evalstore.parse import PromptFile, default_id, normalise, parse_prompt, read_test
from evalstore.private_files import PrivateFiles
from evalstore.references import References
from evalstore.settings import (
    DEFAULT_PROMPT,
    FILE,
    Settings,
    ignored_settings,
    read_settings,
)
from evalstore.values import CaseFile, FileVersion
from evalstore.yaml_core import read_yaml, split_frontmatter

if TYPE_CHECKING:
    from evalstore.catalogue import Currency, Model, ProviderFile

_NOT_TO_BE_READ: Stamp = (0, 0, 0, 0)
"""The stamp of a link that leads out of the workspace: no file that was read has it."""
_BUILT_IN = Path(__file__).parent / "prompts" / f"{DEFAULT_PROMPT}.md"


@dataclass
class Reading:
    """What the files of a workspace come to."""

    files: dict[str, CaseFile] = field(default_factory=dict)
    """Test file (relative path) -> its cases. Files with errors are missing."""
    tests: frozenset[str] = frozenset()
    """All test files, also those with errors."""
    nodes: dict[str, str] = field(default_factory=dict)
    """Test file -> id of its leaf in the snapshot."""
    contents: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Id -> kind and canonical content of versions that were read now, not taken from the index."""
    depends: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """Test file -> what it refers to, such as `file:path`, with the ids that has."""
    blobs: dict[str, FileVersion] = field(default_factory=dict)
    """Id -> referenced files that were read now."""
    models: dict[str, Model] = field(default_factory=dict)
    model_files: dict[str, str] = field(default_factory=dict)
    """Model id -> its file."""
    currencies: dict[str, Currency] = field(default_factory=dict)
    library: Library | None = None
    names: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    """`prompts`, `tools`, `schemas` -> id in the files -> ids of its versions."""
    problems: list[Problem] = field(default_factory=list)

    @property
    def errors(self) -> list[Problem]:
        """The problems that forbid a run."""
        return [problem for problem in self.problems if problem.severity == "error"]


LoadNodes = Callable[[list[str]], Mapping[str, CaseFile]]
"""From ids of leaves to those of them that the store has."""


class Workspace:
    """A folder with its settings and its index."""

    def __init__(
        self,
        root: Path,
        config: Path | None = None,
        *,
        allow_outside: bool = False,
        overrides: Sequence[str] = (),
        tell: Callable[[str], None] = lambda _message: None,
    ) -> None:
        """Read the settings, from `config` instead of the workspace's own file if it is given.

        With `allow_outside` the user lets it use whatever it names elsewhere, and that is
        remembered and told. `overrides` of the form `KEY=VALUE` take the place of settings.
        Raises `EvalstoreError`.
        """
        self._overrides = overrides
        self.root = root
        self.config = config or root / FILE
        self._private_files: PrivateFiles | None = None
        self.boundary = WorkspaceBoundary(root, allow_all=allow_outside, tell=tell)
        self.settings, self.ignored = self._read_settings(is_own=config is None)
        self.boundary.require(self.private, self.private.name)

    def _read_settings(self, *, is_own: bool) -> tuple[Settings, list[tuple[str, str]]]:
        name = self.config.name
        try:
            read = self.boundary.read if is_own else read_file
            text = normalise(read(self.config, LARGEST_TEXT))
        except FileProblem as problem:
            place = name if problem.line is None else f"{name}:{problem.line}"
            raise EvalstoreError(f"{place}: {problem.message}", hint=problem.hint) from problem
        try:
            settings = read_settings(text, self._overrides)
        except FileProblem as problem:
            raise WorkspaceError(problem.all_at(name, text.split("\n"))) from problem
        document = read_yaml(text)
        value = document.value if isinstance(document.value, dict) else {}
        self._store_line = document.line("store")
        return settings, ignored_settings(value)

    def locate_store(self) -> Path:
        """The file of the store that the settings name; raises `OutsideError`."""
        name = self.settings.store
        path = self.root / name
        place = f"{self.config.name}:{self._store_line}: the store '{name}'"
        self.boundary.require_database(path, place)
        return path

    @property
    def private(self) -> Path:
        """The folder for what belongs to this machine."""
        return self.root / ".evalstore"

    def folder(self, kind: str) -> Path:
        """The folder of tests, prompts, tools, schemas, models, providers or currencies."""
        return self.root / self.settings.paths[kind]

    def name_of(self, path: Path) -> str:
        """A path relative to the workspace, with forward slashes."""
        return os.path.relpath(path, self.root).replace(os.sep, "/")

    # --- finding files

    def find_files(self, kind: str, *suffixes: str) -> dict[str, Stamp]:
        """The files of a kind with their stamps, sorted by path; hidden ones are passed over.

        Raises `OutsideError` when their folder is a link that leads out of the workspace.
        """
        folder = self.folder(kind)
        prefix = self.name_of(folder)
        self.boundary.require(folder, prefix)
        found: dict[str, Stamp] = {}
        links: list[str] = []
        walk(str(folder), "" if prefix == "." else prefix + "/", suffixes, found, links)
        for name in links:
            if not self.boundary.contains(os.path.realpath(self.root / name)):
                found[name] = _NOT_TO_BE_READ
        return dict(sorted(found.items()))

    def read_bytes(self, name: str, largest: int) -> bytes:
        """The bytes of a file of the workspace; raises `FileProblem`."""
        path = f"{self.root}{os.sep}{name}"
        try:
            status = os.stat(path)  # noqa: PTH116 - a text, as thousands are opened in a row
        except (OSError, ValueError) as error:
            words = getattr(error, "strerror", None) or error
            raise FileProblem(f"cannot be read: {words}") from error
        is_linked = status.st_nlink > 1 or Path(path).is_symlink()
        if is_linked and self._is_private(Path(path), status):
            raise FileProblem("is private, so it is not read: it holds keys")
        return self.boundary.read(path, largest)

    def _is_private(self, path: Path, status: os.stat_result) -> bool:
        if self._private_files is None:
            self._private_files = PrivateFiles(os.path.realpath(self.root))
        return self._private_files.holds(os.path.realpath(path), status)

    # --- reading

    def read(
        self,
        load_nodes: LoadNodes | None = None,
        keep: Sink | None = None,
        *,
        tests: bool = True,
    ) -> Reading:
        """Read everything; with `load_nodes`, unchanged test files come from the store.

        With `keep`, it gets contents and files as they are read, and the reading lacks them.
        Without `tests`, only what tests refer to: prompts, models, currencies and the like.
        """
        reading = Reading()
        kept = self.private / "index.json"
        index = Index.read(kept, self.boundary) if load_nodes else Index()
        self._read_catalogue(reading)
        self.references = references = References(
            self.root,
            self.settings.paths["tests"],
            index,
            self.settings.dataset_roots,
            self.boundary,
        )
        reading.library = self._read_library(reading, index, references)
        if tests:
            self._read_tests(reading, index, reading.library, references, load_nodes, keep)
        self.boundary.record()
        if not tests:
            return reading
        self._find_shared_ids(reading)
        self._find_unknown_participants(reading)
        index.keep_only(references.seen | reading.nodes.keys())
        self.index = index
        reading.problems.sort(key=lambda problem: (problem.file, problem.line or 0))
        return reading

    def save_index(self) -> None:
        """Remember what was read; only when all of it is in the store."""
        if self.index.changed:
            self.index.write(self.private / "index.json")

    def _read_tests(
        self,
        reading: Reading,
        index: Index,
        library: Library,
        references: References,
        load_nodes: LoadNodes | None,
        keep: Sink | None,
    ) -> None:
        found = self.find_files("tests", ".md")
        reading.tests = frozenset(found)
        current = _Current(library, references)
        unchanged: dict[str, str] = {}
        for path, now in found.items():
            entry = index.files.get(path)
            if entry is None:
                continue
            settled = entry.settled and entry.stamp == now
            if (settled or self._same_bytes(path, entry, now, index)) and all(
                current.is_same(path, name, ids) for name, ids in entry.depends.items()
            ):
                unchanged[path] = entry.node
        stored = (
            load_nodes(list(dict.fromkeys(unchanged.values()))) if load_nodes and unchanged else {}
        )
        for path, now in found.items():
            node = unchanged.get(path)
            if node is not None and node in stored:
                reading.files[path], reading.nodes[path] = stored[node], node
                reading.depends[path] = index.files[path].depends
            else:
                self._read_test(path, now, reading, index, library, load_nodes, keep)
                if keep and len(reading.contents) + len(reading.blobs) >= KEPT_AT_ONCE:
                    keep(reading.contents, reading.blobs)
                    reading.contents, reading.blobs = {}, {}
        if not found:
            folder = self.settings.paths["tests"]
            reading.problems.append(
                Problem(
                    folder,
                    "there are no test files",
                    hint=f"write a test into '{folder}/', such as '{folder}/hello.md'",
                )
            )

    def _find_unknown_participants(self, reading: Reading) -> None:
        """Participants that name no model, and evaluators that name no evaluator prompt."""
        assert reading.library is not None
        prompts, silent = reading.library.evaluator_prompts, reading.library.silent
        if any(problem.file not in reading.tests for problem in reading.errors):
            return  # what is missing may be what could not be read
        for part, listed in (
            ("candidate", self.settings.candidates),
            ("evaluator", self.settings.evaluators),
        ):
            for one in listed:
                if not (one.id in reading.models or catalogue.bare_model(one.id, is_known_kind)):
                    message = f"there is no model '{one.id}' for this {part}"
                    hint = suggest(one.id, reading.models, "models")
                elif part == "evaluator" and one.prompt not in prompts:
                    message = f"there is no evaluator prompt '{one.prompt}'"
                    hint = suggest(one.prompt, prompts, "evaluator prompts")
                elif part == "evaluator" and not silent.isdisjoint(prompts[one.prompt]):
                    message = f"the evaluator prompt '{one.prompt}' never uses '{INSTRUCTIONS}'"
                    hint = "only a check 'judge' can name such a prompt"
                else:
                    continue
                line = one.line or None
                reading.problems.append(Problem(self.config.name, message, line, hint=hint))

    def _find_shared_ids(self, reading: Reading) -> None:
        folder = self.settings.paths["tests"]
        seen: dict[str, str] = {}
        for path, file in reading.files.items():
            id = file.id or default_id(path, folder)
            first = seen.setdefault(id, path)
            if first != path:
                reading.problems.append(
                    Problem(
                        path,
                        f"the id '{id}' is taken by '{first}'",
                        self._line_of_id(path),
                        hint="ids of test files must differ",
                    )
                )

    def _line_of_id(self, path: str) -> int:
        try:
            document = split_frontmatter(normalise(self.read_bytes(path, LARGEST_TEXT)))[0]
        except FileProblem:
            return 1
        return document.line("id") if document else 1

    def _same_bytes(self, path: str, entry: Entry, now: Stamp, index: Index) -> bool:
        """Whether a file is what it was, though its stamp does not prove it; renews the stamp."""
        if entry.stamp[0] != now[0]:
            return False
        read_at = time.time_ns()
        try:
            digest = hashing.hash_bytes(self.read_bytes(path, LARGEST_TEXT))
        except FileProblem:
            return False
        if digest != entry.digest:
            return False
        index.put(path, Entry(now, is_settled(now, read_at), digest, entry.node, entry.depends))
        return True

    @limited_together()
    def _read_test(
        self,
        path: str,
        now: Stamp,
        reading: Reading,
        index: Index,
        library: Library,
        load_nodes: LoadNodes | None,
        keep: Sink | None,
    ) -> None:
        read_at = time.time_ns()
        try:
            data = self.read_bytes(path, LARGEST_TEXT)
            text = normalise(data)
        except FileProblem as problem:
            reading.problems += problem.all_at(path)
            return
        try:
            test, collector = read_test(path, text)
        except FileProblem as problem:
            reading.problems += problem.all_at(path, text.split("\n"))
            return
        expansion = expand_test(test, library, keep, in_nodes=load_nodes is not None)
        if expansion.node and keep and load_nodes:
            keep(expansion.contents, expansion.files)
            expansion.contents, expansion.files = {}, {}
            expansion.file = load_nodes([expansion.node]).get(expansion.node)
            if expansion.file is None:  # nothing can be stored
                expansion = expand_test(test, library, keep)
        reading.problems += [one.at(path) for one in (*collector.found, *collector.warnings)]
        if expansion.problems:
            lines = text.split("\n")
            reading.problems += [one.located(lines) for one in expansion.problems]
        if expansion.file is None or collector.found:
            return
        reading.contents |= expansion.contents
        node = expansion.node or build_case_tree(expansion.file, collect(reading.contents))
        reading.files[path], reading.nodes[path] = expansion.file, node
        reading.blobs |= expansion.files
        reading.depends[path] = expansion.dependencies
        if not expansion.problems and not collector.warnings:
            index.put(
                path,
                Entry(
                    now,
                    is_settled(now, read_at),
                    hashing.hash_bytes(data),
                    node,
                    expansion.dependencies,
                ),
            )

    def _read_library(self, reading: Reading, index: Index, references: References) -> Library:
        tools = dict(self._read_definitions("tools", reading, index))
        schemas = dict(self._read_definitions("schemas", reading, index))
        library = Library({}, {}, tools, schemas, references.read, references.open_data)
        prompts: dict[str, tuple[str, ...]] = {}
        evaluators: dict[str, tuple[str, ...]] = {}
        silent: set[str] = set()
        for prompt, text in self._read_prompts(reading):
            with limited_together():
                ids, expansion = expand_prompt(prompt, library)
            reading.problems += [one.located(text.split("\n")) for one in expansion.problems]
            reading.contents |= expansion.contents
            reading.blobs |= expansion.files
            if ids:
                (evaluators if prompt.is_evaluator else prompts)[prompt.id] = ids
            if prompt.is_evaluator:
                contents = expansion.contents
                silent |= {id for id in ids if not shows_instructions(contents[id][1])}
        reading.names = {
            "prompts": {**prompts, **evaluators},
            "tools": {name: (id,) for name, id in tools.items()},
            "schemas": {name: (id,) for name, id in schemas.items()},
        }
        return replace(
            library,
            prompts=prompts,
            evaluator_prompts=evaluators,
            silent=frozenset(silent),
        )

    def _read_prompts(self, reading: Reading) -> Iterator[tuple[PromptFile, str]]:
        seen: dict[str, str] = {}
        folder = self.settings.paths["prompts"]
        for path, text in self._texts("prompts", reading, ".md"):
            try:
                prompt = parse_prompt(path, text, folder)
                self._claim(prompt.id, path, seen, "prompts", prompt.line_of("id"))
            except FileProblem as problem:
                reading.problems += problem.all_at(path, text.split("\n"))
                seen.setdefault(default_id(path, folder), path)
            else:
                reading.problems += [one.at(path) for one in prompt.warnings]
                yield prompt, text
        if DEFAULT_PROMPT not in seen:
            text = normalise(_BUILT_IN.read_bytes())
            yield parse_prompt(f"(built in)/{DEFAULT_PROMPT}.md", text), text

    def _read_definitions(
        self, kind: str, reading: Reading, index: Index
    ) -> Iterator[tuple[str, str]]:
        seen: dict[str, str] = {}
        suffixes = (".yaml", ".yml", ".json") if kind == "schemas" else (".yaml", ".yml")
        for path, text in self._texts(kind, reading, *suffixes):
            default = default_id(path, self.settings.paths[kind])
            try:
                if kind == "tools":
                    found = read_tool(text, default, index)
                else:
                    is_json = path.endswith(".json")
                    found = read_schema(text, default, index, is_json_file=is_json)
                self._claim(found.name, path, seen, kind, found.line)
            except FileProblem as problem:
                reading.problems += problem.all_at(path, text.split("\n"))
                continue
            reading.contents[found.id] = (kind[:-1], found.content)
            yield found.name, found.id

    def read_models(self) -> dict[str, Model]:
        """The models of the model files, by id; those of files with errors are missing."""
        reading = Reading()
        self._read_catalogue(reading)
        return reading.models

    def _read_catalogue(self, reading: Reading) -> None:
        providers: dict[str, ProviderFile] = {}
        seen: dict[str, str] = {}
        for path, text in self._texts("providers", reading, ".yaml", ".yml"):
            try:
                provider = catalogue.read_provider(text)
                self._claim(provider.code, path, seen, "providers", 1)
                providers[provider.code] = provider
            except FileProblem as problem:
                reading.problems += problem.all_at(path, text.split("\n"))
        seen = {}
        for path, text in self._texts("models", reading, ".yaml", ".yml"):
            try:
                model = catalogue.read_model(
                    text, providers, is_known_kind, default_id(path, self.settings.paths["models"])
                )
                self._claim(model.id, path, seen, "models", 1)
                reading.models[model.id] = model
                reading.model_files[model.id] = path
                if model.provider.type == "scripted":
                    reading.problems += _script_problems(path, text, model.responses)
            except FileProblem as problem:
                reading.problems += problem.all_at(path, text.split("\n"))
        seen = {}
        for path, text in self._texts("currencies", reading, ".yaml", ".yml"):
            try:
                currency = catalogue.read_currency(text)
                self._claim(currency.code, path, seen, "currencies", 1)
                reading.currencies[currency.code] = currency
            except FileProblem as problem:
                reading.problems += problem.all_at(path, text.split("\n"))

    def _texts(self, kind: str, reading: Reading, *suffixes: str) -> Iterator[tuple[str, str]]:
        for path in self.find_files(kind, *suffixes):
            try:
                yield path, normalise(self.read_bytes(path, LARGEST_TEXT))
            except FileProblem as problem:
                reading.problems += problem.all_at(path)

    def _claim(self, id: str, path: str, seen: dict[str, str], kind: str, line: int) -> None:
        if id in seen:
            raise FileProblem(
                f"the id '{id}' is taken by '{seen[id]}'", line, hint=f"ids of {kind} must differ"
            )
        seen[id] = path


def _script_problems(path: str, text: str, responses: Sequence[Any]) -> Iterator[Problem]:
    """What is wrong with the answers of a scripted model."""
    from evalstore.providers.script import check_responses

    problems = check_responses(responses)
    problems += [
        (number, "holds a number that is not finite")
        for number, response in enumerate(responses)
        if not is_json(response)
    ]
    document = read_yaml(text) if problems else None
    for number, message in problems:
        line = document.line("responses", number) if document else None
        yield Problem(path, f"response {number + 1}: {message}", line)


def is_known_kind(name: str) -> bool:
    """Whether this is a kind of provider that can be called without a provider file."""
    from evalstore.providers.prices import is_known_provider

    return is_known_provider(name)


class _Current:
    """Compares what a file depended on with what is there now."""

    def __init__(self, library: Library, references: References) -> None:
        self.library = library
        self.references = references
        self._ids: dict[str, Any] = {}

    def is_same(self, path: str, name: str, ids: Any) -> bool:
        """Whether what a test file depended on still has these ids."""
        kind, _, rest = name.partition(":")
        try:
            if kind == "package":
                return is_installed(rest) is ids
            if kind == "file":
                return self.references.identify(rest, path) == str(ids)
            if kind == "dataset":
                return self.references.identify_data(DatasetSpec(rest), path) == str(ids)
        except FileProblem:
            return False
        if name not in self._ids:
            if kind in ("prompt", "evaluator"):
                known_prompts = (
                    self.library.prompts if kind == "prompt" else self.library.evaluator_prompts
                )
                self._ids[name] = list(known_prompts.get(rest, ()))
            else:
                known = self.library.tools if kind == "tool" else self.library.schemas
                self._ids[name] = known.get(rest)
        return bool(self._ids[name] == ids)
