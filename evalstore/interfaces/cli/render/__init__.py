"""Prints what operations return."""
