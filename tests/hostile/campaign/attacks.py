"""All attacks."""

from __future__ import annotations

from tests.hostile.campaign import hostile_files, hostile_servers, judge_injections

ATTACKS = (hostile_files.ATTACK, hostile_servers.ATTACK, judge_injections.ATTACK)
