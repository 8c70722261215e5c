"""Reads the ways in which a command line names a case."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple

from evalstore.core.display import safe, short
from evalstore.core.results import Result

WITH_PROMPT = re.compile(r"(?P<case>.+?)(?:::| )\((?P<prompt>[^()]+)\)", re.DOTALL)
"""Matches a case with several system prompts as commands print it."""
_REVISION = re.compile(
    r"(?P<revision>@(?:work|~\d+)?|(?:@\{[^{}]+\}|[A-Za-z0-9][\w.-]+)(?:~\d*)?):(?!:)(?P<case>.+)",
    re.DOTALL,
)


class CaseReference(NamedTuple):
    """The name of a case: `[REV:]FILE::ROW`, or as it is printed."""

    case: str
    """`FILE`, `FILE::ROW` or `FILE [ROW]`."""
    revision: str | None = None
    prompt: str | None = None
    """The name of the system prompt, if it is printed behind the case."""


def read_reference(text: str, *, files: bool = False) -> CaseReference | None:
    """Return the case that a text names; None when it names something else, such as a run.

    With `files`, `REV:FILE` names the cases of the file in a run.
    """
    match = _REVISION.fullmatch(text)
    revision, case = (match["revision"], match["case"]) if match else (None, text)
    printed = WITH_PROMPT.fullmatch(case)
    if printed:
        return CaseReference(printed["case"], revision, printed["prompt"])
    if "::" in case or (" [" in case and case.endswith("]")):
        return CaseReference(case, revision)
    if (files and revision) or (revision is None and case.endswith(".md")):
        return CaseReference(case, revision)
    return None


def show_answer(session: str, root: Path, start: Path) -> str:
    """Return the command that shows an answer; it works in the folder `start`, too.

    `root` is the folder of the workspace, which commands find in and below it.
    """
    start, root = start.resolve(), root.resolve()
    words = ["evalstore"]
    if not start.is_relative_to(root):
        words += ["-C", str(root.relative_to(start) if root.is_relative_to(start) else root)]
    return shlex.join([*words, "show", short(session)])


def show_command(result: Result, prompt: str = "", *, names_model: bool = True) -> str:
    """Return the command that shows why a result has its verdict.

    `prompt` is the name of its system prompt when the case has several.
    """
    case = f"{result.file}::{result.row}" if result.row else result.file
    words = ["evalstore", "show", case]
    words += ["-m", result.model] if names_model else []
    words += ["--prompt", prompt] if prompt else []
    return shlex.join(words)


_LONGEST = 2_000
"""The most characters of a text of a model in the error of a test."""


def shortened(text: str) -> str:
    """Return a text of a model as the error of a test shows it; its further lines are indented."""
    shown = safe(text[:_LONGEST], lines=True) + ("…" if len(text) > _LONGEST else "")
    return shown.replace("\n", "\n    ")
