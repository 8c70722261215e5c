"""The folder with evalstore.yaml: its files, the cases they make, and all their problems."""
