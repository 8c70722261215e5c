"""The folder with evalstore.yaml: its settings and files, their cases and problems."""
