"""The field `dataset` of a test file: the data file and the selection of rows."""

from __future__ import annotations

import codecs
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from evalstore.core.display import shorten
from evalstore.core.errors import FileProblem
from evalstore.core.values import Json
from evalstore.files.fields import Fields, suggest
from evalstore.files.jinja_sandbox import undeclared
from evalstore.files.processes.data_item import DataItem
from evalstore.files.yaml12 import Document


def stable_names(written: Iterable[str]) -> list[str]:
    """Name each column in lower case, with `_` for characters not valid in identifiers.

    A name that is taken gets `_1`, `_2` …, from left to right. Letters of all scripts
    stay, digits may come first, and a name may be empty.
    """
    used: set[str] = set()
    counts: dict[str, int] = {}
    names = []
    for column in written:
        name = base = _stable(column)
        while name in used:
            counts[base] = counts.get(base, 0) + 1
            name = f"{base}_{counts[base]}"
        used.add(name)
        names.append(name)
    return names


def _stable(written: str) -> str:
    text = unicodedata.normalize("NFC", unicodedata.normalize("NFC", written).lower())
    return "".join([character if _can_stand(character) else "_" for character in text])


@lru_cache(maxsize=4096)
def _can_stand(character: str) -> bool:
    """Return whether an identifier may have a character after its start."""
    return f"a{character}".isidentifier()


class DatasetColumns:
    """The columns of one file: their names in the file and in templates."""

    def __init__(self, keys: Iterable[str], written: Mapping[str, str] | None = None) -> None:
        keys = list(keys)
        self._written = written or {}
        self.names = dict(zip(keys, stable_names(keys), strict=True))
        """From the key in the records of a reader to the name in templates."""
        self.known: frozenset[str] = frozenset()
        self.aliases: dict[str, str] = {}
        self._settle()

    def _settle(self) -> None:
        self.known = frozenset(self.names.values())
        self.aliases = {}
        """From names as written to names in templates, where they differ."""
        for key, name in self.names.items():
            written = self._written.get(key, key)
            if written not in self.known:
                self.aliases.setdefault(written, name)
        self.same = all(key == name for key, name in self.names.items())
        """Whether every key is the name."""

    def rename(self, renamed: Mapping[str, str], line: int | None = None) -> None:
        """Rename columns, given by either of their names; raises `FileProblem`."""
        by_name = {name: key for key, name in self.names.items()}
        by_alias = {alias: by_name[name] for alias, name in self.aliases.items()}
        changed: dict[str, str] = {}
        for old, new in renamed.items():
            key = by_name.get(old, by_alias.get(old))
            if key is None:
                hint = suggest(old, [*by_name, *by_alias], "columns")
                raise FileProblem(f"'rename': unknown column '{old}'", line, hint=hint)
            if key in changed:
                raise FileProblem(f"'rename' gives the column '{old}' two names", line)
            changed[key] = new
        names = {**self.names, **changed}
        for key, new in changed.items():
            other = next(
                (
                    other_key
                    for other_key, name in names.items()
                    if name == new and other_key != key
                ),
                None,
            )
            if other is not None:
                raise FileProblem(
                    f"'rename' gives two columns the name '{new}'",
                    line,
                    hint=f"rename the column '{self._written.get(other, other)}' as well",
                )
        self.names = names
        self._settle()

    def item(self, values: Mapping[str, Json]) -> DataItem:
        """Return a row by its names; raises `KeyError` for a key that is not a column."""
        if self.same and values.keys() <= self.known:
            return DataItem(values, self)
        return DataItem({self.names[key]: value for key, value in values.items()}, self)


FIELDS = (
    "path",
    "format",
    "rows",
    "where",
    "limit",
    "sample",
    "rename",
    "encoding",
    "delimiter",
    "onError",
)
SAMPLE_FIELDS = ("n", "seed")
FORMATS = ("auto", "jsonl", "json", "csv", "tsv")


@dataclass(frozen=True, slots=True)
class DatasetSpec:
    """One dataset as specified in a test file."""

    path: str
    """As written: relative to the test file, or with a prefix of `datasetRoots`."""
    format: str = "auto"
    rows: str | None = None
    """The path of the list of rows in a JSON document: keys separated by dots."""
    where: str | None = None
    """An expression over `item` and the columns; rows for which it is not true are left out."""
    limit: int | None = None
    """Only the first rows; counted after `where`."""
    sample: int | None = None
    """The number of rows that are drawn from the selected ones."""
    seed: int = 0
    rename: Mapping[str, str] = field(default_factory=dict)
    """From the old name of a column to the new one."""
    encoding: str = "utf-8"
    delimiter: str | None = None
    skip: bool = False
    """Pass over rows that cannot be read, with a warning, instead of failing."""
    line: int | None = None
    """The line of the dataset in the test file."""
    lines: Mapping[str, int] = field(default_factory=dict)

    def line_of(self, name: str) -> int | None:
        """Return the line of a field in the test file."""
        return self.lines.get(name, self.line)

    def problem(self, name: str, message: str, hint: str | None = None) -> FileProblem:
        """Return a problem with a field, at its place in the test file."""
        return FileProblem(message, self.line_of(name), hint=hint)


def read_spec(document: Document) -> DatasetSpec:
    """Read the field `dataset`, a path or a mapping; raises `FileProblem`."""
    line = document.line()
    if isinstance(document.value, str):
        return DatasetSpec(_path(document.value, line), line=line)
    if not isinstance(document.value, dict):
        raise FileProblem(
            "'dataset' must be the path of a file or a mapping of fields",
            line,
            hint="as in 'dataset: data/questions.jsonl'",
        )
    fields = Fields(document, FIELDS)
    path = fields.text("path")
    if path is None:
        raise FileProblem("the dataset has no 'path'", line)
    drawn = fields.inner("sample", SAMPLE_FIELDS)
    sample = drawn.whole("n", least=1)
    if sample is None and fields.value("sample") is not None:
        raise FileProblem(
            "'sample' needs 'n', how many rows to draw",
            fields.line("sample"),
            hint="as in '{n: 5}'",
        )
    return DatasetSpec(
        path=_path(path, fields.line("path")),
        format=fields.choice("format", FORMATS) or "auto",
        rows=fields.text("rows"),
        where=_where(fields),
        limit=fields.whole("limit", least=1),
        sample=sample,
        seed=drawn.whole("seed", least=-(2**63)) or 0,
        rename=_rename(fields),
        encoding=_encoding(fields),
        delimiter=_delimiter(fields),
        skip=fields.choice("onError", ("fail", "skip")) == "skip",
        line=line,
        lines={name: fields.line(name) for name in document.value},
    )


def _path(path: str, line: int) -> str:
    if not path.strip() or "\0" in path:
        raise FileProblem("the path of the dataset is empty", line)
    return path.strip()


def _where(fields: Fields) -> str | None:
    expression = fields.text("where")
    if expression is None:
        return None
    line = fields.line("where")
    if expression.lstrip().startswith(("{{", "{%")):
        hint = "write it without braces, as in 'where: item.level > 3'"
        raise FileProblem("'where' must be an expression, not a template", line, hint=hint)
    try:
        undeclared("{{ (" + expression + ") }}", line)
        undeclared(condition(expression), line)
    except FileProblem as problem:
        message = problem.message.removeprefix("not a template: ")
        raise FileProblem(f"'where' is not an expression: {message}", line) from problem
    return expression


def condition(expression: str) -> str:
    """Return a template that is empty unless the expression is true."""
    return "{% if (" + expression + ") %}1{% endif %}"


def _rename(fields: Fields) -> dict[str, str]:
    renamed = fields.mapping("rename")
    for old, new in renamed.items():
        line = fields.line("rename", old)
        if not isinstance(new, str) or not new:
            raise FileProblem(f"'rename': the new name of '{old}' must be a text", line)
        (stable,) = stable_names([new])
        if stable != new:
            hint = f"as in '{old}: {stable}'"
            message = f"'rename': {shorten(new)} cannot be the name of a column"
            raise FileProblem(message, line, hint=hint)
    return renamed


def _encoding(fields: Fields) -> str:
    name = fields.text("encoding") or "utf-8"
    try:
        b"a".decode(codecs.lookup(name).name)
    except LookupError as error:
        message = f"unknown encoding {shorten(name)}"
        hint = "as in 'latin-1' or 'utf-16'"
        raise FileProblem(message, fields.line("encoding"), hint=hint) from error
    except UnicodeError:  # one letter need not be a text, as in UTF-16
        pass
    return codecs.lookup(name).name.removesuffix("-sig")  # a byte order mark is dropped anyway


def _delimiter(fields: Fields) -> str | None:
    delimiter: Any = fields.value("delimiter")
    if delimiter is None or (
        isinstance(delimiter, str) and len(delimiter) == 1 and delimiter not in '"\r\n\0'
    ):
        return delimiter
    raise FileProblem(
        "'delimiter' must be one character", fields.line("delimiter"), hint="as in '\";\"'"
    )


def resolve_path(spec: DatasetSpec, roots: Mapping[str, str]) -> str:
    """Replace the longest prefix of `roots` that the path of the data has by its folder.

    Raises `FileProblem` for a path like `hf://…` that no root is known for, and for one
    that leaves the folder of its root. Nothing is ever downloaded.
    """
    fitting = [root for root in roots if spec.path.startswith(root) and _ends(root, spec.path)]
    if fitting:
        root = max(fitting, key=len)
        rest = spec.path[len(root) :].lstrip("/")
        if not rest or ".." in rest.split("/"):
            raise spec.problem("path", f"the path '{spec.path}' names no file below '{root}'")
        return f"{roots[root].rstrip('/')}/{rest}"
    scheme, separator, _ = spec.path.partition("://")
    if separator:
        message = f"nothing is downloaded, and no folder is known for '{scheme}://'"
        hint = f"give the folder of the files, as in 'datasetRoots: {{\"{scheme}://\": ../data}}'"
        raise spec.problem("path", message, hint)
    return spec.path


def _ends(root: str, path: str) -> bool:
    """Return whether a root ends where a part of the path ends."""
    return root.endswith("/") or path[len(root) : len(root) + 1] in ("", "/")
