"""Writes docs/checks.md, and the tables in docs/formats/checks.md, from the checks' descriptions.

`python -m tools.check_docs`; with `--print NAME` it prints one of the pages instead.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from evalstore.checks import known_kinds
from evalstore.checks.descriptions import DESCRIPTIONS, EVERY_SETTING
from evalstore.checks.explain_check import (
    CheckExplanation,
    default_text,
    example_text,
    explain_check,
)
from evalstore.files.atomic_write import write_whole

if TYPE_CHECKING:
    from evalstore.checks.description import CheckExample, CheckSetting

DOCS = Path(__file__).parent.parent / "docs"
HEAD = """\
# Checks

Made from the descriptions of the checks by `make docs`; a test keeps it true and runs the examples.
`evalstore ls checks NAME` prints the same about one check, `evalstore ls checks` lists all.

A check is an entry of the block of checks below the `---` of a test;
[formats/checks.md](formats/checks.md#checks) says how such a block is written. The value of
`type: value` is the setting that is marked with *value*. In texts there may be placeholders, as in
`contains: "{{city}}"`.

## Settings of every check

`judge` has none of them but `allowEmpty`.

"""


def explanations() -> list[CheckExplanation]:
    """The checks of this package in the order of their descriptions; plug-ins are left out."""
    return [explain_check(name) for name in DESCRIPTIONS if name in known_kinds()]


def checks_page() -> str:
    """The page docs/checks.md."""
    parts = [HEAD, _table(EVERY_SETTING, None)]
    for check in explanations():
        parts.append(f"\n## {check.type}\n\nPasses if {check.description}.")
        parts.append(f" {check.notes}\n" if check.notes else "\n")
        if required := [setting.name for setting in check.common if setting.required]:
            parts.append(f"\nThe setting `{required[0]}` of every check is required here.\n")
        if check.settings:
            parts.append(f"\n{_table(check.settings, check.main)}")
        parts += [_example(example) for example in check.examples]
    return "".join(parts)


def _table(settings: Iterable[CheckSetting], main: str | None) -> str:
    rows = [
        f"| `{setting.name}`{', *value*' if setting.name == main else ''} | {setting.type.words} "
        f"| {_default(setting)} | {setting.description} |\n"
        for setting in settings
    ]
    return "| setting | type | default | meaning |\n|---|---|---|---|\n" + "".join(rows)


def _default(setting: CheckSetting) -> str:
    text = default_text(setting)
    return text if setting.required or not text else f"`{text}`"


def _example(example: CheckExample) -> str:
    answers = [
        f"{verdict}  {text}\n"
        for verdict, answer in (("pass", example.passing), ("fail", example.failing))
        if answer is not None
        for text in ["\n      ".join(example_text(answer).split("\n"))]
    ]
    judged = f"\n~~~text\n{''.join(answers)}~~~\n" if answers else ""
    return f"\n~~~checks\n- {example.check}\n~~~\n{judged}"


def types_table() -> str:
    """The table of types in docs/formats/checks.md."""
    rows = [
        f"| [`{check.type}`](../checks.md#{check.type.lower()}) | {_settings(check)} "
        f"| {check.description} |\n"
        for check in explanations()
    ]
    return "| check | settings with their defaults | passes if |\n|---|---|---|\n" + "".join(rows)


def _settings(check: CheckExplanation) -> str:
    required = [f"`{setting.name}` (required)" for setting in check.common if setting.required]
    own = [
        f"`{setting.name}`"
        + (" (value)" if setting.name == check.main else " (required)" * setting.required)
        + (f": {default}" if (default := _default(setting)) and not setting.required else "")
        for setting in check.settings
    ]
    return ", ".join(own + required) or "none"


def common_table() -> str:
    """The table of the settings of every check in docs/formats/checks.md."""
    return _table(EVERY_SETTING, None)


def blocks_page() -> str:
    """The page docs/formats/checks.md with its generated tables replaced."""
    text = (DOCS / "formats/checks.md").read_text(encoding="utf-8")
    for name, table in (("settings of checks", common_table()), ("checks", types_table())):
        begin, end = f"<!-- made: {name} -->\n", f"<!-- end: {name} -->"
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}\n{table.strip()}\n\n{end}{rest.partition(end)[2]}"
    return text


PAGES: Mapping[str, Callable[[], str]] = {
    "checks.md": checks_page,
    "formats/checks.md": blocks_page,
}

if __name__ == "__main__":
    if sys.argv[1:2] == ["--print"]:
        sys.stdout.write(PAGES[sys.argv[2]]())
    else:
        for name, page in PAGES.items():
            write_whole(DOCS / name, page().encode())
