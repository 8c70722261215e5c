"""EvalsOne: JSON lines with `input`, `completion`, `ideal` and `context`.

EvalsOne stores the judging rules separately from the samples. So the imported tests are judged
by a model, which sees the ideal answers and the context; the candidate sees neither.
"""

from __future__ import annotations

from pathlib import Path

from evalstore.exchange.importers.base import (
    Imported,
    ImportOptions,
    require,
    safe_file_name,
    skipping,
    write_test,
)
from evalstore.exchange.importers.json_lines import (
    JsonLinesRow,
    find_sources,
    instructions_of,
    messages_field,
    read_messages,
    read_rows,
    turns_of,
    write_rows,
)

_SUFFIXES = (".jsonl", ".ndjson", ".jsonl.gz")


def read(paths: list[Path], options: ImportOptions) -> Imported:
    """Import one test per file of samples."""
    imported = Imported()
    for path in paths:
        for file in find_sources([path], _SUFFIXES):
            name = file.relative_to(path).as_posix() if path.is_dir() else file.name
            _read_file(file, name, imported)
    imported.require_any("no EvalsOne samples found", "name a file of JSON lines, or its folder")
    return imported


def _read_file(path: Path, name: str, imported: Imported) -> None:
    rows = []
    for row in read_rows(path, imported.left):
        with skipping(imported.left, path, row.line):
            rows.append(_read_row(row))
    if not rows:
        imported.skip(path, "it has no row that can be used")
        return
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    place = "/".join(map(safe_file_name, name.split("/")))
    front = {"dataset": f"{place.rpartition('/')[2]}.jsonl", **messages_field(rows)}
    if any("completion" in row.values for row in rows):
        front["answer"] = "{{ item.completion | default(none) }}"
    text = write_test(front, turns_of(rows), instructions=instructions_of(rows))
    imported.files[f"tests/{place}.md"] = text
    imported.files[f"tests/{place}.jsonl"] = write_rows(rows)
    imported.rows += len(rows)


def _read_row(row: JsonLinesRow) -> JsonLinesRow:
    """Return a row with normalised messages; raises `NotTakenError`."""
    require("input" in row.values, "the row has no 'input'")
    messages = read_messages(row.values["input"])
    require(isinstance(row.values.get("completion"), str | None), "'completion' must be a text")
    for name in ("ideal", "context"):
        value = row.values.get(name)
        texts = value if isinstance(value, list) else [value]
        are_texts = all(isinstance(it, str) for it in texts if it is not None or value != it)
        require(are_texts, f"'{name}' must be a text or a list of texts")
    return row if isinstance(row.values["input"], str) else row.with_values(input=messages)
