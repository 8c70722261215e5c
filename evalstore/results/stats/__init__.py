"""Rates, costs and times by group."""
