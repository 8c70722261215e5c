"""Runs and the history of a test."""
