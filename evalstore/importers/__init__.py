"""Other people's files in: one module for each format."""
