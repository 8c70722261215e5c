"""People's verdicts."""
