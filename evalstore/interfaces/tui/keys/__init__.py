"""Actions, and the keys that people choose for them."""
