"""Arguments in, one operation, output and exit code out."""
