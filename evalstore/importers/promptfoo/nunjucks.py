"""promptfoo's templates: Nunjucks, which is Jinja but for a few filters and its missing values."""

from __future__ import annotations

import re
from collections.abc import Iterable

from evalstore.errors import FileProblem
from evalstore.files.datasets.columns import stable_names
from evalstore.files.jinja_environment import is_global
from evalstore.files.jinja_sandbox import undeclared
from evalstore.importers.base import SkippedItem
from evalstore.importers.template_parts import find_parts
from evalstore.importers.template_writer import quoted

_DUMP = re.compile(r"\|\s*dump\b(?:\(\s*\d*\s*\))?")
_NAME = re.compile(r"(?<![\w.'\"])([^\W\d]\w*)")
_STRINGS = re.compile(r"\"(?:[^\"\\]|\\.)*(?:\"|\Z)|'(?:[^'\\]|\\.)*(?:'|\Z)", re.DOTALL)
"""Texts in an expression; one without an end takes the rest of it."""
_TAKEN = frozenset({"item", "sample", "answer", "answers", "response"})
"""Names that mean something else here."""


class ExpressionNotTakenError(Exception):
    """Something cannot be imported."""

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.line = line

    def at(self, file: str, subject: str, line: int | None = None) -> SkippedItem:
        """The same as a line of the report."""
        return SkippedItem(file, f"{subject}: {self}", self.line or line)


def names_in(template: str) -> frozenset[str]:
    """The variables of a template; raises `ExpressionNotTakenError` for what is none here."""
    try:
        undeclared_names = undeclared(_for_jinja(template), 1)
    except FileProblem as problem:
        raise ExpressionNotTakenError(
            f"its template cannot be read: {problem.message}"
        ) from problem
    names = frozenset(name for name in undeclared_names if not is_global(name))
    if "env" in names:
        raise ExpressionNotTakenError("it takes something from the environment ('env')")
    return names


def _for_jinja(template: str) -> str:
    return "".join(_parts(template, frozenset()))


def as_template(template: str, columns: Iterable[str]) -> str:
    """A template of ours; `columns` are the names as promptfoo has them."""
    return "".join(_parts(template, frozenset(columns)))


def _parts(template: str, columns: frozenset[str]) -> Iterable[str]:
    at = 0
    for text, start, end in find_parts(template):
        yield template[at:start]
        at = end
        if text.startswith("{#"):
            continue
        if text == "<!--":
            yield quoted(text)
            continue
        yield _rename_columns(_DUMP.sub("| tojson", text), columns)
    yield template[at:]


def _rename_columns(part: str, columns: frozenset[str]) -> str:
    """A part in braces with the columns by names that are known here, but not inside of texts."""

    def name(match: re.Match[str]) -> str:
        variable = match[1]
        is_plain = stable_names([variable]) == [variable] and variable not in _TAKEN
        return variable if variable not in columns or is_plain else f"item.{variable}"

    pieces, at = [], 0
    for text in _STRINGS.finditer(part):
        pieces += [_NAME.sub(name, part[at : text.start()]), text[0]]
        at = text.end()
    return "".join([*pieces, _NAME.sub(name, part[at:])])


def is_template(value: object) -> bool:
    """Whether a value is a text in which something is filled."""
    return isinstance(value, str) and ("{{" in value or "{%" in value)
