"""What is exported as a file: a table or a text, as Markdown, CSV or JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evalstore.core.display import safe
from evalstore.core.errors import EvalstoreError
from evalstore.exchange.exports.writers import csv_lines, markdown_lines
from evalstore.files.atomic_write import write_whole

_MARKUP = re.compile(r"([\\`*_<\[\]|])")


@dataclass(frozen=True, slots=True)
class ExportedTable:
    """A table that is exported."""

    titles: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class ExportedAnswer:
    """An answer with the judgements on it."""

    text: str
    """As it is exported."""
    markdown: str


Exported = ExportedTable | ExportedAnswer | str


_SUFFIXES: dict[type[Exported], Sequence[str]] = {
    ExportedTable: (".md", ".csv", ".json"),
    ExportedAnswer: (".md", ".txt", ".json"),
    str: (".txt", ".json"),
}


def suffixes(exported: Exported) -> Sequence[str]:
    """Return the endings that a file of it can have, the usual one first."""
    return _SUFFIXES[type(exported)]


def save(folder: Path, name: str, exported: Exported) -> Path:
    """Write it into a new file; raises `EvalstoreError`."""
    if not name.strip():
        raise EvalstoreError("a file needs a name")
    try:
        path = folder / Path(name.strip()).expanduser()
        if path.suffix.lower() not in suffixes(exported):
            raise EvalstoreError(f"'{name}' ends in none of {', '.join(suffixes(exported))}")
        text = export_text(path.suffix.lower(), exported)
        write_whole(path, text.encode(errors="backslashreplace"), exclusive=True)
    except FileExistsError:
        raise EvalstoreError(
            f"there is a '{name}' already", hint="nothing is overwritten: choose another name"
        ) from None
    except (OSError, ValueError, RuntimeError) as problem:
        words = problem.strerror if isinstance(problem, OSError) else str(problem)
        raise EvalstoreError(f"'{name}' cannot be written: {words}") from problem
    return path


def export_text(suffix: str, exported: Exported) -> str:
    """Return the content of a file with this suffix."""
    if not isinstance(exported, ExportedTable):
        text = exported if isinstance(exported, str) else exported.text
        if isinstance(exported, ExportedAnswer) and suffix == ".md":
            return exported.markdown
        return json.dumps(text, ensure_ascii=False) + "\n" if suffix == ".json" else f"{text}\n"
    titles, rows = exported.titles, exported.rows
    if suffix == ".json":
        names = [title or f"column{number}" for number, title in enumerate(titles, 1)]
        listed = [dict(zip(names, row, strict=True)) for row in rows]
        return json.dumps(listed, ensure_ascii=False, indent=2) + "\n"
    lines = csv_lines(titles, rows) if suffix == ".csv" else markdown_lines(titles, rows)
    return "".join(f"{line}\n" for line in lines)


def markdown_line(text: str) -> str:
    """Escape a text to one line that Markdown shows as it is."""
    return _MARKUP.sub(r"\\\1", safe(" ".join(text.split())))
