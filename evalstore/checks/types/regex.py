"""The check `regex`, with a time limit."""

from __future__ import annotations

from collections.abc import Mapping

from evalstore.checks.base import CheckArguments, CheckFinding, CheckInput, CheckType, holds
from evalstore.checks.normalization import preparer
from evalstore.core.display import as_text, shorten, shorten_to_line
from evalstore.core.errors import EvalstoreError, NotRunError
from evalstore.core.values import Json
from evalstore.files.processes.limited_calls import LimitReached
from evalstore.files.processes.patterns import _FLAGS, SECONDS, compiled, has_match, pattern_problem

_METHODS = {
    "search": "is not found in",
    "match": "does not match the start of",
    "fullmatch": "does not match the whole of",
}


def matches_all(check: Mapping[str, Json]) -> bool:
    """Return whether the pattern of a check is found in every text."""
    if check["type"] != "regex" or check.get("method") == "fullmatch":
        return False
    flags = frozenset(check.get("flags", ()))
    try:
        return all(has_match(check["pattern"], text, flags) for text in ("", "\0"))
    except (LimitReached, NotRunError):
        return False


def _read_regex(arguments: CheckArguments) -> dict[str, Json]:
    pattern = arguments.text("pattern")
    if pattern is None:
        raise arguments.problem("the check needs 'pattern'", "as in \"regex: '[0-9]+ days'\"")
    flags = arguments.texts("flags") if arguments.has("flags") else []
    for flag in flags:
        if flag not in _FLAGS:
            raise arguments.problem(
                f"'flags' cannot have {shorten(flag)}", f"the flags are {', '.join(_FLAGS)}"
            )
    settings = {"pattern": pattern, **arguments.chosen("method", _METHODS)}
    if flags:
        settings["flags"] = sorted(set(flags))
    if wrong := pattern_problem(pattern, frozenset(flags)):
        raise arguments.problem(
            f"the pattern {shorten(pattern)} is not a regular expression: {wrong}",
            "put '\\' before a literal character, and single quotes round the pattern",
        )
    return settings


def text_and_flags(check: Mapping[str, Json], subject: CheckInput) -> tuple[str, frozenset[str]]:
    """Return the text that is searched, and the flags; case is ignored if the text was folded."""
    steps = tuple(check.get("normalize", ()))
    flags = frozenset(check.get("flags", ()))
    if check.get("ignoreCase"):
        return preparer(steps, False)(as_text(subject.actual)), flags | {"ignoreCase"}
    folds = "casefold" in steps or "squad" in steps
    return subject.text, flags | {"ignoreCase"} if folds else flags


def _matches(check: Mapping[str, Json], subject: CheckInput) -> CheckFinding:
    """Return whether the pattern matches."""
    text, flags = text_and_flags(check, subject)
    pattern, method = check["pattern"], check.get("method", "search")
    try:
        match = getattr(compiled(pattern, flags), method)(text, timeout=SECONDS)
    except TimeoutError:
        raise EvalstoreError(
            f"the pattern {shorten(pattern)} timed out after {SECONDS:g} second on "
            f"{len(text):,} characters: it tries too many ways to match"
        ) from None
    if match is not None:
        passage, at = match[0], match.start()
        return holds(
            check,
            lambda: (
                f"the pattern {shorten(pattern)} matches {shorten_to_line(passage)} "
                f"in {shorten_to_line(text, at)}"
            ),
        )
    return CheckFinding(
        0.0, f"the pattern {shorten(pattern)} {_METHODS[method]} {shorten_to_line(text)}"
    )


KINDS = {"regex": CheckType(1, _read_regex, _matches, main="pattern")}
