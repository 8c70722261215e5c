"""The browser of stored results in a terminal, made with Textual."""
