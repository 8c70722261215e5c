"""Reads a git checkout from its files; git itself, which runs what a checkout names, is not run."""

from evalstore.git.status import State, read_state

__all__ = ["State", "read_state"]
