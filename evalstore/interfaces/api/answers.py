"""The answers that the library returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalstore.results.answer.answer import AnswerView, TurnView
    from evalstore.results.answer.judgements import Judgement
    from evalstore.results.session_facts import SessionFacts


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer with its conversation and judgements; without an answer, what would be asked."""

    session: str | None
    """Id; None: there is no answer."""
    file: str
    row: str
    text: str
    """The last answer, JSON indented; empty when there is none."""
    conversation: tuple[TurnView, ...]
    """`role`, `text` and `name` of each turn after the system prompt, with `answer` where the
    candidate speaks."""
    judgements: tuple[Judgement, ...]
    """Those that count first, then the newest."""
    failures: tuple[str, ...]
    """Why an answer or a judgement is missing, newest first."""
    facts: SessionFacts | None
    """Tokens, cost (USD), latency (seconds), temperature and more; None: there is no answer."""

    def _repr_html_(self) -> str:
        """Return the answer as notebooks show it: the conversation, and its judgements."""
        from evalstore.core.display import money, short
        from evalstore.core.notebooks.html_tables import block, line, long_text, strong, table, word

        facts = self.facts
        measured = f"{money(facts.cost)} · {facts.latency:.2f} s" if facts else "no answer"
        return block(
            line(
                strong(f"{self.file} [{self.row}]" if self.row else self.file),
                f"· answer {short(self.session)}" if self.session else "",
                f"· {measured}",
            ),
            table(
                ["turn", "text"],
                [(f"{turn.role} {turn.name}".strip(), turn.text) for turn in self.conversation],
            ),
            table(
                ["judged by", "verdict", "feedback"],
                [
                    (
                        judgement.by,
                        word(judgement.verdict),
                        judgement.why_not or judgement.feedback,
                    )
                    for judgement in self.judgements
                ],
            ),
            *(long_text(failure) for failure in self.failures),
        )


def answer_from(view: AnswerView) -> Answer:
    """Convert the answer that a view shows."""
    return Answer(
        session=view.id,
        file=view.file,
        row=view.row,
        text=view.answer,
        conversation=view.conversation,
        judgements=view.judgements,
        failures=view.failures,
        facts=view.facts,
    )
