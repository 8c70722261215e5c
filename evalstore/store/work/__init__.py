"""Runs that are in progress, and who does what."""
