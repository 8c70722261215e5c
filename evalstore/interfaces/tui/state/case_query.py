"""What is typed behind `/`: words, and with values `verdict:`, `tag:`, `model:` and so on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from evalstore.results.table.case_rows import BROKE, Words
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
    "verdict:broke": "what broke in the run, or in the last ten runs and was not fixed since",
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
    rf'(-?)(?:({"|".join(FIELDS)}):((?:"[^"]*"?|[^\s"])*)|("[^"]*"?|\S+))',
    re.IGNORECASE,
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

    @property
    def needs_store(self) -> bool:
        """Return whether something must be looked up in the store."""
        is_by_words = any(it.field in ("text", "answer") for it in self.conditions)
        return is_by_words or self.is_about_broken


def _value(name: str, typed: str) -> str:
    value = typed.strip('"')
    is_whole = typed[0] == typed[-1] == '"' and len(typed) > 2 and name in _WHOLE
    return f"={value}" if is_whole else value


def read_query(text: str) -> Query:
    """Parse a filter that was typed; nothing that is typed is an error."""
    words: list[str] = []
    conditions: list[Among] = []
    for minus, name, listed, typed in _PART.findall(text.casefold()):
        if name:
            parts = (_value(name, written) for written in _VALUE.findall(listed))
            if values := tuple(filter(None, parts)):
                conditions.append(Among(name, values, bool(minus)))
        elif (word := typed.strip('"')) and typed != "-":
            if minus:
                conditions.append(Among("text", (word,), is_negated=True))
            else:
                words.append(word)
    if words:
        conditions.append(Among("text", tuple(words)))
    return Query(tuple(conditions))
