"""Runs what may need any time or memory in processes with limits."""
