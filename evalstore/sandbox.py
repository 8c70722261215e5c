"""Jinja2, locked up: strict, sandboxed, without chance, and loaded only when it is needed.

Nothing that a template may ask for reaches beyond the values it is given, and the same
template with the same values always comes to the same text.
"""

from __future__ import annotations

import json
import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from evalstore.errors import FileProblem

if TYPE_CHECKING:
    from jinja2.sandbox import SandboxedEnvironment

_LONGEST_REPEAT = 1_000_000
"""A text or list repeated by a template may not become longer than this."""
_WIDE = re.compile(r"[0-9]{6}")
"""A width in a format that is too large."""
SWITCH_OFF = "set 'template: plain' in the frontmatter to switch templates off"


@cache
def _environment() -> SandboxedEnvironment:
    from jinja2 import StrictUndefined
    from jinja2.exceptions import SecurityError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Environment(ImmutableSandboxedEnvironment):
        intercepted_binops = frozenset(["*", "**", "%"])

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            """Refuse results whose size a template could blow up."""
            sizes = [len(side) for side in (left, right) if isinstance(side, str | list | tuple)]
            counts = [side for side in (left, right) if isinstance(side, int)]
            if sizes and counts and sizes[0] * counts[0] > _LONGEST_REPEAT:
                raise SecurityError("the result would be too long")
            if operator == "%" and isinstance(left, str) and _WIDE.search(left):
                raise SecurityError("the result would be too long")
            if operator == "**" and any(abs(count) > 1000 for count in counts):
                raise SecurityError("the power is too large")
            return super().call_binop(context, operator, left, right)

        def call(self, context: Any, called: Any, *args: Any, **kwargs: Any) -> Any:
            """Refuse to fill texts up to a width that a template could blow up."""
            method = getattr(called, "__wrapped__", called)  # the sandbox wraps `format`
            text = getattr(method, "__self__", None)
            if isinstance(text, str) and (
                any(isinstance(one, int) and one > _LONGEST_REPEAT for one in args)
                or (method.__name__ in ("format", "format_map") and _WIDE.search(text))
            ):
                raise SecurityError("the result would be too long")
            return super().call(context, called, *args, **kwargs)

    environment = Environment(
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
        comment_start_string="{{#",
        comment_end_string="#}}",
        finalize=show,
    )
    # The same file must always come to the same text.
    del environment.globals["lipsum"], environment.filters["random"]
    # They fill texts up to any width.
    del environment.filters["center"], environment.filters["indent"]
    return environment


def show(value: Any) -> Any:
    """Text as it is, anything else as JSON; an undefined value is left to complain itself."""
    if isinstance(value, str):
        return value
    from jinja2 import Undefined

    if isinstance(value, Undefined):
        return value
    return json.dumps(_plain(value), ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    """Only what JSON knows; what is made on demand comes out as a list.

    Anything else would print as Python names it, some of it with an address of this machine.
    """
    from types import GeneratorType

    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | range | GeneratorType):
        return [_plain(inner) for inner in value]
    name = type(value).__name__
    raise TypeError(f"this is no text but a {name}: did you forget '()' or '| list'?")


@lru_cache(maxsize=1024)
def undeclared(source: str, line: int) -> frozenset[str]:
    """The names a source needs; raises `FileProblem` for what is no template."""
    from jinja2 import TemplateSyntaxError, meta

    try:
        return frozenset(meta.find_undeclared_variables(_environment().parse(source)))
    except TemplateSyntaxError as error:
        message, line = f"not a template: {error.message}", line + error.lineno - 1
        raise FileProblem(message, line, hint=SWITCH_OFF) from error
    except _FAILURES as error:
        raise FileProblem(f"not a template: {error}", line, hint=SWITCH_OFF) from error


class Uses(NamedTuple):
    """What a source needs of one mapping."""

    keys: frozenset[str]
    whole: bool
    """Whether it needs more of it than single values."""
    guarded: bool
    """Whether it says what to do where there is no value."""


@lru_cache(maxsize=1024)
def uses_of(source: str, name: str) -> Uses:
    """Which values of the mapping `name` a source needs that `undeclared` has accepted."""
    from jinja2 import nodes

    tree = _environment().parse(source)
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
    guarded = any(one.name in ("default", "d") for one in tree.find_all(nodes.Filter)) or any(
        one.name in ("defined", "undefined") for one in tree.find_all(nodes.Test)
    )
    return Uses(frozenset(keys), mentioned > single, guarded)


@lru_cache(maxsize=1024)
def _compiled(source: str) -> Any:
    return _environment().from_string(source)


_FAILURES = (
    TypeError,
    ValueError,
    ArithmeticError,
    LookupError,
    AttributeError,
    AssertionError,
    RuntimeError,
    SyntaxError,
    MemoryError,
)
"""What the author's expressions, and the Python they are compiled to, may run into."""


def run(source: str, line: int, scope: dict[str, Any]) -> str:
    """Render a source; raises `FileProblem` when it fails."""
    from jinja2 import TemplateError

    try:
        text = str(_compiled(source).render(scope))
        text.encode()
    except (TemplateError, *_FAILURES) as error:
        raise FileProblem(f"the template fails: {error}", line) from error
    return text


@lru_cache(maxsize=1024)
def _compiled_expression(source: str) -> Any:
    return _environment().compile_expression(source, undefined_to_none=False)


def evaluate(source: str, line: int, scope: dict[str, Any]) -> Any:
    """The value of an expression, as JSON has it; raises `FileProblem` when it fails."""
    from jinja2 import TemplateError, Undefined

    try:
        value = _compiled_expression(source)(**scope)
        if isinstance(value, Undefined):
            str(value)  # says what is not defined
        return _plain(value)
    except (TemplateError, *_FAILURES) as error:
        raise FileProblem(f"the template fails: {error}", line) from error


def is_global(name: str) -> bool:
    """Whether Jinja itself has a function of this name."""
    return name in _environment().globals
