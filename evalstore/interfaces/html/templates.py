"""Renders the templates of the report; they belong to the program and are trusted.

Templates of a workspace are rendered elsewhere, in a sandbox. Here every value is escaped.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Mapping
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any, BinaryIO

from evalstore import __version__
from evalstore.core.batches import in_batches
from evalstore.core.display import SIGNS, percent, plural, safe
from evalstore.core.values import Json

if TYPE_CHECKING:
    from jinja2 import Environment


_FOLDER = files("evalstore.interfaces.html") / "templates"


class Drawing(str):
    """An SVG image, a script or a style sheet, which a template inserts as it is."""

    __slots__ = ()

    def __html__(self) -> str:
        return self


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(read_asset),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = Drawing(read_asset("report.css"))
    environment.globals |= {"style": style, "version": __version__, "signs": SIGNS}
    environment.filters |= {"shown": safe, "percent": percent, "plural": plural}
    return environment


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


# --- embeds scripts, styles and data in a page that has a Content-Security-Policy


_POLICY = (
    "default-src 'none'",
    "script-src '{script}'",
    "style-src '{style}'",
    "img-src data:",
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
)
"""Nothing is loaded, only the script of the page runs, and no text can become markup."""
_SERVED = tuple(rule for rule in _POLICY if not rule.startswith("form-action"))
_CLOSING = b"</script>\n"


def content_policy(script: str, style: str, *others: str, is_served: bool = False) -> str:
    """Return the policy that allows these inline texts and pictures within the page.

    `others` are more scripts. A page that `is_served` may ask its own server whether there are
    newer results, and send it the labels of a person.
    """
    policy = (*_SERVED, "connect-src 'self'", "form-action 'self'") if is_served else _POLICY
    scripts = "' '".join(map(source_hash, (script, *others)))
    return "; ".join(policy).format(script=scripts, style=source_hash(style))


def source_hash(text: str) -> str:
    """Return the hash of an inline script or style, as a policy names it."""
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def data_block(name: str, content: Json) -> bytes:
    """Return an element with JSON, which `document.getElementById(name)` finds.

    A `<` can only be in a string of the JSON and is written as an escape, so that no text ends the
    element or starts a comment.
    """
    return _opening(name) + _encode(content) + _CLOSING


def write_list_block(
    out: BinaryIO, name: str, content: Mapping[str, Json], key: str, items: Iterable[Json]
) -> None:
    """Write the element with an object whose last field is a long list, a part at a time."""
    out.write(_opening(name) + _encode(content).removesuffix(b"}"))
    out.write((b"," if content else b"") + _encode(key) + b":[")
    separator = b""
    for some in in_batches(items):
        out.write(separator + _encode(some)[1:-1])
        separator = b","
    out.write(b"]}" + _CLOSING)


def _opening(name: str) -> bytes:
    return f'<script type="application/json" id="{name}">'.encode()


def _encode(content: Json) -> bytes:
    """Return JSON without a `<`."""
    from pydantic_core import to_json  # takes a third of the time of the standard library

    try:
        data = to_json(content)
    except ValueError:  # half of a surrogate pair
        data = json.dumps(content).encode()
    return data.replace(b"<", b"\\u003c")
