"""Every question about what is stored."""
