"""Files that a configuration refers to with `file://` or by path."""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from evalstore.core.errors import FileProblem
from evalstore.core.values import Json
from evalstore.exchange.importers import base
from evalstore.exchange.importers.base import (
    NotTakenError,
    parse_json,
    require_pattern,
    require_readable,
    taking,
)
from evalstore.exchange.importers.json_lines import json_as_yaml
from evalstore.files.yaml12 import Document, read_yaml

PREFIX = "file://"
_DEEPEST = 20
"""The maximum nesting of test files."""
_MOST_FILES = 10_000
"""The maximum number of test files read for one configuration, repeats included."""
_MOST_PATTERNS = 100
"""The maximum number of alternatives in one pattern."""
_LONGEST_SHOWN = 80
_BRACES = re.compile(r"\{([^{},]*(?:,[^{},]*)+)\}")
_CODE = (".js", ".cjs", ".mjs", ".ts", ".py", ".rb", ".sh", ".bash", ".pl", ".exe")


class Nesting:
    """Guards against circular and excessive references between test files."""

    def __init__(self) -> None:
        self._open: set[Path] = set()
        self._count = 0

    @contextmanager
    def enter(self, path: Path) -> Iterator[None]:
        """Enter a file; raises `NotTakenError` for a cycle or too many files."""
        real = path.resolve()
        if real in self._open:
            raise NotTakenError(f"'{path.name}' names itself")
        self._count += 1
        if self._count > _MOST_FILES:
            raise NotTakenError(f"more than {_MOST_FILES:,} files of tests are named")
        if len(self._open) >= _DEEPEST:
            raise NotTakenError(f"'{path.name}' is named by a file of a file, and so on")
        self._open.add(real)
        try:
            yield
        finally:
            self._open.discard(real)


def is_code(name: str) -> bool:
    """Return whether a name refers to a program, with or without a function name."""
    bare = name.removeprefix(PREFIX)
    return bare.startswith("exec:") or any(
        bare.endswith(suffix) or f"{suffix}:" in bare for suffix in _CODE
    )


def find_files(name: str, folder: Path) -> list[Path]:
    """Return the files that match a name or pattern; raises `NotTakenError`."""
    if is_code(name):
        raise NotTakenError(f"'{name}' is code, which is not run")
    bare = name.removeprefix(PREFIX)
    shown = bare if len(bare) <= _LONGEST_SHOWN else f"{bare[:_LONGEST_SHOWN]}…"
    path = folder / bare
    try:
        if path.is_file():
            with taking(f"'{shown}' "):
                require_readable(path)
            return [path]
        matches: set[Path] = set()
        if any(sign in bare for sign in "*?[{") and not Path(bare).is_absolute():
            for pattern in _patterns(bare):
                with taking(f"'{shown}' "):
                    require_pattern(folder, pattern)
                matches.update(found for found in folder.glob(pattern) if not found.is_dir())
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise NotTakenError(f"'{shown}' cannot be searched for: {reason}") from error
    if not matches:
        raise NotTakenError(f"file '{shown}' not found")
    return sorted(matches)


def _patterns(pattern: str) -> Iterator[str]:
    """Yield the alternatives of a pattern (`{a,b}`), with `**` only as a whole step."""
    parts = enumerate(_BRACES.split(pattern))
    choices = [part.split(",") if number % 2 else [part] for number, part in parts]
    if math.prod(map(len, choices)) > _MOST_PATTERNS:
        raise ValueError(f"it has more than {_MOST_PATTERNS} alternatives")
    for chosen in itertools.product(*choices):
        steps = "".join(chosen).split("/")
        steps = [step if step == "**" else re.sub(r"\*{2,}", "*", step) for step in steps]
        yield "/".join([*steps, "*"] if steps[-1] == "**" else steps)


def read_source_text(path: Path) -> str:
    """Return the text of a file; raises `NotTakenError`."""
    return base.source_text(path, f"'{path.name}' ")


def read_document(path: Path) -> Document:
    """Return a YAML or JSON document with line numbers; raises `NotTakenError`."""
    text = read_source_text(path)
    try:
        return read_text(json_as_yaml(text) if path.suffix == ".json" else text)
    except FileProblem as problem:
        raise NotTakenError(f"'{path.name}': {problem.message}", line=problem.line) from problem


def read_text(text: str) -> Document:
    """Return a YAML document; raises `FileProblem`."""
    document = read_yaml(text, merge_keys=True)
    return replace(document, value=_as_read_there(document.value))


def _as_read_there(value: Json) -> Json:
    """Return the value with its merge keys (`<<: *name`) applied, and `1e3` as 1000."""
    if isinstance(value, list):
        return [_as_read_there(item) for item in value]
    if isinstance(value, float):
        return _number(str(value))
    if not isinstance(value, dict):
        return value
    fields = {name: _as_read_there(inner) for name, inner in value.items() if name != "<<"}
    merged = value.get("<<")
    for mapping in merged if isinstance(merged, list) else [merged]:
        if isinstance(mapping, dict):
            fields = {**_as_read_there(mapping), **fields}
    return fields


def _number(text: str) -> Json:
    """Return a number as JavaScript has it: whole numbers have no fraction."""
    value = float(text)
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return int(value) if value.is_integer() and abs(value) < 1e21 else value


def read_value(path: Path) -> Any:
    """Return the value of a YAML or JSON file, or the text of another file."""
    if path.suffix in (".yaml", ".yml", ".json"):
        return read_document(path).value
    return read_source_text(path).strip()


def read_variable(path: Path) -> str:
    """Return the content of a file as the text that a template shows: YAML as JSON."""
    if path.suffix in (".yaml", ".yml"):
        return to_json(read_value(path))
    return read_source_text(path).strip()


def to_json(value: Json) -> str:
    """Return a value as compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def read_data_rows(path: Path) -> list[tuple[int, dict[str, Any]]]:
    """Return the rows of a CSV or JSON Lines file with line numbers.

    Raises `NotTakenError`.
    """
    text = read_source_text(path)
    if path.suffix == ".csv":
        reader = csv.DictReader(io.StringIO(text), restval="")
        rows = []
        start = 2
        try:
            for row in reader:
                if None in row:
                    raise NotTakenError(f"'{path.name}': a row has too many cells", line=start)
                rows.append((start, {name.strip(): cell for name, cell in row.items()}))
                start = reader.line_num + 1
        except csv.Error as error:
            raise NotTakenError(f"'{path.name}': {error}", line=start) from error
        return rows
    rows = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                rows.append((number, parse_json(line, parse_float=_number)))
            except ValueError as error:
                raise NotTakenError(f"'{path.name}': not JSON: {error}", line=number) from error
    return rows
