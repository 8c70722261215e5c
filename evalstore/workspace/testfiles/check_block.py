"""Reads the fenced block `checks` of a test file, before its texts are filled.

The block is parsed as YAML first, so data cannot change its structure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches

from evalstore.checks.parser import places_as_written, read_check, split
from evalstore.checks.placeholders import fill_in, templates_in
from evalstore.checks.types.judge import JUDGE
from evalstore.core.errors import FileProblem, raise_all
from evalstore.core.values import Json
from evalstore.files.fields import Fields, is_finite
from evalstore.files.markdown import SourceLine, fences
from evalstore.files.yaml12 import Document, read_yaml

WORD = "checks"
"""The first word after the opening fence."""
BLOCK_FIELDS = ("evaluator", "pass", WORD)
WHEN = ("on_pass", "on_fail", "always")
_NEAR = 0.75
"""How alike a word must be to count as a misspelling, 0..1: `check` and `chekcs`, not `css`."""
_RULE = re.compile(r">=\s*([0-9.]+)\Z")


@dataclass(frozen=True, slots=True)
class CheckEntry:
    """One check as it is written."""

    definition: Json
    line: int


@dataclass(frozen=True, slots=True)
class CheckList:
    """The checks of a file."""

    entries: tuple[CheckEntry, ...]
    rule: str = "all"
    """`all`, `any`, or `>= t` of the mean score."""
    when: str = "on_pass"
    """When models judge after the checks: `on_pass`, `on_fail` or `always`."""
    line: int = 1
    judge: CheckEntry | None = None
    """The check `judge`."""

    def require_criteria(self) -> None:
        """Raise when models judge without a prompt and without instructions."""
        if self.judge and not split(self.judge.definition, self.judge.line)[1].get("prompt"):
            raise FileProblem(
                "nothing says what models should judge by",
                self.judge.line,
                hint="name a judge prompt ('prompt'), or write instructions beside the block",
            )


def take_block(lines: list[SourceLine]) -> tuple[list[SourceLine], CheckList | None]:
    """Return the lines without the block, and the checks in it; raises `FileProblem`."""
    blocks = [fence for fence in fences(lines) if fence.info.split()[:1] == [WORD]]
    if not blocks:
        return lines, None
    if len(blocks) > 1:
        raise FileProblem(f"a second block '{WORD}'", blocks[1].opened)
    opened = blocks[0].opened
    if not blocks[0].closed:
        raise FileProblem(f"the block '{WORD}' is never closed", opened)
    start = next(number for number, line in enumerate(lines) if line.number == opened)
    others = [fence.opened for fence in fences(lines) if fence.opened > opened]
    end = start + 1
    while (
        end < len(lines)
        and lines[end].fenced
        and lines[end].number != (others[0] if others else None)
    ):
        end += 1
    document = _parse([line.text for line in lines[start + 1 : end - 1]], opened + 1)
    blank = start > 0 and end < len(lines) and not (lines[start - 1].text + lines[end].text).strip()
    return [*lines[:start], *lines[end + blank :]], _read(document)


def misspelt_blocks(lines: Sequence[SourceLine], reader: str) -> list[FileProblem]:
    """Return a warning about each block whose word is nearly `checks`, as `reader` is shown it.

    No usual language has such a name, so other blocks of code are left alone.
    """
    return [
        FileProblem(
            f"the block '{fence.info}' is text for the {reader}, not a block of checks",
            fence.opened,
            severity="warning",
            hint=f"did you mean '{WORD}'?",
        )
        for fence in fences(lines)
        if _is_misspelt(fence.info)
    ]


def _is_misspelt(info: str) -> bool:
    """Return whether the first word after a fence is nearly, but not exactly, `checks`."""
    word = info.split()[0] if info else WORD
    letters = re.sub("[^a-z]", "", word.lower())
    return word != WORD and bool(get_close_matches(letters, [WORD], cutoff=_NEAR))


def _parse(lines: list[str], first: int) -> Document:
    try:
        return read_yaml("\n".join(lines), first_line=first)
    except FileProblem as problem:
        wrong = "".join(lines[: (problem.line or first) - first + 1][-2:])
        if "{{" in wrong:
            problem.hint = "put quotes round a text that holds '{{', as in \"{{name}}\""
        raise


def _read(document: Document) -> CheckList:
    value = document.value
    line = document.line()
    if isinstance(value, dict) and WORD in value:
        fields = Fields(document, BLOCK_FIELDS)
        when = fields.choice("evaluator", WHEN) or "on_pass"
        rule = _rule(fields.value("pass"), document.line("pass"))
        entries, judge = _entries(document.at(WORD))
        if judge and rule != "all":
            raise FileProblem(
                f"'pass: {rule}' cannot be combined with the check 'judge'",
                judge.line,
                hint="'evaluator: on_fail' has them judge what fails the other checks",
            )
        return CheckList(entries, rule, when, line, judge)
    entries, judge = _entries(document)
    return CheckList(entries, line=line, judge=judge)


def _entries(document: Document) -> tuple[tuple[CheckEntry, ...], CheckEntry | None]:
    value = document.value
    if not isinstance(value, list):
        raise FileProblem(
            "the checks must be a list", document.line(), hint="as in '- contains: Paris'"
        )
    if not value:
        raise FileProblem("the list of checks is empty", document.line())
    entries = tuple(
        CheckEntry(_as_written(document.at(number)), document.line(number))
        for number in range(len(value))
    )
    judges = []
    problems: list[FileProblem] = []
    for entry in entries:
        try:
            name, _ = split(entry.definition, entry.line)  # the type does not depend on a row
        except FileProblem as problem:
            problems.append(problem)
        else:
            judges += [entry] if name == JUDGE else []
    if problems:
        raise_all(_read_all(entries))
    if len(judges) > 1:
        raise FileProblem(
            "a second check 'judge'", judges[1].line, hint="models judge a test in one way"
        )
    return entries, judges[0] if judges else None


def _as_written(document: Document) -> Json:
    """Return a check in which texts and numbers have the form in which they are written.

    So `1.10` is not `1.1`, and a number has all its digits.
    """
    definition: Json = document.value
    for place, kind in places_as_written(definition):
        value = document.at(*place).value
        inner = (
            [(*place, number) for number in range(len(value))] if isinstance(value, list) else []
        )
        for at in inner or [place]:
            scalar = document.at(*at)
            if scalar.form is None or scalar.value is None or isinstance(scalar.value, str):
                continue
            if kind == "texts":
                definition = fill_in(definition, [(at, scalar.form)])
            elif isinstance(scalar.value, float) and is_finite(scalar.value):
                definition = fill_in(definition, [(at, str(Decimal(scalar.form)))])
    return definition


def _read_all(entries: Iterable[CheckEntry]) -> list[FileProblem]:
    """Return the problems of all checks of which one has no type, as far as no row is needed."""
    problems: list[FileProblem] = []
    for entry in entries:
        try:
            is_whole = not any(True for _ in templates_in(entry.definition))
            (read_check if is_whole else split)(entry.definition, entry.line)
        except FileProblem as problem:
            problems.append(problem)
    return problems


def _rule(value: Json, line: int) -> str:
    if value is None or value in ("all", "any"):
        return value or "all"
    match = _RULE.match(value) if isinstance(value, str) else None
    try:
        least = float(match[1]) if match else -1.0
    except ValueError:
        least = -1.0
    if not 0 <= least <= 1:
        raise FileProblem("'pass' must be all, any, or a text such as '>= 0.8'", line)
    return f">= {least:g}"
