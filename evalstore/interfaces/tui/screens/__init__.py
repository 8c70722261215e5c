"""The screens of the browser."""
