"""All formats that can be imported, by name; a module is loaded when its format is asked for.

A plug-in names an importer in the entry point group `evalstore.formats`; it cannot replace
one of this package.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, cast

from evalstore.errors import EvalstoreError
from evalstore.files.fields import suggest

if TYPE_CHECKING:
    from pathlib import Path

    from evalstore.importers.base import Importer

GROUP = "evalstore.formats"

_OWN = {
    "lve": "lve.reader",
    "langbite": "langbite.reader",
    "openai-evals": "openai_evals",
    "evalsone": "evalsone",
    "nemo": "nemo",
    "promptfoo": "promptfoo",
    "ai-tester-db": "ai_tester.database",
}
"""The name of a format, and its module: the function in it is `read`."""


_TYPICAL = {
    "promptfoo": "promptfooconfig.*",
    "lve": "test.json",
    "langbite": "prompts_*.csv",
    "ai-tester-db": "*.db",
    "openai-evals": "evals/*.y*ml",
}
"""The name of a format, and a pattern of files that only it has."""


def format_names() -> list[str]:
    """All formats, those of plug-ins last."""
    return list(dict.fromkeys([*_OWN, *(point.name for point in entry_points(group=GROUP))]))


def guess_format(path: Path) -> str | None:
    """The format that the names of files suggest; None when they suggest none."""
    if path.is_dir():
        formats = (name for name, pattern in _TYPICAL.items() if any(path.rglob(pattern)))
    else:
        formats = (name for name, pattern in _TYPICAL.items() if path.match(pattern))
    return next(formats, None)


def find_importer(name: str) -> Importer:
    """The importer of a format; raises `EvalstoreError` for a name that is none."""
    if name in _OWN:
        module = import_module(f"evalstore.importers.{_OWN[name]}")
        return cast("Importer", module.read)
    plugged_in = {point.name: point for point in entry_points(group=GROUP)}
    if name in plugged_in:
        return cast("Importer", plugged_in[name].load())
    raise EvalstoreError(
        f"there is no format '{name}'", hint=suggest(name, {**_OWN, **plugged_in}, "formats")
    )
