"""Prints the explanation of a check type."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from evalstore.interfaces.cli import output

if TYPE_CHECKING:
    from evalstore.checks.description import CheckExample, CheckSetting
    from evalstore.checks.explain_check import CheckExplanation

_INDENT = 2


def print_check_explanation(check: CheckExplanation) -> None:
    """Print what a check does, its settings and its examples."""
    output.line(f"{output.paint(output.safe(check.type), bold=True)} passes if {_plain(check)}.")
    if check.notes:
        _paragraph(check.notes)
    _print_settings("Settings", check.settings, check.main)
    if not check.settings:
        output.line()
        output.line("It has no settings of its own.")
    _print_settings("Settings of every check", check.common, None)
    _print_examples(check.examples)


def _plain(check: CheckExplanation) -> str:
    return output.safe(check.description)


def _paragraph(text: str) -> None:
    for line in output.wrap(_without_markup(text), output.width()):
        output.line(output.safe(line))


def _without_markup(text: str) -> str:
    """Remove Markdown's links and backticks from a text."""
    text = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", text)
    return re.sub(r"`(\".*?\")`", r"\1", text).replace("`", "'")


def _print_settings(title: str, settings: Iterable[CheckSetting], main: str | None) -> None:
    from evalstore.checks.explain_check import default_text

    settings = tuple(settings)
    if not settings:
        return
    output.line()
    output.line(output.faint(f"{title}:"))
    width = max(len(setting.name) for setting in settings)
    for setting in settings:
        words = [_without_markup(setting.type.words)]
        if default := default_text(setting):
            words.append(default if setting.required else f"default {default}")
        if setting.name == main:
            words.append("or written as the value of the check")
        text = f"{_without_markup(setting.description)} ({'; '.join(words)})"
        for number, line in enumerate(output.wrap(text, output.width() - width - 2 * _INDENT)):
            name = setting.name if number == 0 else ""
            output.line(f"{' ' * _INDENT}{name.ljust(width)}  {output.safe(line)}")


def _print_examples(examples: tuple[CheckExample, ...]) -> None:
    if not examples:
        return
    output.line()
    output.line(output.faint("Examples:" if len(examples) > 1 else "Example:"))
    for example in examples:
        output.line(f"{' ' * _INDENT}- {output.safe(example.check)}")
        for line in _answers(example):
            output.line(f"{' ' * 3 * _INDENT}{line}")


def _answers(example: CheckExample) -> Iterator[str]:
    from evalstore.checks.explain_check import example_text

    for verdict, answer in (("pass", example.passing), ("fail", example.failing)):
        if answer is not None:
            word = output.paint(verdict, verdict)
            yield f"{word}  {output.safe(example_text(answer))}"
