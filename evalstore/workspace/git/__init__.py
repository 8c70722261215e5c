"""Reads a git checkout from its files, without running git, which may run configured programs."""

from evalstore.workspace.git.objects import Ancestors
from evalstore.workspace.git.status import State, read_state, read_user_name

__all__ = ["Ancestors", "State", "read_state", "read_user_name"]
