"""All formats that can be imported, by name; a module is loaded when its format is asked for.

A plug-in names an importer in the entry point group `evalstore.formats`; it cannot replace
one of this package.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, cast

from evalstore.errors import EvalstoreError
from evalstore.fields import suggest

if TYPE_CHECKING:
    from evalstore.formats.base import Importer

GROUP = "evalstore.formats"

_OWN = {
    "lve": "lve",
    "langbite": "langbite",
    "openai-evals": "openai_evals",
    "evalsone": "evalsone",
    "nemo": "nemo",
    "promptfoo": "promptfoo",
    "ai-tester-db": "ai_tester_db",
}
"""The name of a format, and its module: the function in it is `read`."""


def find_importer(name: str) -> Importer:
    """The importer of a format; raises `EvalstoreError` for a name that is none."""
    if name in _OWN:
        module = import_module(f"evalstore.formats.{_OWN[name]}")
        return cast("Importer", module.read)
    plugged_in = {point.name: point for point in entry_points(group=GROUP)}
    if name in plugged_in:
        return cast("Importer", plugged_in[name].load())
    raise EvalstoreError(
        f"there is no format '{name}'", hint=suggest(name, {**_OWN, **plugged_in}, "formats")
    )
