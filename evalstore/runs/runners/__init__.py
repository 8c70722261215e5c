"""Programs that take part in a run."""
