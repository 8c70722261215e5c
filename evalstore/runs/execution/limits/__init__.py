"""Limits on calls: rates, budgets, sizes and retries."""
