"""Fills texts with the values of a row, and reports undefined and unused names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from evalstore.core.errors import FileProblem, LimitProblem, Problem
from evalstore.core.values import RUNTIME_NAMES
from evalstore.files.datasets import Dataset
from evalstore.files.fields import nearest, suggest
from evalstore.files.jinja_environment import finalize
from evalstore.files.markdown import Section
from evalstore.files.processes.data_item import DataItem, FixedNames
from evalstore.files.templates import (
    ITEM,
    FileMention,
    Filled,
    NoValueError,
    Template,
    compile_text,
    plain,
)
from evalstore.files.yaml12 import WrittenScalar
from evalstore.workspace.testfiles.conversations import LAST
from evalstore.workspace.testfiles.replacements import Replacements


class RowValues:
    """The values of one row; they may use one another and mention files.

    Values of a row of data (`item`, its columns by name, `item.NAME`) are never templates.
    """

    def __init__(
        self,
        values: Mapping[str, WrittenScalar],
        templates: Mapping[tuple[str, str], Template],
        item: DataItem | None = None,
    ) -> None:
        self.values = values
        self.item = item
        """None without data; `item` then has the values of the replacements."""
        self._templates = templates
        self._filled: dict[str, Filled] = {}
        self._open: list[str] = []

    def lookup(self, name: str) -> Filled:
        """Return the filled value of a name."""
        if name in self._filled:
            return self._filled[name]
        written = self.values.get(name)
        if written is None and self.item is not None:
            return [str(finalize(self._datum(name)))]
        if written is None and name == ITEM:
            return [str(finalize(self._own_item()))]
        if written is None and name.startswith(f"{ITEM}."):
            return self.lookup(name.removeprefix(f"{ITEM}."))
        if written is None:
            line = next(iter(self.values.values())).line if self.values else None
            raise FileProblem(f"this row has no value for '{name}'", line)
        if name in self._open:
            cycle = " -> ".join([*self._open[self._open.index(name) :], name])
            raise FileProblem(
                f"the replacements refer to one another in a circle: {cycle}", written.line
            )
        self._open.append(name)
        try:
            filled = self._templates[name, written.text].fill(self.lookup, self.typed)
        except LimitProblem as problem:
            problem.line = problem.line or written.line
            raise
        self._open.pop()
        self._filled[name] = filled
        return filled

    def typed(self, name: str) -> Any:
        """Return the value of a name inside an expression."""
        if self.item is not None and name not in self.values:
            return self._datum(name)
        if name not in self.values and name == ITEM:
            return self._own_item()
        if name not in self.values and name.startswith(f"{ITEM}."):
            return self.typed(name.removeprefix(f"{ITEM}."))
        filled = self.lookup(name)
        written = self.values[name]
        if filled == [written.text] and not isinstance(written.typed, str):
            return written.typed
        if any(isinstance(piece, FileMention) for piece in filled):
            raise FileProblem(
                f"'{name}' mentions a file, so it cannot be used in an expression", written.line
            )
        return "".join(str(piece) for piece in filled)

    def _own_item(self) -> DataItem:
        """Return the values of a row without data; those that mention files are left out."""
        values = {
            name: self.typed(name)
            for name in self.values
            if not any(isinstance(piece, FileMention) for piece in self.lookup(name))
        }
        return DataItem(values, FixedNames(frozenset(values), {}))

    def _datum(self, name: str) -> Any:
        assert self.item is not None
        if name == ITEM:
            return self.item
        try:
            return self.item[name.removeprefix(f"{ITEM}.")]
        except KeyError:
            raise NoValueError(
                f"no value for '{name}'",
                hint=f"for rows without one write '{name} | default(…)'",
            ) from None


class RuntimeRow(RowValues):
    """A row in which runtime names stay placeholders, without backticks around them."""

    def lookup(self, name: str) -> Filled:
        """Return the filled value of a name; runtime names stay."""
        if name in RUNTIME_NAMES:
            return ["{{" + name + "}}"]
        return super().lookup(name)

    def typed(self, name: str) -> Any:
        """Return the value of a name inside an expression; runtime names have none yet."""
        if name in RUNTIME_NAMES:
            raise FileProblem(
                f"'{name}' cannot be used in an expression",
                hint=f"write `{{{{{name}}}}}` where it belongs",
            )
        return super().typed(name)


def _same_line(line: int, _offset: int) -> int:
    return line


class TemplateSet:
    """Compiles the texts of one file once, and reports undefined and unused names."""

    def __init__(
        self,
        path: str,
        replacements: Replacements,
        *,
        as_is: bool,
        runtime: bool,
        data: Dataset | None = None,
        answers: Collection[str] = (),
        nameless: bool = False,
    ) -> None:
        """`answers` are the names of answers and of runs.

        `nameless` says that a conversation comes from data, where answers have no names.
        """
        self.path = path
        self._answers = frozenset(answers)
        self._nameless = nameless
        self.replacements = replacements
        self.data: frozenset[str] = frozenset()
        """The name `item` and all names of the columns of the data."""
        self._columns: dict[str, str] = {}
        self._advice = data.advice if data is not None else None
        if data is not None:
            self._columns = {name: name for name in data.columns} | dict(data.aliases)
            inner = (f"{ITEM}.{name}" for name in self._columns)
            self.data = frozenset({ITEM, *self._columns, *inner})
        self.used_columns: dict[str, None] = {}
        """In the order of their first use."""
        self.as_is = as_is
        self.runtime = runtime
        self.known = {
            name: values[0].line for item in replacements for name, values in item.items()
        }
        self._has_own_item = data is None and bool(self.known) and not runtime
        """Whether `item` has the values of the replacements."""
        if self._has_own_item:
            self.data = frozenset({ITEM, *(f"{ITEM}.{name}" for name in self.known)})
        self.problems: list[Problem] = []
        for name in self.known.keys() & self._columns.keys():
            self._report(
                f"'{name}' is a replacement and a column of the dataset",
                self.known[name],
                hint="rename one of them; for the column 'dataset' has the field 'rename'",
            )
        self._used: set[str] = set()
        self._reserved: set[str] = set()
        self.values: dict[tuple[str, str], Template] = {}
        for item in replacements:
            for name, values in item.items():
                for written in values:
                    self.values[name, written.text] = self._compile(
                        written.text, partial(_same_line, written.line)
                    )

    def _report(self, message: str, line: int, **more: Any) -> None:
        self.problems.append(Problem(self.path, message, line, **more))

    def _compile(
        self, text: str, line_at: Callable[[int], int], later: Collection[str] = ()
    ) -> Template:
        if self.as_is:
            return plain(text)
        names = [*self.known, *RUNTIME_NAMES] if self.runtime else [*self.known, *self.data, *later]
        try:
            template = compile_text(text, names, line_at, strict_reserved=self.runtime)
        except FileProblem as problem:
            self.problems.append(problem.at(self.path))
            return plain(text)
        for name, line in template.reserved.items():
            if name not in self._reserved:
                self._reserved.add(name)
                self._report(
                    f"'{name}' is a reserved name that means nothing here; it stays text",
                    line,
                    severity="warning",
                )
        return template

    def compile(self, section: Section, later: Collection[str] = ()) -> Template:
        """Compile a text of the body; its names count as used.

        Those of `later` get their values only when an answer is judged.
        """
        template = self._compile(section.text, section.line_at, later)
        for name, line in template.names.items():
            self.need(name, line, later)
        return template

    def need(self, name: str, line: int, later: Collection[str] = ()) -> None:
        """Count a name as used, or report it."""
        if name in later and name in self._columns and name not in self.known:
            self._report(
                f"'{name}' is a column of the dataset and a name of the answer",
                line,
                hint=f"write '{ITEM}.{name}' for the column",
            )
        elif name in self.known or name in self.data:
            self._use(name)
            if name == ITEM and ITEM in self._columns and ITEM not in self.known:
                self._warn_of_row(line)
        elif name not in later:
            self._report_undefined(name, line, later)

    def _warn_of_row(self, line: int) -> None:
        """Warn once of the name of the row when a column of the dataset has it, too."""
        if ITEM not in self._reserved:
            self._reserved.add(ITEM)
            message = f"'{ITEM}' is the whole row here, and the dataset also has a column '{ITEM}'"
            hint = f"write '{{{{ {ITEM}.{ITEM} }}}}' for the column"
            self._report(message, line, severity="warning", hint=hint)

    def _report_undefined(self, name: str, line: int, later: Collection[str]) -> None:
        """Report an undefined name, unless it is a runtime name of a prompt."""
        if self.runtime and name in RUNTIME_NAMES:
            return
        words, hint = f"'{name}' is not defined", self._hint(name, later)
        if name in self._answers:
            words = f"'{name}' is an answer, so it can only be mentioned below '---'"
            hint = "in the messages the candidate sees its answers where it gave them"
        self._report(words, line, hint=hint, fragment=name)

    def _hint(self, name: str, later: Collection[str]) -> str:
        """Return a hint for an unknown name."""
        if self.runtime and name.startswith("_"):
            return "judge prompts know " + ", ".join(RUNTIME_NAMES)
        if self._advice:
            return self._advice
        if name.partition(".")[0] == ITEM and not self.data and not self.runtime:
            return f"'{ITEM}' is a row of 'dataset:' or 'replacements:', and the file has neither"
        inside = name.startswith(f"{ITEM}.")
        columns = (
            [f"{ITEM}.{column}" for column in self._columns or self.known]
            if inside
            else self._columns
        )
        own = self._answers - {LAST} if later else ()
        if near := nearest(name, [*self.known, *columns, *later]):
            return near
        if later and self._nameless:
            return "in a conversation from data the first answer is '{{answers[0]}}'"
        if columns or own:
            return suggest(name, [*self.known, *columns, *own], "names")
        if self.known:
            return suggest(name, self.known, "replacements")
        return "define it under 'replacements:'"

    def _use(self, name: str) -> None:
        if name in self._used:
            return
        self._used.add(name)
        if name in self.data and name not in self.known and self._has_own_item:
            for replacement in self.known if name == ITEM else (name.removeprefix(f"{ITEM}."),):
                self._use(replacement)
            return
        if name in self.data and name not in self.known:
            columns = [*self._columns.values()] if name == ITEM else [self._column(name)]
            self.used_columns |= dict.fromkeys(columns)
            return
        for (owner, _), template in self.values.items():
            if owner == name:
                for inner, line in template.names.items():
                    self.need(inner, line)

    def _column(self, name: str) -> str:
        known = self._columns.get(name)
        return self._columns[name.removeprefix(f"{ITEM}.")] if known is None else known

    def require_row_id(self, name: str, line: int) -> None:
        """Report a name that is neither a replacement nor a column."""
        names = {**self.known, **self._columns}
        if name not in names:
            self._report(
                f"'rowId' names '{name}', which is neither a column nor a replacement",
                line,
                hint=f"write '{bare}'"
                if (bare := name.removeprefix(f"{ITEM}.")) in names
                else suggest(name, names, "columns and replacements"),
            )

    def _names_in(self, name: str) -> set[str]:
        """Return a name with all names that its values mention, also indirectly."""
        names: set[str] = set()
        waiting = [name]
        while waiting:
            owner = waiting.pop()
            if owner not in names:
                names.add(owner)
                for (own, _), template in self.values.items():
                    waiting += template.names if own == owner else ()
        return names

    def is_used(self, name: str) -> bool:
        """Return whether a text needs this replacement."""
        return name in self._used

    def finish(self, line_of: Callable[..., int], row_id: str | None = None) -> None:
        """Report unused names; `row_id` is used to name the rows."""
        used = self._used | (self._names_in(row_id) if row_id else set())
        for name in self.known:
            if name not in used:
                line = next(
                    line_of("replacements", name)
                    if len(self.replacements) == 1
                    else written[0].line
                    for item in self.replacements
                    if (written := item.get(name))
                )
                self._report(
                    f"replacement '{name}' is never used",
                    line,
                    hint=f"write `{{{{{name}}}}}` where it belongs, or remove it",
                )


def clean_path(mention: FileMention) -> str:
    """Return a mentioned path with forward slashes, without `./` and a leading slash."""
    parts = [part for part in mention.path.replace("\\", "/").split("/") if part not in ("", ".")]
    if not parts:
        raise FileProblem("'_file:' names no file", mention.line)
    return "/".join(parts)
