"""Limits on calls: rates and budgets."""
