"""Dialogs of the browser, and its command palette."""
