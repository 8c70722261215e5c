"""Pages for web browsers on this machine: the guard that they share, and the pages of results."""
