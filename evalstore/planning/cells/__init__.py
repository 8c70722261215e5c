"""The cells of a plan, and those that an earlier plan already settled."""
