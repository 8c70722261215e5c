"""Stores in PostgreSQL databases; the only package that imports psycopg."""
