"""The HTML report of a run: one file that needs no network."""
