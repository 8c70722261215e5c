"""Runs computations in processes with limits of time and memory."""
