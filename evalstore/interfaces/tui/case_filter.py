"""The typed filter of cases: how it is read, what matches it, and why nothing does."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import NamedTuple

from evalstore.core.display import SIGNS, widest
from evalstore.core.values import URGENCY, Result
from evalstore.planning.participants import matches_any
from evalstore.results.flips.verdict_changes import BrokenResults
from evalstore.results.table.cases import (
    BROKE,
    CaseRow,
    Cases,
    Words,
    fold,
    lacking_words,
    row_tests,
)
from evalstore.store.rows.row_queries import Among

FIELDS = ("verdict", "tag", "model", "file", "prompt", "answer")
EXAMPLES: Mapping[str, str] = {
    "helmet": (
        "a word in the file, row, system prompt's name, messages, instructions, answers, feedback "
        "or notes of labels"
    ),
    '"is a helmet"': "exactly these words",
    "answer:helmet": "a word in the answers alone",
    "verdict:fail": "some candidate's verdict: pass, fail, undecided, error, pending, answered",
    "verdict:no": "no verdict, because a call failed: 'no reply'",
    "verdict:broke": "what broke in the run, or in the last ten runs and does not pass",
    "tag:manners": "a tag of the case",
    "model:mini": "a candidate; with verdict: this candidate's verdict",
    "file:weather": "the test file",
    "prompt:brief": "the system prompt: its name or the beginning of its id",
    'tag:"manners"': "the whole name of a tag, candidate, file or prompt",
    "verdict:fail,error": "either of them, as with all fields",
    "-tag:slow": "cases without it; also of a word, -helmet",
    '"-5"': "a word that begins with a minus",
}
"""Examples of all that a filter may have, and what each matches."""
_WHOLE = ("tag", "model", "file", "prompt")
"""In quotation marks they are meant as a whole."""
_PART = re.compile(
    rf'(-?)(?:({"|".join(FIELDS)}):((?:"[^"]*"?|[^\s"])*)|("[^"]*"?|\S+))', re.IGNORECASE
)
_VALUE = re.compile(r'"[^"]*"?|[^",]+')


def help_lines() -> str:
    """Return the examples below each other, each in a line with what it matches."""
    width = max(map(len, EXAMPLES)) + 2
    return "\n".join(f"    {typed:<{width}}{meaning}" for typed, meaning in EXAMPLES.items())


@dataclass(frozen=True)
class Query:
    """A filter of cases, as conditions with what is typed of names; all must hold."""

    conditions: tuple[Among, ...] = ()
    """Of those with the field `text`, the name of a case or its texts must have all words."""

    @property
    def words(self) -> Words:
        """Return the words that a case must have."""
        texts = (it.names for it in self.conditions if it.field == "text" and not it.is_negated)
        return tuple(word for words in texts for word in words)

    @property
    def is_by_outcome(self) -> bool:
        """Return whether the filter chooses cases by verdicts or by words, which answers have."""
        return any(it.field in ("text", "answer", "verdict") for it in self.conditions)

    @property
    def is_about_broken(self) -> bool:
        """Return whether the filter names what broke."""
        return any(it.field == "verdict" and BROKE in it.names for it in self.conditions)


def read_query(text: str) -> Query:
    """Parse a filter that was typed; nothing that is typed is an error."""
    words: list[str] = []
    conditions: list[Among] = []
    for minus, name, listed, typed in _PART.findall(text.casefold()):
        if name:
            values: list[str] = []
            for part in _VALUE.findall(listed):
                value = part.strip('"')
                is_whole = part[0] == part[-1] == '"' and len(part) > 2 and name in _WHOLE
                values.append(f"={value}" if is_whole else value)
            if any(values):
                conditions.append(Among(name, tuple(filter(None, values)), bool(minus)))
        elif (word := typed.strip('"')) and typed != "-":
            if minus:
                conditions.append(Among("text", (word,), is_negated=True))
            else:
                words.append(word)
    if words:
        conditions.append(Among("text", tuple(words)))
    return Query(tuple(conditions))


# --- the cases of a run with what a filter needs of them, and why nothing matches it


ORDERS = ("file", "verdict", "row")
NO_MATCH = "No case matches the filter."
_VERDICTS = [word for word in SIGNS if word in URGENCY]
_SUGGESTED = 8
"""Tags, candidates or files that are listed when a filter names one that there is not."""
_KINDS = {"model": "candidate", "prompt": "system prompt"}
"""What fields are about, if they are not called so."""
_LIKE_A_FIELD = re.compile(r"[a-z]+:(?!//)")


@dataclass(frozen=True, slots=True)
class StoreLookup:
    """Looks things up in the store."""

    search: Callable[[Words, bool], Set[str] | None]
    """Returns the sessions in whose texts, or answers alone, all of these words are."""
    broken: Callable[[], BrokenResults]
    """Returns the results that broke in the last runs and do not pass."""


@dataclass(slots=True)
class LookedUp:
    """What was looked up for a filter."""

    sessions: dict[tuple[Words, bool], Set[str]] = field(default_factory=dict)
    """The sessions with all of these words in their texts, or in answers alone."""
    broken: BrokenResults = frozenset()
    """The results that broke in the last runs and do not pass."""

    def sessions_with(self, words: Words) -> Set[str]:
        """Return the sessions with these words; until then, those with the words typed before."""
        if (words, False) in self.sessions:
            return self.sessions[words, False]
        known = {" ".join(typed): ids for (typed, alone), ids in self.sessions.items() if not alone}
        before = filter(" ".join(words).startswith, known)
        return known.get(max(before, key=len, default=""), frozenset())


class NameSizes(NamedTuple):
    """How much room the names of cases take."""

    file: int
    """How wide the names of files are."""
    row: int
    unnamed: frozenset[str]
    """The files with a row that has no name."""
    stem: int
    """How wide the names of these files are, without folders, in place of such a row."""
    rows: Mapping[str, int]
    """The number of rows of each file."""


class FilteredCases:
    """The cases of a run with what filters need of them. May be made in any thread."""

    def __init__(self, cases: Cases) -> None:
        self._cases = cases
        self._orders: dict[str, Sequence[CaseRow]] = {"file": cases.rows}
        files = list(dict.fromkeys(row.file for row in cases.rows))
        tags = {tag for row in cases.rows for tag in row.tags}
        labels = {row.prompt for row in cases.rows if row.prompt}
        self._listed: dict[str, Sequence[str]] = {
            "file": files,
            "tag": sorted(tags),
            "model": cases.models,
            "prompt": sorted({*labels, *cases.prompts.values()}),
            "verdict": (*_VERDICTS, BROKE),
        }
        """All names that a field may have, for a hint."""
        self._known: dict[str, Mapping[str | None, Sequence[str]]] = {
            name: {it: (fold(it),) for it in listed} for name, listed in self._listed.items()
        }
        """All exact names by field, each with the texts that are compared with what is typed."""
        self._known["prompt"] = {
            **{label: (fold(label),) for label in labels},
            **{id: (fold(name), id or "no prompt") for id, name in cases.prompts.items()},
        }

    @cached_property
    def words(self) -> list[frozenset[str]]:
        """Return the verdicts that occur, for each candidate."""
        columns = zip(*{row.words for row in self._cases.rows}, strict=True)
        found = [frozenset(filter(None, words)) for words in columns]
        return found or [frozenset() for _ in self._cases.models]

    # --- which rows

    def select(self, query: Query, order: str, found: LookedUp) -> Sequence[CaseRow]:
        """Select the rows that match, in order."""
        if order not in self._orders:
            key = _urgency if order == "verdict" else lambda row: row.label.casefold()
            self._orders[order] = sorted(self._cases.rows, key=key)
        rows = self._orders[order]
        conditions = self._conditions(query, found)
        for test in row_tests(conditions, self._broken(found), cache(found.sessions_with)):
            rows = [*filter(test, rows)]
        return rows

    def look_up(self, query: Query, store: StoreLookup) -> LookedUp:
        """Look up what a filter needs: words, those that a name lacks together, and what broke."""
        found = LookedUp()
        for kind, names, _ in query.conditions:
            sought: set[Words] = set()
            if kind == "answer":
                sought = {(word,) for word in names}
            elif kind == "text":
                sought = {lacking_words(row, tuple(names)) for row in self._cases.rows} - {()}
            for words in sorted(sought):
                sessions = store.search(words, kind == "answer")
                if sessions is None:
                    return found
                found.sessions[words, kind == "answer"] = sessions
        if query.is_about_broken:
            found.broken = store.broken()
        return found

    def _broken(self, found: LookedUp) -> Callable[[Result], bool]:
        from evalstore.results.flips.verdict_changes import is_broken

        return partial(is_broken, broken=found.broken, labels=self._cases.labels)

    def _conditions(self, query: Query, found: LookedUp) -> list[Among]:
        """Return the conditions of a filter, with the names that there are."""
        conditions: list[Among] = []
        for typed in query.conditions:
            name, values, is_negated = typed
            if name == "answer":
                sessions = [found.sessions.get(((word,), True), frozenset()) for word in values]
                typed = Among("session", frozenset[str]().union(*sessions), is_negated)
            elif name != "text":
                typed = Among(name, self._matching(name, values), is_negated)
            conditions.append(typed)
        return conditions

    def _matching(self, name: str, values: Collection[str]) -> set[str | None]:
        """Return the exact names that one of the values matches."""
        if name == "verdict":
            words = {word for word in _VERDICTS if word.startswith(tuple(values))}
            return {*words, *({BROKE} & {*values})}
        known = self._known[name].items()
        return {it for it, texts in known if any(matches_any(text, values) for text in texts)}

    def candidates(self, query: Query | None = None) -> Sequence[int]:
        """Return the numbers of the filter's candidates; of all without one."""
        typed = [each for each in query.conditions if each.field == "model"] if query else []
        named = [(self._matching("model", each.names), each.is_negated) for each in typed]
        return [
            number
            for number, model in enumerate(self._cases.models)
            if all((model in names) != is_negated for names, is_negated in named)
        ]

    def matching_candidates(self, row: CaseRow, query: Query, found: LookedUp) -> list[int]:
        """Return the numbers of the candidates whose results match the verdicts of a filter.

        Without such verdicts all of the filter's candidates match.
        """
        conditions = self._conditions(query, found)
        said = [it for it in conditions if it.field == "verdict" and not it.is_negated]
        tests = row_tests(said, self._broken(found))
        alone = [(it, replace(row, results=(row.results[it],))) for it in self.candidates(query)]
        return [it for it, of_it in alone if any(of_it.results) and all(t(of_it) for t in tests)]

    # --- what cannot match

    def complaints(self, query: Query) -> Iterator[tuple[str, str]]:
        """Yield the values of a filter that match nothing, and those that there are."""
        for name, values, _ in query.conditions:
            for value in values if name in self._listed else ():
                listed = self._listed[name]
                if name == "verdict":
                    if not any(word.startswith(value) for word in listed):
                        yield f"no verdict is called '{value}'", ", ".join(listed)
                    continue
                if self._matching(name, (value,)):
                    continue
                there = [*listed[:_SUGGESTED], *["…"] * (len(listed) > _SUGGESTED)]
                is_whole = value.startswith("=") and len(value) > 1
                relation = f"is called '{value[1:]}'" if is_whole else f"contains '{value}'"
                text = f"no {_KINDS.get(name, name)} {relation}"
                yield text, ", ".join(there) or "there are none"

    def why_empty(self, query: Query, *, is_searching: bool) -> str:
        """Explain why no case matches."""
        if not query.conditions:
            return "No cases here.\n'evalstore check' reads the test files."
        wrong = list(self.complaints(query))
        fields = ", ".join(f"{name}:" for name in FIELDS)
        for matched in map(_LIKE_A_FIELD.match, () if is_searching else query.words):
            wrong += [(f"unknown filter '{matched[0]}'", fields)] if matched else ()
        if wrong:
            return "\n".join(f"{complaint}: {there}" for complaint, there in wrong)
        if is_searching:
            return "No case has this name; searching answers, feedback and tests …"
        return NO_MATCH

    @cached_property
    def sizes(self) -> NameSizes:
        """Return how much room their names take; computed when it is first used."""
        rows = self._cases.rows
        unnamed = frozenset(row.file for row in rows if not row.row)
        return NameSizes(
            widest(self._listed["file"]),
            widest([row.label for row in rows]),
            unnamed,
            widest(map(stem, unnamed)),
            Counter(row.file for row in rows),
        )


def _urgency(row: CaseRow) -> int:
    """Return how soon a reader wants to see a row, by its worst verdict."""
    return min((URGENCY.index(word) for word in row.words if word), default=9)


def stem(file: str) -> str:
    """Return the name of a file without its folders."""
    return file.rpartition("/")[2]
