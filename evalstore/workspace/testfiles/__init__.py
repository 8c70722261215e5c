"""Test files: from their text to cases."""
