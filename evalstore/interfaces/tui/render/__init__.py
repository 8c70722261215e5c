"""Draws verdicts, answers and runs as styled text."""
