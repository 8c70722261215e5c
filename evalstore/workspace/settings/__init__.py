"""Reads `evalstore.yaml` and `.env`."""
