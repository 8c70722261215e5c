"""Checks of a workspace and of the machine."""
