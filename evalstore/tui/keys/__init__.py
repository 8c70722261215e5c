"""Keys, actions and the command palette."""
