"""The differences of two runs, files or workspaces."""
