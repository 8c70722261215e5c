"""Finds the names in Jinja sources and renders them: cheap ones here, others with limits.

The environment of Jinja2 is strict, sandboxed, deterministic, and imported on first use. A template
can access only the values it is given. An operation that could make a large result of small values
raises `CostlyTemplate` in a process without limits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from evalstore.core.errors import FileProblem, LimitProblem, NotRunError
from evalstore.core.values import Json
from evalstore.files.processes.limited_calls import DataItem, columns_of

if TYPE_CHECKING:
    from jinja2.sandbox import SandboxedEnvironment

    from evalstore.files.template_complexity import TemplateCost

_has_limits = False
"""Whether this is the process that has limits."""


def enter_limits() -> None:
    """Mark this process as one with limits, in which no template is too costly."""
    global _has_limits
    _has_limits = True


class CostlyTemplate(Exception):  # noqa: N818 - it is handled, never shown
    """A template turned out to be costly, and must be rendered with limits."""


def _is_quick(operator: str, left: Any, right: Any) -> bool:
    """Return whether an operation has a small result: on numbers, or a text with small fields."""
    if isinstance(left, int | float) and isinstance(right, int | float):
        return operator != "**"
    from evalstore.files.template_complexity import FIELDS

    return operator == "%" and isinstance(left, str) and FIELDS.fullmatch(left) is not None


@cache
def environment() -> SandboxedEnvironment:
    """Return the environment in which all templates are read and rendered."""
    from jinja2 import StrictUndefined
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Environment(ImmutableSandboxedEnvironment):
        intercepted_binops = frozenset(["*", "**", "%"])

        def getattr(self, obj: Any, attribute: str) -> Any:
            """Return a value of a row of data; its methods only where no column has that name."""
            if isinstance(obj, DataItem) and attribute in columns_of(obj)[0]:
                return obj.get(attribute, self.undefined(obj=obj, name=attribute))
            return super().getattr(obj, attribute)

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            """Evaluate an operator; a costly one only in a process with limits."""
            if not _has_limits and not _is_quick(operator, left, right):
                raise CostlyTemplate
            return super().call_binop(context, operator, left, right)

    jinja = Environment(
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
        comment_start_string="{{#",
        comment_end_string="#}}",
        finalize=finalize,
    )
    # The result must be deterministic.
    del jinja.globals["lipsum"], jinja.filters["random"]
    # They fill texts up to any width.
    del jinja.filters["center"], jinja.filters["indent"]
    return jinja


def finalize(value: Any) -> Any:
    """Return a text unchanged, anything else as JSON; an undefined value raises when printed."""
    if isinstance(value, str):
        return value
    if type(value) is int:
        return str(value)
    from jinja2 import Undefined

    if isinstance(value, Undefined):
        return value
    return json.dumps(plain_value(value), ensure_ascii=False, allow_nan=False)


def plain_value(value: Any) -> Any:
    """Convert a value to plain JSON, generators to lists; raises `TypeError` for anything else.

    The text of another Python object can have a memory address in it.
    """
    from types import GeneratorType

    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, dict):
        return {str(key): plain_value(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | range | GeneratorType):
        return [plain_value(inner) for inner in value]
    name = type(value).__name__
    raise TypeError(f"this is not a text but a {name}: did you forget '()' or '| list'?")


def is_global(name: str) -> bool:
    """Return whether Jinja itself has a function of this name."""
    return name in environment().globals


_LONGEST_SOURCE = 50_000
"""The most characters of a source that is parsed and compiled without limits of time."""
_LONGEST_MESSAGE = 2_000
_ADDRESS = re.compile(r" at 0x[0-9a-f]{6,}>")
"""The memory address in the text of a Python object, which differs between runs."""
_TAG = re.compile(r"\{%[^{}]*%\}|\{\{[^{}]*\}\}|\{%")
SWITCH_OFF = "set 'template: plain' in the frontmatter to switch templates off"


class _Failed(Exception):  # noqa: N818 - it becomes a `FileProblem`
    """A template that cannot be read or rendered, and why."""

    def __init__(
        self, message: str, line: int = 1, problem: type[FileProblem] = FileProblem
    ) -> None:
        """`problem` is what it becomes: a `LimitProblem` if it reached a limit."""
        super().__init__(message)
        self.problem = problem
        self.line = line
        """Counted from 1 within the source."""


class MappingUses(NamedTuple):
    """The uses of one mapping in a source."""

    keys: frozenset[str]
    whole: bool
    """Whether it uses the mapping other than by single keys."""
    guarded: bool
    """Whether it handles missing values."""
    assigned: bool
    """Whether a statement assigns the name."""


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
    try:
        found = _uses_in(source, name) if _is_short(source) else _limited("uses", source, name)
    except _Failed:  # it has been read before: using all of the mapping is always right
        return MappingUses(frozenset(), True, False, True)
    return MappingUses(frozenset(found[0]), *found[1:])


def _uses_in(source: str, name: str) -> Json:
    from jinja2 import nodes

    tree = environment().parse(source)
    named = [node for node in tree.find_all(nodes.Name) if node.name == name]
    keys: list[str] = []
    for part in tree.find_all((nodes.Getattr, nodes.Getitem)):
        match part:
            case (
                nodes.Getattr(node=nodes.Name(name=mapping), attr=str(key))
                | nodes.Getitem(node=nodes.Name(name=mapping), arg=nodes.Const(value=str(key)))
            ) if mapping == name:
                keys.append(key)
    guards = [*tree.find_all((nodes.Filter, nodes.Test))]
    is_guarded = any(node.name in ("default", "d", "defined", "undefined") for node in guards)
    is_assigned = any(node.ctx != "load" for node in named)
    return [keys, len(named) > len(keys), is_guarded, is_assigned]


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
    text = result if isinstance(result, str) else json.dumps(result)
    addresses = {*_ADDRESS.findall(text.lower())}
    if addresses and addresses - {*_ADDRESS.findall(json.dumps([source, dict(scope)]).lower())}:
        raise TypeError("the text has the name of an object: did you forget '()'?")


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
        raise _Failed(f"{limit}, so it was stopped", problem=LimitProblem) from None
    except NotRunError as error:
        raise _Failed(str(error), problem=LimitProblem) from None
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


_FUNCTIONS: Mapping[str, Callable[[str, Any], Json]] = {
    "names": lambda source, _: sorted(_names_in(source)),
    "uses": _uses_in,
    "render": _render,
    "value": _value,
}
