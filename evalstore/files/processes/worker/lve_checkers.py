"""A package `lve` with the classes and functions that checkers written for LVE use.

A checker class has a method `is_safe`: it gets the conversation with the answers in it, a list of
messages, and the values of the row by name. Older classes have parameters for single values
instead: `prompt`, `response`, `variables`, `param_values`. A safe answer passes.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
import types
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, ClassVar

OWN = frozenset(
    (
        "BaseChecker",
        "MultiRunBaseChecker",
        "LambdaChecker",
        "MultiRunLambdaChecker",
        "NumberChecker",
        "RegexChecker",
        "ExactMatchChecker",
        "FuzzyMatchChecker",
        "RefuseChecker",
        "MonotonicityChecker",
        "ToxicityChecker",
        "PII_Checker",
        "GenderBiasChecker",
    )
)
"""The names of LVE's own checkers."""
_WHOLE = re.compile(r"\d{1,3}(?:[,']\d{3})+|\d+")
_DECIMAL = re.compile(r"\d{1,3}(?:[,'_]\d{3})*(?:\.\d+)?")
_NAMED = ("response", "variables")
"""Parameters that only older classes have."""


class Role(StrEnum):
    """The role of a message."""

    user = "user"
    assistant = "assistant"
    system = "system"


@dataclass
class Message:
    """One turn."""

    content: str | None = None
    role: Role = Role.user
    variable: str | None = None
    image_url: str | None = None


Chat = list[Message]


class BaseChecker:
    """The base class of checkers of one conversation."""

    extract: str | None = None
    _ways: ClassVar = {
        "int_first": (_WHOLE, 0, int),
        "int_last": (_WHOLE, -1, int),
        "float_first": (_DECIMAL, 0, float),
        "float_last": (_DECIMAL, -1, float),
    }

    def __init__(self, extract: str | None = None) -> None:
        if extract is not None and extract not in self._ways:
            raise ValueError(f"'extract' cannot be '{extract}'; it can be {', '.join(self._ways)}")
        self.extract = extract

    def _extract(self, value: Any) -> Any:
        """Return the first or last number of a text without its sign; the text if it has none."""
        if self.extract is None or not isinstance(value, str):
            return value
        pattern, place, kind = self._ways[self.extract]
        numbers = pattern.findall(value)
        return kind(re.sub("[,'_]", "", numbers[place])) if numbers else value

    def extract_response_from_prompt(self, prompt: Chat, full: bool = False) -> Any:
        """Return the last answer; unless `full`, only the number that the checker looks for."""
        if prompt[-1].role != Role.assistant:
            raise ValueError("the conversation does not end with an answer")
        content = prompt[-1].content
        return content if full else self._extract(content)

    def extract_variables_from_prompt(self, prompt: Chat, full: bool = False) -> dict[str, Any]:
        """Return the answers by name; those without a name by number."""
        variables: dict[str, Any] = {}
        for message in prompt:
            if message.role == Role.assistant:
                name = str(len(variables)) if message.variable is None else message.variable
                variables[name] = message.content if full else self._extract(message.content)
        return variables

    def is_safe(self, prompt_out: Chat, param_values: Any = None) -> Any:
        """Return whether the answers are safe; subclasses override it."""
        raise NotImplementedError(f"'{type(self).__name__}' has no method 'is_safe'")

    def postprocess_response(self, response: Any) -> Any:
        """Return an answer as it is shown; subclasses may override it."""
        return response

    @classmethod
    def is_multi_run(cls) -> bool:
        """Return whether it looks at several conversations at once."""
        return False

    def invoke_check(self, prompt_in: Any, prompt_out: Any, param_values: Any = None) -> Any:
        """Return the result of `is_safe`, and the answers."""
        several = self.is_multi_run()
        chats = prompt_out if several else [prompt_out]
        answers = [self._answers(chat) for chat in chats]
        parameters = inspect.signature(self.is_safe).parameters
        if any(name in parameters for name in _NAMED):
            available = {
                "prompt": prompt_out,
                "prompt_in": prompt_in,
                "prompt_out": prompt_out,
                "response": _all_or_only(
                    [self.extract_response_from_prompt(chat) for chat in chats], several
                ),
                "variables": _all_or_only(
                    [self.extract_variables_from_prompt(chat) for chat in chats], several
                ),
                "param_values": param_values,
            }
            safe = self.is_safe(
                **{name: available[name] for name in parameters if name in available}
            )
        else:
            safe = self.is_safe(prompt_out, param_values)
        return safe, _all_or_only(answers, several)

    def _answers(self, chat: Chat) -> Any:
        named = [
            message
            for message in chat
            if message.role == Role.assistant and message.variable is not None
        ]
        if len(named) > 1:
            return self.extract_variables_from_prompt(chat, full=True)
        return self.extract_response_from_prompt(chat, full=True)


class MultiRunBaseChecker(BaseChecker):
    """The base class of checkers of several conversations: `is_safe` gets a list of them."""

    @classmethod
    def is_multi_run(cls) -> bool:
        """Return whether it looks at several conversations at once."""
        return True


def _all_or_only(values: list[Any], several: bool) -> Any:
    return values if several else values[0]


def ensure_installed(package: str, pip_name: str | None = None) -> None:
    """Raise an error unless a package is installed; nothing is installed."""
    try:
        importlib.import_module(package)
    except ImportError as error:
        raise ImportError(
            f"the check needs the package '{pip_name or package}', which is not installed"
        ) from error


def refuse_own_names(name: str) -> None:
    """Raise an error for a class with the name of one of LVE's own, which LVE would replace."""
    if name in OWN:
        raise TypeError(f"'{name}' is the name of one of LVE's own checkers: rename the class")


def judge(checker: BaseChecker, facts: dict[str, Any]) -> Any:
    """Run a checker on the answers; a safe answer passes."""
    chats = [
        [Message(turn["content"], Role(turn["role"]), turn.get("name")) for turn in run]
        for run in facts.get("runs", [facts["messages"]])
    ]
    unanswered_chats = [
        [replace(message, content=None) if message.variable else message for message in chat]
        for chat in chats
    ]
    values = ParameterValues(facts["item"])
    if checker.is_multi_run():
        return checker.invoke_check(unanswered_chats, chats, values)[0]
    return checker.invoke_check(unanswered_chats[-1], chats[-1], values)[0]


class ParameterValues(dict[str, Any]):
    """The values of a row, also by the names in LVE: `phone-number` is `phone_number`."""

    def __missing__(self, name: str) -> Any:
        identifier = re.sub(r"\W", "_", name.lower())
        for spelling in (identifier, f"{identifier}_", identifier.lstrip("_")):
            if super().__contains__(spelling):
                return self[spelling]
        raise KeyError(name)

    def __contains__(self, name: object) -> bool:
        try:
            self[str(name)]
        except KeyError:
            return False
        return True

    def get(self, name: str, default: Any = None) -> Any:
        """Return the value of a name, else the default."""
        try:
            return self[name]
        except KeyError:
            return default


def offer() -> None:
    """Register this module as the package `lve`."""
    parts: dict[str, tuple[object, ...]] = {
        "lve": (),
        "lve.prompt": (Role, Message),
        "lve.checkers": (BaseChecker, MultiRunBaseChecker),
        "lve.checkers.base": (BaseChecker, MultiRunBaseChecker, Role, refuse_own_names, judge),
        "lve.utils": (),
        "lve.utils.importutils": (ensure_installed,),
    }
    for name, members in parts.items():
        module = types.ModuleType(name, "What checkers written for LVE use of it.")
        for member in members:
            setattr(module, getattr(member, "__name__"), member)  # noqa: B009 - of any object
        if name in ("lve", "lve.checkers", "lve.utils"):
            module.__path__ = []
        folder, _, last = name.rpartition(".")
        if folder:
            setattr(sys.modules[folder], last, module)
        sys.modules[name] = module
