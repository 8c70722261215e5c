"""Reads a git checkout from its files, without running git, which may run configured programs."""

from evalstore.git.status import State, read_state

__all__ = ["State", "read_state"]
