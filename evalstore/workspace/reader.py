"""Reads a workspace: the cases of every test file, the versions they name, and the models.

All problems of all files are found at once. Unchanged files are taken from the index.
Digests of the files tell a run later what was edited since.
"""

from __future__ import annotations

import posixpath
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from evalstore.checks.parser import is_installed
from evalstore.checks.types.json import schema_problem
from evalstore.core import hashing
from evalstore.core.errors import FileProblem, Problem
from evalstore.core.runs import SOURCE_TEST, RunSources
from evalstore.core.values import DEFAULT_PROMPT, CaseFile, FileVersion, ToolVersion
from evalstore.files.access import LARGEST_TEXT, normalise
from evalstore.files.datasets import DatasetSpec, resolve_path
from evalstore.files.fields import Fields, is_json, suggest
from evalstore.files.processes.limited_calls import limited_together
from evalstore.files.yaml12 import read_json, read_yaml, split_frontmatter
from evalstore.store.trees.case_chunks import build_case_tree, collect
from evalstore.workspace import model_files
from evalstore.workspace.catalogue import (
    Catalogue,
    claim_id,
    read_catalogue,
    read_texts,
    suggest_model,
)
from evalstore.workspace.file_references import References
from evalstore.workspace.folder import WorkspaceFolder, default_id
from evalstore.workspace.index import INDEX, Index, IndexEntry, Stamp, is_settled, read_rows
from evalstore.workspace.testfiles.context import (
    COLUMNS,
    INSTRUCTIONS,
    KEPT_AT_ONCE,
    SHOWN,
    Definitions,
    Sink,
    keep_after,
)
from evalstore.workspace.testfiles.known_rows import KnownRows
from evalstore.workspace.testfiles.parser import PromptFile, parse_prompt, read_test
from evalstore.workspace.testfiles.template_filling import expand_prompt

_OF_OTHERS = "; a remote has results, not tests: 'evalstore stats @' shows those of the last run"
"""Ends the hint where no test is found and a remote is set, as after `clone`."""


@dataclass(kw_only=True)
class Reading(Catalogue):
    """The result of reading the files of a workspace."""

    references: References
    """Finds the files that tests mention."""
    files: dict[str, CaseFile] = field(default_factory=dict)
    """Test file (relative path) -> its cases. Files with errors are missing."""
    tests: frozenset[str] = frozenset()
    """All test files, also those with errors."""
    nodes: dict[str, str] = field(default_factory=dict)
    """Test file -> id of its leaf in the snapshot."""
    contents: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Id -> kind and canonical content of versions that were read now, not taken from the index."""
    depends: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    """Test file -> its dependencies, such as `file:path`, with their ids."""
    digests: dict[str, str] = field(default_factory=dict)
    """Test file -> the digest of its bytes."""
    blobs: dict[str, FileVersion] = field(default_factory=dict)
    """Id -> referenced files that were read now."""
    library: Definitions | None = None
    index: Index | None = None
    """The new index; None when the tests were not read."""
    names: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    """`prompts`, `tools`, `schemas` -> id in the files -> ids of its versions."""
    problems: list[Problem] = field(default_factory=list)

    @property
    def errors(self) -> list[Problem]:
        """Return the problems that prevent a run."""
        return [problem for problem in self.problems if problem.severity == "error"]

    def save_index(self, workspace: WorkspaceFolder, *, is_run: bool = True) -> None:
        """Write the index; call it only when everything that was read is in the store."""
        if self.index and is_run:
            self.index.note_used()
        if self.index and self.index.changed:
            self.index.write(workspace.private / INDEX)


LoadNodes = Callable[[list[str]], Mapping[str, CaseFile]]
"""Loads the leaves with these ids that the store has."""


def read_workspace(
    workspace: WorkspaceFolder,
    load_nodes: LoadNodes | None = None,
    keep: Sink | None = None,
    *,
    tests: bool = True,
) -> Reading:
    """Read a workspace; with `load_nodes`, unchanged test files come from the store.

    With `keep`, contents and files are passed to it as they are read, and the reading lacks them.
    Without `tests`, only prompts, models, currencies and the like are read.
    """
    reader = _Reader(workspace, load_nodes, keep)
    reader.read_library(check_scripts=tests)
    if tests:
        reader.read_tests()
    workspace.boundary.record()
    if tests:
        reader.finish()
    return reader.reading


class _Reader:
    """Reads a workspace once."""

    def __init__(
        self, workspace: WorkspaceFolder, load_nodes: LoadNodes | None, keep: Sink | None
    ) -> None:
        self._workspace = workspace
        self._settings = workspace.settings
        self._load_nodes = load_nodes
        self._keep = keep
        index_path = workspace.private / INDEX
        self._index = Index.read(index_path, workspace.boundary) if load_nodes else Index()
        self._references = References(workspace, self._index)
        self.reading = Reading(references=self._references)
        self._ids: dict[str, Any] = {}
        """The ids that prompts, tools and schemas have now, by dependency."""
        self._library = Definitions(
            {}, {}, {}, {}, self._references.read, self._references.open_data
        )

    def read_library(self, *, check_scripts: bool) -> None:
        """Read the files that tests refer to."""
        reading = self.reading
        read_catalogue(
            self._workspace,
            reading.problems,
            reading,
            check_scripts=check_scripts,
            references=self._references,
        )
        self._library = reading.library = read_definitions(self._workspace, self._index, reading)
        if self._keep:
            self._keep = keep_after(reading.contents, reading.blobs, self._keep)

    def read_tests(self) -> None:
        """Read the test files."""
        reading, index, load_nodes, keep = self.reading, self._index, self._load_nodes, self._keep
        stamps = self._workspace.find_files("tests")
        reading.tests = frozenset(stamps)
        unchanged: dict[str, str] = {}
        for path, now in stamps.items():
            entry = index.files.get(path)
            if entry is None:
                continue
            settled = entry.settled and entry.stamp == now
            if (settled or self._same_bytes(path, entry, now)) and all(
                self._is_same(path, name, ids) for name, ids in entry.depends.items()
            ):
                unchanged[path] = entry.node
        stored = (
            load_nodes(list(dict.fromkeys(unchanged.values()))) if load_nodes and unchanged else {}
        )
        for path, now in stamps.items():
            node = unchanged.get(path)
            if node is not None and node in stored:
                reading.files[path], reading.nodes[path] = stored[node], node
                reading.depends[path] = index.files[path].depends
                reading.digests[path] = index.files[path].digest
            else:
                self._read_test(path, now)
                if keep and len(reading.contents) + len(reading.blobs) >= KEPT_AT_ONCE:
                    keep(reading.contents, reading.blobs)
                    reading.contents, reading.blobs = {}, {}
        if not stamps:
            folder = self._settings.paths["tests"]
            reading.problems.append(
                Problem(
                    folder,
                    "no test files",
                    hint=f"write a test into '{folder}/', such as '{folder}/hello.md'"
                    + _OF_OTHERS * bool(self._settings.remotes),
                )
            )

    def finish(self) -> None:
        """Find problems between files, and sort all problems."""
        reading, folder = self.reading, self._settings.paths["tests"]
        seen: dict[str, str] = {}
        for path, file in reading.files.items():
            id = file.id or default_id(path, folder)
            first = seen.setdefault(id, path)
            if first != path:
                taken, line = f"the id '{id}' is taken by '{first}'", 1
                with suppress(FileProblem):
                    text = normalise(self._workspace.read_bytes(path, LARGEST_TEXT))
                    document = split_frontmatter(text)[0]
                    line = document.line("id") if document else 1
                reading.problems.append(Problem(path, taken, line))
        self._find_unknown_participants()
        self._index.keep_only(self._references.seen | reading.nodes.keys())
        reading.index = self._index
        reading.problems.sort(key=lambda problem: (problem.file, problem.line or 0))

    def _find_unknown_participants(self) -> None:
        """Report participants with unknown models, and evaluators with unknown prompts."""
        reading = self.reading
        prompts, silent = self._library.evaluator_prompts, self._library.silent
        if any(problem.file not in reading.tests for problem in reading.errors):
            return  # the missing definition may be in a file that could not be read
        candidates, evaluators = self._settings.candidates, self._settings.evaluators
        for part, listed, others in (
            ("candidate", candidates, evaluators),
            ("evaluator", evaluators, candidates),
        ):
            for participant in listed:
                if not (participant.id in reading.models or model_files.bare_model(participant.id)):
                    message = f"unknown model '{participant.id}' for this {part}"
                    known = reading.models.keys() - {each.id for each in others} or reading.models
                    hint = suggest_model(participant.id, known, reading.providers)
                elif part == "evaluator" and participant.prompt not in prompts:
                    message = f"unknown judge prompt '{participant.prompt}'"
                    hint = suggest(participant.prompt, prompts, "judge prompts")
                elif part == "evaluator" and not silent.isdisjoint(prompts[participant.prompt]):
                    message = f"the judge prompt '{participant.prompt}' never uses '{INSTRUCTIONS}'"
                    hint = "only a check 'judge' can name such a prompt"
                else:
                    continue
                line = participant.line or None
                reading.problems.append(
                    Problem(self._workspace.config.name, message, line, hint=hint)
                )

    def _find_known(self, path: str, digest: str, depends: dict[str, Any]) -> KnownRows | None:
        """Return the rows of a test file as they were if nothing but its data differs.

        `depends` are those of its dependencies that do not follow from its rows.
        """
        entry = self._index.files.get(path)
        if entry is None or entry.digest != digest or self._load_nodes is None:
            return None
        is_same = depends.get(COLUMNS) == entry.depends.get(COLUMNS) and all(
            name.startswith("dataset:") or self._is_same(path, name, ids)
            for name, ids in entry.depends.items()
        )
        file = self._load_nodes([entry.node]).get(entry.node) if is_same else None
        if file is None:
            return None
        private, boundary = self._workspace.private, self._workspace.boundary
        rows = read_rows(private, boundary, path, entry, len(file.cases))
        return KnownRows(rows, file.cases, entry.depends) if rows else None

    def _is_same(self, path: str, name: str, ids: Any) -> bool:
        """Return whether a dependency of a test file still has these ids."""
        kind, _, rest = name.partition(":")
        if kind == COLUMNS:  # they follow from the data
            return True
        try:
            if kind == "package":
                return is_installed(rest) is ids
            if kind == "file":
                return self._references.identify(rest, path) == str(ids)
            if kind == "dataset":
                return self._references.find_data(DatasetSpec(rest), path)[1] == str(ids)
        except FileProblem:
            return False
        if name not in self._ids:
            library = self._library
            if kind in ("prompt", "evaluator"):
                prompts = library.prompts if kind == "prompt" else library.evaluator_prompts
                self._ids[name] = list(prompts.get(rest, ()))
            else:
                known = library.tools if kind == "tool" else library.schemas
                self._ids[name] = known.get(rest)
        return bool(self._ids[name] == ids)

    def _same_bytes(self, path: str, entry: IndexEntry, now: Stamp) -> bool:
        """Return whether a file has the same bytes under another stamp, which then is updated."""
        if entry.stamp[0] != now[0]:
            return False
        read_at = time.time_ns()
        try:
            digest = hashing.hash_bytes(self._workspace.read_bytes(path, LARGEST_TEXT))
        except FileProblem:
            return False
        if digest != entry.digest:
            return False
        known = IndexEntry(now, is_settled(now, read_at), digest, entry.node, entry.depends)
        self._index.put(path, known)
        return True

    @limited_together()
    def _read_test(self, path: str, now: Stamp) -> None:
        from evalstore.workspace.testfiles.expansion import expand_test  # for changed files alone

        reading, load_nodes, keep = self.reading, self._load_nodes, self._keep
        read_at = time.time_ns()
        try:
            data = self._workspace.read_bytes(path, LARGEST_TEXT)
            text = normalise(data)
        except FileProblem as problem:
            reading.problems += problem.all_at(path)
            return
        try:
            test, collector = read_test(path, text)
        except FileProblem as problem:
            reading.problems += problem.all_at(path, text.split("\n"))
            return
        digest = hashing.hash_bytes(data)
        expansion = expand_test(
            test,
            self._library,
            keep,
            in_nodes=load_nodes is not None,
            known=partial(self._find_known, path, digest),
        )
        if expansion.node and keep and load_nodes:
            keep(expansion.contents, expansion.files)
            expansion.contents, expansion.files = {}, {}
            expansion.file = load_nodes([expansion.node]).get(expansion.node)
            if expansion.file is None:  # nothing can be stored
                expansion = expand_test(test, self._library, keep)
        for each in (*collector.problems, *collector.warnings):
            reading.problems += each.all_at(path)
        if expansion.problems:
            lines = text.split("\n")
            reading.problems += [problem.located(lines) for problem in expansion.problems]
        if expansion.file is None or collector.problems:
            return
        reading.contents |= expansion.contents
        node = expansion.node or build_case_tree(expansion.file, collect(reading.contents))
        reading.files[path], reading.nodes[path] = expansion.file, node
        reading.blobs |= expansion.files
        reading.depends[path] = expansion.dependencies
        reading.digests[path] = digest
        if expansion.problems or collector.warnings:
            return
        depends = expansion.dependencies
        of_data = [each for each in depends.items() if each[0].startswith("dataset:")]
        # Data that were changed meanwhile may have been read in part before, in part after.
        if all(self._is_same(path, *each) for each in of_data):
            entry = IndexEntry(now, is_settled(now, read_at), digest, node, depends)
            self._index.put(path, entry, expansion.rows)


# --- reads the files that tests refer to by id: prompts, tools and schemas


_BUILT_IN = Path(__file__).parent.parent / "prompts" / f"{DEFAULT_PROMPT}.md"


def read_definitions(workspace: WorkspaceFolder, index: Index, reading: Reading) -> Definitions:
    """Add the prompts, tools and schemas to a reading; those with errors are missing."""
    references = reading.references
    tools = dict(_read_definitions(workspace, "tools", index, reading))
    schemas = dict(_read_definitions(workspace, "schemas", index, reading))
    library = Definitions({}, {}, tools, schemas, references.read, references.open_data)
    prompts: dict[str, tuple[str, ...]] = {}
    evaluators: dict[str, tuple[str, ...]] = {}
    silent: set[str] = set()
    for prompt, text in _read_prompts(workspace, reading.problems):
        with limited_together():
            ids, expansion = expand_prompt(prompt, library)
        reading.problems += [problem.located(text.split("\n")) for problem in expansion.problems]
        reading.contents |= expansion.contents
        reading.blobs |= expansion.files
        if ids:
            (evaluators if prompt.is_evaluator else prompts)[prompt.id] = ids
        if prompt.is_evaluator:
            silent |= {id for id in ids if SHOWN not in expansion.contents[id][1]}
    reading.names = {
        "prompts": {**prompts, **evaluators},
        "tools": {name: (id,) for name, id in tools.items()},
        "schemas": {name: (id,) for name, id in schemas.items()},
    }
    return replace(library, prompts=prompts, evaluator_prompts=evaluators, silent=frozenset(silent))


def _read_prompts(
    workspace: WorkspaceFolder, problems: list[Problem]
) -> Iterator[tuple[PromptFile, str]]:
    """Yield the prompts with their texts, and the built-in one unless a file takes its id."""
    seen: dict[str, str] = {}
    folder = workspace.settings.paths["prompts"]
    for path, text in read_texts(workspace, "prompts", problems):
        try:
            prompt = parse_prompt(path, text, folder)
            claim_id(prompt.id, path, seen, prompt.line_of("id"))
        except FileProblem as problem:
            problems += problem.all_at(path, text.split("\n"))
            seen.setdefault(default_id(path, folder), path)
        else:
            problems += [warning.at(path) for warning in prompt.warnings]
            yield prompt, text
    if DEFAULT_PROMPT not in seen:
        text = normalise(_BUILT_IN.read_bytes())
        yield parse_prompt(f"(built in)/{DEFAULT_PROMPT}.md", text), text


def _read_definitions(
    workspace: WorkspaceFolder, kind: str, index: Index, reading: Reading
) -> Iterator[tuple[str, str]]:
    """Yield the ids of tools or schemas in the files, each with the id of its version."""
    seen: dict[str, str] = {}
    for path, text in read_texts(workspace, kind, reading.problems):
        default = default_id(path, workspace.settings.paths[kind])
        try:
            name, line, id, content = read_definition(
                kind, text, default, index, is_json_file=path.endswith(".json")
            )
            claim_id(name, path, seen, line)
        except FileProblem as problem:
            reading.problems += problem.all_at(path, text.split("\n"))
            continue
        reading.contents[id] = (kind[:-1], content)
        yield name, id


# --- tools and schemas: a name, an id and canonical content


TOOL_FIELDS = ("id", "name", "description", "parameters", "tags")


def read_definition(
    kind: str, text: str, default: str, index: Index, *, is_json_file: bool = False
) -> tuple[str, int, str, str]:
    """Read a file of `tools` or `schemas`; raises `FileProblem`.

    Returns the name that tests use, by default `default`, its line, the id of the version and its
    canonical content. The `id` of a schema is beside the JSON Schema. The index remembers the valid
    JSON Schemas.
    """
    document = read_json(text) if is_json_file else read_yaml(text)
    if not isinstance(document.value, dict):
        raise FileProblem(f"a {kind[:-1]} file must be a mapping of fields", 1)
    if kind == "tools":
        fields = Fields(document, TOOL_FIELDS)
        tool, name = fields.text("name"), fields.text("id") or default
        if tool is None:
            raise FileProblem("the tool has no 'name'", 1)
        schema, line = fields.mapping("parameters"), fields.line("parameters")
        subject = "'parameters' is"
        version = ToolVersion(tool, fields.text("description") or "", schema)
        described = hashing.describe_tool(version)
    else:
        schema, line, subject = dict(document.value), 1, "is"
        name = schema.pop("id", None) or default
        if not isinstance(name, str):
            raise FileProblem("'id' must be a text, not empty", document.line("id"))
        if not is_json(schema):
            raise FileProblem("holds a number that is not finite", 1)
        described = hashing.describe_schema(schema)
    id, content = hashing.identify(described)
    if id not in index.schemas:
        if wrong := schema_problem(schema):
            raise FileProblem(f"{subject} not a JSON Schema: {wrong}", line)
        index.schemas.add(id)
        index.changed = True
    return name, document.line("id"), id, content


MOST_DIGESTS = 1_000
"""The most digests of a run: about 45 kB."""
_DIGITS = 12
"""Two versions of one file are compared, never those of different ones, so that a few suffice."""
_KINDS = ("dataset", "prompt", "evaluator", "tool", "schema", "file")
"""The kinds of dependencies that are files."""


def read_sources(workspace: WorkspaceFolder, reading: Reading) -> RunSources:
    """Return the digests of the test files that use other files, and of what they use.

    Where they are too many, those of test files with a dataset come first.
    """
    tests: dict[str, Mapping[str, str]] = {}
    left = MOST_DIGESTS
    known = {path: reading.depends[path] for path in reading.nodes if reading.depends.get(path)}
    has_data = {
        path for path, names in known.items() if any(it.startswith("dataset:") for it in names)
    }
    for path in sorted(known, key=lambda path: path not in has_data):
        used: dict[str, str] = {}
        for dependency, ids in known[path].items():
            kind, _, name = dependency.partition(":")
            if kind in _KINDS and ids is not None:
                joined = ids if isinstance(ids, str) else hashing.hash_bytes("".join(ids).encode())
                used[_key(workspace, path, kind, name)] = joined[:_DIGITS]
        left -= 1 + len(used)
        if left < 0:
            return RunSources(tests, is_cut=True)
        if used:
            tests[path] = {SOURCE_TEST: reading.digests[path][:_DIGITS], **used}
    return RunSources(tests, is_cut=not reading.nodes.keys() <= reading.digests.keys())


def _key(workspace: WorkspaceFolder, test: str, kind: str, name: str) -> str:
    """Return the name of what a test file uses.

    That of a data file is its path in the workspace, or as it is written where it lies outside.
    """
    if kind != "dataset":
        return f"{kind}:{name}"
    named = resolve_path(DatasetSpec(name), workspace.settings.dataset_roots)
    base = "" if named != name else posixpath.dirname(test)
    path = posixpath.normpath(posixpath.join(base, named))
    is_outside = path.startswith(("../", "/")) or ":" in path
    return f"dataset:{name if is_outside else path}"
