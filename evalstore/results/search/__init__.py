"""Texts in results, and SQL."""
