"""What a command is about, what of it is missing, why, and what it will cost."""
