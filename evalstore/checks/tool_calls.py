"""Checks of the tool calls in an answer."""

from __future__ import annotations

from collections.abc import Mapping

from evalstore.checks.base import Arguments, Finding, Kind, Subject, passes
from evalstore.values import Json


def _read_calls(_arguments: Arguments) -> dict[str, Json]:
    return {}


def _calls_a_tool(_check: Mapping[str, Json], subject: Subject) -> Finding:
    """Whether at least one tool was called."""
    return passes(bool(subject.reply.tool_calls), "the answer is a text, no tool was called")


KINDS = {"toolCalls": Kind(1, _read_calls, _calls_a_tool, main=None)}
