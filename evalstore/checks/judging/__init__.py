"""Turns the replies of judges, and votes, into verdicts."""
