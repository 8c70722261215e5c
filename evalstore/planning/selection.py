"""Selects cases by path and row, tags and name, and takes subsets of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from heapq import nsmallest
from itertools import compress, count, repeat
from pathlib import Path
from unicodedata import normalize

from evalstore.core import hashing
from evalstore.core.batches import in_batches
from evalstore.core.display import ROW_NUMBER
from evalstore.core.errors import EvalstoreError, NoTestFileError, NothingSelectedError
from evalstore.core.hashing import canonical_json
from evalstore.core.values import Case, CaseFile, Json
from evalstore.files.fields import suggest, suggest_file
from evalstore.planning.options import Location
from evalstore.store.trees.tree_nodes import StoredCases
from evalstore.workspace.folder import WorkspaceFolder

_MOST_WORDS = 200
_TOKEN = re.compile(r"\s*(\(|\)|[^\s()]+)")
_SHARD = re.compile(r"(\d{1,6})/(\d{1,6})", re.ASCII)

Load = Callable[[str, Iterable[str]], Mapping[str, Json]]
"""Returns the contents of versions by their kind and ids."""
Placed = tuple[str, Case]
"""A case and the path of its test file."""


@dataclass(frozen=True, slots=True)
class Target:
    """A test file or folder, relative to the workspace, and perhaps one row of it."""

    path: str
    row: str | None = None

    def covers(self, file: str) -> bool:
        """Return whether the file is the target or lies in it."""
        return self.path in ("", ".") or file == self.path or file.startswith(self.path + "/")


@dataclass(frozen=True, slots=True)
class Selection:
    """The criteria by which the command line and the settings select cases."""

    targets: tuple[Target, ...] = ()
    tags: tuple[str, ...] = ()
    """A case needs one of them."""
    exclude_tags: tuple[str, ...] = ()
    required_tags1: tuple[str, ...] = ()
    required_tags2: tuple[str, ...] = ()
    name: str | None = None
    """Words with `and`, `or`, `not` and brackets; a word matches a part of `file::row`."""
    load: Load | None = field(default=None, compare=False)
    """Loads the messages of tests for `by_name`; without it, `name` is about labels as they are."""

    def matcher(self) -> Callable[[str, Case], bool]:
        """Return a function that returns whether a case is selected, with `by_name`."""
        has_name = compile_name(self.name) if self.name and not self.load else None
        lists = [
            frozenset(tag_list)
            for tag_list in (self.tags, self.required_tags1, self.required_tags2)
            if tag_list
        ]
        prohibited = frozenset(self.exclude_tags)

        @lru_cache(maxsize=1024)
        def has_tags(tags: tuple[str, ...]) -> bool:
            return prohibited.isdisjoint(tags) and all(not each.isdisjoint(tags) for each in lists)

        def matches(file: str, case: Case) -> bool:
            return (
                has_tags(case.tags)
                and self.covers_row(file, case.row)
                and (has_name is None or has_name(f"{file}::{case.row}"))
            )

        return matches

    def by_name(self, file: str, cases: Iterable[tuple[int, Case]]) -> Iterable[tuple[int, Case]]:
        """Iterate over those of these numbered cases that the name selects, and others do not.

        Long values of labels are in full where the messages of the case have them.
        """
        if self.name is None or self.load is None:
            yield from cases
            return
        matches, selects = self.matcher(), compile_name(self.name)
        for batch in in_batches(cases):
            some = [each for each in batch if matches(file, each[1])]
            tests = {test for _, case in some if CUT in case.row for test in case.tests}
            loaded = self.load("test", tests) if tests else {}
            texts = {id: _text_of(test) for id, test in loaded.items()}
            for number, case in some:
                own = "\n".join(texts[id] for id in dict.fromkeys(case.tests) if id in texts)
                if selects(f"{file}::{complete_label(case.row, own)}"):
                    yield number, case

    @property
    def is_by_row(self) -> bool:
        """Return whether of cases with equal tags in a file some may be selected, others not."""
        return self.name is not None or any(target.row is not None for target in self.targets)

    def covers_row(self, file: str, row: str) -> bool:
        """Return whether a path of the command line covers this row; True when there is none."""
        return not self.targets or any(
            target.covers(file) and (target.row is None or target.row == row)
            for target in self.targets
        )

    def rows_in(self, file: str) -> Collection[str] | None:
        """Return the labels of the only rows of a file that paths cover; None if they cover all."""
        rows = [target.row for target in self.targets if target.covers(file)]
        return {row for row in rows if row is not None} if rows and None not in rows else None

    def covers_file(self, file: str) -> bool:
        """Return whether a path of the command line covers this file; True when there is none."""
        return not self.targets or any(target.covers(file) for target in self.targets)


@dataclass(frozen=True, slots=True)
class Subset:
    """A subset of the selected cases: a sample, then a shard of it, then the first few."""

    sample: int | None = None
    """How many cases, drawn pseudo-randomly; the same ones on every machine."""
    seed: int = 0
    shard: tuple[int, int] | None = None
    """The number, from 1, and the count of shards."""
    limit: int | None = None

    @property
    def is_all(self) -> bool:
        """Return whether every case is in it."""
        return (self.sample, self.shard, self.limit) == (None, None, None)

    def take(self, cases: Sequence[Placed]) -> list[Placed]:
        """Return the cases of the subset, in their order."""
        return [*compress(cases, self.choose(lambda: cases))]

    def choose(self, read: Callable[[], Iterable[Placed]]) -> bytearray:
        """Return 1 for each case of the subset and 0 for each other one, in their order.

        `read` returns the cases, which are read up to twice; few are in memory meanwhile.
        """
        chosen = bytearray()
        if self.sample is not None:
            chosen = self._draw(self.sample, read)
        if self.shard is not None:
            number, shards = self.shard
            chosen = bytearray(
                is_drawn and _hash(*case.tests) % shards == number - 1
                for is_drawn, (_, case) in zip(chosen or repeat(1), read(), strict=False)
            )
        elif self.sample is None:
            chosen = bytearray(1 for _ in read())
        if self.limit is not None:
            left = count()
            chosen = bytearray(each and next(left) < self.limit for each in chosen)
        return chosen

    def _draw(self, size: int, read: Callable[[], Iterable[Placed]]) -> bytearray:
        """Return 1 for each case with one of the smallest lots; a new one replaces one at most."""
        seed, numbers = str(self.seed), count()
        lots = (
            (_hash(seed, path, case.key), path, case.row, next(numbers)) for path, case in read()
        )
        drawn = {number for *_, number in nsmallest(size, lots)}
        return bytearray(number in drawn for number in range(next(numbers)))


def _hash(*texts: str) -> int:
    """Return a hash of the texts that is the same on every machine."""
    return int(hashing.hash_content(canonical_json(texts)), 16)


def read_shard(text: str) -> tuple[int, int]:
    """Return the number and the count of shards in `i/n`; raises `EvalstoreError`."""
    match = _SHARD.fullmatch(text.strip())
    number, count = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= number <= count:
        raise EvalstoreError(
            f"'--shard {text}' is not valid",
            hint="write I/N, such as '1/4', '2/4', '3/4', '4/4'",
        )
    return number, count


def suits(case: Case, required: Iterable[str], prohibited: Iterable[str]) -> bool:
    """Return whether a case has the tags that a model requires, and none that it prohibits."""
    tags = set(case.tags)
    required = set(required)
    return (not required or bool(tags & required)) and not tags & set(prohibited)


def compile_name(expression: str) -> Callable[[str], bool]:
    """Compile a name filter; raises `EvalstoreError` when it cannot be parsed."""
    tokens = _TOKEN.findall(expression)
    if len(tokens) > _MOST_WORDS:
        raise EvalstoreError(
            f"'-k' takes at most {_MOST_WORDS} words", hint="name the tests instead"
        )
    words = [token.casefold() for token in tokens if token not in _SIGNS]
    numbers = count()
    named = (token if token in _SIGNS else f"w{next(numbers)}" for token in tokens)
    try:
        tree = ast.parse(" ".join(named), mode="eval").body
    except (SyntaxError, MemoryError, RecursionError):
        tree = ast.Constant("")
    if not all(isinstance(node, _NODES) for node in ast.walk(tree)):
        raise EvalstoreError(
            f"'-k {expression}' is not valid",
            hint="write words with and, or, not and brackets: 'weather and not oslo'",
        )

    def selects(name: str, node: ast.AST) -> bool:
        if isinstance(node, ast.BoolOp):
            parts = (selects(name, part) for part in node.values)
            return any(parts) if isinstance(node.op, ast.Or) else all(parts)
        if isinstance(node, ast.UnaryOp):
            return not selects(name, node.operand)
        assert isinstance(node, ast.Name)
        return words[int(node.id[1:])] in name

    return lambda name: selects(name.casefold(), tree)


_SIGNS = ("and", "or", "not", "(", ")")
_NODES = (ast.BoolOp, ast.boolop, ast.UnaryOp, ast.Not, ast.Name, ast.expr_context)
"""The nodes of Python's syntax that a name filter may have."""


# --- labels of rows, in which long values are cut, and full values


CUT = "…"
"""Stands for the middle of a long value."""
_KEPT = 14
"""Characters that a label keeps at least on both sides of a cut."""


def label_matcher(name: str) -> Callable[[str], bool]:
    """Return whether a name is a label with its values in full, `name=` before the first or not.

    The number of a label that several rows would have is left out: it is not known which is meant.
    """
    name = " ".join(name.split()).casefold()

    def matches(label: str) -> bool:
        values = ROW_NUMBER.sub("", label).casefold() if CUT in label else ""
        for full in (values, values.partition("=")[2]):
            first, *others = full.split(CUT)
            if others and name.startswith(first):
                *middle, last = map(re.escape, others)
                places = "".join(f"(?>.+?{part})" for part in middle)  # one try, not all
                if re.fullmatch(f"{re.escape(first)}{places}.+{last}", name):
                    return True
        return False

    return matches


def complete_label(label: str, text: str) -> str:
    """Return a label with those values in full that stand in a text."""
    if CUT not in label:
        return label
    text = " ".join(text.split())
    full, *parts = label.split(CUT)
    for part in parts:
        start, end = full[-_KEPT:].rpartition("=")[2], part[:_KEPT]
        place = text.find(start) + len(start) if start and start in text else len(text)
        between = text[place : max(text.find(end, place + 1), place)]
        full += f"{between or CUT}{part}"
    return full


def _text_of(test: Json) -> str:
    """Return the texts of the messages of a test."""
    texts: list[str] = []
    for message in test.get("messages", ()):
        content = message.get("content", ())
        if isinstance(content, str):
            texts.append(content)
        else:
            texts += [part["text"] for part in content if "text" in part]
    return "\n".join(texts)


_LISTED = 4
"""Rows that a hint names."""
_KINDS = {
    "prompts": "a prompt",
    "tools": "a tool",
    "schemas": "a schema",
    **dict.fromkeys(("models", "providers", "currencies"), None),
}
"""The folders of other files than tests, and what a file there is, if tests use it."""
_DATA = (".csv", ".tsv", ".json", ".jsonl")
_PRINTED = re.compile(r"(?P<path>.+?) \[(?P<row>.*)\]", re.DOTALL)
"""Matches a row as commands print it."""
_WITH_PROMPT = re.compile(r"(?P<case>.+\.md(?: \[.*\])?) \([^()]*\)", re.DOTALL)
"""Matches a case with the name of its system prompt, as commands print it."""
_CASE = re.compile(r"(?P<file>.*?\.md)::(?P<row>.*)", re.DOTALL)
"""Matches a test file and a row of it."""


def find_targets(
    location: Location,
    workspace: WorkspaceFolder,
    tests: Collection[str],
    files: Mapping[str, CaseFile],
    paths: tuple[str, ...],
) -> tuple[Target, ...]:
    """Return the targets of paths relative to the current folder, the workspace or its tests.

    `tests` are all test files; `files` has the cases of those without errors. Raises
    `NoTestFileError`, and `NothingSelectedError` for an unknown row.
    """

    def find(text: str) -> Target:
        if target := _named_in(location, workspace, tests, text):
            return _with_row(target, tests, files, text)
        path, _ = split_case(text)
        hint = f"'--limit {path}' takes the first cases"
        if not path.isdigit():
            hint = _file_hint(workspace, name_file(location, workspace, path), tests)
        raise NoTestFileError(f"test file '{path}' not found", hint=hint)

    return tuple(map(find, paths))


def split_case(text: str) -> tuple[str, str | None]:
    """Return the file and the row of `FILE::ROW`; the row is None if only the file is named.

    Both may contain `::`: the file ends with the first `.md` that is followed by it.
    """
    match = _CASE.fullmatch(text)
    if match:
        return match["file"], match["row"]
    if text.endswith(".md") or ".md [" in text:
        return text, None
    file, separator, row = text.partition("::")
    return file, row if separator else None


def place_paths(
    location: Location,
    workspace: WorkspaceFolder,
    tests: Collection[str],
    paths: tuple[str, ...],
) -> tuple[str, ...]:
    """Return the same paths relative to the workspace, each with its row as it was written."""

    def place(text: str) -> str:
        target = _named_in(location, workspace, tests, text)
        if target is None:
            return name_file(location, workspace, text)
        return target.path if target.row is None else f"{target.path}::{target.row}"

    return tuple(map(place, paths))


def _file_hint(workspace: WorkspaceFolder, file: str, tests: Collection[str]) -> str:
    """Return a hint about a file that is none of `tests`: what it is, or which one is meant."""
    path = workspace.root / file
    kind = _kind_of(workspace, path) if path.is_file() and file not in tests else None
    if kind:
        return f"'{file}' is {kind}: name a test file that uses it; its edits are shown there"
    if (named := _WITH_PROMPT.fullmatch(file)) and split_row(named["case"])[0] in tests:
        return f"leave out the system prompt: '{named['case']}'"
    return suggest_file(file, tests)


def _kind_of(workspace: WorkspaceFolder, path: Path) -> str | None:
    """Return what a file is that tests may use, such as `a prompt`; None for settings."""
    for folder, kind in _KINDS.items():
        if path.is_relative_to(workspace.folder(folder)):
            return kind
    if path == workspace.config or not path.is_relative_to(workspace.root):
        return None
    return "a data file" if path.suffix.lower() in _DATA else "not a test file"


def _named_in(
    location: Location, workspace: WorkspaceFolder, tests: Collection[str], text: str
) -> Target | None:
    """Return the target of `PATH`, `PATH::row` or `PATH [row]`; None without test files there."""
    path, row = split_case(text)
    target = _named(location, workspace, tests, path, row)
    if target is None and row is None and (printed := _PRINTED.fullmatch(text)):
        target = _named(location, workspace, tests, printed["path"], printed["row"])
    return target


def _named(
    location: Location,
    workspace: WorkspaceFolder,
    tests: Collection[str],
    path: str,
    row: str | None,
) -> Target | None:
    # A name with accents may be typed in one form of Unicode and be stored in the other.
    for written in dict.fromkeys((path, normalize("NFC", path), normalize("NFD", path))):
        for base in (location.directory, workspace.root, workspace.folder("tests")):
            target = Target(workspace.name_of((base / written).absolute()), row)
            if any(target.covers(file) for file in tests):
                return target
    return None


def _with_row(
    target: Target, tests: Collection[str], files: Mapping[str, CaseFile], text: str
) -> Target:
    """Return the target with the label of its row.

    A unique part of the label is enough, and so is the full value of one that the label cuts.
    """
    if target.row is None:
        return target
    file = files.get(target.path)
    rows = _labels_of(file) if file else []
    if target.row in rows:
        return target
    near, is_full = _nearest(target.row, rows)
    if len(near) == 1:
        return replace(target, row=near[0])
    if near:
        raise NothingSelectedError(
            f"'{text}' {'fits' if is_full else 'is a part of'} {len(near)} rows",
            hint=f"name one of them: {_listed(near)}",
        )
    if rows == [""]:
        hint = f"'{target.path}' has one row: leave out '::{target.row}'"
    elif file is not None:
        hint = suggest(target.row, rows, "rows")
    elif target.path in tests:
        hint = f"'{target.path}' has errors: 'evalstore check' lists them"
    else:
        hint = "a row is a part of one test file: 'evalstore ls cases' lists them"
    raise NothingSelectedError(f"no row is called '{text}'", hint=hint)


def _labels_of(file: CaseFile) -> list[str]:
    """Return the labels of the rows of a file."""
    if isinstance(file.cases, StoredCases):
        return [*file.cases.labels()]
    return [case.row for case in file.cases]


def _nearest(text: str, rows: Sequence[str]) -> tuple[list[str], bool]:
    """Return the rows whose labels a text fits, or else is a part of, and whether it fits them."""
    full = [*filter(label_matcher(text), rows)]
    part = text.casefold()
    return full or [row for row in rows if part in row.casefold()], bool(full)


def split_row(text: str) -> tuple[str, str | None]:
    """Return the file and the row of `FILE::ROW`, or of a row as commands print it."""
    path, row = split_case(text)
    if row is not None:
        return path, row
    printed = _PRINTED.fullmatch(text)
    return (printed["path"], printed["row"]) if printed else (text, None)


def find_row_in(path: str, row: str, versions: Sequence[CaseFile]) -> tuple[str, int]:
    """Return the label of a row in the versions of a file, newest first, and the number of one.

    It is the newest version with this label, else the newest one that the text names a row of.
    Raises `NothingSelectedError`.
    """
    for number, file in enumerate(versions):
        if row in _labels_of(file):
            return row, number
    rows = (_nearest(row, _labels_of(file))[0] for file in versions)
    number = next((number for number, near in enumerate(rows) if near), 0)
    target = _with_row(Target(path, row), (path,), {path: versions[number]}, f"{path}::{row}")
    return target.row or "", number


def _listed(rows: Sequence[str]) -> str:
    """Return the first of these rows in quotation marks, and the number of the others."""
    more = f" … ({len(rows)} in all)" if len(rows) > _LISTED else ""
    return ", ".join(f"'{row}'" for row in rows[:_LISTED]) + more


def no_run_has(workspace: WorkspaceFolder, file: str, known: Collection[str]) -> EvalstoreError:
    """Return the error for a test file that no run has; `known` are the test files of runs."""
    none = "no runs yet: 'evalstore run' makes one"
    hint = _file_hint(workspace, file, known) if known else none
    return EvalstoreError(f"no run has a test file '{file}'", hint=hint)


def name_file(location: Location, workspace: WorkspaceFolder, file: str) -> str:
    """Return the name in the workspace of a path to a test file; a missing file keeps its name."""
    for base in (location.directory, workspace.root, workspace.folder("tests")):
        if (base / file).is_file():
            return workspace.name_of((base / file).absolute())
    return file
