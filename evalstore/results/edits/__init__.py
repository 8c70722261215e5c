"""What was edited between two states of a workspace."""
