"""The cases of a run as a table."""
