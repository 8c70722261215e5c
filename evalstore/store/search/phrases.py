"""The queries for phrases in the search index of a store in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evalstore.core.errors import EvalstoreError
from evalstore.store.postgresql.schema import SEARCH_TEXTS, WORDS
from evalstore.store.search.words import Phrase, list_phrases

_LONGEST_WORD = 500
"""Characters by which words are told apart; PostgreSQL takes 2,046 bytes."""
_LOOKED_UP = 32
"""Words of a phrase that are looked up in the index; all of them are compared."""
_MOST_PHRASES = 100


def phrases_of(words: Sequence[str]) -> list[Phrase]:
    """Return the phrases of words; raises `EvalstoreError` when they are too many."""
    phrases = list_phrases(words)
    if len(phrases) > _MOST_PHRASES:
        raise EvalstoreError(
            f"{len(phrases)} words are too many to search for: at most {_MOST_PHRASES}",
            hint="leave some out, or put those that stand side by side in quotation marks",
        )
    return phrases


def names_of(phrases: Sequence[Phrase]) -> list[str]:
    """Return the names of the rows with each phrase."""
    return [f"texts_{number}" for number in range(len(phrases))]


def with_all(phrases: Sequence[Phrase]) -> str:
    """Return a query for the texts with all phrases; a text may have several rows."""
    first, *others = names_of(phrases)
    also = "".join(f" AND id IN (SELECT id FROM {name})" for name in others)
    return f"SELECT kind, id, min(number) AS number FROM {first} WHERE true{also} GROUP BY kind, id"


def with_texts(phrases: Sequence[Phrase], query: str) -> str:
    """Return a query in which each name is the rows of texts with a phrase.

    They are MATERIALIZED: joined with the rest, each row's words would be split again.
    """
    texts = ", ".join(
        f"{name} AS MATERIALIZED "
        f"(SELECT id, kind, number FROM {SEARCH_TEXTS} WHERE {WORDS} @@ ?::tsquery"
        + " AND strpos(' ' || words || ' ', ?) > 0" * (len(phrase.words) > 1)
        + ")"
        for name, phrase in zip(names_of(phrases), phrases, strict=True)
    )
    return f"WITH {texts} {query}"


def parameters_of(phrases: Sequence[Phrase]) -> list[str]:
    """Return the parameters of `with_texts`."""
    parameters: list[str] = []
    for phrase in phrases:
        parameters.append(_lexemes(phrase))
        if len(phrase.words) > 1:
            parameters.append(f" {join_words(phrase.words)}" + " " * (not phrase.is_prefix))
    return parameters


def _lexemes(phrase: Phrase) -> str:
    """Return a query for the words of a phrase, in which no character is special."""
    lexemes = [f"'{cut_word(word)}'" for word in phrase.words]
    if phrase.is_prefix and lexemes:
        lexemes[-1] += ":*"
    return " & ".join(list(dict.fromkeys(lexemes))[:_LOOKED_UP])


def join_words(words: Iterable[str]) -> str:
    """Return words as a row has them."""
    return " ".join(map(cut_word, words))


def cut_word(word: str) -> str:
    """Return as much of a word as is told apart."""
    return word[:_LONGEST_WORD]
