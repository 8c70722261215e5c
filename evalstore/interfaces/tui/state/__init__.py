"""What the screens hold: filters, positions, and where their data comes from."""
