"""The environment of Jinja2: strict, sandboxed, deterministic, and imported on first use.

A template can access only the values it is given. An operation that would make a large result of
small values is refused, or raises `CostlyTemplate` in a process without limits.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any

from evalstore.files.processes.data_item import DataItem, column_names_of

if TYPE_CHECKING:
    from jinja2.sandbox import SandboxedEnvironment

_LONGEST_REPEAT = 1_000_000
"""The greatest length of a text or list repeated by a template."""
_WIDE = re.compile(r"[0-9]{6}")
"""A width in a format that is too large."""

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
    from jinja2.exceptions import SecurityError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Environment(ImmutableSandboxedEnvironment):
        intercepted_binops = frozenset(["*", "**", "%"])

        def getattr(self, obj: Any, attribute: str) -> Any:
            """Return a value of a row of data; its methods only where no column has that name."""
            if isinstance(obj, DataItem) and attribute in column_names_of(obj).known:
                return obj.get(attribute, self.undefined(obj=obj, name=attribute))
            return super().getattr(obj, attribute)

        def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
            """Evaluate an operator; refuses very large results."""
            if not _has_limits and not _is_quick(operator, left, right):
                raise CostlyTemplate
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
            """Call a method; refuses very wide texts."""
            method = getattr(called, "__wrapped__", called)  # the sandbox wraps `format`
            text = getattr(method, "__self__", None)
            if isinstance(text, str) and (
                any(isinstance(arg, int) and arg > _LONGEST_REPEAT for arg in args)
                or (method.__name__ in ("format", "format_map") and _WIDE.search(text))
            ):
                raise SecurityError("the result would be too long")
            return super().call(context, called, *args, **kwargs)

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
