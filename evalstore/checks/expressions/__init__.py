"""The check `expr`: a small expression language, evaluated within limits."""
