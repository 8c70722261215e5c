"""The reason for an item of a plan, and how a difference becomes one."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from evalstore.comparison.version_diff import (
    CODE_CHANGED,
    Difference,
    Find,
    Name,
    differ_models,
    differ_prompts,
    in_place,
    nowhere,
    number_or_none,
)
from evalstore.core.display import plural
from evalstore.core.values import Json

_NAMED = (
    *("tool ", "schema ", "file ", "special tag ", "model ", "check ", "instructions "),
    *("recorded answer", "repetitions", "conversation ", "order of ", "judged by"),
    *("judge prompt ", "judge model "),
    CODE_CHANGED,
    "the judge's code changed",
)
"""Beginnings of differences that are shown as they are."""

NEW_ROW = "new row"
"""The reason for a row that no earlier run had; a remark may follow."""


NEW_ANSWER = "new answer"
VERDICTS_WANTED = "evaluationsPerEvaluator"
"""The setting of how many verdicts each judge gives."""
TOKEN_LIMIT = "maxTestOutputTokens"
"""The setting of the most tokens of an answer."""
NEW_PROMPT = "system prompt is new"
"""The reason for a system prompt in whose place there was none before."""


class Reason(NamedTuple):
    """Why an item is in the plan, with the first difference."""

    text: str
    was: str | None = None
    now: str | None = None
    relative: str | None = None
    """Id of the question that is the nearest relative, when there is one."""
    also: tuple[str, ...] = ()
    """The parts of the case that were edited as well, such as `checks`."""
    of: str = ""
    """What was edited, if no test file was: `candidate openai/gpt-5.4-mini`, `attempts`."""

    @property
    def cause(self) -> str:
        """Return the text without its details, as in `test changed`."""
        return self.text.partition(": ")[0]

    def followed_by(self, remark: str) -> Reason:
        """Return the reason with a remark, such as where the answer is."""
        return self._replace(text=f"{self.text}; {remark}")


def describe_prompt_change(
    find: Find,
    replaced: str | None,
    prompt: str | None,
    relative: str | None = None,
    name: str | None = None,
) -> Reason:
    """Return why a case with other system prompts is shown with this one of its prompts.

    `replaced` is the one in its place that the case no longer has; without it, the prompt is new,
    and no edit of another one. `name` is that of the prompt.
    """
    if prompt is None:
        return Reason("without a system prompt now", relative=relative)
    if replaced is None:
        return Reason(NEW_PROMPT, relative=relative)
    differences = differ_prompts(find("prompt", replaced) or {}, find("prompt", prompt) or {})
    subject = f"system prompt {name} changed" if name else "system prompt changed"
    return reason_of(differences, subject, relative)


def describe_evaluator_change(
    find: Find, was: Json, now: Json, id: str = "", name: Name = nowhere
) -> Reason:
    """Return how two evaluators differ, as contents; `id` is the name of the new one.

    `name` returns those of prompts.
    """
    judge = f"judge {id}"
    if was.get("model") != now.get("model"):
        models = [find("model", each.get("model") or "") or {} for each in (was, now)]
        code = id or str(models[1].get("code") or now.get("model", "")[:8])
        return (_other_model(*models) or Reason(f"new judge {code}"))._replace(of=judge)
    if was.get("prompt") != now.get("prompt"):
        ids = [each.get("prompt") or "" for each in (was, now)]
        former, present = (name("prompt", each) for each in ids)
        if former and present and former != present:
            return Reason(in_place("judge prompt", present, former).subject, of=judge)
        prompt = f"judge prompt {present}" if present else "judge prompt"
        differences = differ_prompts(*(find("prompt", each) or {} for each in ids))
        reason = reason_of(differences, f"{prompt} changed")
        return reason._replace(of=prompt if present else judge)
    if was.get("reading") != now.get("reading"):
        return Reason("evalstore now reads replies of judges differently", of=judge)
    old, new = (number_or_none(each.get("temperature")) for each in (was, now))
    return Reason(f"judge temperature {old} -> {new}", old, new, of=judge)


def _other_model(was: Json, now: Json) -> Reason | None:
    """Return what changed of the model of an evaluator; None for another model."""
    if not was or any(was.get(name) != now.get(name) for name in ("provider", "code")):
        return None
    differences = [
        replace(each, subject=_of_evaluator(each.subject)) for each in differ_models(was, now)
    ]
    return reason_of(differences, "judge") if differences else None


def _of_evaluator(subject: str) -> str:
    """Return what differs between two models as a difference between two evaluators."""
    if subject.startswith(CODE_CHANGED):
        return subject.replace(CODE_CHANGED, "the judge's code changed", 1)
    return f"judge {subject}"


def reason_of(differences: list[Difference], subject: str, relative: str | None = None) -> Reason:
    """Return the first difference as a reason, with the number of the others."""
    if not differences:
        return Reason(subject, relative=relative)
    first, *rest = differences
    more = f" (and {plural(len(rest), 'more change')})" if rest else ""
    text = str(first) if first.subject.startswith(_NAMED) else f"{subject}: {first}"
    return Reason(text + more, first.was, first.now, relative)
