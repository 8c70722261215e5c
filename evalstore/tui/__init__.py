"""The browser: what is stored, in a terminal. The only package that knows Textual."""
