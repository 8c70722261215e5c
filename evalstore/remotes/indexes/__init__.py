"""The lists of what the packs of a remote contain."""
