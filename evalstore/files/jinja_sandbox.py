"""Finds the names in Jinja sources and renders them: cheap ones here, others with limits.

The result is deterministic.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from evalstore.core.errors import FileProblem, LimitProblem, NotRunError
from evalstore.core.values import Json
from evalstore.files.jinja_environment import CostlyTemplate, enter_limits, environment, plain_value

if TYPE_CHECKING:
    from evalstore.files.template_complexity import TemplateCost

_LONGEST_SOURCE = 50_000
"""The most characters of a source that is parsed and compiled without limits of time."""
_LONGEST_MESSAGE = 2_000
_ADDRESS = re.compile(r" at 0x[0-9a-f]{6,}>", re.IGNORECASE)
"""The memory address in the text of a Python object, which differs between runs."""
_TAG = re.compile(r"\{%[^{}]*%\}|\{\{[^{}]*\}\}|\{%")
SWITCH_OFF = "set 'template: plain' in the frontmatter to switch templates off"


class _Failed(Exception):  # noqa: N818 - it becomes a `FileProblem`
    """A template that cannot be read or rendered, and why."""

    problem: type[FileProblem] = FileProblem

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.line = line
        """Counted from 1 within the source."""


class _GivenUp(_Failed):
    """A template that reached a limit."""

    problem = LimitProblem


class MappingUses(NamedTuple):
    """The uses of one mapping in a source."""

    keys: frozenset[str]
    whole: bool
    """Whether it uses the mapping other than by single keys."""
    guarded: bool
    """Whether it handles missing values."""


@lru_cache(maxsize=1024)
def undeclared(source: str, line: int) -> frozenset[str]:
    """Return the names that a source uses; raises `FileProblem` for an invalid template."""
    try:
        # To find names Jinja evaluates constant expressions.
        is_plain = _is_short(source) and _cost(source) is not None
        return _names_in(source) if is_plain else frozenset(_limited("names", source))
    except _Failed as failed:
        message = f"not a template: {failed}"
        place = line + failed.line - 1
        tag = _TAG.search("".join(source.split("\n")[failed.line - 1 :][:1]))
        fragment = tag[0] if tag else None
        raise failed.problem(message, place, hint=SWITCH_OFF, fragment=fragment) from None


def _names_in(source: str) -> frozenset[str]:
    from jinja2 import TemplateSyntaxError, meta

    try:
        return frozenset(meta.find_undeclared_variables(environment().parse(source)))
    except TemplateSyntaxError as error:
        raise _Failed(error.message or "", error.lineno) from error
    except Exception as error:
        raise _Failed(_words(error)) from error


@lru_cache(maxsize=1024)
def uses_of(source: str, name: str) -> MappingUses:
    """Return the uses of the mapping `name` in a source that `undeclared` has accepted."""
    if _is_short(source):
        return _uses_in(source, name)
    try:
        keys, whole, guarded = _limited("uses", source, name)
    except _Failed:  # it has been read before: using all of the mapping is always right
        return MappingUses(frozenset(), True, False)
    return MappingUses(frozenset(keys), whole, guarded)


def binds(source: str, name: str) -> bool:
    """Return whether a statement of a source that `undeclared` has accepted assigns `name`."""
    if _is_short(source):
        return _binds_in(source, name)
    try:
        return bool(_limited("binds", source, name))
    except _Failed:  # it was parsed before, and the caller rejects it
        return True


def _binds_in(source: str, name: str) -> bool:
    from jinja2 import nodes

    named = environment().parse(source).find_all(nodes.Name)
    return any(node.name == name and node.ctx != "load" for node in named)


def _uses_in(source: str, name: str) -> MappingUses:
    from jinja2 import nodes

    tree = environment().parse(source)
    keys: set[str] = set()
    single = 0
    for dotted in tree.find_all(nodes.Getattr):
        if isinstance(dotted.node, nodes.Name) and dotted.node.name == name:
            keys.add(dotted.attr)
            single += 1
    for part in tree.find_all(nodes.Getitem):
        is_ours = isinstance(part.node, nodes.Name) and part.node.name == name
        if is_ours and isinstance(part.arg, nodes.Const) and isinstance(part.arg.value, str):
            keys.add(part.arg.value)
            single += 1
    mentioned = sum(1 for node in tree.find_all(nodes.Name) if node.name == name)
    guarded = any(
        filter_node.name in ("default", "d") for filter_node in tree.find_all(nodes.Filter)
    ) or any(test.name in ("defined", "undefined") for test in tree.find_all(nodes.Test))
    return MappingUses(frozenset(keys), mentioned > single, guarded)


def run(source: str, line: int, scope: Mapping[str, Any]) -> str:
    """Render a source; raises `FileProblem` when it fails, or reaches a limit."""
    fragment = "{%" if "{%" in source else source.removeprefix("{{").removesuffix("}}").strip()
    return str(_evaluate("render", source, scope, source, line, fragment))


def evaluate_expression(source: str, line: int, scope: Mapping[str, Any]) -> Any:
    """Evaluate an expression as JSON; raises like `run`."""
    return _evaluate("value", source, scope, "{{" + source + "}}", line, source)


def _evaluate(
    function: str, source: str, scope: Mapping[str, Any], template: str, line: int, fragment: str
) -> Any:
    """Call a function of `_FUNCTIONS`, with limits unless the whole template is cheap."""
    try:
        if _is_cheap(template, scope):
            with suppress(CostlyTemplate):
                return _FUNCTIONS[function](source, scope)
        return _limited(function, source, scope)
    except _Failed as failed:
        raise failed.problem(f"the template fails: {failed}", line, fragment=fragment) from failed


def _is_short(source: str) -> bool:
    return len(source) <= _LONGEST_SOURCE


def _is_cheap(source: str, scope: Mapping[str, Any]) -> bool:
    """Return whether a source is plain and its values are small, so that it needs no limits."""
    cost = _cost(source) if _is_short(source) else None
    if cost is None:
        return False
    from evalstore.files.template_complexity import is_cheap_template

    return is_cheap_template(cost, scope)


@lru_cache(maxsize=1024)
def _cost(source: str) -> TemplateCost | None:
    from evalstore.files.template_complexity import cost_of

    try:
        return cost_of(environment().parse(source))
    except Exception:  # noqa: BLE001 - rendering it says what is wrong
        return None


@lru_cache(maxsize=1024)
def _compiled(source: str) -> Any:
    return environment().from_string(source)


def _render(source: str, scope: Mapping[str, Any]) -> str:
    try:
        text = str(_compiled(source).render(scope))
        text.encode()
        _refuse_addresses(text, source, scope)
    except CostlyTemplate:
        raise
    except Exception as error:
        raise _Failed(_words(error)) from error
    return text


def _refuse_addresses(result: Json, source: str, scope: Mapping[str, Any]) -> None:
    """Raise `TypeError` for a text with the memory address of an object."""
    shown = _addresses_in(result)
    if shown and shown - _addresses_in([source, dict(scope)]):
        raise TypeError("the text has the name of an object: did you forget '()'?")


def _addresses_in(value: Json) -> set[str]:
    addresses: set[str] = set()
    for text in _texts_in(value):
        if "0x" in text or "0X" in text:
            addresses |= {address.lower() for address in _ADDRESS.findall(text)}
    return addresses


def _texts_in(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        inner = waiting.pop()
        if isinstance(inner, str):
            yield inner
        elif isinstance(inner, dict):
            waiting += [*inner.keys(), *inner.values()]
        elif isinstance(inner, list | tuple):
            waiting += inner


@lru_cache(maxsize=1024)
def _compiled_expression(source: str) -> Any:
    return environment().compile_expression(source, undefined_to_none=False)


def _value(source: str, scope: Mapping[str, Any]) -> Any:
    from jinja2 import Undefined

    try:
        value = _compiled_expression(source)(**scope)
        if isinstance(value, Undefined):
            str(value)  # says what is not defined
        plain = plain_value(value)
        _refuse_addresses(plain, source, scope)
        return plain
    except CostlyTemplate:
        raise
    except Exception as error:
        raise _Failed(_words(error)) from error


def _words(error: Exception) -> str:
    """Describe an error in an expression, or in its compiled code."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if isinstance(error, MemoryError):
        return "it needs too much memory"
    return " ".join(str(error)[:_LONGEST_MESSAGE].split()) or type(error).__name__


# --- with limits


def _limited(function: str, source: str, about: str | Mapping[str, Any] = "") -> Any:
    """Call a function of `_FUNCTIONS` in a process with limits; raises `_Failed`."""
    from evalstore.files.processes.limited_calls import LimitReached, call, encode_names

    if not isinstance(about, str):
        about = encode_names(about)
    try:
        reply = call(__name__, "compute", function, source, about)
    except LimitReached as limit:
        raise _GivenUp(f"{limit}, so it was stopped") from None
    except NotRunError as error:
        raise _GivenUp(str(error)) from None
    if "message" in reply:
        raise _Failed(reply["message"], reply["line"])
    return reply["value"]


def compute(function: str, source: str, about: Json) -> Json:
    """Call a function of `_FUNCTIONS`, in the process that has the limits."""
    from evalstore.files.processes.limited_calls import decode_names

    enter_limits()
    if not isinstance(about, str):
        about = decode_names(about)
    try:
        return {"value": _FUNCTIONS[function](source, about)}
    except _Failed as failed:
        return {"message": str(failed), "line": failed.line}


def _uses_document(source: str, name: str) -> Json:
    uses = _uses_in(source, name)
    return [sorted(uses.keys), uses.whole, uses.guarded]


_FUNCTIONS: Mapping[str, Callable[[str, Any], Json]] = {
    "names": lambda source, _: sorted(_names_in(source)),
    "binds": _binds_in,
    "uses": _uses_document,
    "render": _render,
    "value": _value,
}
