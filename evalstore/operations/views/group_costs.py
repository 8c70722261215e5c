"""Formats the costs of a group of results, for all tables of statistics alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.display import known_price

if TYPE_CHECKING:
    from evalstore.reports.group_totals import ResultGroup


def answers_cost(group: ResultGroup, currency: str = "USD") -> str:
    """Return the cost of the answers."""
    return known_price(group.answering, group.unpriced_answers, currency, brief=True)


def answers_cost_per_100(group: ResultGroup, currency: str = "USD") -> str:
    """Return the cost of 100 answers, without the judging; empty if there are no answers."""
    if not group.sessions:
        return ""
    amount = group.per_100(group.answering)
    return known_price(amount, group.unpriced_answers, currency, brief=True)


def judging_cost(group: ResultGroup, currency: str = "USD") -> str:
    """Return the cost of the judgements."""
    return known_price(group.judging, group.unpriced_judgements, currency, brief=True)


def total_cost(group: ResultGroup, currency: str = "USD") -> str:
    """Return the cost of the answers and the judgements."""
    return known_price(group.cost, group.unpriced, currency, brief=True)
