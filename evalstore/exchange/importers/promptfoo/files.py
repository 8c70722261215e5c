"""Files that a configuration refers to with `file://` or by path, and its prompts.

Of prompts it reads their Nunjucks templates as Jinja, and their texts and messages.

Nunjucks differs from Jinja in filters and missing values.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evalstore.core.errors import FileProblem
from evalstore.core.values import Json
from evalstore.exchange.importers import base
from evalstore.exchange.importers.base import (
    Imported,
    NotTakenError,
    as_mapping,
    expression_in,
    find_parts,
    parse_json,
    quoted,
    replace_parts,
    require,
    require_pattern,
    require_readable,
    skipping,
    taking,
    without_filter,
)
from evalstore.exchange.importers.json_lines import ROLES, json_as_yaml
from evalstore.files.datasets import stable_names
from evalstore.files.jinja_sandbox import is_global, undeclared, uses_of
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
        require(real not in self._open, f"'{path.name}' names itself")
        self._count += 1
        require(self._count <= _MOST_FILES, f"more than {_MOST_FILES:,} files of tests are named")
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
    require(not is_code(name), f"'{name}' is code, which is not run")
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
    require(matches, f"file '{shown}' not found")
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
                require(None not in row, f"'{path.name}': a row has too many cells", line=start)
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


_DUMP_FILTER = re.compile(r"\|\s*dump\b(?:\(\s*\d*\s*\))?")
_NAME = re.compile(r"(?<![\w.'\"])([^\W\d]\w*)((?:\.[^\W\d]\w*(?![\w(]))*)")
"""Matches a name with the path behind it, such as `user.name`, but not the method of a call."""
_STRINGS = re.compile(r"\"(?:[^\"\\]|\\.)*(?:\"|\Z)|'(?:[^'\\]|\\.)*(?:'|\Z)", re.DOTALL)
"""String literals in an expression; an unclosed one extends to its end."""
_ASKED = r"\s*(?:\|\s*(?:default|d)\b|is\s+(?:not\s+)?(?:un)?defined\b)"
"""Matches behind a name when a template asks whether it has a value."""
_ASKED_NAME = re.compile(rf"(?<![\w.])([^\W\d]\w*){_ASKED}")
_IS_ASKED = re.compile(_ASKED)
_TAKEN = frozenset({"item", "sample", "answer", "answers", "response"})
"""Names with another meaning in evalstore."""


def template_names(template: str) -> frozenset[str]:
    """Return the variables of a template; raises `NotTakenError`."""
    try:
        undeclared_names = undeclared(as_template(template, ()), 1)
    except FileProblem as problem:
        raise NotTakenError(f"its template cannot be read: {problem.message}") from problem
    names = frozenset(name for name in undeclared_names if not is_global(name))
    require("env" not in names, "it uses environment variables ('env')")
    return names


def asked_names(template: str) -> frozenset[str]:
    """Return the variables that a template gives a default, or asks for, and never sets."""
    source = as_template(template, ())
    names = {
        match[1]
        for part in find_parts(source)
        for match in _ASKED_NAME.finditer(_STRINGS.sub("''", part.text))
    }
    return frozenset(name for name in names if not uses_of(source, name).assigned)


def shown_paths(template: str) -> frozenset[str]:
    """Return the paths in the expressions of a template, such as `user.name`."""
    parts = [_STRINGS.sub("''", part.text) for part in find_parts(template)]
    matches = (match for part in parts for match in _NAME.finditer(part))
    return frozenset(match[0] for match in matches if match[2] and match[1] != "loop")


def as_template(template: str, columns: Iterable[str], absent: Iterable[str] = ()) -> str:
    """Convert a template to Jinja; `columns` are promptfoo's names of the columns.

    `absent` are variables that some rows do not have: they are empty unless the template asks.
    It also has paths in variables, such as `user.name`.
    """
    renamed, lacking = frozenset(columns), frozenset(absent)

    def part(text: str) -> str:
        if text.startswith("{#"):
            return ""
        if text == "<!--":
            return quoted(text)
        return _rename_columns(_DUMP_FILTER.sub("| tojson", text), renamed, lacking)

    return replace_parts(template, part)


def _rename_columns(part: str, columns: frozenset[str], absent: frozenset[str]) -> str:
    """Rename the columns in an expression, except in string literals."""

    def name(match: re.Match[str]) -> str:
        variable, *steps = match[0].split(".")
        is_plain = stable_names([variable]) == [variable] and variable not in _TAKEN
        is_asked = _IS_ASKED.match(match.string, match.end()) is not None
        value = variable if variable not in columns or is_plain else f"item.{variable}"
        if variable in absent:
            value = f"item.{variable}" if is_asked else f"(item.{variable} | default(''))"
        for number, step in enumerate(steps, 1):
            value = f"{value}.{step}"
            is_inner = number < len(steps)
            if match[0] in absent and (is_inner or not is_asked):
                value = f"({value} | default(" + ("{}" if is_inner else "''") + "))"
        return value

    pieces, at = [], 0
    for text in _STRINGS.finditer(part):
        pieces += [_NAME.sub(name, part[at : text.start()]), text[0]]
        at = text.end()
    return "".join([*pieces, _NAME.sub(name, part[at:])])


def is_template(value: object) -> bool:
    """Return whether a value is a text with template syntax."""
    return isinstance(value, str) and ("{{" in value or "{%" in value)


# --- prompts: texts, files and conversations


_SEPARATOR = re.compile(r"^---[ \t]*$", re.MULTILINE)
_BEFORE_YAML = re.compile(r"\A(?:[ \t]*(?:#.*|---[ \t]*)?\n)+")
"""Matches the lines before the content of a YAML document."""
_IS_YAML_CHAT = re.compile(r"-\s+role\s*:")
_ADDRESS = re.compile(r"https?://|\{\{")
_SO_FAR = re.compile(r"\b_conversation\b")
_FIELDS = {"raw", "id", "path", "label", "display", "function", "config"}
_LOOKS_LIKE_FILE = re.compile(r"[^\s{}]+\.(?:txt|md|j2|json|ya?ml|csv)")


@dataclass(frozen=True, slots=True)
class PromptfooPrompt:
    """One prompt, as messages with Nunjucks templates."""

    label: str
    turns: tuple[tuple[str, str], ...]
    names: frozenset[str]
    """The variables in its templates."""
    images: tuple[str | None, ...] = ()
    """The URL of each message's picture."""


def read_prompts(
    document: Document, folder: Path, file: str, imported: Imported
) -> list[PromptfooPrompt]:
    """Return all valid prompts; the others are reported."""
    prompts: list[PromptfooPrompt] = []
    for line, entry in _entries(document):
        with skipping(imported.left, file, line, "a prompt: "):
            for label, text in list(_texts(entry, folder)):
                subject = f"the prompt '{label}': " if label else "a prompt: "
                with skipping(imported.left, file, line, subject):
                    prompts.append(_prompt(label, text))
    return prompts


def _entries(document: Document) -> Iterator[tuple[int, Any]]:
    """Yield each prompt with its line, from a list or from a mapping of files to labels."""
    value = document.value
    if isinstance(value, list):
        yield from ((document.line(number), entry) for number, entry in enumerate(value))
    elif isinstance(value, dict) and not _FIELDS & value.keys():
        for name, label in value.items():
            yield document.line(name), {"raw": name, "label": label}
    else:
        yield document.line(), value


def _texts(entry: Any, folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the label and text of each prompt of an entry."""
    label = ""
    if isinstance(entry, dict):
        label = str(entry.get("label") or entry.get("display") or "")
        entry = next((entry[name] for name in ("raw", "id", "path") if name in entry), None)
    require(isinstance(entry, str), "it is neither a text nor the name of a file")
    is_name = entry.startswith(PREFIX) or (
        "\n" not in entry and (is_code(entry) or _LOOKS_LIKE_FILE.fullmatch(entry))
    )
    if re.match(r"[a-z]+://", entry) and not entry.startswith(PREFIX):
        raise NotTakenError(f"'{entry}' is stored by another service")
    if not is_name:
        yield label, entry
        return
    for path in find_files(entry, folder):
        name = label or path.stem
        if path.suffix == ".json":
            yield name, read_source_text(path)
        elif path.suffix in (".yaml", ".yml"):
            yield name, _yaml_text(path)
        elif path.suffix == ".csv":
            for _, row in read_data_rows(path):
                yield row.get("label", "").strip() or name, row.get("prompt", "").strip()
        elif path.suffix != ".txt":
            yield name, read_source_text(path)
        else:
            texts = [part.strip() for part in _SEPARATOR.split(read_source_text(path))]
            texts = [part for part in texts if part]
            for number, text in enumerate(texts, 1):
                yield (name if len(texts) == 1 else f"{name}-{number}"), text


def _yaml_text(path: Path) -> str:
    """Return the messages of a YAML file as they are, any other list or mapping as JSON."""
    text = _BEFORE_YAML.sub("", read_source_text(path))
    if _IS_YAML_CHAT.match(text):
        return text
    value = read_value(path)
    return to_json(value) if isinstance(value, list | dict) else text


def _prompt(label: str, text: str) -> PromptfooPrompt:
    parts = [part.text for part in find_parts(text) if not part.text.startswith("{#")]
    if any(map(_SO_FAR.search, parts)):
        raise NotTakenError("it shows the answers to other tests ('_conversation')")
    turns = list(read_turns(text))
    images = tuple(image for _, _, image in turns)
    templates = [template for _, content, image in turns for template in (content, image or "")]
    names = frozenset[str]().union(*map(template_names, templates))
    shown = tuple((role, content) for role, content, _ in turns)
    return PromptfooPrompt(label, shown, names, images)


def read_turns(text: str) -> Iterator[tuple[str, str, str | None]]:
    """Yield the messages of a prompt with their pictures; a text is one user message."""
    messages = _messages(text)
    if messages is None:
        yield "user", text, None
        return
    for message in messages:
        fields = as_mapping(message)
        role, content = fields.get("role"), fields.get("content")
        role = "system" if role == "developer" else role
        image = None
        if isinstance(content, list):
            content, image = _parts(content, role)
        if role not in ROLES or not isinstance(content, str):
            raise NotTakenError("one of its messages is not a text of system, user or assistant")
        yield str(role), content, image
    require(role != "assistant", "its conversation ends with an answer")


def _parts(content: list[Any], role: object) -> tuple[str, str | None]:
    """Return the text and picture of a multi-part message; raises `NotTakenError`."""
    texts, images = [], []
    for part in map(as_mapping, content):
        kind = part.get("type")
        if kind in ("text", "input_text") and isinstance(part.get("text"), str):
            texts.append(part["text"])
        elif kind in ("image_url", "input_image"):
            address = part.get("image_url")
            images.append(address.get("url") if isinstance(address, dict) else address)
        else:
            raise NotTakenError(f"a message has a part of the type '{kind}'")
    if len(images) > 1 or (images and role != "user"):
        raise NotTakenError("a message shows several pictures, or is not the user's")
    image = images[0] if images else None
    if image is not None and not (isinstance(image, str) and _ADDRESS.match(image)):
        raise NotTakenError("a picture has no address ('https://…' or a variable)")
    return "\n\n".join(texts), image


def _messages(text: str) -> list[Any] | None:
    """Parse messages in JSON or YAML; None for a plain text."""
    start = text.lstrip()
    if start.startswith("["):
        return messages_in(text)
    if _IS_YAML_CHAT.match(start):
        try:
            messages = read_yaml(text).value
        except FileProblem as problem:
            raise NotTakenError(f"its YAML cannot be read: {problem.message}") from problem
        return messages if isinstance(messages, list) else None
    return None


# --- conversations in JSON with templates, which may be valid JSON only after rendering


_OF_JSON = r"\\.|\""
_DUMP = re.compile(r"(?:dump|tojson)(?:\(\s*\d*\s*\))?")
_MARK = "\ue000"
_MARKED = re.compile(f"{_MARK}(\\d+){_MARK}")
_IS_CHAT = re.compile(r"[\"']role[\"']\s*:")


def messages_in(text: str) -> list[Any] | None:
    """Return the message list in a text, with templates; None if the text is not a list.

    Raises `NotTakenError` for messages that only exist after rendering.
    """
    templates: list[str] = []
    try:
        messages = parse_json(_mark_templates(text, templates))
    except ValueError:
        if _IS_CHAT.search(text):
            raise NotTakenError("its messages are not JSON before its template is filled") from None
        return None
    if not isinstance(messages, list) or not messages:
        return None
    return [_restore_templates(message, templates) for message in messages]


def _mark_templates(text: str, templates: list[str]) -> str:
    """Replace each template by a mark, so that quotes in templates do not end JSON strings."""
    quoted = False

    def token(part: str) -> str:
        nonlocal quoted
        if part == '"':
            quoted = not quoted
            return part
        if part.startswith("\\"):
            return part
        if not quoted:
            expression = expression_in(part)
            dumped = None if expression is None else without_filter(expression, _DUMP)
            if dumped is None:
                return "" if part.startswith("{#") else part
            part = f"{{{{ {dumped} }}}}"
        templates.append(part)
        mark = f"{_MARK}{len(templates) - 1}{_MARK}"
        return mark if quoted else f'"{mark}"'

    return replace_parts(text, token, _OF_JSON)


def _restore_templates(value: Any, templates: list[str]) -> Any:
    if isinstance(value, str):
        return _MARKED.sub(lambda match: templates[int(match[1])], value)
    if isinstance(value, list):
        return [_restore_templates(item, templates) for item in value]
    if isinstance(value, dict):
        return {name: _restore_templates(inner, templates) for name, inner in value.items()}
    return value
