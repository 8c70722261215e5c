"""Cases in an order, filtered: quick enough to be done at every key for very many cases.

What many cases have in common is looked at once: their file, their tags, and the
combination of verdicts on the candidates. Orders are made once. Rows are named by their numbers.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING

from evalstore.display import safe, widest
from evalstore.operations.views.verdict_order import SIGNS
from evalstore.tui.state.case_query import FIELDS, matches_any
from evalstore.tui.state.prompt_filter import PromptFilter
from evalstore.tui.widgets.column_names import ShortenedNames
from evalstore.values import URGENCY, VERDICTS

if TYPE_CHECKING:
    from evalstore.operations.views.cases import CaseRow, Cases
    from evalstore.tui.state.case_query import Query, QueryField

ORDERS = ("file", "verdict", "row")
Words = tuple[str, ...]
SearchMatches = Mapping[Words, frozenset[str]]
"""Sessions in whose texts all of these words are."""
Search = Callable[[Words], frozenset[str] | None]
"""Finds them; None: the search was cancelled."""
_Verdicts = tuple[str | None, ...]
"""The verdict on each candidate; None: it was not asked."""
_VERDICTS = [word for word in SIGNS if word in URGENCY]
_CACHED_WORDS = 4
"""Words for which the names that lack them are cached: what was typed before is still there."""
_FEW = 4
"""A candidate that has less than one in so many cases has few of them."""
_SUGGESTED = 8
"""Tags, candidates or files that are listed when a filter names one that there is not."""
_KINDS = {"model": "candidate", "prompt": "system prompt"}
"""What fields are about, if they are not called so."""
_LIKE_A_FIELD = re.compile(r"[a-z]+:(?!//)")


class FilteredCases:
    """The cases of a run with what filters need of them. May be made in any thread."""

    def __init__(self, cases: Cases) -> None:
        self._rows = cases.rows
        self._models = cases.models
        self._folded_models = tuple(safe(model).casefold() for model in cases.models)
        self._files = list(dict.fromkeys(row.file for row in cases.rows))
        self._tags = list(dict.fromkeys(row.tags for row in cases.rows))
        self._prompts = PromptFilter(cases)
        numbers: dict[_Verdicts, int] = {}
        self._kind_of_row = array(
            "I", (numbers.setdefault(_verdicts_of(row), len(numbers)) for row in cases.rows)
        )
        """For each row the number of its kind: of its combination of verdicts."""
        self._kinds = list(numbers)
        self._all_kinds = Counter(self._kind_of_row)
        """How many rows are of each kind."""
        self.sparse_models = _sparse_models(cases, self._kinds, self._all_kinds)
        """The candidates that have only few of the cases, such as that of recorded answers."""
        self._orders: dict[str, Sequence[int]] = {"file": range(len(cases.rows))}
        self.file_width = widest(self._files)
        self.row_width = widest([row_label(row) if row.prompt else row.row for row in cases.rows])
        self.unnamed_files = frozenset(row.file for row in cases.rows if not row.row)
        """The files whose only row has no name."""
        self.stem_width = widest(map(stem, self.unnamed_files))
        """How wide the names of files are that stand in place of a row without a name."""
        self.file_sizes = Counter(row.file for row in cases.rows)
        """The number of rows of each file."""
        self.file_names = ShortenedNames(lambda _: self._files)
        self.row_names = ShortenedNames(partial(_labels, cases.rows))
        self._places: list[str] | None = None
        self._lacking_cache: dict[str, bytes] = {}
        self._all = b"\1" * len(cases.rows)
        self._looked_up: dict[int, tuple[frozenset[str], bytes]] = {}
        """By the address of a set of sessions: the set, and which rows have one of them."""

    def rows(self, numbers: Iterable[int]) -> list[CaseRow]:
        """Return the rows with these numbers."""
        return list(map(self._rows.__getitem__, numbers))

    # --- which rows

    def select(self, query: Query, order: str, matches: SearchMatches) -> Sequence[int]:
        """Select the rows that match, in order."""
        numbers = self._ordered(order)
        named = [each for each in query.fields if each.name == "model" and not each.is_negated]
        for field in query.fields:
            numbers = self._with_field(numbers, field, named)
        if query.words:
            numbers = self._with_words(numbers, query.words, matches)
        for word in query.without:
            numbers = self._without(numbers, word, matches)
        return numbers

    def count(self, numbers: Sequence[int], query: Query | None = None) -> dict[str, int]:
        """Count the results of these rows by verdict, of the filter's candidates."""
        named = [field for field in query.fields if field.name == "model"] if query else []
        meant = [
            all(matches_any(model, field.values) != field.is_negated for field in named)
            for model in self._folded_models
        ]
        kinds = (
            Counter(map(self._kind_of_row.__getitem__, numbers))
            if len(numbers) < len(self._rows)
            else self._all_kinds
        )
        counts = dict.fromkeys(_VERDICTS, 0)
        for kind, count in kinds.items():
            for word in compress(self._kinds[kind], meant):
                if word is not None:
                    counts[word] += count
        return {word: count for word, count in counts.items() if count}

    def shared(self, model: str) -> dict[str, int]:
        """Count the cases in which each other candidate was judged, too."""
        mine = self._models.index(model)
        shared = dict.fromkeys((other for other in self._models if other != model), 0)
        for kind, count in self._all_kinds.items():
            words = self._kinds[kind]
            for other, word in zip(self._models, words, strict=True):
                if other != model and word in VERDICTS and words[mine] in VERDICTS:
                    shared[other] += count
        return shared

    def _ordered(self, order: str) -> Sequence[int]:
        if order not in self._orders:
            keys: list[int] | list[str]
            if order == "verdict":
                worst = [_worst(words) for words in self._kinds]
                keys = [worst[number] for number in self._kind_of_row]
            else:
                keys = self._folded()
            self._orders[order] = array("I", sorted(range(len(keys)), key=keys.__getitem__))
        return self._orders[order]

    # --- fields

    def _with_field(
        self, numbers: Sequence[int], field: QueryField, named: Sequence[QueryField]
    ) -> Sequence[int]:
        rows, values, negated = self._rows, field.values, field.is_negated
        if field.name == "file":
            files = {
                file
                for file in self._files
                if matches_any(safe(file).casefold(), values) != negated
            }
            return [number for number in numbers if rows[number].file in files]
        if field.name == "tag":
            tags = {
                names
                for names in self._tags
                if any(matches_any(safe(tag).casefold(), values) for tag in names) != negated
            }
            return [number for number in numbers if rows[number].tags in tags]
        if field.name == "prompt":
            return self._prompts.select(numbers, values, negated=negated)
        among = [field] if field.name == "model" else named
        words = ("",) if field.name == "model" else values
        kinds = [self._has_verdict(kind, words, among) != negated for kind in self._kinds]
        kind_of_row = self._kind_of_row
        return [number for number in numbers if kinds[kind_of_row[number]]]

    def _has_verdict(self, kind: _Verdicts, words: Words, among: Sequence[QueryField]) -> bool:
        """Return whether one of the candidates in the filter has a verdict that begins so."""
        return any(
            word is not None
            and word.startswith(words)
            and all(matches_any(model, field.values) for field in among)
            for model, word in zip(self._folded_models, kind, strict=True)
        )

    # --- words

    def look_up(self, query: Query, search: Search) -> SearchMatches:
        """Search the words that are not in names, those that a name lacks together."""
        lacking = set(self._lacking(query.words)) - {0}
        lookups = {_words_of(query.words, marks) for marks in lacking}
        matches: dict[Words, frozenset[str]] = {}
        self._looked_up = {}
        for words in sorted({*lookups, *((word,) for word in query.without)}):
            sessions = search(words)
            if sessions is None:
                break
            matches[words] = sessions
            self._rows_of(sessions)  # ahead of time, for it takes a while
        return matches

    def _with_words(
        self, numbers: Sequence[int], words: Words, matches: SearchMatches
    ) -> Sequence[int]:
        if not any(matches.values()):
            for word in words:
                missing = self._lacks(word)
                numbers = [number for number in numbers if not missing[number]]
            return numbers
        lacking = self._lacking(words)
        within: dict[int, Sequence[int]] = {0: self._all}
        for marks in set(lacking) - within.keys():
            within[marks] = self._rows_of(_sessions(matches, _words_of(words, marks)))
        return [number for number in numbers if within[lacking[number]][number]]

    def _without(self, numbers: Sequence[int], word: str, matches: SearchMatches) -> list[int]:
        lacks, has = self._lacks(word), self._rows_of(matches.get((word,), frozenset()))
        return [number for number in numbers if lacks[number] and not has[number]]

    def _rows_of(self, sessions: frozenset[str]) -> Sequence[int]:
        """Return for each row whether one of these sessions belongs to it."""
        known = self._looked_up.get(id(sessions))
        if known is None:
            rows = bytes(len(self._rows)) if not sessions else _rows_with(self._rows, sessions)
            known = self._looked_up[id(sessions)] = sessions, rows
        return known[1]

    def _lacking(self, words: Words) -> Sequence[int]:
        """Return for each row which of the words its name lacks: a bit for each."""
        marks: Sequence[int] = bytes(len(self._rows))
        for place, word in enumerate(words):
            lacks = self._lacks(word)
            marks = [bits | bit << place for bits, bit in zip(marks, lacks, strict=True)]
        return marks

    def _lacks(self, word: str) -> bytes:
        """Return for each row whether its name lacks a word; cached for the last words."""
        known = self._lacking_cache
        if word not in known:  # another thread may look at the same time: none is changed
            kept = dict(list(known.items())[1 - _CACHED_WORDS :])
            self._lacking_cache = known = {**kept, word: self._find_lacking(word)}
        return known[word]

    def _find_lacking(self, word: str) -> bytes:
        places, sought = self._folded(), _fold(word)
        files = {file for file in self._files if word in file.casefold()}
        if not files:
            return bytes([sought not in place for place in places])
        named = zip(self._rows, places, strict=True)
        return bytes([row.file not in files and sought not in place for row, place in named])

    def _folded(self) -> list[str]:
        """Return the row and the prompt of each case; a text that is needed twice is there once."""
        if self._places is None:
            texts = (f"{row.row} {row.prompt}" if row.prompt else row.row for row in self._rows)
            self._places = [folded if (folded := _fold(text)) != text else text for text in texts]
        return self._places

    # --- what cannot match

    def complaints(self, query: Query) -> Iterator[tuple[str, str]]:
        """Yield the values of a filter that match nothing, and those that there are."""
        for name, values, _ in query.fields:
            for value in values:
                if name == "verdict":
                    if not any(word.startswith(value) for word in _VERDICTS):
                        yield f"no verdict is called '{value}'", ", ".join(_VERDICTS)
                    continue
                names = self._names(name)
                is_known = (
                    self._prompts.is_known(value)
                    if name == "prompt"
                    else any(matches_any(safe(it).casefold(), (value,)) for it in names)
                )
                if not is_known:
                    listed = [*names[:_SUGGESTED], *["…"] * (len(names) > _SUGGESTED)]
                    is_whole = value.startswith("=") and len(value) > 1
                    relation = f"is called '{value[1:]}'" if is_whole else f"has '{value}' in it"
                    yield (
                        f"no {_KINDS.get(name, name)} {relation}",
                        ", ".join(listed) or "there are none",
                    )

    def why_empty(self, query: Query, *, is_searching: bool) -> str:
        """Explain why no case matches."""
        if query.is_empty:
            return "There are no cases here.\n'evalstore check' reads the test files."
        wrong = list(self.complaints(query))
        wrong += () if is_searching else _unknown_fields(query)
        if wrong:
            return "\n".join(f"{complaint}: {there}" for complaint, there in wrong)
        if is_searching:
            return "No case is called so; answers, feedback and tests are searched …"
        return "No case matches the filter.\nEscape removes the filter."

    def _names(self, name: str) -> Sequence[str]:
        if name == "tag":
            return sorted({tag for tags in self._tags for tag in tags})
        if name == "prompt":
            return self._prompts.names
        return self._models if name == "model" else self._files


def _words_of(words: Words, marks: int) -> Words:
    """Return the words whose bits are set."""
    return tuple(word for place, word in enumerate(words) if marks >> place & 1)


def _fold(text: str) -> str:
    """Fold a text to compare names. With plain dots a name that was cut takes half the memory."""
    return text.casefold().replace("…", "...")


def stem(file: str) -> str:
    """Return the name of a file without its folders."""
    return file.rpartition("/")[2]


def row_label(case: CaseRow) -> str:
    """Return the row, with the system prompt where the file has several."""
    return f"{case.row} ({case.prompt})".lstrip() if case.prompt else case.row


def _labels(rows: Sequence[CaseRow], file: str) -> list[str]:
    return [label for row in rows if row.file == file and (label := row_label(row))]


def _unknown_fields(query: Query) -> Iterator[tuple[str, str]]:
    """Yield words that look like unknown fields, with the known fields."""
    for word in query.words:
        matched = _LIKE_A_FIELD.match(word)
        if matched:
            yield f"there is no '{matched[0]}'", ", ".join(f"{name}:" for name in FIELDS)


def _verdicts_of(case: CaseRow) -> _Verdicts:
    # A list, and the verdict first: there are very many of them.
    return tuple(
        [
            None if result is None else result.verdict or result.word or "answered"
            for result in case.results
        ]
    )


def _worst(words: _Verdicts) -> int:
    return min((URGENCY.index(word) for word in words if word is not None), default=9)


def _rows_with(rows: Sequence[CaseRow], sessions: frozenset[str]) -> bytes:
    return bytes(
        any(
            not sessions.isdisjoint(result.sessions) for result in row.results if result is not None
        )
        for row in rows
    )


def _sessions(matches: SearchMatches, words: Words) -> frozenset[str]:
    """Return the sessions with these words; until then, those with the words typed before."""
    if words in matches:
        return matches[words]
    text = " ".join(words)
    before = [typed for typed in matches if text.startswith(" ".join(typed))]
    return matches[max(before, key=lambda typed: len(" ".join(typed)))] if before else frozenset()


def _sparse_models(
    cases: Cases, kinds: Sequence[_Verdicts], counts: Mapping[int, int]
) -> frozenset[str]:
    """Return the candidates with results in few of the rows; `counts` is by kind of row."""
    result_counts = Counter[int]()
    for kind, count in counts.items():
        for number, word in enumerate(kinds[kind]):
            result_counts[number] += count * (word is not None)
    few = len(cases.rows) / _FEW
    return frozenset(
        model for number, model in enumerate(cases.models) if result_counts[number] < few
    )
