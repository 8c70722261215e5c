"""All attacks."""

from __future__ import annotations

from tests.hostile.campaign import (
    concurrent_runs,
    damaged_stores,
    edits,
    escapes,
    fuzzing,
    hostile_files,
    hostile_servers,
    judge_injections,
    kills,
    odd_calls,
    outside_texts,
    sharing,
)
from tests.hostile.campaign.trial import Attack

MODULES = (
    hostile_files,
    hostile_servers,
    judge_injections,
    kills,
    edits,
    concurrent_runs,
    damaged_stores,
    odd_calls,
    outside_texts,
    escapes,
    fuzzing,
    sharing,
)
ATTACKS: tuple[Attack, ...] = tuple(module.ATTACK for module in MODULES)
