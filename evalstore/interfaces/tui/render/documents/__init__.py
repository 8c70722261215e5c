"""Formats prompts, answers and files for the browser."""
