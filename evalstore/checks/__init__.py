"""Deterministic checks: the types are in `types`, and `parser` finds them by name.

A check is a mapping in canonical form: its type, its revision and all settings that differ
from their default. Each type has a revision number. When its behaviour changes, the number goes up,
and old verdicts are judged again.
"""
