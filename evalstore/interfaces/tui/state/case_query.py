"""What is typed behind `/`: words, and with values `verdict:`, `tag:`, `model:` and so on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from evalstore.results.table.row_filter import BROKE
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
    """A filter of cases. All parts must hold; a value matches as a part of the text."""

    words: tuple[str, ...] = ()
    """What the name of a case, a text of its test, an answer or the feedback holds."""
    without: tuple[str, ...] = ()
    """What none of these holds."""
    fields: tuple[Among, ...] = ()
    """Conditions with what is typed of names, of which one must match."""

    @property
    def is_empty(self) -> bool:
        """Return whether everything matches."""
        return not (self.words or self.without or self.fields)

    @property
    def answer_words(self) -> tuple[str, ...]:
        """Return the words that are looked for in answers alone."""
        return tuple(it for each in self.fields if each.field == "answer" for it in each.names)

    @property
    def is_by_outcome(self) -> bool:
        """Return whether the filter chooses cases by verdicts or by words, which answers have."""
        names = {each.field for each in self.fields}
        return bool(self.words or self.without or names & {"verdict", "answer"})

    @property
    def is_about_broken(self) -> bool:
        """Return whether the filter names what broke."""
        return any(it.field == "verdict" and BROKE in it.names for it in self.fields)

    @property
    def needs_store(self) -> bool:
        """Return whether something must be looked up in the store."""
        return bool(self.words or self.without or self.answer_words or self.is_about_broken)


def _value(name: str, typed: str) -> str:
    value = typed.strip('"')
    is_whole = typed[0] == typed[-1] == '"' and len(typed) > 2 and name in _WHOLE
    return f"={value}" if is_whole else value


def read_query(text: str) -> Query:
    """Parse a filter that was typed; nothing that is typed is an error."""
    words: list[str] = []
    without: list[str] = []
    fields: list[Among] = []
    for minus, name, listed, typed in _PART.findall(text.casefold()):
        if name:
            values = [
                value for written in _VALUE.findall(listed) if (value := _value(name, written))
            ]
            if values:
                fields.append(Among(name, tuple(values), bool(minus)))
        elif (word := typed.strip('"')) and typed != "-":
            (without if minus else words).append(word)
    return Query(tuple(words), tuple(without), tuple(fields))
