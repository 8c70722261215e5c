"""Formats stored messages, answers, checks and JSON as text, and parses what is Markdown.

Links are not opened, images are not loaded, HTML and entities stay as they are written.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING

from evalstore.checks.transcript import ShownAnswer, remarks_on
from evalstore.core.display import bytes_text, safe
from evalstore.core.errors import FileProblem
from evalstore.core.values import AnswerRef, Json, Message, Part, SampleRef, Text
from evalstore.files.yaml12 import parse_json, write_yaml

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token as Token


_LARGEST = 200_000
"""The most characters of JSON that are indented."""
_DEEPEST = 40
_HIDDEN = ("type", "revision", "given", "templates", "data", "turns")
"""Fields of a check that are not shown: its author has not written them."""
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s{}\[\],:"]+|[{}\[\],:]')


def text_of(parts: Iterable[Part], sizes: Mapping[str, int] | None = None) -> str:
    """Return the text of a message or of instructions; files and answers are named.

    `sizes` are the bytes of files by id, as far as they are known.
    """
    return "".join(_part(part, sizes or {}) for part in parts)


def _part(part: Part, sizes: Mapping[str, int]) -> str:
    if isinstance(part, Text):
        return part.text
    if isinstance(part, AnswerRef | SampleRef):
        return str(part)
    size = f", {bytes_text(sizes[part.id])}" if part.id in sizes else ""
    return f"[file {part.path}, {part.media_type}{size}]"


def joined(prompt: tuple[Message, ...], test: tuple[Message, ...]) -> tuple[Message, ...]:
    """Return the conversation as sent; the system text of the test follows the system prompt."""
    if not (prompt and test and test[0].role == "system"):
        return prompt + test
    parts = (*prompt[-1].parts, Text("\n\n"), *test[0].parts)
    return (*prompt[:-1], Message("system", parts), *test[1:])


def answer_text(answer: ShownAnswer) -> str:
    """Return an answer as text, with indented JSON and remarks on why it ends."""
    text = [pretty_json(answer.text)] if answer.text and answer.text.strip() else []
    for call in answer.tool_calls:
        given = call.arguments
        is_text = isinstance(given, str)
        shown = given if is_text else pretty_json(json.dumps(given, ensure_ascii=False))
        text.append(f"call {call.name} {shown}")
    return "\n\n".join([*text, *remarks_on(answer)])


def references_of(evaluations: Iterable[Json]) -> Iterator[tuple[str, str]]:
    """Yield the kind and id of each version that the checks of these evaluation versions name."""
    for evaluation in evaluations:
        for check in evaluation.get("checks", ()):
            yield from (("prompt", id) for id in check.get("prompts", ()))
            if isinstance(schema := check.get("schema"), str):
                yield "schema", schema


def check_yaml(check: Json, names: Mapping[str | None, str] | None = None) -> str:
    """Return a check in YAML, as its author may have written it: `type: value` and settings.

    The order of its settings, which is not stored, is that of their description. `names` are
    those of evaluator prompts and schemas by id.
    """
    return write_yaml(_written(check, names), compact=True)


def check_meaning(check: Json) -> str:
    """Return when a check passes: `Passes if the text is in the answer`."""
    from evalstore.checks.descriptions import describe_check
    from evalstore.checks.parser import find_kind

    name = str(check.get("type", ""))
    kind = find_kind(name)
    said = describe_check(name, kind).summary if kind else f"the check {name} passes"
    return f"{'Fails' if check.get('not') else 'Passes'} if {said}"


def _written(check: Json, names: Mapping[str | None, str] | None) -> Json:
    from evalstore.checks.parser import find_kind

    name = str(check.get("type", ""))
    whole = {**check, **check.get("given", {})}
    settings = _in_order(name, {key: whole[key] for key in whole if key not in _HIDDEN})
    if isinstance(inner := settings.get("check"), dict) and "type" in inner:
        settings["check"] = _written(inner, names)
    if ids := check.get("prompts"):
        labels = [*dict.fromkeys((names or {}).get(id, id[:8]) for id in ids)]
        del settings["prompts"]
        settings = {"prompt": labels[0] if len(labels) == 1 else labels, **settings}
    if isinstance(schema := settings.get("schema"), str):
        settings["schema"] = (names or {}).get(schema, schema[:8])
    kind = find_kind(name)
    if name in settings:
        written: Json = {name: settings.pop(name), **settings}
    elif kind and kind.main and kind.main in settings:
        value = settings.pop(kind.main)
        written = {name: value, **settings}
        if isinstance(value, list) and len(value) == 1 and not isinstance(value[0], dict | list):
            short = {name: value[0], **settings}
            written = short if _reads_as(short, check) else written
    else:
        written = {name: settings} if settings else name
    return written


def _in_order(name: str, settings: dict[str, Json]) -> dict[str, Json]:
    """Return the settings of a check in the order of their description, and not of the store."""
    from evalstore.checks.descriptions import common_settings, describe_check
    from evalstore.checks.parser import find_kind

    kind = find_kind(name)
    if kind is None:
        return settings
    described = (*describe_check(name, kind).settings, *common_settings(kind))
    order = {setting.name: number for number, setting in enumerate(described)}
    sorted_settings = dict(
        sorted(settings.items(), key=lambda item: order.get(item[0], len(order)))
    )
    choices, scores = settings.get("choices"), settings.get("scores")
    if isinstance(choices, list) and isinstance(scores, dict):
        names = [choice for choice in choices if choice in scores]
        sorted_settings["scores"] = {choice: scores[choice] for choice in [*names, *scores]}
    return {key: _name_first(value) for key, value in sorted_settings.items()}


def _name_first(value: Json) -> Json:
    """Return expected calls with their names before their arguments."""
    if isinstance(value, list):
        return [_name_first(item) for item in value]
    if isinstance(value, dict) and value.keys() == {"name", "arguments"}:
        return {"name": value["name"], "arguments": value["arguments"]}
    return value


def _reads_as(written: Json, check: Json) -> bool:
    """Return whether a check that is written like this has this canonical form."""
    from evalstore.checks.parser import read_check

    try:
        return bool(read_check(written) == check)
    except FileProblem:
        return False


def pretty_json(text: str) -> str:
    """Return a JSON object or list with a line for each value; any other text as it is.

    Only white space is changed. Texts that are too large or too deep are returned unchanged.
    """
    if len(text) > _LARGEST or text.lstrip()[:1] not in ("{", "["):
        return text
    try:
        parse_json(text)
    except (ValueError, RecursionError):
        return text
    return _indented(_TOKEN.findall(text)) or text


def _indented(tokens: list[str]) -> str:
    """Return the tokens of valid JSON with line breaks; empty when they nest too deep."""
    parts: list[str] = []
    depth = 0
    before = ""
    for token in tokens:
        closes = token in ("}", "]")
        depth -= closes
        if before == "," or closes != (before in ("{", "[")):
            parts.append("\n" + "  " * depth)
        parts.append(": " if token == ":" else token)
        if token in ("{", "["):
            depth += 1
            if depth > _DEEPEST:
                return ""
        before = token
    return "".join(parts)


# --- parses texts of models that are Markdown, for the browser and the HTML report alike


LONGEST = 20_000
"""The most characters of a text that is parsed; a longer text is shown as it is written."""
_MOST_CELLS = 20_000
"""The most cells that a text can have; each short row of a table gets all columns of its head."""
_MARKUP = re.compile(r"(?:^|[\r\n])\s*(?:[#>=+*-]|\d+[.)])|[`|<\[]|\*\*|__|~~")
"""What a text has at least that is Markdown: the beginning of a block, or a sign within a line."""
_BLOCKS = frozenset(
    (
        *("heading_open", "fence", "bullet_list_open", "ordered_list_open"),
        *("table_open", "blockquote_open"),
    )
)
_INLINE = frozenset(("strong_open", "code_inline", "link_open", "image", "s_open"))
"""Tokens that show that a text is Markdown; emphasis alone may be a multiplication."""


def parse_markdown(text: str) -> list[Token] | None:
    """Return the tokens of a text; None if it is not Markdown, or too long to be parsed."""
    if len(text) > LONGEST or not _MARKUP.search(text):
        return None
    written = text.split("\n")
    if len(written) * max(line.count("|") for line in written) > _MOST_CELLS:
        return None
    tokens = _parser().parse(text)
    return tokens if any(map(_is_sign, tokens)) else None


def shows_all(text: str, shown: Iterable[str]) -> bool:
    """Return whether all letters and digits are shown, such as those of cells without a head."""
    counts = Counter(filter(str.isalnum, "".join(shown)))
    written = Counter(filter(str.isalnum, "".join(safe(part) for part in text.split("\n"))))
    return all(counts[letter] >= count for letter, count in written.items())


def link_target(token: Token, name: str) -> str:
    """Return the address of a link or an image with its title."""
    title = token.attrGet("title")
    return f"{token.attrGet(name) or ''}" + (f' "{title}"' if title else "")


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # few need it

    parser = MarkdownIt("commonmark", {"html": False})
    parser.enable(["table", "strikethrough"])
    # They would hide or replace what a model has written.
    parser.disable(["reference", "entity", "html_block", "html_inline"])
    parser.normalizeLink = lambda url: url  # type: ignore[method-assign]
    return parser


def _is_sign(token: Token) -> bool:
    children = token.children or ()
    return token.type in _BLOCKS or any(child.type in _INLINE for child in children)
