"""The searchable texts of the store: their words, their sessions, and what an index finds."""

from __future__ import annotations

import json
import re
import unicodedata
from abc import ABC, abstractmethod
from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeVar

from evalstore.core.values import Json
from evalstore.files.temporary_list import keep_values
from evalstore.store.contents import as_digits, as_id, decode_row
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

    id: bytes
    content: str
    place: int | None
    """Of a judgement: where its instructions are in their content; 0 if they have no text."""

    def is_of_use(self, kind: Kind) -> bool:
        """Return whether it may have a text, or link one to a session; it is not decoded for it.

        Instructions that are missing may be stored later.
        """
        field = _FIELDS.get(kind)
        # Inside a string, quotes are escaped.
        return field is None or self.place != 0 or f'"{field}":' in self.content


def stored_texts(kind: Kind, position: str) -> str:
    """Return the columns of `StoredText` and the table, for a query that calls the rows `stored`.

    `position` is the function of the database that finds a text in another one.
    """
    columns, source = "stored.id, stored.content", f"{TABLES[kind]} AS stored"
    if kind != "feedback":
        return f"{columns}, 0 FROM {source}"
    found = f"""{position}(version.content, '"{_FIELDS["instructions"]}":')"""
    return (
        f"{columns}, {found} FROM {source} "
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
    """Yield each word as a phrase of FTS5, in quotation marks, where no character is special."""
    for text, is_prefix in _each_phrase(words):
        yield f'"{text}"' + "*" * is_prefix


class Phrase(NamedTuple):
    """Words that stand side by side."""

    words: Sequence[str]
    """Empty when there are only accents: nothing matches."""
    is_prefix: bool
    """Whether the last word may be the beginning of one."""


def list_phrases(words: Sequence[str]) -> list[Phrase]:
    """Return the same phrases as `make_phrases`, in words as `list_words` returns them."""
    return [Phrase(list_words(text), is_prefix) for text, is_prefix in _each_phrase(words)]


def _each_phrase(words: Sequence[str]) -> Iterator[tuple[str, bool]]:
    real = [word for word in words if any(map(_is_of_word, word))]
    for number, word in enumerate(real, 1):
        phrase = " ".join(fold_words(word).replace('"', " ").split())
        yield phrase, number == len(real) and _is_of_word(phrase[-1])


class _Folding(dict[int, str]):
    """Characters as they are in the words of a database that does not split texts itself.

    They are the words of `unicode61` in FTS5: without the accents of Latin letters, and without
    marks for accents.
    """

    def __missing__(self, code: int) -> str:
        folded = _fold(chr(code))
        if code < _KEPT:
            self[code] = folded
        return folded


_FOLDING = _Folding()
_KEPT = 0x10000
"""Characters below are kept, once they are folded."""


def _fold(character: str) -> str:
    if "\u0300" <= character <= "\u036f":
        return ""
    if not (_is_of_word(character) or "\U0001f3fb" <= character <= "\U0001f3ff"):
        return " "
    base = unicodedata.normalize("NFD", character)[0]
    return base.lower() if base.isascii() else character


def list_words(text: str) -> list[str]:
    """Return the words of a text in their order, as a database can compare them."""
    return fold_words(text).translate(_FOLDING).split()


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


Report = Callable[[int, int], bool]
"""Called with the number of added texts and of all texts; returns whether to continue."""
GoOn = Callable[[], bool]
"""Returns whether somebody still waits for what is searched."""
Query = tuple[str, Sequence[Any]]
"""A query with its parameters."""


_HALF = 8
"""The bytes of half an id."""
_MASK = (1 << 64) - 1


class FoundIds(Set[str]):
    """The ids that a query has returned in their order. It never changes."""

    def __init__(self, ids: Iterable[bytes] = ()) -> None:
        """`ids` are in ascending order, as the database stores them."""
        self._first, self._second = array("Q"), array("Q")
        """The halves of each id as whole numbers."""
        for id in ids:
            whole = as_id(id)
            self._first.append(int.from_bytes(whole[:_HALF], "big"))
            self._second.append(int.from_bytes(whole[_HALF:], "big"))

    def __len__(self) -> int:
        return len(self._first)

    def __iter__(self) -> Iterator[str]:
        return (f"{a:016x}{b:016x}" for a, b in zip(self._first, self._second, strict=True))

    def __contains__(self, id: object) -> bool:
        try:
            return isinstance(id, str) and self._has(int(id, 16))
        except ValueError:
            return False

    def isdisjoint(self, ids: Iterable[object]) -> bool:
        """Return whether none of these is in the set; it is asked for many cases."""
        return not any(id in self for id in ids)

    def _has(self, number: int) -> bool:
        first, second = number >> 64, number & _MASK
        place = bisect_left(self._first, first)
        while place < len(self._first) and self._first[place] == first:
            if self._second[place] == second:
                return True
            place += 1
        return False

    def __hash__(self) -> int:
        return self._hash()


class SearchIndex(ABC):
    """An index of the texts of a store.

    A text has the words of a query if it has each of them; the last one may be the beginning of a
    word. Nothing has them when none is a word.
    """

    in_memory = False
    """Whether the index is in memory alone and ends with this object."""
    missing = 0
    """How many texts the last update left out, because this user may not add them."""

    @abstractmethod
    def close(self) -> None:
        """Close it; the store is closed by itself."""

    @abstractmethod
    def update(self, store: Store, report: Report = lambda _done, _all: True) -> bool:
        """Add the texts of the store that are not in the index; False when `report` ended it."""

    @abstractmethod
    def _ask(self, query: Query, read: Callable[[Iterable[Any]], T], go_on: GoOn) -> T | None:
        """Return what is read from the rows of a query; None when `go_on` returned False."""

    @abstractmethod
    def _with_words(self, words: Sequence[str]) -> Query:
        """Return the query for the `kind`, `id` and `number` of the texts with all words."""

    @abstractmethod
    def _sessions_with(self, words: Sequence[str], *, in_answers: bool) -> Query:
        """Return the query for the sorted ids that `find_sessions` returns."""

    @abstractmethod
    def _find_links(self, documents: Sequence[str]) -> Iterable[tuple[bytes, bytes]]:
        """Return pairs of these texts and the sessions that they belong to."""

    def find_sessions(
        self,
        words: Sequence[str],
        go_on: GoOn = lambda: True,
        /,
        *,
        in_answers: bool = False,
    ) -> Set[str] | None:
        """Return the sessions whose answer, feedback, test and instructions have all words.

        With `in_answers` the answer alone must. None when `go_on` returned False.
        """
        if not has_words(words):
            return FoundIds()
        query = self._sessions_with(words, in_answers=in_answers)
        return self._ask(query, lambda rows: FoundIds(id for (id,) in rows), go_on)

    def find_newest(
        self, words: Sequence[str], kinds: Sequence[Kind], limit: int, go_on: GoOn = lambda: True, /
    ) -> tuple[list[tuple[Kind, str]], int] | None:
        """Return at most so many of the texts of these kinds with all words, and the count of all.

        Answers come before feedback, tests and instructions, and of each kind those that the index
        got to know last. None when `go_on` returned False.
        """
        if not has_words(words):
            return [], 0
        source, parameters = self._of_kinds("kind, id", words, kinds)
        query = f"{source} ORDER BY (kind + 2) % 4, number DESC LIMIT ?", (*parameters, limit)
        rows = self._ask(query, list, go_on)
        count = [(len(rows),)] if rows is not None else None
        if rows and len(rows) == limit:
            count = self._ask(self._of_kinds("count(*)", words, kinds), list, go_on)
        if rows is None or count is None:
            return None
        return [(KINDS[kind], as_digits(id)) for kind, id in rows], count[0][0]

    def find_documents(
        self, words: Sequence[str], kinds: Sequence[Kind]
    ) -> Sequence[tuple[Kind, str]]:
        """Return the texts of these kinds with all words, as kind and id.

        They are in the order in which the index got to know them; many are in a temporary file.
        """

        def read(rows: Iterable[Any]) -> Sequence[tuple[Kind, str]]:
            return keep_values(((KINDS[kind], as_digits(id)) for kind, id in rows), tuple, tuple)

        if not has_words(words):
            return ()
        source, parameters = self._of_kinds("kind, id", words, kinds)
        return self._ask((f"{source} ORDER BY number", parameters), read, lambda: True) or ()

    def _of_kinds(self, columns: str, words: Sequence[str], kinds: Sequence[Kind]) -> Query:
        source, parameters = self._with_words(words)
        numbers = ", ".join(str(KINDS.index(kind)) for kind in kinds)
        return f"SELECT {columns} FROM ({source}) AS found WHERE kind IN ({numbers})", parameters

    def sessions_of(self, documents: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        """Return the sessions that each of these texts belongs to, sorted."""
        links: dict[str, list[str]] = defaultdict(list)
        for document, session in self._find_links(documents):
            links[as_digits(document)].append(as_digits(session))
        return {document: tuple(sorted(sessions)) for document, sessions in links.items()}
