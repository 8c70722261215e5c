"""The program that runs Python checks in a process of its own. Nothing of evalstore imports it."""
