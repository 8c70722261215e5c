"""Renders the templates of the report; they belong to the program and are trusted.

Templates of a workspace are rendered elsewhere, in a sandbox. Here every value is escaped.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jinja2 import Environment

_FOLDER = files("evalstore.interfaces.html") / "templates"


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    return Environment(
        loader=FunctionLoader(read_asset),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def read_asset(name: str) -> str:
    """Return a template, the script or the style sheet of the report."""
    return (_FOLDER / name).read_text(encoding="utf-8")


def read_script(name: str) -> str:
    """Return the script of a page that shows texts."""
    return read_asset("texts.js") + read_asset(name)


def render(name: str, **values: Any) -> bytes:
    """Render a template; every value is escaped, but for `Drawing`."""
    text = _environment().get_template(name).render(**values)
    return text.encode(errors="backslashreplace")
