"""Selects cases, plans the missing calls with their reasons, and estimates their cost."""
