"""`ls checks`: descriptions of check types."""

from __future__ import annotations

from dataclasses import dataclass, field

from evalstore.checks.base import CheckExample, CheckSetting, CheckType
from evalstore.checks.descriptions import common_settings, describe_check
from evalstore.checks.parser import suggest_check
from evalstore.checks.registry import find_kind, known_kinds
from evalstore.core.display import as_text
from evalstore.core.errors import EvalstoreError
from evalstore.core.values import Json

_SETTINGS = {"json_as": lambda settings: [*map(_setting, settings)]}


@dataclass(frozen=True, slots=True)
class CheckExplanation:
    """A check type as help shows it."""

    type: str
    revision: int
    description: str
    """When it passes."""
    notes: str
    main: str | None
    """The setting that `type: value` sets; None if the type has no value."""
    settings: tuple[CheckSetting, ...] = field(metadata=_SETTINGS)
    common: tuple[CheckSetting, ...] = field(metadata={"json_name": "commonSettings", **_SETTINGS})
    """The settings that all checks have; those that it requires are marked."""
    examples: tuple[CheckExample, ...] = field(default=())


def explain_check(name: str) -> CheckExplanation:
    """Return the explanation of a check type; raises `EvalstoreError` for an unknown name."""
    kind = find_kind(name)
    if kind is None:
        raise EvalstoreError(f"unknown check '{name}'", hint=suggest_check(name))
    return _explain(name, kind)


def explain_checks() -> list[CheckExplanation]:
    """Return the explanations of all check types, by name."""
    return [_explain(name, kind) for name, kind in sorted(known_kinds().items())]


def _explain(name: str, kind: CheckType) -> CheckExplanation:
    description = describe_check(name, kind)
    required = {"pass"} if kind.graded else {"scope"} if kind.joint else set()
    return CheckExplanation(
        name,
        kind.revision,
        description.summary,
        description.notes,
        kind.main,
        description.settings,
        tuple(
            setting._replace(required=True, default=None) if setting.name in required else setting
            for setting in common_settings(kind)
        ),
        description.examples,
    )


def _setting(setting: CheckSetting) -> dict[str, Json]:
    return {
        "name": setting.name,
        "type": setting.type.words,
        "schema": dict(setting.type.schema),
        "required": setting.required,
        "default": setting.default,
        "description": setting.description,
    }


def default_text(setting: CheckSetting) -> str:
    """Return the default of a setting in words; empty when there is none."""
    if setting.required:
        return "required"
    return "" if setting.default is None else as_text(setting.default)


def example_text(answer: Json) -> str:
    """Return an answer of an example in words."""
    if isinstance(answer, list):
        return " / ".join(map(str, answer))
    if not isinstance(answer, dict):
        return str(answer)
    if calls := answer.get("toolCalls"):
        words = [f"{call['name']}({as_text(call['arguments'])})" for call in calls]
        return f"calls {', '.join(words)}"
    (name, value), *_ = answer.items()
    units = {"latency": "{} seconds", "cost": "${}", "tokens": "{} tokens"}
    return units.get(name, "{}").format(value)
