"""Verdicts that changed, and when."""
