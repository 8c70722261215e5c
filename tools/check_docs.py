"""Writes docs/checks.md from the descriptions of the checks: `python -m tools.check_docs`.

With `--print` it prints the page instead.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from evalstore.checks.descriptions import DESCRIPTIONS, EVERY_SETTING
from evalstore.checks.parser import (
    CheckExplanation,
    default_text,
    example_text,
    explain_check,
    known_kinds,
)
from evalstore.files.atomic_write import write_whole

if TYPE_CHECKING:
    from evalstore.checks.base import CheckExample, CheckSetting

PAGE = Path(__file__).parent.parent / "docs/checks.md"
HEAD = """\
# Checks

Every check with an example; `evalstore ls checks NAME` prints all its examples. A check is an
entry of the [block of checks](formats/checks.md#checks) below the `---` of a test, usually as
`type: value`; the bold setting is the value, and brackets give the type and the default. Texts
may have placeholders, as in `contains: "{{city}}"`.

## Settings of every check

`judge` has none of them but `allowEmpty`.

"""


def explanations() -> list[CheckExplanation]:
    """The checks of this package in the order of their descriptions; plug-ins are left out."""
    return [explain_check(name) for name in DESCRIPTIONS if name in known_kinds()]


def checks_page() -> str:
    """The page docs/checks.md."""
    parts = [HEAD, _settings(EVERY_SETTING, None)]
    for check in explanations():
        parts.append(f"\n## {check.type}\n\nPasses if {check.description}.")
        parts.append(f" {check.notes}\n" if check.notes else "\n")
        if required := [setting.name for setting in check.common if setting.required]:
            parts.append(f"\nThe setting `{required[0]}` of every check is required here.\n")
        if check.settings:
            parts.append(f"\n{_settings(check.settings, check.main)}")
        parts += [_example(example) for example in check.examples[:1]]
    return "".join(parts)


def _settings(settings: Iterable[CheckSetting], main: str | None) -> str:
    lines = []
    for setting in settings:
        about = [setting.type.words]
        if setting.required:
            about.append("required")
        elif default := default_text(setting):
            about = (
                [*about, f"`{default}`"] if default not in ("true", "false") else [f"`{default}`"]
            )
        name = f"**`{setting.name}`**" if setting.name == main else f"`{setting.name}`"
        lines.append(f"- {name} ({', '.join(about)}): {setting.description}\n")
    return "".join(lines)


def _example(example: CheckExample) -> str:
    answers = [
        f"{verdict}  {text}\n"
        for verdict, answer in (("pass", example.passing), ("fail", example.failing))
        if answer is not None
        for text in ["\n      ".join(example_text(answer).split("\n"))]
    ]
    judged = f"\n~~~text\n{''.join(answers)}~~~\n" if answers else ""
    return f"\n~~~checks\n- {example.check}\n~~~\n{judged}"


if __name__ == "__main__":
    if sys.argv[1:] == ["--print"]:
        sys.stdout.write(checks_page())
    else:
        write_whole(PAGE, checks_page().encode())
