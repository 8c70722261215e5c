"""The check `palindrome`: the answer reads the same from both ends.

~~~checks
- palindrome                           # letters and digits count, their case does not
- {type: palindrome, least: 5}         # it must have at least so many of them
~~~
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalstore.plugins import (
    CheckArguments,
    CheckDescription,
    CheckExample,
    CheckFinding,
    CheckInput,
    CheckSetting,
    CheckType,
    ValueType,
)


def _read(arguments: CheckArguments) -> dict[str, Any]:
    """The settings that are not as they are by default: these are hashed."""
    least = arguments.whole("least", 1, least=1)
    return {} if least == 1 else {"least": least}


def _judge(settings: Mapping[str, Any], subject: CheckInput) -> CheckFinding:
    letters = [letter for letter in subject.text.casefold() if letter.isalnum()]
    least = settings.get("least", 1)
    if len(letters) < least:
        return CheckFinding(0.0, f"expected at least {least} letters, found {len(letters)}")
    if letters != letters[::-1]:
        return CheckFinding(0.0, f"expected a palindrome, found '{subject.text}'")
    return CheckFinding(1.0)


DESCRIPTION = CheckDescription(
    "the answer reads the same from both ends",
    (
        CheckSetting(
            "least",
            ValueType("whole number", {"type": "integer", "minimum": 1}),
            "the fewest letters and digits",
            default=1,
        ),
    ),
    (CheckExample("palindrome: {least: 5}", "Never odd or even", "Bob"),),
)
"""For `evalstore ls checks` and for editors; it may be left out."""

PALINDROME = CheckType(revision=1, read=_read, judge=_judge, main=None, description=DESCRIPTION)
"""Raise the revision when the behaviour changes: what it judged is judged again then."""
