"""What is exported as a file: a table or a text, as Markdown, CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evalstore.core.display import safe
from evalstore.core.errors import EvalstoreError
from evalstore.files.atomic_write import write_whole
from evalstore.results.verdict_order import PERSON, SIGNS

SUFFIXES = (".md", ".csv", ".json"), (".txt", ".json"), (".md", ".txt", ".json")
"""The endings of files with a table, with a text, and with an answer."""
_WORDS = {sign: word for word, sign in SIGNS.items()}
_SIGN = f"[{re.escape(''.join(_WORDS))}]"
_VERDICT = re.compile(rf"{_SIGN} ({'|'.join(SIGNS)})( {PERSON}({_SIGN})?)?")
_FORMULA = re.compile(r"[=+\-@\t\r]")
_NUMBER = re.compile(r"[+-]?[\d.,]*%?")
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


def suffixes(exported: Exported) -> Sequence[str]:
    """Return the endings that a file of it can have, the usual one first."""
    tables, texts, answers = SUFFIXES
    return (
        tables
        if isinstance(exported, ExportedTable)
        else answers
        if isinstance(exported, ExportedAnswer)
        else texts
    )


def default_name(name: str, exported: Exported) -> str:
    """Return the name of a file unless the user chooses another."""
    return f"evalstore-{name}-{time.strftime('%Y%m%d-%H%M%S')}{suffixes(exported)[0]}"


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
    if suffix == ".csv":
        return _as_csv(exported)
    if suffix == ".json":
        titles = [title or f"column{number}" for number, title in enumerate(exported.titles, 1)]
        rows = [dict(zip(titles, map(_plain, row), strict=False)) for row in exported.rows]
        return json.dumps(rows, ensure_ascii=False, indent=2) + "\n"
    return _as_markdown(exported)


def _as_markdown(table: ExportedTable) -> str:
    lines = [list(table.titles), ["---"] * len(table.titles), *table.rows]
    return "".join(
        "| "
        + " | ".join(text if number == 1 else markdown_line(text) for text in _padded(line, table))
        + " |\n"
        for number, line in enumerate(lines)
    )


def markdown_line(text: str) -> str:
    """Escape a text to one line that Markdown shows as it is."""
    return _MARKUP.sub(r"\\\1", safe(" ".join(text.split())))


def _as_csv(table: ExportedTable) -> str:
    into = io.StringIO()
    writer = csv.writer(into, lineterminator="\n")
    for line in (table.titles, *table.rows):
        writer.writerow([_as_plain_text(_plain(text)) for text in _padded(line, table)])
    return into.getvalue()


def _plain(text: str) -> str:
    """Remove the sign of a verdict; the sign of a label is replaced by words."""
    match = _VERDICT.fullmatch(text)
    if not match:
        return text
    if match[3]:
        return f"{match[1]}, labelled {_WORDS[match[3]]}"
    return f"{match[1]}, by a person" if match[2] else match[1]


def _padded(line: Sequence[str], table: ExportedTable) -> list[str]:
    return [*line, *[""] * (len(table.titles) - len(line))][: len(table.titles)]


def _as_plain_text(text: str) -> str:
    """Escape a text so that no spreadsheet takes it for a formula."""
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text
