"""The searchable texts of the store: their words, their sessions, and what an index finds."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple, TypeVar

from evalstore.core.values import Json
from evalstore.store.contents import decode_row
from evalstore.store.store import Store

T = TypeVar("T")
Kind = Literal["answers", "feedback", "tests", "instructions"]
KINDS: tuple[Kind, ...] = ("tests", "instructions", "answers", "feedback")
"""Referenced kinds come first: then new ids are inserted in order, which is quick."""
TABLES = dict(zip(KINDS, ("tests", "evaluation_versions", "sessions", "evaluations"), strict=True))
"""The table of the store with the texts of each kind."""


_FIELDS = {"feedback": "feedback", "instructions": "instructions"}
"""The fields with the texts of kinds that are often without one."""


class StoredText(NamedTuple):
    """A row with a text, as it is stored."""

    number: int
    """Rows that are stored later have a higher one, or the same."""
    id: bytes
    content: str
    may_link: bool
    """Whether the instructions of a judgement may have a text; they may be stored later."""

    def is_of_use(self, kind: Kind) -> bool:
        """Return whether it may have a text, or link one to a session; it is not decoded for it."""
        field = _FIELDS.get(kind)
        # Inside a string, quotes are escaped.
        return field is None or self.may_link or f'"{field}":' in self.content


def stored_texts(kind: Kind, number: str) -> str:
    """Return the columns of `StoredText` and the table, for a query that calls the rows `stored`.

    `number` is the column that numbers the rows.
    """
    columns, source = f"stored.{number}, stored.id, stored.content", f"{TABLES[kind]} AS stored"
    if kind != "feedback":
        return f"{columns}, {'false' if kind in _FIELDS else 'true'} FROM {source}"
    return (
        f"{columns}, version.content IS NULL OR version.content LIKE "
        f"""'%"{_FIELDS["instructions"]}":%' FROM {source} """
        f"LEFT JOIN {TABLES['instructions']} AS version ON version.id = stored.evaluation"
    )


def load_searched(store: Store, kind: Kind, ids: Sequence[str]) -> dict[str, Json]:
    """Return the contents of those of these documents that the store has."""
    query = f"SELECT id, content FROM {TABLES[kind]} WHERE id IN"
    return dict(decode_row(TABLES[kind], *row) for row in store._select_each(query, ids))


def load_texts(store: Store, kind: Kind, ids: Sequence[str]) -> dict[str, str]:
    """Return the texts of those of these documents that the store has."""
    return {
        id: searchable_text(kind, content)
        for id, content in load_searched(store, kind, ids).items()
    }


def readable_text(kind: Kind, content: Json) -> str:
    """Return the text of a content to be read: as it is searched, with its files by their names."""
    if kind == "tests":
        content = {"messages": [_name_files(message) for message in content.get("messages", ())]}
    return searchable_text(kind, content)


def _name_files(message: Json) -> Json:
    parts = message.get("content", ())
    if isinstance(parts, str):
        return message
    named = "{{{{_file:{path}}}}}"
    return {
        "content": [{"text": named.format(path=it["path"])} if "path" in it else it for it in parts]
    }


def searchable_text(kind: Kind, content: Json) -> str:
    """Return the searchable text of a content."""
    if kind == "answers":
        return "\n\n".join(part for turn in content["turns"] for part in _texts_of_turn(turn))
    if kind == "feedback":
        return str(content.get("feedback", ""))
    if kind == "instructions":
        return _text_of_parts(content.get("instructions", ()))
    messages = content.get("messages", ())
    return "\n\n".join(_text_of_parts(message.get("content", ())) for message in messages)


def _texts_of_turn(turn: Json) -> Iterator[str]:
    for name in ("text", "refusal"):
        if turn.get(name):
            yield str(turn[name])
    for call in turn.get("toolCalls", ()):
        yield f"{call['name']} {json.dumps(call['arguments'], ensure_ascii=False)}"


def _text_of_parts(parts: Json) -> str:
    if isinstance(parts, str):
        return parts
    return "".join(str(part.get("text", " ")) for part in parts)


def list_named(kind: Kind, content: Json) -> list[str]:
    """Return the ids that a document refers to: its test, or its instructions and sessions."""
    if kind == "answers":
        return [str(content["test"])]
    if kind == "feedback":
        return [str(content["evaluation"]), *map(str, content["sessions"])]
    return []


def iterate_links(kind: Kind, id: str, about: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield pairs of documents and sessions."""
    if kind == "answers":
        yield id, id
        yield about[0], id
    elif kind == "feedback":
        for session in about[1:]:
            yield id, session
            yield about[0], session


_APART_RANGES = (
    "\u00a9\u00ae\u00b0\u2100-\u2bff"  # symbols
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"  # East Asian
    "\U0001f000-\U0001faff"  # emoji
)
_APART = re.compile(f"([{_APART_RANGES}])")
"""Characters that are words by themselves."""
_BEGIN = rf"(?:(?<![^\W_])|(?<=[{_APART_RANGES}]))"
_END = rf"(?:(?![^\W_])|(?=[{_APART_RANGES}]))"
"""Where a word of letters begins and ends."""


def split_words(text: str) -> tuple[str, ...]:
    """Return the words of a query; text in quotation marks is one word."""
    words = (word.strip('"') for word in re.findall(r'"[^"]*"?|[^\s"]+', text))
    return tuple(word for word in words if word.strip())


def has_words(words: Sequence[str]) -> bool:
    """Return whether any of them has a letter, a digit or a symbol."""
    return any(map(_is_of_word, "".join(words)))


def fold_words(text: str) -> str:
    """Return a text as it is indexed: case-folded, with blanks around single-character words."""
    if text.isascii():
        return text.replace("\0", " ")
    text = text.casefold().replace("\0", " ")
    return _APART.sub(r" \1 ", text).encode("utf-8", "replace").decode()


def make_phrases(words: Sequence[str]) -> Iterator[str]:
    """Yield each word as a phrase of FTS5, in quotation marks, where no character is special.

    The last one may be the beginning of a word.
    """
    real = [word for word in words if any(map(_is_of_word, word))]
    for number, word in enumerate(real, 1):
        phrase = " ".join(fold_words(word).replace('"', " ").split())
        yield f'"{phrase}"' + "*" * (number == len(real) and _is_of_word(phrase[-1]))


def _is_of_word(character: str) -> bool:
    kind = unicodedata.category(character)
    return kind[0] in "LMN" or kind in ("Co", "So")


def find_word_places(text: str, words: Sequence[str]) -> list[tuple[int, int]]:
    """Return the places of words in a text: sorted starts and ends, without overlaps."""
    folded, origins = _folded(text)
    spans: list[tuple[int, int]] = []
    for pattern in _patterns_of(tuple(words)):
        for match in pattern.finditer(folded):
            if match.end() > match.start():
                spans.append((origins[match.start()], origins[match.end() - 1] + 1))
    kept: list[tuple[int, int]] = []
    for begin, stop in sorted(spans, key=lambda span: (span[0], -span[1])):
        if not kept or begin >= kept[-1][1]:
            kept.append((begin, stop))
    return kept


@lru_cache(maxsize=8)
def _patterns_of(words: Sequence[str]) -> list[re.Pattern[str]]:
    """Return the patterns that find words in folded texts."""
    real = [word for word in words if any(map(_is_of_word, word))]
    patterns: list[re.Pattern[str]] = []
    for number, word in enumerate(real, 1):
        parts = re.findall(r"\w+|[^\w\s]", _APART.sub(r" \1 ", _folded(word)[0]))
        parts = [re.escape(part) for part in parts if any(map(_is_of_word, part))]
        if not parts:
            continue
        alone = not _APART.match(word)
        start = _BEGIN if alone else ""
        end = "" if number == len(real) or _APART.match(word[-1]) else _END
        patterns.append(re.compile(start + r"[\W_]*".join(parts) + end))
    return patterns


def _folded(text: str) -> tuple[str, Sequence[int]]:
    """Return the text without case and accents, and the original places of its characters."""
    if text.isascii():
        return text.lower(), range(len(text))
    made: list[str] = []
    origins: list[int] = []
    for number, character in enumerate(text):
        plain = (
            unicodedata.normalize("NFD", character)
            if character.isalpha() and character < "\u0590"
            else character
        )
        for part in plain.casefold():
            if not "\u0300" <= part <= "\u036f":
                made.append(part)
                origins.append(number)
    return "".join(made), origins
