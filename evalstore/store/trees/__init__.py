"""Documents that are stored as trees of shared nodes."""
