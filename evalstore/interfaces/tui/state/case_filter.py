"""Cases in an order, filtered: quick enough to be done at every key for many cases.

What many cases have in common is looked at once: their file, their tags, and the
combination of verdicts on the candidates. Orders are made once. Rows are named by their numbers.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, TypeVar

from evalstore.core.display import safe, widest
from evalstore.core.values import URGENCY, VERDICTS
from evalstore.interfaces.tui.state.case_query import BROKE, FIELDS, matches_any
from evalstore.interfaces.tui.state.text_matches import TextMatches
from evalstore.interfaces.tui.widgets.column_names import ShortenedNames
from evalstore.results.result_version import is_broken
from evalstore.results.verdict_order import SIGNS

if TYPE_CHECKING:
    from evalstore.core.results import Result
    from evalstore.interfaces.tui.state.case_query import Query, QueryField
    from evalstore.interfaces.tui.state.text_matches import LookedUp, Words
    from evalstore.results.table.case_rows import CaseRow
    from evalstore.results.table.cases import Cases


ORDERS = ("file", "verdict", "row")
_Verdicts = tuple[str | None, ...]
"""The verdict on each candidate; None: it was not asked."""
NO_MATCH = "No case matches the filter."
_VERDICTS = [word for word in SIGNS if word in URGENCY]
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
            "I", (numbers.setdefault(row.words, len(numbers)) for row in cases.rows)
        )
        """For each row the number of its kind: of its combination of verdicts."""
        self._kinds = list(numbers)
        self._all_kinds = Counter(self._kind_of_row)
        """How many rows are of each kind."""
        self.words = _words_of_candidates(cases, self._kinds)
        """The verdicts that occur, for each candidate."""
        self._orders: dict[str, Sequence[int]] = {"file": range(len(cases.rows))}
        self.names = CaseNames(cases.rows, self._files)
        self._texts = TextMatches(cases.rows, self._files)
        self._labels = cases.labels
        self.look_up = self._texts.look_up

    def rows(self, numbers: Iterable[int]) -> list[CaseRow]:
        """Return the rows with these numbers."""
        return list(map(self._rows.__getitem__, numbers))

    # --- which rows

    def select(self, query: Query, order: str, matches: LookedUp) -> Sequence[int]:
        """Select the rows that match, in order."""
        numbers = self._ordered(order)
        named = [each for each in query.fields if each.name == "model" and not each.is_negated]
        for field in query.fields:
            numbers = self._with_field(numbers, field, named, matches)
        if query.words:
            numbers = self._texts.with_words(numbers, query.words, matches)
        for word in query.without:
            numbers = self._texts.without(numbers, word, matches)
        return numbers

    def count(self, numbers: Sequence[int], query: Query | None = None) -> dict[str, int]:
        """Count the results of these rows by verdict, of the filter's candidates."""
        meant = self.candidates(query)
        kinds = (
            Counter(map(self._kind_of_row.__getitem__, numbers))
            if len(numbers) < len(self._rows)
            else self._all_kinds
        )
        counts = dict.fromkeys(_VERDICTS, 0)
        for kind, count in kinds.items():
            for number in meant:
                word = self._kinds[kind][number]
                if word is not None:
                    counts[word] += count
        return {word: count for word, count in counts.items() if count}

    def answered(self, numbers: Sequence[int]) -> frozenset[int] | None:
        """Return the candidates with results in these rows, by number; None: in all, or in none."""
        if len(numbers) in (0, len(self._rows)):
            return None
        kinds = set(map(self._kind_of_row.__getitem__, numbers))
        return frozenset(
            number
            for kind in kinds
            for number, word in enumerate(self._kinds[kind])
            if word is not None
        )

    def candidates(self, query: Query | None = None) -> Sequence[int]:
        """Return the numbers of the filter's candidates; of all without one."""
        named = [field for field in query.fields if field.name == "model"] if query else []
        return [
            number
            for number, model in enumerate(self._folded_models)
            if all(matches_any(model, field.values) != field.is_negated for field in named)
        ]

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
                keys = self._texts.folded
            self._orders[order] = array("I", sorted(range(len(keys)), key=keys.__getitem__))
        return self._orders[order]

    # --- fields

    def _with_field(
        self,
        numbers: Sequence[int],
        field: QueryField,
        named: Sequence[QueryField],
        found: LookedUp,
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
        if field.name == "answer":
            return self._texts.with_answer(numbers, values, found, negated=negated)
        among = [field] if field.name == "model" else named
        words = ("",) if field.name == "model" else tuple(it for it in values if it != BROKE)
        kinds = [self._has_verdict(kind, words, among) for kind in self._kinds]
        kind_of_row = self._kind_of_row
        if field.name == "model" or BROKE not in values:
            return [number for number in numbers if kinds[kind_of_row[number]] != negated]
        broken = self._broken(found, among)
        return [
            number
            for number in numbers
            if (kinds[kind_of_row[number]] or broken(rows[number])) != negated
        ]

    def _broken(self, found: LookedUp, among: Sequence[QueryField]) -> Callable[[CaseRow], bool]:
        """Return whether a result of a case broke, of one of the filter's candidates."""
        meant = [self._is_meant(number, among) for number in range(len(self._models))]
        places = {(file, row) for file, row, _, _ in found.broken}

        def has_broken(row: CaseRow) -> bool:
            return (row.file, row.row) in places and any(
                result and self.is_broken(result, found)
                for result, is_meant in zip(row.results, meant, strict=True)
                if is_meant
            )

        return has_broken

    def is_broken(self, result: Result, found: LookedUp) -> bool:
        """Return whether a result broke and was not fixed since, by a label or another edit."""
        return is_broken(result, found.broken, self._labels)

    def matching_candidates(self, row: CaseRow, query: Query, found: LookedUp) -> list[int]:
        """Return the numbers of the candidates whose results match the verdicts of a filter.

        Without such verdicts all of the filter's candidates match.
        """
        wanted = [it.values for it in query.fields if it.name == "verdict" and not it.is_negated]

        def has(result: Result, values: Sequence[str]) -> bool:
            words = tuple(value for value in values if value != BROKE)
            if (result.verdict or result.word or "answered").startswith(words):
                return True
            return BROKE in values and self.is_broken(result, found)

        return [
            number
            for number in self.candidates(query)
            if (result := row.results[number]) and all(has(result, values) for values in wanted)
        ]

    def _has_verdict(self, kind: _Verdicts, words: Words, among: Sequence[QueryField]) -> bool:
        """Return whether one of the candidates in the filter has a verdict that begins so."""
        return any(
            word is not None and word.startswith(words) and self._is_meant(number, among)
            for number, word in enumerate(kind)
        )

    def _is_meant(self, number: int, among: Sequence[QueryField]) -> bool:
        model = self._folded_models[number]
        return all(matches_any(model, field.values) for field in among)

    # --- what cannot match

    def complaints(self, query: Query) -> Iterator[tuple[str, str]]:
        """Yield the values of a filter that match nothing, and those that there are."""
        for name, values, _ in query.fields:
            for value in values if name != "answer" else ():
                if name == "verdict":
                    if not any(word.startswith(value) for word in (*_VERDICTS, BROKE)):
                        yield f"no verdict is called '{value}'", ", ".join((*_VERDICTS, BROKE))
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
            return "No case has this name; searching answers, feedback and tests …"
        return NO_MATCH

    def _names(self, name: str) -> Sequence[str]:
        if name == "tag":
            return sorted({tag for tags in self._tags for tag in tags})
        if name == "prompt":
            return self._prompts.names
        return self._models if name == "model" else self._files


def _unknown_fields(query: Query) -> Iterator[tuple[str, str]]:
    """Yield words that look like unknown fields, with the known fields."""
    for word in query.words:
        matched = _LIKE_A_FIELD.match(word)
        if matched:
            yield f"there is no '{matched[0]}'", ", ".join(f"{name}:" for name in FIELDS)


def _worst(words: _Verdicts) -> int:
    return min((URGENCY.index(word) for word in words if word is not None), default=9)


def _words_of_candidates(cases: Cases, kinds: Sequence[_Verdicts]) -> list[frozenset[str]]:
    """Return the verdicts that each candidate has in some row."""
    return [
        frozenset(filter(None, (words[number] for words in kinds)))
        for number in range(len(cases.models))
    ]


# --- filters cases by their system prompts: by the names and the ids of these


T = TypeVar("T", str, str | None)


class PromptFilter:
    """The system prompts of cases. Each is matched once, however many cases have it."""

    def __init__(self, cases: Cases) -> None:
        self._rows = cases.rows
        self._texts = {
            id: (safe(name).casefold(), id or "no prompt") for id, name in cases.prompts.items()
        }
        """By the id of a prompt: its name and its id."""
        labels = {row.prompt for row in cases.rows if row.prompt}
        self._labels = {label: (safe(label).casefold(),) for label in labels}
        """The names that the cases of files with several prompts have in the table."""
        self.names = sorted({*labels, *cases.prompts.values()})
        """All names, for a hint."""

    def is_known(self, value: str) -> bool:
        """Return whether a prompt matches."""
        texts = [*self._texts.values(), *self._labels.values()]
        return any(matches_any(text, (value,)) for known in texts for text in known)

    def select(
        self, numbers: Iterable[int], values: Sequence[str], *, negated: bool
    ) -> Sequence[int]:
        """Return the numbers of the cases whose prompt matches one of the values, or none."""
        ids = _matching(self._texts, values)
        labels = _matching(self._labels, values)
        rows = self._rows
        return [
            number
            for number in numbers
            if (rows[number].prompt in labels or rows[number].prompt_id in ids) != negated
        ]


def _matching(texts: Mapping[T, Iterable[str]], values: Sequence[str]) -> set[T]:
    return {key for key, known in texts.items() if any(matches_any(it, values) for it in known)}


# --- the names of cases in a table, with their widths


class CaseNames:
    """The names of files and rows; what takes a while is computed when it is first used.

    Nothing here refers to itself, so that rows that do not match a filter are freed at once.
    """

    def __init__(self, rows: Sequence[CaseRow], files: Sequence[str]) -> None:
        """`files` are those of the rows, each once."""
        self._rows = rows
        self.file_width = widest(files)
        self.of_files = ShortenedNames(lambda _: files)
        self.of_rows = ShortenedNames(partial(_labels, rows))

    def measure(self) -> None:
        """Compute all, in the thread that reads."""
        _ = self.row_width, self.stem_width, self.file_sizes

    @cached_property
    def row_width(self) -> int:
        """Return how wide the names of rows are."""
        return widest([row_label(row) if row.prompt else row.row for row in self._rows])

    @cached_property
    def unnamed_files(self) -> frozenset[str]:
        """Return the files whose only row has no name."""
        return frozenset(row.file for row in self._rows if not row.row)

    @cached_property
    def stem_width(self) -> int:
        """Return how wide the names of files are that stand in place of a row without a name."""
        return widest(map(stem, self.unnamed_files))

    @cached_property
    def file_sizes(self) -> Counter[str]:
        """Return the number of rows of each file."""
        return Counter(row.file for row in self._rows)


def stem(file: str) -> str:
    """Return the name of a file without its folders."""
    return file.rpartition("/")[2]


def row_label(case: CaseRow) -> str:
    """Return the row, with the system prompt where the file has several."""
    return f"{case.row} ({case.prompt})".lstrip() if case.prompt else case.row


def _labels(rows: Sequence[CaseRow], file: str) -> list[str]:
    return [label for row in rows if row.file == file and (label := row_label(row))]
