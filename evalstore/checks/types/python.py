"""The check `python`: a function or a class in a Python file of the workspace.

The file's content and the values of the row are part of the check, because the function may use
them all. The file runs in another process, and only when it is trusted; this module reads the
settings and the returned value.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from evalstore.checks.base import CheckArguments, CheckFinding, CheckInput, CheckType
from evalstore.core.display import as_text, shorten
from evalstore.core.errors import FileProblem
from evalstore.core.values import Json
from evalstore.files.fields import is_finite, suggest

NAME = "python"
SECONDS = 10
"""The default time limit of one judgement."""
MEMORY = 1024
"""The default memory limit of a process, in MiB."""
_MOST_SECONDS = 600
_LEAST_MEMORY = 64
_PARTS = ("pass", "score", "label", "feedback")
"""The keys of a mapping that a function may return."""
_NEEDS_BOUND = (
    "it returned the score {:g}, so the check needs 'pass' to say what is enough, "
    "as in 'pass: \">= 0.8\"'"
)


class CodeFile(NamedTuple):
    """A file that checks run, and whether they request the network for it."""

    id: str
    network: bool

    @property
    def text(self) -> str:
        """Return the form that is stored with a case."""
        return f"{self.id}+network" if self.network else self.id

    @classmethod
    def read(cls, text: str) -> CodeFile:
        """Return the inverse of `text`."""
        id, plus, _ = text.partition("+")
        return cls(id, bool(plus))


def code_of(checks: Iterable[Json]) -> list[CodeFile]:
    """Return the files that checks run, each once; also those of checks inside a block."""
    found = python_checks(checks)
    return sorted({CodeFile(each["file"]["id"], bool(each.get("network"))) for each in found})


def python_checks(checks: Iterable[Json]) -> Iterator[Json]:
    """Yield the checks of this type, also those inside a block."""
    for check in checks:
        if check["type"] == NAME:
            yield check
        elif isinstance(check.get("checks"), list):
            yield from python_checks(check["checks"])


# --- settings


def _read(arguments: CheckArguments) -> dict[str, Json]:
    if not arguments.has("file"):
        raise arguments.problem(
            "the check 'python' needs a 'file'",
            "as in 'python: {file: checks/mine.py, function: judge}'",
        )
    settings: dict[str, Json] = {"file": arguments.text("file")}
    name, class_name = arguments.text("function"), arguments.text("class")
    if name and class_name:
        raise arguments.problem(
            f"the check names a function, '{name}', and a class, '{class_name}'",
            "leave one of them out",
        )
    if not name and not class_name:
        raise arguments.problem(
            "the check 'python' needs a 'function' or a 'class' of the file",
            "as in 'function: judge'",
        )
    chosen = name or class_name or ""
    if not chosen.isidentifier() or chosen.startswith("__"):
        raise arguments.problem(f"{shorten(chosen)} cannot be the name of a function or class")
    settings["function" if name else "class"] = chosen
    if (function_arguments := _read_arguments(arguments)) != {}:
        settings["args"] = function_arguments
    settings |= arguments.flags("network")
    seconds = arguments.number("timeout", SECONDS)
    if seconds is None or not 0 < seconds <= _MOST_SECONDS:
        raise arguments.problem(f"'timeout' must be a number above 0, at most {_MOST_SECONDS}")
    if seconds != SECONDS:
        settings["timeout"] = seconds
    memory = arguments.whole("memory", MEMORY, _LEAST_MEMORY)
    if memory != MEMORY:
        settings["memory"] = memory
    return settings


def _read_arguments(arguments: CheckArguments) -> dict[str, Json]:
    values = arguments.take("args", {})
    if not isinstance(values, dict):
        raise arguments.problem(
            f"'args' must be a mapping, not {shorten(as_text(values))}", "as in 'args: {limit: 3}'"
        )
    for name in values:
        if not name.isidentifier():
            raise arguments.problem(f"{shorten(name)} in 'args' cannot be the name of a parameter")
    return values


@lru_cache(maxsize=64)
def defined_names(source: bytes) -> tuple[frozenset[str], frozenset[str]]:
    """Return the functions and classes that a file may define; raises SyntaxError or ValueError.

    An assigned name may be either. The file is not run.
    """
    with warnings.catch_warnings():  # Python's advice on style is not for users
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(source)
        except (MemoryError, RecursionError):
            raise ValueError("it is nested too deeply") from None
    functions, classes, either = set(), set(), set()
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            functions.add(node.name)
        elif isinstance(node, ast.ClassDef):
            classes.add(node.name)
        elif not isinstance(node, ast.Lambda):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                either.add(node.id)
            waiting += ast.iter_child_nodes(node)
    return frozenset(functions | either), frozenset(classes | either)


def require_defined(check: Mapping[str, Json], source: bytes, line: int | None) -> None:
    """Raise `FileProblem` unless a file may define the function or class of a check."""
    path = check["file"]
    try:
        functions, classes = defined_names(source)
    except (SyntaxError, ValueError) as error:
        at = f":{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        words = error.msg if isinstance(error, SyntaxError) else error
        raise FileProblem(f"'{path}{at}' is not Python: {words}", line) from error
    kind, known, others = (
        ("function", functions, classes) if "function" in check else ("class", classes, functions)
    )
    name = check[kind]
    if name in known:
        return
    other = "class" if kind == "function" else "function"
    hint = (
        f"it defines a {other} of that name: write '{other}: {name}'"
        if name in others
        else suggest(name, known, "functions" if kind == "function" else "classes")
        if known
        else None
    )
    raise FileProblem(f"'{path}' defines no {kind} '{name}'", line, hint=hint)


# --- results


def _judge(check: Mapping[str, Json], subject: CheckInput) -> CheckFinding:
    """Run the function on the answer, and read what it returned."""
    if subject.run_code is None:
        raise ValueError("Python files cannot run here")
    text = isinstance(subject.actual, str)
    returned = subject.run_code(check, subject.text if text else subject.actual)
    return read_result(returned, has_bound="pass" in check)


def read_result(value: Json, *, has_bound: bool) -> CheckFinding:
    """Return the finding in a returned value: true or false, a number, or a mapping.

    A number between 0 and 1 needs a bound. Raises ValueError.
    """
    if isinstance(value, dict):
        return _read_mapping(value, has_bound=has_bound)
    if isinstance(value, bool):
        return CheckFinding(float(value), "" if value else "the function returned false")
    score = _read_score(value)
    if not has_bound and 0 < score < 1:
        raise ValueError(_NEEDS_BOUND.format(score))
    return CheckFinding(score, "" if score == 1 else f"the function returned {score:g}")


def _read_score(value: Json) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        shown = "nothing" if value is None else shorten(as_text(value))
        raise ValueError(
            f"it returned {shown}, not true or false, a number from 0 to 1, or a mapping of those"
        )
    if not is_finite(value) or not 0 <= value <= 1:
        raise ValueError(f"it returned {value:g}, which is not a score from 0 to 1")
    return float(value)


def _read_mapping(value: dict[str, Json], *, has_bound: bool) -> CheckFinding:
    for name in value:
        if name not in _PARTS:
            raise ValueError(f"it returned '{name}'; it may return {', '.join(_PARTS)}")
    passed = value.get("pass")
    if passed is None and value.get("score") is None:
        raise ValueError("it returned a mapping with neither 'pass' nor 'score'")
    if not isinstance(passed, bool | None):
        raise ValueError(f"'pass' must be true or false, not {shorten(as_text(passed))}")
    for name in ("label", "feedback"):
        if not isinstance(value.get(name), str | None):
            raise ValueError(f"'{name}' must be a text, not {shorten(as_text(value[name]))}")
    score = _read_score(float(bool(passed)) if value.get("score") is None else value["score"])
    if passed is None and not has_bound and 0 < score < 1:
        raise ValueError(_NEEDS_BOUND.format(score))
    words = [value.get("label") or "", value.get("feedback") or ""]
    reported = ": ".join(word for word in words if word)
    return CheckFinding(
        score, reported or f"the function returned {score:g}", None if has_bound else passed
    )


KINDS = {NAME: CheckType(1, _read, _judge, main="file")}
