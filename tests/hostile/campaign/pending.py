"""Cases that the short form leaves out, because what they attack is not repaired yet.

The long form leaves nothing out. The name `random` stands for all trials that are drawn.
"""

from __future__ import annotations

PENDING: dict[str, frozenset[str]] = {}
"""By attack: the names of the cases."""
