"""The formats of a judge's reply: a verdict, a choice, or a score.

Without a check `judge` the reply is a JSON object with `pass`. With one, it is one of several
choices, or a score that a pattern or a path finds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from evalstore.checks.bounds import reaches
from evalstore.checks.choice_matching import find_choice
from evalstore.checks.types.json import find_at_path
from evalstore.checks.types.judge import judge_of, scale_of
from evalstore.display import as_text, shorten
from evalstore.errors import NotRunError
from evalstore.judging.reply_parser import (
    Unreadable,
    finished_text,
    parse_unique_json,
    without_thinking,
)
from evalstore.judging.score_patterns import captured, to_score
from evalstore.judging.verdict_reply import (
    AGAIN,
    LONGEST_LABEL,
    JudgeReply,
    ask_again_with,
    ask_for_code,
    read_verdict,
    storable_text,
    undecided_reply,
)
from evalstore.processes.limited_calls import LimitReached
from evalstore.values import Json, OutgoingMessage, Reply, Text

if TYPE_CHECKING:
    from evalstore.judging.structured_output import Mode

_FENCED = re.compile(r"(`{3,})[ \t]*\w*[ \t]*\n(.*)\n\1", re.DOTALL)
_HOW = {
    "classify": "Answer with exactly one of these choices and with nothing else, no reason, no "
    "quotation marks: {}",
    "classify_cot": "Begin your answer with a line on which there is nothing but one of these "
    "choices, without quotation marks: {}\nGive your reasons on the lines below it.",
    "cot_classify": "Reason step by step first. Do not begin with the choice. Then end your answer "
    "with a line on which there is nothing but one of these choices, without quotation marks: {}",
}
_WHATEVER = "Whatever form of an answer is asked for above, this is the one that counts. "


class ReplyForm(Protocol):
    """A format of replies: the instructions for a judge, and the parser of its reply."""

    @property
    def strictest(self) -> Mode:
        """Return the strictest structured output that can be requested."""

    def words(self, code: str | None) -> str:
        """Return the instructions that are appended to the prompt; empty when the prompt has them.

        `code` must be in a verdict; None with structured output.
        """

    def again(self, code: str | None) -> str:
        """Return the instructions after an unreadable reply."""

    def read(self, reply: Reply, code: str | None = None) -> JudgeReply:
        """Read a judge's verdict from its reply; raises `Unreadable`."""

    def give_up(self, reply: Reply, reason: str) -> JudgeReply:
        """Return the result when no reply of the judge can be read."""


def form_of(checks: Iterable[Mapping[str, Json]]) -> ReplyForm:
    """Return the format of replies for the checks of an evaluation version."""
    check = judge_of(checks)
    if check is not None and "choices" in check:
        return Choices(check)
    return Verdicts() if check is None or "parser" not in check else Scores(check)


def tell(messages: tuple[OutgoingMessage, ...], words: str) -> tuple[OutgoingMessage, ...]:
    """Append an instruction to the messages of a prompt."""
    if not words:
        return messages
    *before, last = messages
    return (*before, replace(last, parts=(*last.parts, Text("\n\n" + words))))


@dataclass(frozen=True, slots=True)
class Verdicts:
    """A JSON object with `pass`."""

    strictest: Mode = "schema"

    def words(self, code: str | None) -> str:
        """Return the request for the code in the verdict; empty without a code."""
        return ask_for_code(code) if code else ""

    def again(self, code: str | None) -> str:
        """Return the request for the object alone."""
        return ask_again_with(code) if code else AGAIN

    def read(self, reply: Reply, code: str | None = None) -> JudgeReply:
        """Read a judge's verdict from its reply; raises `Unreadable`."""
        return read_verdict(reply, code)

    def give_up(self, reply: Reply, reason: str) -> JudgeReply:
        """Return an undecided result."""
        return undecided_reply(reply, reason)


@dataclass(frozen=True, slots=True)
class _ByCheck:
    """A format that a check `judge` configures."""

    check: Mapping[str, Json]

    def _result(self, reply: Reply, label: str | None, score: float | None) -> JudgeReply:
        """Return the result with this label and score, converted to a share of its scale."""
        required = self.check.get("pass", ">= 1")
        if isinstance(required, list):
            passed = label in required
        else:
            passed = score is not None and reaches(score, required)
        reason = f"the judge chose {shorten(label)}" if label else ""
        if score is not None and not (label and isinstance(required, list)):
            reason += f" (score {score:.4g})" if reason else f"the judge gave the score {score:.4g}"
        aim = " or ".join(map(shorten, required)) if isinstance(required, list) else required
        return JudgeReply(
            "pass" if passed else "fail",
            feedback="" if passed else f"{reason}; required {aim}",
            score=None if score is None else self._share(score),
            label=label[:LONGEST_LABEL] if label else None,
            reasoning=storable_text(reply.text),
        )

    def _share(self, score: float) -> float:
        low, high = scale_of(self.check)
        return min(max((score - low) / (high - low), 0.0), 1.0)

    def give_up(self, reply: Reply, reason: str) -> JudgeReply:
        """Return an undecided result; or a fail with the lowest score, if the check says so."""
        result = undecided_reply(reply, reason)
        if self.check.get("invalid") != "lowest":
            return result
        if "choices" in self.check and "scores" not in self.check:
            return result._replace(verdict="fail")
        scores = self.check.get("scores", {}).values()
        lowest = self._share(min(scores)) if scores else 0.0
        return result._replace(verdict="fail", score=lowest)


@dataclass(frozen=True, slots=True)
class Choices(_ByCheck):
    """One of several choices, on a line of its own."""

    @property
    def strictest(self) -> Mode:
        """Return `text`: structured output is not used."""
        return "text"

    def words(self, code: str | None) -> str:
        """Return the request for a choice, with its position and the choices."""
        instruction = _HOW[self.check.get("answer", "cot_classify")]
        return _WHATEVER + instruction.format(self._listed())

    def again(self, code: str | None) -> str:
        """Return the request for the choice alone."""
        return _HOW["classify"].format(self._listed())

    def _listed(self) -> str:
        return ", ".join(f'"{choice}"' for choice in self.check["choices"])

    def read(self, reply: Reply, code: str | None = None) -> JudgeReply:
        """Read the choice that the judge has made; raises `Unreadable`."""
        text = without_thinking(finished_text(reply))
        check = self.check
        choice = find_choice(
            text,
            check["choices"],
            check.get("answer", "cot_classify"),
            check.get("match", "word"),
        )
        if choice is None:
            raise Unreadable("the judge's reply names none of the choices, or more than one")
        return self._result(reply, choice, check.get("scores", {}).get(choice))


@dataclass(frozen=True, slots=True)
class Scores(_ByCheck):
    """A score, or the label of one, that a pattern or a path finds in the reply."""

    @property
    def strictest(self) -> Mode:
        """Return `json` for a path, `text` for a pattern."""
        return "json" if "json" in self.check["parser"] else "text"

    def words(self, code: str | None) -> str:
        """Return the request for JSON for a path; empty for a pattern."""
        return "Answer with one JSON object and nothing else." if self.strictest == "json" else ""

    def again(self, code: str | None) -> str:
        """Return the same request once more."""
        return self.words(code) or "Answer once more, exactly in the form that was asked for."

    def read(self, reply: Reply, code: str | None = None) -> JudgeReply:
        """Read the score that the judge gives; raises `Unreadable`."""
        value = self._extract(without_thinking(finished_text(reply)))
        if "scores" in self.check:
            label = as_text(value).strip()
            if label not in self.check["scores"]:
                raise Unreadable(f"the judge's {shorten(label)} has no score")
            return self._result(reply, label, self.check["scores"][label])
        score = to_score(value, is_json=self.strictest == "json")
        low, high = scale_of(self.check)
        if score is None or not low <= score <= high:
            expected = f"a number from {low:g} to {high:g}"
            raise Unreadable(f"the judge's score is {shorten(as_text(value))}, not {expected}")
        return self._result(reply, None, score)

    def _extract(self, text: str) -> Json:
        parser = self.check["parser"]
        if "regex" in parser:
            highest = None if "scores" in self.check else scale_of(self.check)[1]
            return captured(parser["regex"], parser.get("method", "last"), text, highest)
        fenced = _FENCED.fullmatch(text.strip())
        try:
            value = parse_unique_json(fenced[2] if fenced else text)
        except ValueError:
            raise Unreadable("the judge's reply is not JSON") from None
        try:
            value = find_at_path(parser["json"], value)
        except (LimitReached, NotRunError) as limit:
            path = shorten(parser["json"])
            raise Unreadable(f"the search for {path} was stopped: {limit}") from None
        if value is None:
            raise Unreadable(f"the judge's reply has nothing at {shorten(parser['json'])}")
        return value
