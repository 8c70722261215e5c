"""One answer with all that explains its verdict."""
