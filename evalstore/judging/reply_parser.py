"""Finds the verdict in the text of a judge's reply.

A reply can contain text of the candidate. So an object is the judge's verdict only when it is the
whole reply, or when it has the secret code of the request; and the rest of the reply must not
contradict it.
"""

from __future__ import annotations

import json
import re
import unicodedata

from evalstore.files.json_document import parse_json, refuse_constant
from evalstore.values import Json, Reply

_UNFINISHED = re.compile(
    "length|max_(output_)?tokens|model_length|content_filter|safety|recitation|refusal|error"
    "|incomplete|cancelled|abort",
    re.IGNORECASE,
)
"""Finish reasons of incomplete replies."""
_MARKS = " \t\r\n\ufeff*`."
"""Characters around an object that are ignored: blanks, and Markdown."""
_LANGUAGE = re.compile(r"\Ajson\s+", re.IGNORECASE)
"""The language after the backticks that open a block of code."""
_THINKING = re.compile(r"\s*<(think|thinking|thought|reasoning)>(.*?)</\1>", re.DOTALL)
_BRACKET = re.compile(r"[][{}]")
_MOST_TRIES = 5_000
"""The most braces of a reply that are tried as the beginning of an object."""
_FAILS = re.compile(r"fail(?:s|ed)?", re.IGNORECASE)
_BEGINS_TO_FAIL = re.compile(r"\W*(?:fail|not\s+pass|no\s+pass)", re.IGNORECASE)
_VERDICTS = frozenset(
    ("pass", "passed", "passes", "verdict", "result", "ok", "success", "correct", "outcome")
)
"""Names of members that are verdicts."""
_PROSE = frozenset(("reasoning", "feedback"))
_OTHERWISE = re.compile(
    r"\bfail(?:s|ed|ing|ures?)?\b"
    r"|\bpass(?:ed|es)?\b\W{0,6}(?:false|no)\b"
    r"|(?:\b(?:not|never|cannot)|n['’]t)\s+(?:\w+\s+){0,2}pass",
    re.IGNORECASE,
)
"""Words in the text around a pass that may contradict it."""


class Unreadable(Exception):  # noqa: N818 - it is handled, never shown by itself
    """A judge's reply from which no verdict can be read.

    `is_structured` is false when the reply says something and is not the single JSON object
    that a server gives which holds its model to a schema.
    """

    def __init__(self, reason: str, *, is_structured: bool = True) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_structured = is_structured


def finished_text(reply: Reply) -> str:
    """Return the text of a complete reply; raises `Unreadable` for a refused or incomplete one."""
    if reply.refusal:
        raise Unreadable(f"the judge refused: {storable(reply.refusal)}")
    if reply.is_cut:
        raise Unreadable("the judge's reply was cut off by the token limit")
    if match := _UNFINISHED.fullmatch(reply.finish_reason or ""):
        raise Unreadable(f"the judge's reply was cut off: its finish reason is '{match[0]}'")
    return reply.text or ""


def storable(text: str) -> str:
    """Replace half surrogate pairs, which escapes in JSON can be."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def without_thinking(text: str) -> str:
    """Remove the block of thoughts that a text begins with, such as `<think>…</think>`.

    A block that seems to end twice is left in its place: one of the ends may be quoted.
    """
    block = _THINKING.match(text)
    if block is None or f"</{block[1]}>" in text[block.end() :]:
        return text
    return text[block.end() :]


def find_verdict(text: str, code: str | None) -> dict[str, Json]:
    """Find the one JSON object with `pass` that is the judge's own; raises `Unreadable`.

    Without a code it must be the whole text. With one it is the object that has the code;
    several count when they are equal. A pass must end the text, and nothing may contradict it.
    """
    if code is None:
        verdict = _whole_object(text)
    else:
        verdict = _object_with_code(without_thinking(text), code)
    if verdict["pass"] is True and _contradicts_itself(verdict):
        raise Unreadable("the judge's 'pass' is true, and another member says otherwise")
    return verdict


def parse_unique_json(text: str) -> Json:
    """Parse a JSON document in which no object has a name twice; raises ValueError."""
    try:
        return parse_json(text, object_pairs_hook=_unique)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _whole_object(text: str) -> dict[str, Json]:
    bare = _LANGUAGE.sub("", text.strip(_MARKS)).strip(_MARKS)
    try:
        value = parse_unique_json(bare)
    except ValueError:
        value = None
    if not isinstance(value, dict) or "pass" not in value:
        words = "the judge's reply is not one JSON object with 'pass' and nothing else"
        raise Unreadable(words, is_structured=not bare)
    return value


def _object_with_code(text: str, code: str) -> dict[str, Json]:
    objects = [entry for entry in _top_objects(text) if "pass" in entry[2]]
    if not objects:
        raise Unreadable("the judge's reply holds no JSON object with 'pass'")
    verdicts = [entry for entry in objects if str(entry[2].get("code")) == code]
    if not verdicts:
        raise Unreadable("the judge's verdict does not have the code that was asked for")
    *earlier, (_, end, verdict) = verdicts
    if any(_canonical(other) != _canonical(verdict) for _, _, other in earlier):
        raise Unreadable("the judge's reply holds verdicts that differ")
    if verdict["pass"] is True:
        if text[end:].strip(_MARKS):
            raise Unreadable("the judge's reply goes on after a pass, which may take it back")
        if contradiction := _OTHERWISE.search(_plain(_without(text, verdicts))):
            words = storable(" ".join(contradiction[0].split()))
            raise Unreadable(f"the judge's 'pass' is true, and the text around it says '{words}'")
    return verdict


_TextObject = tuple[int, int, dict[str, Json]]
"""The start, the end and the value of an object."""


def _top_objects(text: str) -> list[_TextObject]:
    """Find the JSON objects that are not inside of other brackets."""
    decoder = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=refuse_constant)
    objects: list[_TextObject] = []
    end = depth = tries = 0
    for match in _BRACKET.finditer(text):
        if match.start() < end:
            continue
        if match[0] in "]}":
            depth = max(0, depth - 1)
            continue
        if match[0] == "{" and depth == 0:
            tries += 1
            if tries > _MOST_TRIES:
                raise Unreadable("the judge's reply holds too many objects")
            try:
                value, end = decoder.raw_decode(text, match.start())
            except (ValueError, RecursionError):
                pass
            else:
                objects.append((match.start(), end, value))
                continue
        depth += 1
    return objects


def _without(text: str, objects: list[_TextObject]) -> str:
    """Remove these objects from a text."""
    starts = [0, *(end for _, end, _ in objects)]
    ends = [*(start for start, _, _ in objects), len(text)]
    return " ".join(text[start:end] for start, end in zip(starts, ends, strict=True))


def _plain(text: str) -> str:
    """Normalise a text, and remove its invisible characters."""
    if text.isascii():
        return text
    visible = "".join(character for character in text if unicodedata.category(character) != "Cf")
    return unicodedata.normalize("NFKC", visible).replace("’", "'")


def _contradicts_itself(verdict: dict[str, Json]) -> bool:
    """Return whether a member of a passing verdict, at any depth, contradicts it."""
    pending: list[tuple[str, Json]] = list(verdict.items())
    while pending:
        name, value = pending.pop()
        name = _plain(name).casefold()
        if name in _VERDICTS and str(value).casefold() in ("false", "no"):
            return True
        if isinstance(value, str):
            words = _plain(value)
            if _FAILS.fullmatch(words.strip(_MARKS)):
                return True
            if name not in _PROSE and _BEGINS_TO_FAIL.match(words):
                return True
        if isinstance(value, dict):
            pending += value.items()
        elif isinstance(value, list):
            pending += (("", element) for element in value)
    return False


def _canonical(value: Json) -> str:
    return json.dumps(value, sort_keys=True)


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """Build an object of these members; raises ValueError when a name is there twice."""
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a name appears twice")
    return members
