"""Compares results and computes pass rates, intervals and differences, without reading files."""
