"""The program that runs Python checks in a separate process; evalstore does not import it."""
