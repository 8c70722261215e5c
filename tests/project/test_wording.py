"""Messages, help and documents are plain English: the common word, and no phrase that is gone."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import evalstore

ROOT = Path(evalstore.__file__).parent
PROJECT = ROOT.parent
NO = re.compile(r"(?<!here )\b(is|are) no (?!longer|room|more\b|one\b|other\b)[a-z]")
GONE = {
    "what is to do": "pending work",
    r"(?:case|column|candidate|failure|table|flip) before\b": "previous …",
    "while a run goes": "during a run",
    r"[,;] wanted is\b": "required",
    "this must not be so": "expected not to hold",
    r"\b(?:is|are|was|were) given up\b|so it was given up|tries too much": "timed out, stopped",
    "stand for too much": "too large once aliases are expanded",
    r"\bcomes? to no\b": "does not evaluate to",
    "(?:which|what) nobody|nobody knows|nobody agreed|nobody can": "passive: is not known",
    "brought nothing|brings nothing": "failed",
    "read past|reads past|passed over|passes over": "ignored, skipped",
    "cannot be honoured": "invalid",
    "what came of|what becomes of": "outcome",
    r"\bthe doors? to\b": "what it does",
    "does not go with|do not go together|goes with nothing": "cannot be combined with",
    "next run goes on|R goes on|run that goes on|(?:the|a) run goes on": "continues",
    "no model was asked": "called",
    "take the label back|takes the label back|label (?:is )?taken back": "remove the label",
    "not taken over|cannot be taken over": "not imported",
    "again for (?:more|another)": "(repeatable)",
    "explain, diff and merge": "there is no merge",
    "what has no (?:answer|verdict)": "what is new",
    r"\b(?:any|id|else|model|file|value|one) will do\b|will do, too": "is enough, any …",
    "says something only|says nothing without": "has an effect only",
    r"\bvery many\b": "many",
    r"\b(?:is|are|was|were) no part of\b": "is not part of",
    r"\bless (?:digits|lines|cases|rows|calls|files|tokens|results|columns)\b": "fewer",
    r"\bstands? on the same\b": "has the same",
    r"\b(?:is|are) not (?:asked|called) any more\b": "is not asked again, is no longer …",
    r"\b(?:in|out)side of (?!the object)": "inside, outside",
    r"\bprograms? ha(?:s|ve) left\b": "abandoned",
    r"\b(?:is|are) not of evalstore\b": "does not belong to evalstore",
}
"""Patterns of phrases, in small letters where they begin a text, and what to write instead."""
ANY_GONE = re.compile("|".join(f"(?:{gone})" for gone in GONE), re.IGNORECASE)
NOT_A_VERB = re.compile(
    r"(?:The|An?|Whether|How|What|Which|Why|Where|When|All|Every|Each|Those|None|As JSON|One|Two"
    r"|Another|This|As|For|From|In|Of|Only|With)\b"
    r"|(?!(?:Guess|Pass|Press)\b)[A-Z][a-z]+s\b"
)
"""Beginnings of the docstring of a function that lack the verb, such as "Return" or "Yield"."""
DOCUMENTS = [
    *sorted(PROJECT.glob("docs/**/*.md")),
    PROJECT / "README.md",
    PROJECT / "example/README.md",
]


class ModuleTexts(NamedTuple):
    texts: list[str]
    """All texts, docstrings included; parts of a formatted text are joined."""
    functions: list[tuple[str, int, str]]
    """The name, the line and the docstring of each function, empty without one."""


@cache
def read_module(path: Path) -> ModuleTexts:
    texts: list[str] = []
    functions: list[tuple[str, int, str]] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
            texts.append("".join(map(str, parts)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.append(node.value)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            functions.append((node.name, node.lineno, ast.get_docstring(node) or ""))
    return ModuleTexts(texts, functions)


def phrases_in(text: str) -> list[str]:
    """The phrases of a text that are gone, each with what to write instead."""
    line = " ".join(text.split())
    if not ANY_GONE.search(line):
        return []
    matches = ((re.search(gone, line, re.IGNORECASE), better) for gone, better in GONE.items())
    return [f"'{match[0]}' -> '{better}'" for match, better in matches if match]


def test_no_text_says_is_no() -> None:
    actual = [
        f"{path.relative_to(ROOT)}: {text}"
        for path in sorted(ROOT.rglob("*.py"))
        for text in read_module(path).texts
        if NO.search(text)
    ]
    assert actual == []
    assert NO.search("it is no text")


def test_messages_and_help_have_no_phrase_that_is_gone() -> None:
    actual = [
        f"{path.relative_to(ROOT)}: {phrase}: {text[:80]}"
        for path in sorted(ROOT.rglob("*.py"))
        for text in read_module(path).texts
        for phrase in phrases_in(text)
    ]
    assert actual == []


def test_docstrings_of_functions_begin_with_a_verb() -> None:
    without_verb = [
        f"{path.relative_to(ROOT)}:{line}: {docstring.partition(chr(10))[0]}"
        for path in sorted(ROOT.rglob("*.py"))
        for name, line, docstring in read_module(path).functions
        if NOT_A_VERB.match(docstring) or (docstring.startswith("`") and name != "__init__")
    ]
    assert without_verb == []
    assert NOT_A_VERB.match("Rows of a file")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(PROJECT).as_posix())
def test_documents_have_no_phrase_that_is_gone(path: Path) -> None:
    assert phrases_in(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text",
    [
        "the score is 0, wanted is >= 0.5",
        "What is to do",
        "Case before",
        "Ask what has no answer, judge what has no verdict",
        "the beginning of an\n    id will do",
        "Nobody knows who labels",
        "the calls that\n    brought nothing",
        "the pattern 'x' was given up: it tries too much",
    ],
)
def test_a_phrase_that_is_gone_is_found(text: str) -> None:
    assert phrases_in(text)
