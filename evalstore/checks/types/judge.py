"""The check `judge`: the prompt of the judging models, and how their reply is read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from evalstore.checks.base import (
    CheckArguments,
    CheckFinding,
    CheckInput,
    CheckType,
    canonical_bound,
    reaches,
)
from evalstore.checks.types.json import raise_for_path
from evalstore.checks.types.text import require_pattern
from evalstore.core.display import as_text, shorten
from evalstore.core.errors import EvalstoreError, FileProblem
from evalstore.core.values import Json
from evalstore.files.fields import is_finite, suggest
from evalstore.files.processes.limited_calls import compiled

JUDGE = "judge"
ANSWERS = ("cot_classify", "classify_cot", "classify")
"""The order in a reply: reasons and then the choice, the reverse, or the choice alone."""
_INVALID = ("undecided", "lowest")
_BESIDE = ("scores", "answer", "invalid", "pass")


def judge_of(checks: Iterable[Mapping[str, Json]]) -> Mapping[str, Json] | None:
    """Return the check `judge` among these checks; None if there is none."""
    return next((check for check in checks if check["type"] == JUDGE), None)


def without_judge(checks: Iterable[Json]) -> list[Json]:
    """Return the checks other than `judge`."""
    return [check for check in checks if check["type"] != JUDGE]


def _read(arguments: CheckArguments) -> dict[str, Json]:
    prompt = arguments.text("prompt")
    settings: dict[str, Json] = {"prompt": prompt} if prompt else {}
    if arguments.has("choices") and arguments.has("parser"):
        raise arguments.problem("'choices' and 'parser' cannot be combined")
    if arguments.has("choices"):
        settings |= _read_choices(arguments)
    elif arguments.has("parser"):
        if not prompt:
            raise arguments.problem(
                "a judge whose reply a 'parser' reads needs 'prompt'",
                "name a judge prompt that says what to reply",
            )
        settings |= _read_parser(arguments)
    else:
        for name in _BESIDE:
            if arguments.has(name):
                raise arguments.problem(f"'{name}' has an effect only with 'choices' or 'parser'")
        if not prompt:
            raise arguments.problem(
                "the check 'judge' needs 'prompt', 'choices' or 'parser'",
                "without it models judge by the text below '---'",
            )
        return settings
    return settings | arguments.chosen("invalid", _INVALID)


def _read_choices(arguments: CheckArguments) -> dict[str, Json]:
    choices = arguments.texts("choices")
    if len(choices) < 2:
        raise arguments.problem("'choices' must be a list of two or more")
    names = [choice.strip() for choice in choices]
    for name in names:
        if not name or "\n" in name:
            raise arguments.problem(f"{shorten(name)} cannot be a choice")
        if names.count(name) > 1:
            raise arguments.problem(f"the choice {shorten(name)} is listed twice")
    settings: dict[str, Json] = {"choices": choices}
    written = arguments.take("scores")
    scores = None if written is None else _read_choice_scores(written, choices, arguments)
    if scores:
        settings["scores"] = scores
    settings |= arguments.chosen("answer", ANSWERS)
    passing = _read_passing(arguments, choices, scores)
    return settings if passing is None else {**settings, "pass": passing}


def _read_choice_scores(
    written: Json, choices: list[str], arguments: CheckArguments
) -> dict[str, Json]:
    """Return scores by choice, from a mapping, a list in the order of the choices, or `numbers`."""
    if written == "numbers":
        written = [_as_number(choice, arguments) for choice in choices]
    if isinstance(written, list):
        if len(written) != len(choices):
            words = f"'scores' has {len(written)} values for {len(choices)} choices"
            raise arguments.problem(words)
        written = dict(zip(choices, written, strict=True))
    scores = _read_scores(written, arguments)
    for name in scores:
        if name not in choices:
            hint = suggest(name, choices, "choices")
            raise arguments.problem(f"'scores' has {shorten(name)}, which is not a choice", hint)
    for choice in choices:
        if choice not in scores:
            raise arguments.problem(f"the choice {shorten(choice)} has no score")
    return scores


def _as_number(choice: str, arguments: CheckArguments) -> float:
    try:
        return float(choice)
    except ValueError:
        raise arguments.problem(
            f"the choice {shorten(choice)} is not a number, so it needs a score"
        ) from None


def _read_scores(written: Json, arguments: CheckArguments) -> dict[str, Json]:
    if not isinstance(written, dict) or not written:
        raise arguments.problem(
            "'scores' must give the score of each choice", "as in '{A: 1, B: 0.5}'"
        )
    scores = {as_text(name): value for name, value in written.items()}
    for name, value in scores.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not is_finite(value):
            words = f"the score of {shorten(name)} must be a number, not {shorten(as_text(value))}"
            raise arguments.problem(words)
    low, high = scale_of({"scores": scores})
    if low == high or (len(scores) > 1 and len(set(scores.values())) == 1):
        raise arguments.problem("all scores are the same")
    return {name: plain(value) for name, value in scores.items()}


def plain(value: float) -> float:
    """Return a whole number as an integer, so that `1.0` and `1` have one form."""
    return int(value) if value == int(value) else value


def scale_of(check: Mapping[str, Json]) -> tuple[float, float]:
    """Return the lowest and the highest score of a judge: 0 and 1, unless its scores go beyond."""
    parser = check.get("parser", {})
    scores = [*check.get("scores", {}).values(), parser.get("min", 0), parser.get("max", 1)]
    if "scores" not in check or all(0 <= score <= 1 for score in scores):
        return scores[-2], scores[-1]
    own_scores = scores[:-2]
    return min(own_scores), max(own_scores)


def _read_passing(
    arguments: CheckArguments, choices: Collection[str], scores: Mapping[str, Json] | None
) -> Json:
    """Return the choices that pass, or a bound of their scores; None: a score of 1 passes."""
    value = arguments.take("pass")
    if isinstance(value, list) or (isinstance(value, str) and (value in choices or not scores)):
        passing = [as_text(choice) for choice in (value if isinstance(value, list) else [value])]
        for choice in passing:
            if choice not in choices:
                hint = suggest(choice, choices, "choices")
                raise arguments.problem(
                    f"'pass' has {shorten(choice)}, which is not a choice", hint
                )
        if not passing:
            raise arguments.problem("no choice passes")
        return [choice for choice in choices if choice in passing]
    if scores is None:
        raise arguments.problem(
            "nothing says which of the choices pass",
            "list them, as in 'pass: [Yes]', or give 'scores'",
        )
    if value is None:
        if all(score in (0, 1) for score in scores.values()):
            return None
        raise _without_pass(arguments)
    bound = canonical_bound(value, arguments)
    _raise_unless_reached(bound, scores, arguments)
    return bound


def _without_pass(arguments: CheckArguments) -> FileProblem:
    words = "the check 'judge' gives a score, so it needs 'pass'"
    return arguments.problem(words, "as in 'pass: \">= 0.8\"'")


def _raise_unless_reached(
    bound: str, scores: Mapping[Json, float], arguments: CheckArguments
) -> None:
    if not any(reaches(score, bound) for score in scores.values()):
        low, high = min(scores.values()), max(scores.values())
        raise arguments.problem(f"no score can be {bound}: they go from {low:g} to {high:g}")


def _read_parser(arguments: CheckArguments) -> dict[str, Json]:
    parser_settings = arguments.take("parser")
    if not isinstance(parser_settings, dict) or ("regex" in parser_settings) == (
        "json" in parser_settings
    ):
        raise arguments.problem(
            "'parser' must have either 'regex' or 'json'", "as in \"{regex: 'SCORE: ([0-9]+)'}\""
        )
    inner = CheckArguments(parser_settings, arguments.line)
    if inner.has("regex"):
        pattern = inner.text("regex") or ""
        _raise_for_pattern(pattern, inner)
        parser: dict[str, Json] = {"regex": pattern}
    else:
        path = inner.text("json") or ""
        raise_for_path(path, inner)
        parser = {"json": path}
    settings: dict[str, Json] = {"parser": parser}
    if arguments.has("scores"):
        settings["scores"] = _read_scores(arguments.take("scores"), arguments)
        if inner.has("min") or inner.has("max"):
            raise arguments.problem("'min' and 'max' have an effect only without 'scores'")
    low, high = inner.number("min", 0) or 0, inner.number("max", 1)
    if high is None or not is_finite(low) or not is_finite(high) or low >= high:
        raise arguments.problem("'min' must be below 'max'")
    if low != 0:
        parser["min"] = plain(low)
    if high != 1:
        parser["max"] = plain(high)
    inner.finish(JUDGE)
    required = arguments.take("pass")
    if required is None:
        raise _without_pass(arguments)
    settings["pass"] = bound = canonical_bound(required, arguments)
    least = min(max(float(bound.split()[1]), low), high)
    _raise_unless_reached(bound, settings.get("scores", {0: low, 1: least, 2: high}), arguments)
    return settings


def _raise_for_pattern(pattern: str, arguments: CheckArguments) -> None:
    if compiled(require_pattern(pattern, arguments)).groups == 0:
        raise arguments.problem(
            f"the pattern {shorten(pattern)} has no group",
            "put the score into brackets, as in 'SCORE: ([0-9]+)'",
        )


def _never(_check: Mapping[str, Json], _subject: CheckInput) -> CheckFinding:
    raise EvalstoreError("models judge this, not the check itself")


KINDS = {JUDGE: CheckType(1, _read, _never, main="prompt", by_models=True)}
