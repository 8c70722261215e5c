"""Asks candidates and evaluators: concurrently, within rate limits, budgets and retries."""
