"""A run, a test or an answer in full."""
