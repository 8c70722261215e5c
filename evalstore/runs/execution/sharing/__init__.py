"""Several programs that carry out one run."""
