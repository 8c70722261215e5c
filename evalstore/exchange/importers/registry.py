"""The importers by name of their format; modules are loaded on demand.

Plug-ins register importers in the entry point group `evalstore.formats`; they cannot replace
those of this package.
"""

from __future__ import annotations

import re
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import cast

from evalstore.core.errors import EvalstoreError, FileProblem
from evalstore.exchange.importers.base import Importer
from evalstore.files.access import LARGEST_SOURCE, open_file
from evalstore.files.fields import suggest

GROUP = "evalstore.formats"

_OWN = {
    "lve": "lve.reader",
    "langbite": "langbite.reader",
    "openai-evals": "openai_evals.reader",
    "evalsone": "evalsone",
    "nemo": "nemo.reader",
    "promptfoo": "promptfoo.reader",
    "ai-tester-db": "ai_tester",
    "otel": "otel",
    "inspect": "inspect_ai",
}
"""Maps the name of a format to the module whose function `read` imports it."""


_TYPICAL = {
    "promptfoo": "promptfooconfig.*",
    "lve": "test.json",
    "langbite": "prompts_*.csv",
    "ai-tester-db": "*.db",
    "openai-evals": "evals/*.y*ml",
    "inspect": "*.eval",
}
"""Maps the name of a format to a pattern of file names that only it has."""


_CONTENT = {
    "otel": re.compile(rb'"resourceSpans"\s*:|"openinference[."]|"type"\s*:\s*"GENERATION"'),
    "inspect": re.compile(rb'"eval"\s*:\s*\{\s*"(?:eval_id|run_id|created|task)"\s*:'),
    "promptfoo": re.compile(rb'"(?:evalId|promptIdx|componentResults)"\s*:'),
}
"""Maps the name of a format to what the beginning of its files in JSON has."""
_SUFFIXES = (".json", ".jsonl", ".ndjson")
_BEGINNING = 65_536
"""The number of bytes that are read to guess a format."""


def format_names() -> list[str]:
    """Return the names of all formats, those of plug-ins last."""
    return list(dict.fromkeys([*_OWN, *(point.name for point in entry_points(group=GROUP))]))


def guess_format(path: Path) -> str | None:
    """Guess the format from file names, else from the beginning of a file; None if unknown."""
    if path.is_dir():
        formats = (name for name, pattern in _TYPICAL.items() if any(path.rglob(pattern)))
    else:
        formats = (name for name, pattern in _TYPICAL.items() if path.match(pattern))
    return next(formats, None) or _guess_from_content(path)


def _guess_from_content(path: Path) -> str | None:
    if path.suffix not in _SUFFIXES:
        return None
    try:
        with open_file(path, LARGEST_SOURCE) as file:
            beginning = file.read(_BEGINNING)
    except (FileProblem, OSError):
        return None
    return next((name for name, pattern in _CONTENT.items() if pattern.search(beginning)), None)


def find_importer(name: str) -> Importer:
    """Return the importer of a format; raises `EvalstoreError` for an unknown name."""
    if name in _OWN:
        return cast("Importer", import_module(f"evalstore.exchange.importers.{_OWN[name]}").read)
    plugged_in = {point.name: point for point in entry_points(group=GROUP)}
    if name in plugged_in:
        return cast("Importer", plugged_in[name].load())
    raise EvalstoreError(
        f"unknown format '{name}'", hint=suggest(name, {**_OWN, **plugged_in}, "formats")
    )
