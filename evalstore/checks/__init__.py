"""Deterministic checks and their registry; each check type has a revision number.

A check is a mapping in canonical form: its type, its revision and all settings that differ
from their default. When the behaviour of a type changes, its revision goes up, and old
verdicts are judged again.
"""
